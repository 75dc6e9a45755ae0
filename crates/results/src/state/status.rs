//! Where each row stands, from what the CSV says and what the folders hold.
//!
//! Rows that ask for the same run cannot be told apart: as many results as there are rows marked as done belong to those, wherever in
//! the file they stand.

use super::attempt::{Attempt, Outcome};
use crate::row::{Row, RowKey};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

names! {
    /// Where a row stands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Status {
        /// To be run. A complete attempt is one that the user set back.
        Pending = "pending",
        /// Begun, and not at its end: it goes on, or its runner died.
        Running = "running",
        /// It came to no result, and is run again on request.
        Failed = "failed",
        /// Done; without an attempt the CSV says so, and there is no result here.
        Done = "done",
    }
}

/// A row and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowState<'a> {
    /// Where it stands.
    pub status: Status,
    /// The attempt that this follows from.
    pub attempt: Option<&'a Attempt>,
}

impl<'a> RowState<'a> {
    /// The attempt that the row's result is from.
    pub fn result(&self) -> Option<&'a Attempt> {
        if self.status == Status::Done { self.attempt } else { None }
    }

    /// The reason why the row failed.
    pub fn reason(&self) -> Option<&'a str> {
        match &self.attempt?.outcome {
            Outcome::Failed { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// Match attempts with rows.
pub(super) fn places<'a>(rows: &[Row], attempts: &'a [Attempt]) -> Vec<RowState<'a>> {
    let mut free: BTreeMap<&RowKey, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| counts(attempt)) {
        free.entry(&attempt.key).or_default().push(attempt);
    }
    let keys: Vec<RowKey> = rows.iter().map(Row::key).collect();
    let mut places = vec![RowState { status: Status::Pending, attempt: None }; rows.len()];
    for is_done in [true, false] {
        for (index, _) in rows.iter().enumerate().filter(|(_, row)| row.done == is_done) {
            let free = free.entry(&keys[index]).or_default();
            places[index] = if is_done { place_of_done(free) } else { place_of_open(free) };
        }
    }
    places
}

/// Whether it still says anything of a row.
fn counts(attempt: &Attempt) -> bool {
    let is_retried = matches!(attempt.outcome, Outcome::Failed { is_retried: true, .. });
    !is_retried && attempt.outcome != Outcome::Superseded
}

fn place_of_done<'a>(free: &mut Vec<&'a Attempt>) -> RowState<'a> {
    let marked = take(free, |attempt| attempt.checked().is_some());
    RowState { status: Status::Done, attempt: marked.or_else(|| take(free, Attempt::is_complete)) }
}

fn place_of_open<'a>(free: &mut Vec<&'a Attempt>) -> RowState<'a> {
    let unmarked = take(free, |attempt| attempt.outcome == Outcome::Complete(None));
    if unmarked.is_some() {
        return RowState { status: Status::Done, attempt: unmarked };
    }
    let set_back = take(free, Attempt::is_complete);
    // Of attempts without a result the last tells.
    let attempt = set_back.or_else(|| free.pop());
    let status = match attempt.map(|attempt| &attempt.outcome) {
        Some(Outcome::Running) => Status::Running,
        Some(Outcome::Failed { .. }) => Status::Failed,
        _ => Status::Pending,
    };
    RowState { status, attempt }
}

fn take<'a>(
    free: &mut Vec<&'a Attempt>,
    is_wanted: impl Fn(&Attempt) -> bool,
) -> Option<&'a Attempt> {
    let at = free.iter().position(|attempt| is_wanted(attempt))?;
    Some(free.remove(at))
}
