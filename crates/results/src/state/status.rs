//! The status of each row, from the CSV and the attempts.
//!
//! Rows with equal keys are interchangeable. Complete attempts are assigned to rows that are marked as done before they are assigned to other rows,
//! regardless of the order in the file.

use super::attempt::{Attempt, Outcome};
use crate::row::{Row, RowKey};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

names! {
    /// Status of a row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Status {
        /// To be run. A complete attempt may exist if the user reset the row.
        Pending = "pending",
        /// Started but not finished. The run is active, or its runner died.
        Running = "running",
        /// Ended without a result. It is run again on request.
        Failed = "failed",
        /// Done. There is no attempt if the CSV marks the row as done but no result exists.
        Done = "done",
    }
}

/// The status of a row and the attempt that determines it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowState<'a> {
    /// Status of the row.
    pub status: Status,
    /// Attempt from which the status follows.
    pub attempt: Option<&'a Attempt>,
}

impl<'a> RowState<'a> {
    /// Returns the attempt with the row's result.
    pub fn result(&self) -> Option<&'a Attempt> {
        if self.status == Status::Done { self.attempt } else { None }
    }

    /// Returns the reason why the row failed.
    pub fn reason(&self) -> Option<&'a str> {
        match &self.attempt?.outcome {
            Outcome::Failed { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// Assigns attempts to rows and returns the state of each row.
pub(super) fn row_states<'a>(rows: &[Row], attempts: &'a [Attempt]) -> Vec<RowState<'a>> {
    let mut unassigned: BTreeMap<&RowKey, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| is_relevant(attempt)) {
        unassigned.entry(&attempt.key).or_default().push(attempt);
    }
    let keys: Vec<RowKey> = rows.iter().map(Row::key).collect();
    let mut states = vec![RowState { status: Status::Pending, attempt: None }; rows.len()];
    for is_done in [true, false] {
        for (index, _) in rows.iter().enumerate().filter(|(_, row)| row.done == is_done) {
            let attempts = unassigned.entry(&keys[index]).or_default();
            states[index] =
                if is_done { state_of_done_row(attempts) } else { state_of_open_row(attempts) };
        }
    }
    states
}

/// Returns whether an attempt can determine the status of a row.
fn is_relevant(attempt: &Attempt) -> bool {
    let is_retried = matches!(attempt.outcome, Outcome::Failed { is_retried: true, .. });
    !is_retried && attempt.outcome != Outcome::Superseded
}

fn state_of_done_row<'a>(attempts: &mut Vec<&'a Attempt>) -> RowState<'a> {
    let checked = take(attempts, |attempt| attempt.checked().is_some());
    let attempt = checked.or_else(|| take(attempts, Attempt::is_complete));
    RowState { status: Status::Done, attempt }
}

fn state_of_open_row<'a>(attempts: &mut Vec<&'a Attempt>) -> RowState<'a> {
    let unchecked = take(attempts, |attempt| attempt.outcome == Outcome::Complete(None));
    if unchecked.is_some() {
        return RowState { status: Status::Done, attempt: unchecked };
    }
    let reset = take(attempts, Attempt::is_complete);
    // Without a result, the last attempt determines the status.
    let attempt = reset.or_else(|| attempts.pop());
    let status = match attempt.map(|attempt| &attempt.outcome) {
        Some(Outcome::Running) => Status::Running,
        Some(Outcome::Failed { .. }) => Status::Failed,
        _ => Status::Pending,
    };
    RowState { status, attempt }
}

/// Removes and returns the first attempt that matches.
fn take<'a>(
    attempts: &mut Vec<&'a Attempt>,
    matches: impl Fn(&Attempt) -> bool,
) -> Option<&'a Attempt> {
    let index = attempts.iter().position(|attempt| matches(attempt))?;
    Some(attempts.remove(index))
}
