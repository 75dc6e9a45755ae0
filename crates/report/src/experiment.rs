//! Groups runs that replicate each other into experiments, with the means of their measurements. Each run counts as one value; epochs do not count separately.

use crate::report::{Report, ReportedRun};
use feedrate_analysis::estimate::Middle;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, DEVICE_PER_SECOND, DURATION_S,
    GPU_UTILISATION, Metric, SAMPLES_WHOLE,
};
use feedrate_measure::phase::{CheckpointPhases, Phase, checkpoint_phases};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::mean;
use feedrate_results::run::Run;
use feedrate_results::setting::compare_levels;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Runs of the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `ReportedRun`")]
pub struct ReportedExperiment {
    pub source: usize,
    pub workload: String,
    pub parameter: String,
    pub value: String,
    pub accelerators: Option<u32>,
    pub factors: BTreeMap<String, String>,
    /// Indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    pub au_all_steps_percent: Middle,
    pub au_windowed_percent: Middle,
    pub au_sustained_percent: Middle,
    pub samples_per_second: Middle,
    pub bytes_per_second: Middle,
    /// Whether the bytes of any run are estimated.
    pub is_estimated: bool,
    /// Means of each epoch.
    pub epochs: Vec<EpochMiddles>,
    /// Means around written checkpoints; `null` if there are none.
    pub saves: Option<SaveMiddles>,
}

/// One epoch of replicates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `ReportedExperiment`")]
pub struct EpochMiddles {
    pub au_all_steps_percent: Middle,
    pub samples_per_second: Middle,
    pub bytes_per_second: Middle,
    pub device_bytes_per_second: Middle,
    pub gpu_percent: Middle,
}

/// Written checkpoints of replicates. Each run counts as the mean of its checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `measure::phase`")]
pub struct SaveMiddles {
    /// Maximum number of checkpoints in a run.
    pub count: usize,
    pub duration_s: Middle,
    pub before: PhaseMiddles,
    pub during: PhaseMiddles,
    pub after: PhaseMiddles,
}

/// Training before, during or after checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `measure::phase`")]
pub struct PhaseMiddles {
    pub au_percent: Middle,
    pub samples_per_second: Middle,
    pub device_bytes_per_second: Middle,
    pub device_written_bytes_per_second: Middle,
    /// Mean over the GPUs of the machine.
    pub gpu_percent: Middle,
    /// The smallest number of steps in the phase of a checkpoint.
    pub steps_min: Option<u64>,
    /// Whether a phase before or after a checkpoint has too few steps for a rate.
    pub has_too_few_steps: bool,
}

/// All experiments, sorted by source, workload, parameter, accelerators and value.
pub fn experiments(report: &Report) -> Vec<ReportedExperiment> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, run) in report.runs.iter().enumerate().filter(|(_, run)| run.unused().is_none()) {
        let key = ExperimentKey::new(run);
        let is_same = |group: &&mut Vec<usize>| ExperimentKey::new(&report.runs[group[0]]) == key;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.sort_by(|a, b| {
        let a = ExperimentKey::new(&report.runs[a[0]]);
        let b = ExperimentKey::new(&report.runs[b[0]]);
        let by_value = compare_levels(a.value, b.value).then(a.value.cmp(b.value));
        a.varied.cmp(&b.varied).then(by_value).then(a.factors.cmp(b.factors))
    });
    groups.into_iter().map(|runs| ReportedExperiment::new(&report.runs, runs)).collect()
}

/// The settings that replicates share.
#[derive(PartialEq)]
struct ExperimentKey<'a> {
    /// Source, workload, parameter and accelerators.
    varied: (usize, &'a str, &'a str, Option<u32>),
    /// The parameter's value.
    value: &'a str,
    factors: &'a BTreeMap<String, String>,
}

impl<'a> ExperimentKey<'a> {
    fn new(reported: &'a ReportedRun) -> Self {
        let run = &reported.run;
        ExperimentKey {
            varied: (reported.source, &run.workload, &run.parameter, run.accelerators),
            value: &run.value,
            factors: &reported.factors,
        }
    }
}

