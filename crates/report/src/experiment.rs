//! Experiments: runs that replicate each other, and the middle of what they measured. A run is one value, its epochs are none.

use crate::report::{Report, ReportedRun};
use feedrate_analysis::estimate::Middle;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, DURATION_S, Metric, SAMPLES_WHOLE,
};
use feedrate_measure::phase::{CheckpointPhases, Phase, checkpoint_phases};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::mean;
use feedrate_results::run::Run;
use feedrate_results::setting::by_number;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Runs that asked for the same.
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
    /// Whether bytes of some run are estimated.
    pub is_estimated: bool,
    /// By number, from 1.
    pub epochs: Vec<EpochMiddles>,
    /// Around checkpoints that were written; `None` where none was.
    pub saves: Option<SaveMiddles>,
}

/// One epoch of replicates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `ReportedExperiment`")]
pub struct EpochMiddles {
    pub au_all_steps_percent: Middle,
    pub samples_per_second: Middle,
    pub bytes_per_second: Middle,
}

/// Checkpoints of replicates; a run is one value, the mean of its checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `measure::phase`")]
pub struct SaveMiddles {
    /// The most of a run.
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
}

/// In the order of source, workload, parameter, accelerators and value.
pub fn experiments(report: &Report) -> Vec<ReportedExperiment> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, one) in report.runs.iter().enumerate().filter(|(_, one)| one.unused().is_none()) {
        match groups.iter_mut().find(|group| asked(&report.runs[group[0]]) == asked(one)) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.sort_by(|a, b| {
        let [a, b] = [a, b].map(|group| asked(&report.runs[group[0]]));
        a.0.cmp(&b.0).then(by_number(a.1, b.1)).then(a.1.cmp(b.1)).then(a.2.cmp(b.2))
    });
    groups.into_iter().map(|runs| ReportedExperiment::new(&report.runs, runs)).collect()
}

/// The settings that replicates share: where and with how many accelerators what was varied, its value, and the levels of factors.
type Asked<'a> = ((usize, &'a str, &'a str, Option<u32>), &'a str, &'a BTreeMap<String, String>);

fn asked(one: &ReportedRun) -> Asked<'_> {
    let run = &one.run;
    let varied = (one.source, run.workload.as_str(), run.parameter.as_str(), run.accelerators);
    (varied, &run.value, &one.factors)
}

impl ReportedExperiment {
    fn new(all: &[ReportedRun], runs: Vec<usize>) -> Self {
        let first = &all[runs[0]];
        let own: Vec<&Run> = runs.iter().map(|&run| &all[run].run).collect();
        let [
            au_all_steps_percent,
            au_windowed_percent,
            au_sustained_percent,
            samples_per_second,
            bytes_per_second,
        ] = [&AU_ALL_STEPS, &AU_WINDOWED, &AU_SUSTAINED, &SAMPLES_WHOLE, &DELIVERED_WHOLE]
            .map(|metric| Middle::new(metric, own.iter().filter_map(|run| run.metric(metric))));
        ReportedExperiment {
            source: first.source,
            workload: first.run.workload.clone(),
            parameter: first.run.parameter.clone(),
            value: first.run.value.clone(),
            accelerators: first.run.accelerators,
            factors: first.factors.clone(),
            au_all_steps_percent,
            au_windowed_percent,
            au_sustained_percent,
            samples_per_second,
            bytes_per_second,
            is_estimated: runs.iter().any(|&run| all[run].is_estimated()),
            epochs: EpochMiddles::all(&own),
            saves: SaveMiddles::new(&own),
            runs,
        }
    }
}

impl EpochMiddles {
    fn all(runs: &[&Run]) -> Vec<Self> {
        let of = |metric: &Metric, epoch: usize| {
            let values = runs.iter().filter_map(|run| *run.series.get(&metric.id)?.get(epoch)?);
            Middle::new(metric, values)
        };
        let count = runs.iter().flat_map(|run| run.series.values()).map(Vec::len).max();
        let epochs = (0..count.unwrap_or(0)).map(|epoch| EpochMiddles {
            au_all_steps_percent: of(&AU_ALL_STEPS, epoch),
            samples_per_second: of(&SAMPLES_WHOLE, epoch),
            bytes_per_second: of(&DELIVERED_WHOLE, epoch),
        });
        epochs.collect()
    }
}

impl SaveMiddles {
    fn new(runs: &[&Run]) -> Option<Self> {
        let count = runs.iter().map(|run| saves(run).count()).max().filter(|count| *count > 0)?;
        Some(SaveMiddles {
            count,
            duration_s: middle(runs, &DURATION_S, |one| Some(one.during.duration_s)),
            before: PhaseMiddles::new(runs, |one| one.before),
            during: PhaseMiddles::new(runs, |one| Some(one.during)),
            after: PhaseMiddles::new(runs, |one| one.after),
        })
    }
}

impl PhaseMiddles {
    fn new(runs: &[&Run], phase: for<'a> fn(CheckpointPhases<'a>) -> Option<&'a Phase>) -> Self {
        PhaseMiddles {
            au_percent: middle(runs, &AU_ALL_STEPS, |one| phase(one)?.au_percent),
            samples_per_second: middle(runs, &SAMPLES_WHOLE, |one| phase(one)?.samples_per_second),
        }
    }
}

fn saves(run: &Run) -> impl Iterator<Item = CheckpointPhases<'_>> {
    checkpoint_phases(&run.phases, CheckpointKind::Save)
}

/// The middle of something that varies as `metric` does.
fn middle(
    runs: &[&Run],
    metric: &Metric,
    value: impl Fn(CheckpointPhases) -> Option<f64>,
) -> Middle {
    let of_run = |run: &&Run| mean(&saves(run).filter_map(&value).collect::<Vec<f64>>());
    Middle::new(metric, runs.iter().filter_map(of_run))
}
