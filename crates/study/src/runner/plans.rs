//! Plans the rows of a study, each once, and estimates durations from the plans and the runs so far.

use super::env::RowPlan;
use feedrate_measure::stats;
use feedrate_results::place::label;
use feedrate_results::place::model_name;
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::StudyState;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Actual durations of rows, relative to their plans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Ratio of the actual to the planned duration of a run: the median of finished runs, or 1 without any.
    pub run_share: f64,
    /// Time of a row outside its run and the generation of its dataset, in seconds: the mean of finished rows, or 0 without any.
    pub setup_s: f64,
}

impl Pace {
    /// Expected time of a row with this plan, without generating its dataset, in seconds.
    pub fn row_s(&self, plan: &RowPlan) -> f64 {
        self.run_share * plan.run_s + self.setup_s
    }
}

/// A row that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowProblem {
    /// Index of the row.
    pub index: usize,
    /// The reason.
    pub reason: String,
}

/// Rows with the same problem.
struct ProblemGroup<'p> {
    reason: &'p str,
    /// The least scale at which all rows can be planned, if a smaller one is the reason.
    scale_min: Option<f64>,
    indices: Vec<usize>,
}

impl RowProblem {
    /// Returns an error if there are problems, with their [`messages`](RowProblem::messages).
    ///
    /// # Errors
    /// The problems, each with its rows.
    pub fn refuse(
        problems: &[RowProblem],
        rows: &[Row],
        scale_min: impl FnMut(&Row) -> Option<f64>,
    ) -> Result<(), Vec<String>> {
        let messages = RowProblem::messages(problems, rows, scale_min);
        if messages.is_empty() { Ok(()) } else { Err(messages) }
    }

    /// A message for each problem with its rows, in the order of the rows. `scale_min` is the least `--scale` at which a row can be planned;
    /// rows that only need a larger one share a message.
    pub fn messages(
        problems: &[RowProblem],
        rows: &[Row],
        mut scale_min: impl FnMut(&Row) -> Option<f64>,
    ) -> Vec<String> {
        let mut groups: Vec<ProblemGroup> = Vec::new();
        for RowProblem { index, reason } in problems {
            let scale = scale_min(&rows[*index]);
            let is_same = |group: &&mut ProblemGroup| {
                group.reason == reason || scale.is_some() && group.scale_min.is_some()
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => {
                    let scales = scale.zip(group.scale_min);
                    group.scale_min = scales.map(|(scale, known)| scale.max(known));
                    group.indices.push(*index);
                }
                None => {
                    groups.push(ProblemGroup { reason, scale_min: scale, indices: vec![*index] });
                }
            }
        }
        let messages = groups.into_iter().map(|ProblemGroup { reason, scale_min, indices }| {
            let first = indices[0];
            let names = match indices.len() {
                1 => format!("row {} ({})", first + 1, label(&rows[first], rows)),
                count => format!("row {} and {} more", first + 1, count - 1),
            };
            match scale_min.filter(|_| 1 < indices.len()) {
                Some(scale) => format!(
                    "{names}: the scale leaves too few samples for a step\n  hint: give `--scale {scale}` or more"
                ),
                None => format!("{names}: {reason}"),
            }
        });
        messages.collect()
    }
}

/// Plans of rows, and the rate at which datasets were generated.
#[derive(Debug, Default)]
pub struct Plans {
    /// Plan by key of the row; `None` if the row cannot be planned.
    plans: BTreeMap<RowKey, Option<RowPlan>>,
    generated_bytes: f64,
    generated_s: f64,
}