impl ReportedExperiment {
    fn new(all: &[ReportedRun], runs: Vec<usize>) -> Self {
        let first = &all[runs[0]];
        let replicates: Vec<&Run> = runs.iter().map(|&run| &all[run].run).collect();
        let middle = |metric: &Metric| {
            Middle::new(metric, replicates.iter().filter_map(|run| run.metric(metric)))
        };
        ReportedExperiment {
            source: first.source,
            workload: first.run.workload.clone(),
            parameter: first.run.parameter.clone(),
            value: first.run.value.clone(),
            accelerators: first.run.accelerators,
            factors: first.factors.clone(),
            au_all_steps_percent: middle(&AU_ALL_STEPS),
            au_windowed_percent: middle(&AU_WINDOWED),
            au_sustained_percent: middle(&AU_SUSTAINED),
            samples_per_second: middle(&SAMPLES_WHOLE),
            bytes_per_second: middle(&DELIVERED_WHOLE),
            is_estimated: runs.iter().any(|&run| all[run].is_estimated()),
            epochs: EpochMiddles::all(&replicates),
            saves: SaveMiddles::new(&replicates),
            runs,
        }
    }
}

impl EpochMiddles {
    fn all(runs: &[&Run]) -> Vec<Self> {
        let middle = |metric: &Metric, epoch: usize| {
            let values = runs.iter().filter_map(|run| *run.series.get(&metric.id)?.get(epoch)?);
            Middle::new(metric, values)
        };
        let count = runs.iter().flat_map(|run| run.series.values()).map(Vec::len).max();
        let epochs = (0..count.unwrap_or(0)).map(|epoch| EpochMiddles {
            au_all_steps_percent: middle(&AU_ALL_STEPS, epoch),
            samples_per_second: middle(&SAMPLES_WHOLE, epoch),
            bytes_per_second: middle(&DELIVERED_WHOLE, epoch),
            device_bytes_per_second: middle(&DEVICE_PER_SECOND, epoch),
            gpu_percent: middle(&GPU_UTILISATION, epoch),
        });
        epochs.collect()
    }
}

impl SaveMiddles {
    fn new(runs: &[&Run]) -> Option<Self> {
        let count = runs.iter().map(|run| saves(run).count()).max().filter(|count| *count > 0)?;
        Some(SaveMiddles {
            count,
            duration_s: middle(runs, &DURATION_S, |save| Some(save.during.duration_s)),
            before: PhaseMiddles::new(runs, |save| save.before),
            during: PhaseMiddles::new(runs, |save| Some(save.during)),
            after: PhaseMiddles::new(runs, |save| save.after),
        })
    }
}

impl PhaseMiddles {
    fn new(runs: &[&Run], phase: for<'a> fn(CheckpointPhases<'a>) -> Option<&'a Phase>) -> Self {
        let phases = || runs.iter().flat_map(|run| saves(run)).filter_map(phase);
        PhaseMiddles {
            au_percent: middle(runs, &AU_ALL_STEPS, |save| phase(save)?.au_percent),
            samples_per_second: middle(runs, &SAMPLES_WHOLE, |save| {
                phase(save)?.samples_per_second
            }),
            device_bytes_per_second: middle(runs, &DEVICE_PER_SECOND, |save| {
                phase(save)?.device_bytes_per_second
            }),
            device_written_bytes_per_second: middle(runs, &DEVICE_PER_SECOND, |save| {
                phase(save)?.device_written_bytes_per_second
            }),
            gpu_percent: middle(runs, &GPU_UTILISATION, |save| phase(save)?.gpu_percent()),
            steps_min: phases().map(|phase| phase.steps).min(),
            has_too_few_steps: phases().any(|phase| phase.too_few_steps().is_some()),
        }
    }
}

fn saves(run: &Run) -> impl Iterator<Item = CheckpointPhases<'_>> {
    checkpoint_phases(&run.phases, CheckpointKind::Save)
}

/// The mean over runs of a property of checkpoints. `metric` decides the kind of mean.
fn middle(
    runs: &[&Run],
    metric: &Metric,
    value: impl Fn(CheckpointPhases) -> Option<f64>,
) -> Middle {
    let run_mean = |run: &&Run| mean(&saves(run).filter_map(&value).collect::<Vec<f64>>());
    Middle::new(metric, runs.iter().filter_map(run_mean))
}
