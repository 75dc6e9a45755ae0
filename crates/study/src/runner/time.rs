//! Whether the next run still fits the time that the user gave, and how long all takes.

use super::host::News;
use super::{Rows, Runner};

impl Runner<'_> {
    /// What is left of `indices`.
    fn expected_s(&mut self, rows: &Rows, indices: &[usize]) -> f64 {
        let (host, settings) = (&mut self.host, &self.settings);
        let rows = indices.iter().map(|index| &rows.all[*index]);
        self.plans.expected_s(&self.history, rows, |row| host.is_whole(row, settings))
    }

    /// Whether the next run, with its dataset, ends within the time that the user gave.
    pub(super) fn fits_time(&mut self, rows: &Rows, pending: &[usize]) -> bool {
        let Some(budget_s) = self.options.time_budget_s else { return true };
        let expected_s = self.expected_s(rows, &pending[..1]);
        let fits = self.host.now_s() - self.started_s + expected_s <= budget_s;
        if !fits {
            self.host.tell(News::OutOfTime { label: rows.label(pending[0]), expected_s });
        }
        fits
    }

    pub(super) fn tell_of_start(&mut self, rows: &Rows, pending: &[usize]) {
        let news = News::Running {
            label: rows.label(pending[0]),
            number: self.done + 1,
            of: self.done + pending.len(),
            expected_s: self.expected_s(rows, &pending[..1]),
            left_s: self.expected_s(rows, pending),
        };
        self.host.tell(news);
    }
}
