//! Plans of a study's rows, each made once, and how long rows take by them and by what was measured so far.

use super::host::RowPlan;
use feedrate_results::place::label;
use feedrate_results::place::model_name;
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::{Checked, History, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Plans of rows by what is run; `None` where a row cannot be planned.
#[derive(Debug, Default)]
pub struct Plans(BTreeMap<RowKey, Option<RowPlan>>);

impl Plans {
    /// Make those of `rows` that are not there yet.
    ///
    /// # Errors
    /// What is wrong with any of the `pending` ones: what is wrong with several is said once.
    pub fn make(
        &mut self,
        rows: &[Row],
        pending: &[usize],
        mut plan: impl FnMut(&Row) -> Result<RowPlan, String>,
    ) -> Result<(), Vec<String>> {
        let mut problems: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let is_pending = pending.contains(&index);
            let known = self.0.get(&row.key());
            if known.is_some_and(|plan| plan.is_some() || !is_pending) {
                continue;
            }
            let plan = plan(row);
            if let Err(problem) = &plan
                && is_pending
            {
                problems.entry(problem.clone()).or_default().push(index);
            }
            self.0.insert(row.key(), plan.ok());
        }
        let told = |(problem, of): (&String, &Vec<usize>)| match of.as_slice() {
            [index] => format!("row {} ({}): {problem}", index + 1, label(&rows[*index], rows)),
            [first, more @ ..] => format!("row {} and {} more: {problem}", first + 1, more.len()),
            [] => String::new(),
        };
        let mut problems: Vec<String> = problems.iter().map(told).collect();
        problems.extend(names_of_two_models(rows, pending));
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The plan of a row.
    pub fn of(&self, row: &Row) -> Option<&RowPlan> {
        self.of_key(&row.key())
    }

    pub(super) fn of_key(&self, key: &RowKey) -> Option<&RowPlan> {
        self.0.get(key)?.as_ref()
    }

    /// How long runs take in truth, by those that are done: what a plan says, times this. The median of their ratios, 1 where none is done.
    pub fn pace(&self, history: &History) -> f64 {
        let ratio = |key: &RowKey, took_s: f64| {
            let planned_s = self.of_key(key)?.run_s;
            let ratio = Some(took_s / planned_s).filter(|_| planned_s > 0.0)?;
            Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        };
        let took = history.attempts.iter().filter_map(|attempt| match attempt.outcome {
            Outcome::Finished(Checked { duration_s, .. }) => ratio(&attempt.row.key, duration_s),
            _ => None,
        });
        let mut ratios: Vec<f64> = took.collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
    }

    /// How long those of `rows` that can be planned take one after another, each dataset made once unless it is `is_whole`.
    pub fn expected_s<'r>(
        &self,
        history: &History,
        rows: impl IntoIterator<Item = &'r Row>,
        mut is_whole: impl FnMut(&Row) -> bool,
    ) -> f64 {
        let pace = self.pace(history);
        let mut made = BTreeSet::new();
        let mut all_s = 0.0;
        for row in rows {
            let Some(plan) = self.of(row) else { continue };
            all_s += plan.run_s * pace;
            let is_new = plan.dataset.as_ref().is_some_and(|of| made.insert(&of.folder));
            if is_new && !is_whole(row) {
                all_s += generation_s(history, plan);
            }
        }
        all_s
    }
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

/// Folders of results are called after models: two of one name would be mixed.
fn names_of_two_models(rows: &[Row], pending: &[usize]) -> Vec<String> {
    let mut models: BTreeMap<String, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let name = model_name(&row.model);
        let first = *models.entry(name.clone()).or_insert(&row.model);
        if first != row.model && pending.contains(&index) {
            problems.push(format!(
                "row {}: `{}` and `{first}` are both called `{name}`\n  hint: rename one of the files",
                index + 1,
                row.model
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::state::Event;

    #[test]
    fn the_pace_is_that_of_the_runs_that_are_done() {
        let check = |runs: &[(f64, f64)], expected| {
            let row = |n: usize| Row::new(n.to_string(), 1);
            let (mut history, mut plans) = (History::default(), Plans::default());
            for (n, &(run_s, duration_s)) in runs.iter().enumerate() {
                let (attempt, key) = (n as u64, row(n).key());
                let plan = RowPlan { dataset: None, run_s, generation_s: 0.0 };
                plans.make(&[row(n)], &[0], |_| Ok(plan.clone())).unwrap();
                let run_dir = "r".into();
                history.add(Event::Begun { attempt, key, ordinal: 0, run_dir, at: String::new() });
                let result = Checked { duration_s, ..Checked::default() };
                history.add(Event::Finished { attempt, result });
            }
            assert_eq!(plans.pace(&history), expected);
        };
        check(&[], 1.0);
        check(&[(10.0, 20.0), (1.0, 1.0), (2.0, 3.0), (0.0, 5.0), (1.0, -3000.0)], 1.5);
    }

    #[test]
    fn what_is_wrong_with_several_rows_is_said_once_and_only_if_they_are_to_run() {
        let rows = ["a", "b", "c", "x/b.yaml"].map(|model| Row::new(model, 1));
        let mut plans = Plans::default();
        let problems = |pending: &[usize], plans: &mut Plans| {
            plans.make(&rows, pending, |_| Err("no such workload".into())).unwrap_err()
        };
        let told = problems(&[0, 2, 3], &mut plans);
        let both = "row 4: `x/b.yaml` and `b` are both called `b`\n  hint: rename one of the files";
        assert_eq!(told, ["row 1 and 2 more: no such workload", both]);
        assert_eq!(problems(&[1], &mut plans), ["row 2 (b/1): no such workload"]);
        assert!(plans.of(&rows[0]).is_none());
    }
}
