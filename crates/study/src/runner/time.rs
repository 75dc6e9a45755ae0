//! How long what is pending will take, by plans and by what was measured so far.

use super::host::{News, RowPlan};
use super::{Rows, Runner};
use crate::row::RowKey;
use crate::state::{Checked, History, Outcome};
use std::collections::BTreeSet;

/// How long runs take in truth, by those that are done: what a plan says, times this. The median of their ratios, 1 where none is done.
pub fn pace(history: &History, planned_s: impl Fn(&RowKey) -> Option<f64>) -> f64 {
    let ratio = |key: &RowKey, took_s: f64| {
        let planned_s = planned_s(key).filter(|planned_s| *planned_s > 0.0)?;
        Some(took_s / planned_s).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    };
    let took = history.attempts.iter().filter_map(|attempt| match attempt.outcome {
        Outcome::Finished(Checked { duration_s, .. }) => ratio(&attempt.row.key, duration_s),
        _ => None,
    });
    let mut ratios: Vec<f64> = took.collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
}

/// How long the making of a dataset takes, at the rate of those that this study has made.
pub fn generation_s(history: &History, plan: &RowPlan) -> f64 {
    let made = history.datasets.values().filter_map(|of| Some((of.bytes as f64, of.duration_s?)));
    let (bytes, took_s) = made.fold((0.0, 0.0), |(b, s), (bytes, took_s)| (b + bytes, s + took_s));
    match &plan.dataset {
        Some(dataset) if bytes > 0.0 && took_s > 0.0 => dataset.bytes as f64 * took_s / bytes,
        _ => plan.generation_s,
    }
}

impl Runner<'_> {
    fn pace(&self) -> f64 {
        pace(&self.history, |key| Some(self.plans.get(key)?.as_ref()?.run_s))
    }

    /// What is left of `indices`, of which each dataset is made once.
    fn expected_s(&mut self, rows: &Rows, indices: &[usize]) -> f64 {
        let pace = self.pace();
        let mut made = BTreeSet::new();
        let mut all_s = 0.0;
        for &index in indices {
            let Some(plan) = self.plan_of(rows, index).cloned() else { continue };
            all_s += plan.run_s * pace;
            let is_new = plan.dataset.as_ref().is_some_and(|of| made.insert(of.folder.clone()));
            if is_new && !self.host.is_whole(&rows.all[index], &self.settings) {
                all_s += generation_s(&self.history, &plan);
            }
        }
        all_s
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;
    use crate::state::Event;

    #[test]
    fn the_pace_is_that_of_the_runs_that_are_done() {
        let check = |runs: &[(f64, f64)], expected| {
            let key = |n: usize| Row::new(n.to_string(), 1).key();
            let mut history = History::default();
            for (n, (_, duration_s)) in runs.iter().enumerate() {
                let (attempt, key, duration_s) = (n as u64, key(n), *duration_s);
                let run_dir = "r".into();
                history.add(Event::Begun { attempt, key, ordinal: 0, run_dir, at: String::new() });
                let result = Checked { duration_s, ..Checked::default() };
                history.add(Event::Finished { attempt, result });
            }
            let planned = |of: &RowKey| {
                let n = (0..runs.len()).find(|&n| key(n) == *of)?;
                Some(runs[n].0)
            };
            assert_eq!(pace(&history, planned), expected);
        };
        check(&[], 1.0);
        check(&[(10.0, 20.0), (1.0, 1.0), (2.0, 3.0), (0.0, 5.0), (1.0, -3000.0)], 1.5);
    }
}
