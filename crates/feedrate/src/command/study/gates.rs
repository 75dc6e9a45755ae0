//! Judges the finished runs of a study by the limits of their workloads, per experiment, and describes rows and gates for other programs.

use crate::export::{self, CaseState, ErrorKind, MetricSet, RUN_CASE, TestCase, TestSuite};
use crate::gate::{GateArguments, GateResult};
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::record::Record;
use feedrate_results::load_run;
use feedrate_results::place::label;
use feedrate_results::row::{Row, RowKey, UNCOUNTED_WARM_UP};
use feedrate_results::state::{Attempt, RowState, Status};
use feedrate_study::select::is_selected;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// A condition on the runs of an experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ExperimentGate {
    /// The experiment's name.
    experiment: String,
    #[serde(flatten)]
    gate: GateResult,
}

/// The gates and metrics of a study's experiments.
#[derive(Default)]
pub(super) struct JudgedStudy {
    /// The gates of all experiments.
    pub(super) gates: Vec<ExperimentGate>,
    /// The metrics, if they are wanted.
    pub(super) metrics: Vec<MetricSet>,
}

/// Rows with the same settings, with their states.
struct Experiment<'r> {
    label: String,
    key: RowKey,
    states: Vec<&'r RowState<'r>>,
}

impl JudgedStudy {
    /// Judges the rows that `only` selects. Records are read for `wants_metrics`, and of experiments with limits.
    pub(super) fn new(
        rows: &[Row],
        states: &[RowState<'_>],
        only: &[String],
        wants_metrics: bool,
    ) -> Self {
        let mut judged = JudgedStudy::default();
        for experiment in experiments(rows, states, only) {
            judged.add(&experiment, wants_metrics);
        }
        judged
    }

    fn add(&mut self, experiment: &Experiment<'_>, wants_metrics: bool) {
        let mut runs = Vec::new();
        let mut newest: Option<Record> = None;
        let attempts = experiment.states.iter().filter_map(|state| state.result());
        let mut attempts: Vec<&Attempt> = attempts.collect();
        // The limits may have changed since older runs.
        attempts.sort_by_key(|attempt| Reverse(attempt.number));
        for attempt in attempts {
            // Results of other programs have no limits.
            let Ok(record) = load_run(&attempt.run_dir) else { continue };
            let expect = &newest.as_ref().unwrap_or(&record).plan.metric.expect;
            if expect.is_empty() && !wants_metrics {
                return;
            }
            runs.push(AnsweredSummary::with_target(&record, expect.au_percent));
            newest.get_or_insert(record);
        }
        let Some(record) = newest else { return };
        let gates = GateArguments::default().judge(&record.plan.metric.expect, &runs);
        if wants_metrics {
            let name = ("experiment", experiment.label.clone());
            let labels = [export::labels(&record), vec![name]].concat();
            self.metrics.push(MetricSet::for_runs(labels, &runs, &gates));
        }
        self.gates.extend(
            gates
                .into_iter()
                .map(|gate| ExperimentGate { experiment: experiment.label.clone(), gate }),
        );
    }

    /// The gates, whose messages name their experiments.
    pub(super) fn named_gates(&self) -> Vec<GateResult> {
        let named = self.gates.iter().map(|ExperimentGate { experiment, gate }| GateResult {
            says: format!("{experiment}: {}", gate.says),
            ..gate.clone()
        });
        named.collect()
    }

    /// A case for each selected row and each gate.
    pub(super) fn test_suite(
        &self,
        rows: &[Row],
        states: &[RowState<'_>],
        only: &[String],
    ) -> TestSuite {
        let selected = rows.iter().enumerate().zip(states);
        let selected = selected.filter(|((index, row), _)| is_selected(only, *index, row, rows));
        let runs = selected.map(|((_, row), state)| {
            let (case_state, says) = match state.status {
                Status::Done if state.result().is_none() => (CaseState::Skipped, "no result"),
                Status::Done => (CaseState::Passed, "the run is complete"),
                Status::Failed => {
                    (CaseState::Error(ErrorKind::Failed), state.reason().unwrap_or("failed"))
                }
                status => (CaseState::Skipped, status.name()),
            };
            TestCase {
                subject: label(row, rows),
                name: RUN_CASE.into(),
                duration_s: state
                    .result()
                    .and_then(|attempt| attempt.checked())
                    .map(|run| run.duration_s),
                state: case_state,
                says: says.into(),
            }
        });
        let gates = self.gates.iter().map(|gate| TestCase::for_gate(&gate.experiment, &gate.gate));
        TestSuite { name: "feedrate study run".into(), cases: runs.chain(gates).collect() }
    }
}

/// The selected rows by experiment, in the order of the CSV, without warm-ups.
fn experiments<'r>(
    rows: &[Row],
    states: &'r [RowState<'r>],
    only: &[String],
) -> Vec<Experiment<'r>> {
    let mut experiments: Vec<Experiment<'_>> = Vec::new();
    for ((index, row), state) in rows.iter().enumerate().zip(states) {
        if row.note == UNCOUNTED_WARM_UP || !is_selected(only, index, row, rows) {
            continue;
        }
        let key = row.experiment_key();
        match experiments.iter_mut().find(|experiment| experiment.key == key) {
            Some(experiment) => experiment.states.push(state),
            None => {
                let label = label(&Row { replicate: None, ..row.clone() }, rows);
                experiments.push(Experiment { label, key, states: vec![state] });
            }
        }
    }
    experiments
}
