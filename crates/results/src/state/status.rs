//! Where each row stands, from what the CSV and the journal say.
//!
//! Rows that ask for the same run cannot be told apart, and are matched with what was run by their number: as many attempts as there are
//! rows marked as done belong to those, wherever in the file they stand.

use super::history::{Attempt, History, Outcome, RowId};
use crate::row::{Row, RowKey};
use std::collections::BTreeMap;

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status<'a> {
    /// To be run.
    Pending,
    /// Done; `None` where it was not done by this study.
    Done(Option<&'a Attempt>),
    /// Done and on the disk, and the CSV does not say so yet.
    Unmarked(&'a Attempt),
    /// Its author set it back after it was done: to be run again.
    SetBack(&'a Attempt),
    /// It came to no result, and is run again on request.
    Failed(&'a Attempt, &'a str),
    /// Begun, and nobody has told what came of it: it goes on, or its runner died.
    Left(&'a Attempt),
}

/// A row and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<'a> {
    /// Which of the rows that ask for the same.
    pub id: RowId,
    /// Where it stands.
    pub status: Status<'a>,
}

impl<'a> Status<'a> {
    /// In one word.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Pending | Status::SetBack(_) => "pending",
            Status::Done(_) | Status::Unmarked(_) => "done",
            Status::Failed(..) => "failed",
            Status::Left(_) => "running",
        }
    }

    /// The attempt that it is from.
    pub fn attempt(&self) -> Option<&'a Attempt> {
        match *self {
            Status::Pending => None,
            Status::Done(attempt) => attempt,
            Status::Unmarked(of) | Status::SetBack(of) | Status::Failed(of, _) => Some(of),
            Status::Left(of) => Some(of),
        }
    }
}

/// Of each row, in their order.
pub fn places<'a>(rows: &[Row], history: &'a History) -> Vec<Place<'a>> {
    let mut alike: BTreeMap<RowKey, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        alike.entry(row.key()).or_default().push(index);
    }
    let mut last: BTreeMap<&RowKey, BTreeMap<u32, &Attempt>> = BTreeMap::new();
    for attempt in history.attempts.iter().filter(|attempt| !attempt.superseded) {
        last.entry(&attempt.row.key).or_default().insert(attempt.row.ordinal, attempt);
    }
    let mut found: Vec<Option<Place>> = rows.iter().map(|_| None).collect();
    for (key, indices) in alike {
        let mut slots = Slots { left: last.remove(&key).unwrap_or_default(), used: Vec::new() };
        slots.used.extend(slots.left.keys());
        let (done, open): (Vec<usize>, Vec<usize>) =
            indices.into_iter().partition(|&index| rows[index].done);
        for (indices, place) in [(done, Slots::of_done as fn(&mut _) -> _), (open, Slots::of_open)]
        {
            for index in indices {
                let (ordinal, status) = place(&mut slots);
                found[index] = Some(Place { id: RowId { key: key.clone(), ordinal }, status });
            }
        }
    }
    found.into_iter().flatten().collect()
}

/// The attempts at one key that no row has yet, the last of each ordinal.
struct Slots<'a> {
    left: BTreeMap<u32, &'a Attempt>,
    used: Vec<u32>,
}

impl<'a> Slots<'a> {
    fn take(&mut self, is_wanted: impl Fn(&Attempt) -> bool) -> Option<&'a Attempt> {
        let ordinal = *self.left.iter().find(|(_, attempt)| is_wanted(attempt))?.0;
        self.left.remove(&ordinal)
    }

    /// An ordinal of no attempt.
    fn fresh(&mut self) -> u32 {
        let free = (0..).find(|ordinal| !self.used.contains(ordinal)).unwrap_or(u32::MAX);
        self.used.push(free);
        free
    }

    fn of_done(&mut self) -> (u32, Status<'a>) {
        let marked = self.take(|attempt| attempt.is_finished() && attempt.marked);
        match marked.or_else(|| self.take(Attempt::is_finished)) {
            Some(attempt) => (attempt.row.ordinal, Status::Done(Some(attempt))),
            None => (self.fresh(), Status::Done(None)),
        }
    }

    fn of_open(&mut self) -> (u32, Status<'a>) {
        let unmarked = self.take(|attempt| attempt.is_finished() && !attempt.marked);
        let attempt = unmarked
            .or_else(|| self.take(Attempt::is_finished))
            .or_else(|| self.take(|attempt| attempt.outcome == Outcome::Unknown))
            .or_else(|| self.take(|attempt| matches!(attempt.outcome, Outcome::Failed { .. })))
            .or_else(|| self.take(|_| true));
        let Some(attempt) = attempt else { return (self.fresh(), Status::Pending) };
        let status = match &attempt.outcome {
            Outcome::Finished(_) if attempt.marked => Status::SetBack(attempt),
            Outcome::Finished(_) => Status::Unmarked(attempt),
            Outcome::Failed { reason } => Status::Failed(attempt, reason),
            Outcome::BrokenOff => Status::Pending,
            Outcome::Unknown => Status::Left(attempt),
        };
        (attempt.row.ordinal, status)
    }
}
