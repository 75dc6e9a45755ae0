//! Selects the rows that a runner has to run.

use super::RunnerOptions;
use crate::select::{is_selected, run_order};
use feedrate_results::row::Row;
use feedrate_results::state::{Status, StudyState};

/// Returns the indices of the rows to run, in order. Includes rows that a dead runner left as running: the next runner checks whether their results are
/// complete.
pub fn due_rows(rows: &[Row], state: &StudyState, options: &RunnerOptions) -> Vec<usize> {
    let states = state.row_states(rows);
    let mut due = run_order(rows);
    due.retain(|&index| {
        let is_due = match states[index].status {
            Status::Pending | Status::Running => true,
            Status::Failed => options.retry,
            Status::Done => false,
        };
        is_due && is_selected(&options.only, index, &rows[index], rows)
    });
    due
}