impl Plans {
    /// Plans the rows that have no plan yet. Returns the `pending` rows that cannot be planned.
    ///
    /// # Errors
    /// Results of pending rows would be mixed with those of other rows.
    pub fn plan_rows(
        &mut self,
        rows: &[Row],
        pending: &[usize],
        mut plan_row: impl FnMut(&Row) -> Result<RowPlan, String>,
    ) -> Result<Vec<RowProblem>, Vec<String>> {
        let pending: BTreeSet<usize> = pending.iter().copied().collect();
        let mut refused = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let is_pending = pending.contains(&index);
            let known = self.plans.get(&row.key());
            if known.is_some_and(|plan| plan.is_some() || !is_pending) {
                continue;
            }
            let plan = plan_row(row);
            if let Err(reason) = &plan
                && is_pending
            {
                let reason = reason.trim_start_matches("error: ").to_string();
                refused.push(RowProblem { index, reason });
            }
            self.plans.insert(row.key(), plan.ok());
        }
        let ambiguous = ambiguous_model_names(rows, &pending);
        if ambiguous.is_empty() { Ok(refused) } else { Err(ambiguous) }
    }

    /// The plan of a row; `None` if it was not or cannot be planned.
    pub fn get(&self, row: &Row) -> Option<&RowPlan> {
        self.by_key(&row.key())
    }

    fn by_key(&self, key: &RowKey) -> Option<&RowPlan> {
        self.plans.get(key)?.as_ref()
    }

    /// Parent folders of the datasets of planned rows.
    pub fn dataset_roots(&self) -> BTreeSet<PathBuf> {
        let datasets = self.plans.values().flatten().filter_map(|plan| plan.dataset.as_ref());
        datasets.filter_map(|dataset| Some(dataset.folder.parent()?.to_path_buf())).collect()
    }

    /// Compares the finished rows with their plans.
    pub fn pace(&self, state: &StudyState) -> Pace {
        let mut ratios = Vec::new();
        let mut setups_s = Vec::new();
        for attempt in &state.attempts {
            setups_s.extend(attempt.checked().and_then(|checked| checked.setup_s));
            if let (Some(plan), Some(checked)) = (self.by_key(&attempt.key), attempt.checked())
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

    /// Records the time that generating a dataset took.
    pub(super) fn record_generation(&mut self, bytes: u64, duration_s: f64) {
        self.generated_bytes += bytes as f64;
        self.generated_s += duration_s;
    }

    /// Expected time to generate the dataset of a row, in seconds, at the rate of earlier datasets. Without earlier datasets, the planned time.
    pub fn generation_s(&self, plan: &RowPlan) -> f64 {
        match &plan.dataset {
            Some(dataset) if self.generated_bytes > 0.0 && self.generated_s > 0.0 => {
                dataset.bytes as f64 * self.generated_s / self.generated_bytes
            }
            _ => plan.generation_s,
        }
    }

    /// Expected time of all rows that can be planned, in seconds. Each dataset is generated once, unless `is_complete` finds that it exists.
    pub fn expected_s<'r>(
        &self,
        state: &StudyState,
        rows: impl IntoIterator<Item = &'r Row>,
        mut is_complete: impl FnMut(&Row) -> bool,
    ) -> f64 {
        let pace = self.pace(state);
        let mut generated = BTreeSet::new();
        let mut total_s = 0.0;
        for row in rows {
            let Some(plan) = self.get(row) else { continue };
            total_s += pace.row_s(plan);
            let dataset = plan.dataset.as_ref();
            let is_new = dataset.is_some_and(|dataset| generated.insert(&dataset.folder));
            if is_new && !is_complete(row) {
                total_s += self.generation_s(plan);
            }
        }
        total_s
    }
}

/// Finds models with the same name. Their results would be mixed, as folders are named after models.
fn ambiguous_model_names(rows: &[Row], pending: &BTreeSet<usize>) -> Vec<String> {
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
    use feedrate_results::state::{Attempt, CheckResult, Outcome};

    #[test]
    fn the_pace_follows_from_finished_runs() {
        let check = |runs: &[(f64, f64, Option<f64>)], expected| {
            let row = |n: usize| Row::new(n.to_string(), 1);
            let mut state = StudyState::default();
            let mut plans = Plans::default();
            for (n, &(run_s, duration_s, setup_s)) in runs.iter().enumerate() {
                let plan = RowPlan {
                    workload: "w".into(),
                    dataset: None,
                    run_s,
                    generation_s: 0.0,
                    fingerprint: String::new(),
                };
                plans.plan_rows(&[row(n)], &[0], |_| Ok(plan.clone())).unwrap();
                let checked = CheckResult { duration_s, setup_s, ..CheckResult::default() };
                let outcome = Outcome::Complete(Some(checked));
                let key = row(n).key();
                state.attempts.push(Attempt {
                    number: n as u64,
                    key,
                    run_dir: "r".into(),
                    outcome,
                });
            }
            let pace = plans.pace(&state);
            assert_eq!((pace.run_share, pace.setup_s), expected);
        };
        check(&[], (1.0, 0.0));
        // Older results have no setup time.
        let older = [(10.0, 20.0, None), (1.0, 1.0, None), (0.0, 5.0, None), (1.0, -3000.0, None)];
        let now = [(2.0, 3.0, Some(1.0)), (1.0, 1.5, Some(4.0))];
        check(&[&older[..], &now].concat(), (1.5, 2.5));
    }

    #[test]
    fn a_problem_of_several_pending_rows_is_reported_once() {
        let rows = ["a", "b", "c", "x/b.yaml"].map(|model| Row::new(model, 1));
        let mut plans = Plans::default();
        let problems = |pending: &[usize], plans: &mut Plans| {
            plans
                .plan_rows(&rows, pending, |_| Err("no such workload".into()))
                .and_then(|refused| RowProblem::refuse(&refused, &rows, |_| None))
                .unwrap_err()
        };
        let same_name =
            "row 4: `x/b.yaml` and `b` are both called `b`\n  hint: rename one of the files";
        assert_eq!(problems(&[0, 2, 3], &mut Plans::default()), [same_name]);
        assert_eq!(problems(&[0, 2], &mut plans), ["row 1 and 1 more: no such workload"]);
        assert_eq!(problems(&[1], &mut plans), ["row 2 (b/1): no such workload"]);
        assert!(plans.get(&rows[0]).is_none());
        let problem = |index, reason: &str| RowProblem { index, reason: reason.into() };
        let scaled =
            [problem(0, "1 of 4 samples"), problem(1, "typo"), problem(2, "1 of 8 samples")];
        let scale_min = |row: &Row| match row.model.as_str() {
            "a" => Some(0.17),
            "c" => Some(0.34),
            _ => None,
        };
        let expected = [
            "row 1 and 1 more: the scale leaves too few samples for a step\n  hint: give `--scale 0.34` or more",
            "row 2 (b/1): typo",
        ];
        assert_eq!(RowProblem::messages(&scaled, &rows, scale_min), expected);
    }
}
