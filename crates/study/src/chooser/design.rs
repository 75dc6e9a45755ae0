//! The chooser of a fixed design. It selects all pending rows, in the order of their column `order`.

use super::{Chooser, History, RunState};
use crate::select::run_order;
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;

pub(super) static MEMBER: Member = Member {
    name: "design",
    summary: "all rows of the CSV, in the order of its column `order`",
    abilities: &[],
};

/// Chooser of all pending rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedDesign;

impl Chooser for FixedDesign {
    fn next(&mut self, history: &History) -> Option<Row> {
        let rows: Vec<Row> = history.rows().cloned().collect();
        let mut order = run_order(&rows).into_iter();
        let next = order.find(|&index| history.runs[index].state == RunState::Pending)?;
        Some(rows[next].clone())
    }

    fn reads_results(&self) -> bool {
        false
    }
}
