//! Replicates that a study adds to itself until its response is known well enough.

use super::env::RunnerEvent;
use super::select::is_wanted;
use super::{Runner, RunnerError};
use feedrate_analysis::precision::{NextStep, Standing, Until, judge};
use feedrate_measure::metric::Metric;
use feedrate_results::place::label;
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::{Attempt, StudyState};
use std::collections::BTreeMap;
use std::path::Path;

/// When runs are repeated enough.
#[derive(Clone, Copy, Debug)]
pub struct WantedPrecision {
    /// How well the response is to be known.
    pub until: Until,
    /// The response.
    pub response: &'static Metric,
    /// Runs of an experiment, at most.
    pub replicates_max: u64,
}

/// Rows that replicate each other, and the values of those that are done.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicateGroup {
    /// Indices of rows, in the order of the file.
    pub rows: Vec<usize>,
    /// Runs of this study that are done.
    pub runs: usize,
    /// One of each of them whose response can be known.
    pub values: Vec<f64>,
}

/// The experiments of a study; `value` reads the response of a run from its folder.
pub fn groups(
    rows: &[Row],
    state: &StudyState,
    value: &mut dyn FnMut(&Path) -> Option<f64>,
) -> Vec<ReplicateGroup> {
    let places = state.places(rows);
    let mut groups: Vec<ReplicateGroup> = Vec::new();
    let mut known: BTreeMap<RowKey, usize> = BTreeMap::new();
    let mut done: Vec<(usize, &Attempt)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let place = *known.entry(row.experiment_key()).or_insert_with(|| {
            groups.push(ReplicateGroup { rows: Vec::new(), runs: 0, values: Vec::new() });
            groups.len() - 1
        });
        groups[place].rows.push(index);
        done.extend(places[index].result().map(|attempt| (place, attempt)));
    }
    // What was made by another plan than the last is no replicate of it.
    let mut plans: BTreeMap<usize, &str> = BTreeMap::new();
    for (place, attempt) in &done {
        plans.extend(plan_of(attempt).map(|plan| (*place, plan)));
    }
    for (place, attempt) in done {
        if plans.get(&place).copied() == plan_of(attempt) {
            groups[place].runs += 1;
            groups[place].values.extend(value(&attempt.run_dir));
        }
    }
    groups
}

fn plan_of(attempt: &Attempt) -> Option<&str> {
    attempt.checked().map(|checked| checked.plan.as_str())
}

impl Runner<'_> {
    /// Add a row to each experiment that is not known well enough and of which nothing is open. Returns whether any was added.
    pub(super) fn add_replicates(&mut self, rows: &[Row]) -> Result<bool, RunnerError> {
        let Some(wanted) = self.options.until else { return Ok(false) };
        let env = &mut self.env;
        let groups = groups(rows, &self.state, &mut |run_dir| env.value(run_dir, wanted.response));
        let mut added = Vec::new();
        for group in groups {
            let is_closed = group.rows.iter().all(|&index| rows[index].done);
            let is_asked =
                group.rows.iter().any(|&i| is_wanted(&self.options.only, i, &rows[i], rows));
            if !is_closed || !is_asked {
                continue;
            }
            let standing =
                judge(wanted.response, &group.values, wanted.until, wanted.replicates_max);
            // A run that tells no value would be repeated for ever.
            let is_repeated =
                standing.next == NextStep::Another && group.values.len() == group.runs;
            if !is_repeated {
                self.tell_once(rows, &group, standing);
                continue;
            }
            let first = &rows[group.rows[0]];
            let replicates = group.rows.iter().map(|&index| rows[index].replicate);
            let last = replicates.flatten().max().unwrap_or(0).max(group.rows.len() as u32);
            let (replicate, note) = (Some(last + 1), "added for precision".into());
            added.push(Row { replicate, note, order: None, done: false, ..first.clone() });
        }
        self.files.edit_table(|table| {
            added.iter().for_each(|row| table.push(row.clone()));
            !added.is_empty()
        })?;
        Ok(!added.is_empty())
    }

    /// Where an experiment stands, when that is its end.
    fn tell_once(&mut self, rows: &[Row], group: &ReplicateGroup, standing: Standing) {
        let label = label(&Row { replicate: None, ..rows[group.rows[0]].clone() }, rows);
        if self.told.insert(label.clone()) {
            let silent_runs = group.runs - group.values.len();
            self.env.tell(RunnerEvent::Known { label, standing, silent_runs });
        }
    }
}
