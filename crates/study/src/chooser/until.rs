//! The chooser of `study run --until`: all pending rows, and then replicates of each experiment until its response is precise enough.

use super::{Chooser, ChooserEvent, FixedDesign, History, RunState};
use crate::select::is_selected;
use feedrate_analysis::precision::{self, NextStep, judge};
use feedrate_measure::metric::Metric;
use feedrate_results::place::label;
use feedrate_results::row::{Row, RowKey};
use feedrate_spec::catalog::Member;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static MEMBER: Member = Member {
    name: "until",
    summary: "`study run --until`: replicates of each experiment until its confidence interval is narrow enough",
    abilities: &[],
};

/// Precision at which an experiment gets no more replicates.
#[derive(Clone, Copy, Debug)]
pub struct PrecisionGoal {
    /// The precision.
    pub target: precision::PrecisionTarget,
    /// The metric that must reach the precision.
    pub response: &'static Metric,
    /// Maximum number of runs of an experiment.
    pub replicates_max: u64,
}

/// Rows that replicate each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicateGroup {
    /// Indices of rows, in the order of the file.
    pub rows: Vec<usize>,
    /// Number of finished runs with the same plan as the last one.
    pub runs: usize,
    /// Values of the response in those runs; runs without a value are missing.
    pub values: Vec<f64>,
}

/// Groups the rows of a study by experiment.
pub fn replicate_groups(history: &History, response: &Metric) -> Vec<ReplicateGroup> {
    let mut groups: Vec<ReplicateGroup> = Vec::new();
    let mut known: BTreeMap<RowKey, usize> = BTreeMap::new();
    let mut done = Vec::new();
    for (index, run) in history.runs.iter().enumerate() {
        let group = *known.entry(run.row.experiment_key()).or_insert_with(|| {
            groups.push(ReplicateGroup::default());
            groups.len() - 1
        });
        groups[group].rows.push(index);
        if let RunState::Done(measured) = &run.state {
            done.push((group, measured));
        }
    }
    // A run whose plan differs from the last run's plan is not a replicate.
    let mut plans: BTreeMap<usize, &str> = BTreeMap::new();
    for (group, measured) in &done {
        plans.extend(measured.plan.as_deref().map(|plan| (*group, plan)));
    }
    for (group, measured) in done {
        if plans.get(&group).copied() == measured.plan.as_deref() {
            groups[group].runs += 1;
            groups[group].values.extend(measured.observation.value(response));
        }
    }
    groups
}

/// Adds replicates until the response of each experiment is precise enough.
#[derive(Debug)]
pub struct ReplicateChooser {
    wanted: PrecisionGoal,
    only: Vec<String>,
    /// Labels of the experiments that were reported as ended.
    reported: BTreeSet<String>,
    events: Vec<ChooserEvent>,
}

impl ReplicateChooser {
    /// Creates the chooser. `only` contains patterns of the rows that may be repeated; see [`is_selected`].
    pub fn new(wanted: PrecisionGoal, only: Vec<String>) -> Self {
        ReplicateChooser { wanted, only, reported: BTreeSet::new(), events: Vec::new() }
    }

    /// Reports once that an experiment gets no more replicates.
    fn report(&mut self, rows: &[Row], group: &ReplicateGroup, status: precision::PrecisionStatus) {
        let first = Row { replicate: None, ..rows[group.rows[0]].clone() };
        let label = label(&first, rows);
        if self.reported.insert(label.clone()) {
            let runs_without_value = group.runs - group.values.len();
            self.events.push(ChooserEvent::ReplicationEnded { label, status, runs_without_value });
        }
    }
}

impl Chooser for ReplicateChooser {
    fn next(&mut self, history: &History) -> Option<Row> {
        if let Some(pending) = FixedDesign.next(history) {
            return Some(pending);
        }
        let PrecisionGoal { target, response, replicates_max } = self.wanted;
        let rows: Vec<Row> = history.rows().cloned().collect();
        let mut open = Vec::new();
        for group in replicate_groups(history, response) {
            let is_finished = group.rows.iter().all(|&index| rows[index].done);
            let is_chosen =
                group.rows.iter().any(|&index| is_selected(&self.only, index, &rows[index], &rows));
            if !is_finished || !is_chosen {
                continue;
            }
            let status = judge(response, &group.values, target, replicates_max);
            // An experiment without values would be repeated forever.
            let is_open = status.next == NextStep::RunAgain && group.values.len() == group.runs;
            if is_open {
                open.push(group);
            } else {
                self.report(&rows, &group, status);
            }
        }
        let group = open.into_iter().min_by_key(|group| group.runs)?;
        let replicates = group.rows.iter().filter_map(|&index| rows[index].replicate);
        let last = replicates.max().unwrap_or(0).max(group.rows.len() as u32);
        Some(Row {
            replicate: Some(last + 1),
            note: "added for precision".into(),
            order: None,
            done: false,
            ..rows[group.rows[0]].clone()
        })
    }

    fn response(&self) -> Option<&'static Metric> {
        Some(self.wanted.response)
    }

    fn take_events(&mut self) -> Vec<ChooserEvent> {
        std::mem::take(&mut self.events)
    }
}
