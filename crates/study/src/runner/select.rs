//! Selects the rows to run.

use super::RunnerOptions;
use crate::select::{in_order, is_wanted};
use feedrate_results::row::Row;
use feedrate_results::state::{Status, StudyState};

/// Rows to be run, in their order. What a runner has left that died is run again, or found to be whole.
pub fn due(rows: &[Row], state: &StudyState, options: &RunnerOptions) -> Vec<usize> {
    let places = state.row_states(rows);
    let mut due = in_order(rows);
    due.retain(|&index| {
        let is_due = match places[index].status {
            Status::Pending | Status::Running => true,
            Status::Failed => options.retry,
            Status::Done => false,
        };
        is_due && is_wanted(&options.only, index, &rows[index], rows)
    });
    due
}
