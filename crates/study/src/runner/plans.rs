//! Plans of a study's rows, each made once, and how long rows take by them and by what was measured so far.

use super::env::RowPlan;
use feedrate_measure::stats;
use feedrate_results::place::label;
use feedrate_results::place::model_name;
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::StudyState;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How long rows take in truth, by those that are done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Duration of a run against its plan: the median of those that are done, 1 where none is.
    pub run_share: f64,
    /// Time of a row beside its run and its dataset: the mean of those that are done, 0 where none is.
    pub setup_s: f64,
}

impl Pace {
    /// How long a row of this plan takes where its dataset is there.
    pub fn row_s(&self, plan: &RowPlan) -> f64 {
        self.run_share * plan.run_s + self.setup_s
    }
}

/// Plans of rows, and how fast datasets were made.
#[derive(Debug, Default)]
pub struct Plans {
    /// By what is run; `None` where a row cannot be planned.
    by_key: BTreeMap<RowKey, Option<RowPlan>>,
    generated_bytes: f64,
    generated_s: f64,
}

impl Plans {
    /// Make those of `rows` that are not there yet.
    ///
    /// # Errors
    /// A `pending` row cannot be planned; a problem of several rows is told once.
    pub fn make(
        &mut self,
        rows: &[Row],
        pending: &[usize],
        mut plan: impl FnMut(&Row) -> Result<RowPlan, String>,
    ) -> Result<(), Vec<String>> {
        let mut problems: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let is_pending = pending.contains(&index);
            let known = self.by_key.get(&row.key());
            if known.is_some_and(|plan| plan.is_some() || !is_pending) {
                continue;
            }
            let plan = plan(row);
            if let Err(problem) = &plan
                && is_pending
            {
                problems.entry(problem.clone()).or_default().push(index);
            }
            self.by_key.insert(row.key(), plan.ok());
        }
        let mut told = Vec::new();
        for (problem, of) in problems {
            let first = &rows[of[0]];
            let rows = match of.len() {
                1 => format!("row {} ({})", of[0] + 1, label(first, rows)),
                count => format!("row {} and {} more", of[0] + 1, count - 1),
            };
            told.push(format!("{rows}: {problem}"));
        }
        told.extend(names_of_two_models(rows, pending));
        if told.is_empty() { Ok(()) } else { Err(told) }
    }

    /// The plan of a row.
    pub fn get(&self, row: &Row) -> Option<&RowPlan> {
        self.of_key(&row.key())
    }

    fn of_key(&self, key: &RowKey) -> Option<&RowPlan> {
        self.by_key.get(key)?.as_ref()
    }

    /// Folders that datasets of planned rows lie in.
    pub fn dataset_roots(&self) -> BTreeSet<PathBuf> {
        let datasets = self.by_key.values().flatten().filter_map(|plan| plan.dataset.as_ref());
        datasets.filter_map(|dataset| Some(dataset.folder.parent()?.to_path_buf())).collect()
    }

    /// How long rows take, by those that are done.
    pub fn pace(&self, state: &StudyState) -> Pace {
        let (mut ratios, mut setups_s) = (Vec::new(), Vec::new());
        for attempt in &state.attempts {
            setups_s.extend(attempt.checked().and_then(|checked| checked.setup_s));
            if let (Some(plan), Some(checked)) = (self.of_key(&attempt.key), attempt.checked())
                && plan.run_s > 0.0
                && checked.duration_s > 0.0
            {
                ratios.push(checked.duration_s / plan.run_s);
            }
        }
        ratios.sort_by(f64::total_cmp);
        let run_share = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
        Pace { run_share, setup_s: stats::mean(&setups_s).unwrap_or(0.0) }
    }

    /// Note how long a dataset took to make.
    pub(super) fn generated(&mut self, bytes: u64, took_s: f64) {
        self.generated_bytes += bytes as f64;
        self.generated_s += took_s;
    }

    /// How long the making of a row's dataset takes, at the rate of those that were made.
    pub fn generation_s(&self, plan: &RowPlan) -> f64 {
        match &plan.dataset {
            Some(dataset) if self.generated_bytes > 0.0 && self.generated_s > 0.0 => {
                dataset.bytes as f64 * self.generated_s / self.generated_bytes
            }
            _ => plan.generation_s,
        }
    }

    /// How long those of `rows` that can be planned take one after another, each dataset made once unless it is `is_whole`.
    pub fn expected_s<'r>(
        &self,
        state: &StudyState,
        rows: impl IntoIterator<Item = &'r Row>,
        mut is_whole: impl FnMut(&Row) -> bool,
    ) -> f64 {
        let pace = self.pace(state);
        let mut made = BTreeSet::new();
        let mut all_s = 0.0;
        for row in rows {
            let Some(plan) = self.get(row) else { continue };
            all_s += pace.row_s(plan);
            let is_new = plan.dataset.as_ref().is_some_and(|of| made.insert(&of.folder));
            if is_new && !is_whole(row) {
                all_s += self.generation_s(plan);
            }
        }
        all_s
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
    use feedrate_results::state::{Attempt, Checked, Outcome};

    #[test]
    fn the_pace_is_that_of_the_runs_that_are_done() {
        let check = |runs: &[(f64, f64, Option<f64>)], expected| {
            let row = |n: usize| Row::new(n.to_string(), 1);
            let (mut state, mut plans) = (StudyState::default(), Plans::default());
            for (n, &(run_s, duration_s, setup_s)) in runs.iter().enumerate() {
                let plan =
                    RowPlan { dataset: None, run_s, generation_s: 0.0, settings: String::new() };
                plans.make(&[row(n)], &[0], |_| Ok(plan.clone())).unwrap();
                let checked = Checked { duration_s, setup_s, ..Checked::default() };
                let outcome = Outcome::Complete(Some(checked));
                let (number, key, run_dir) = (n as u64, row(n).key(), "r".into());
                state.attempts.push(Attempt { number, key, run_dir, outcome });
            }
            let pace = plans.pace(&state);
            assert_eq!((pace.run_share, pace.setup_s), expected);
        };
        check(&[], (1.0, 0.0));
        // Of older results it is not known what they took beside their runs.
        let older = [(10.0, 20.0, None), (1.0, 1.0, None), (0.0, 5.0, None), (1.0, -3000.0, None)];
        let now = [(2.0, 3.0, Some(1.0)), (1.0, 1.5, Some(4.0))];
        check(&[&older[..], &now].concat(), (1.5, 2.5));
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
        assert!(plans.get(&rows[0]).is_none());
    }
}
