//! Where a row stands, from what the CSV and the journal say of it.

use super::history::{Attempt, History, Outcome, RowId};
use crate::row::Row;

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
    /// Begun by a runner that did not live to tell.
    Left(&'a Attempt),
}

impl Status<'_> {
    /// In one word.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Pending | Status::SetBack(_) => "pending",
            Status::Done(_) | Status::Unmarked(_) => "done",
            Status::Failed(..) => "failed",
            Status::Left(_) => "running",
        }
    }
}

/// Of one row.
pub fn status<'a>(row: &Row, id: &RowId, history: &'a History) -> Status<'a> {
    let last = history.last_of(id);
    let Some(last) = last else {
        return if row.done { Status::Done(None) } else { Status::Pending };
    };
    match (&last.outcome, row.done) {
        (Outcome::Finished { .. }, true) => Status::Done(Some(last)),
        (_, true) => Status::Done(None),
        (Outcome::Finished { .. }, false) if last.marked => Status::SetBack(last),
        (Outcome::Finished { .. }, false) => Status::Unmarked(last),
        (Outcome::Failed { reason }, false) => Status::Failed(last, reason),
        (Outcome::BrokenOff, false) => Status::Pending,
        (Outcome::Unknown, false) => Status::Left(last),
    }
}
