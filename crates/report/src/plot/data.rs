//! The data of plots: runs of feedrate and DLIO, and their designs. Draws nothing.

use super::block::PlotBlock;
use crate::draw::figure::Figure;
use feedrate_analysis::answer::{Answer, relevant_doubts};
use feedrate_analysis::design::Design;
use feedrate_analysis::throughput::throughput;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE};
use feedrate_results::diagnosis::Diagnosis;
use feedrate_results::overview::Overview;
use feedrate_results::place::INCOMPLETE;
use feedrate_results::run::{Activity, FolderNames, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The data from which plots are drawn.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Runs in the order of their start.
    pub runs: Vec<Run>,
    /// Runs that only wrote or read checkpoints.
    pub checkpoint_runs: Vec<Run>,
    /// Designs of the runs with results; a design refers to runs by their index in `runs`. With several sources, `source` is a factor.
    pub designs: Vec<Design>,
    /// Diagnoses stored beside runs that have records.
    pub diagnoses: Vec<Diagnosis>,
    /// The state of a study.
    pub overview: Option<Overview>,
    /// Every folder with results, used or not.
    pub folders: Vec<FolderRun>,
    /// Metric of the searches that made all of the runs; `None` for other runs.
    pub search_response: Option<&'static Metric>,
    /// Names of the factors that plots with a panel for each factor draw; empty for the plot's choice.
    pub chosen_factors: Vec<String>,
}

/// The folder of a run with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRun {
    /// The folder.
    pub path: PathBuf,
    /// The workload's name.
    pub workload: String,
    /// Emulated accelerators, if known.
    pub processes: Option<u32>,
    /// The state of the run.
    pub state: FolderState,
}

/// The state of the run in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// All results exist.
    Done,
    /// Some results exist.
    Partial,
    /// The run has no step, or its files cannot be read.
    Failed,
    /// The run wrote only data or checkpoints, without training.
    NoTraining,
}

/// More accelerators than any machine has. A larger number in the name of a folder is not a count, and in a file it is corrupt.
pub(crate) const PROCESSES_MAX: u32 = 1 << 20;

/// The samples in a number of steps of all accelerators; `None` if batch or ranks are unknown.
pub(super) fn samples(run: &Run, steps: u64) -> Option<f64> {
    run.metric(&SAMPLES_WHOLE)?;
    Some(steps as f64 * run.batch_size? as f64 * f64::from(run.accelerators?))
}

impl FolderRun {
    /// The folder of a run; `None` if a later run has replaced it.
    pub fn from_run(run: &Run) -> Option<Self> {
        let partial = ["incomplete_run", "missing_ranks", "unreadable_files"];
        let is_partial = run.doubts.iter().any(|doubt| partial.contains(&doubt.name.as_str()));
        let state = match (run.activity, run.put_aside.as_deref()) {
            (_, Some(INCOMPLETE)) if run.steps > 0 => FolderState::Partial,
            (_, Some(INCOMPLETE)) => FolderState::Failed,
            (_, Some(_)) => return None,
            (Activity::Generation | Activity::Checkpoints, None) => FolderState::NoTraining,
            _ if run.steps == 0 => FolderState::Failed,
            _ if is_partial => FolderState::Partial,
            _ => FolderState::Done,
        };
        let processes = run.accelerators.filter(|count| (1..=PROCESSES_MAX).contains(count));
        Some(FolderRun { path: run.path.clone(), workload: run.workload.clone(), processes, state })
    }

    /// Describes a folder that cannot be read by its name; `None` if the name is not a run's name.
    pub fn from_names(path: &Path) -> Option<Self> {
        let names = FolderNames::new(path);
        let workload = names.workload.clone()?;
        let processes = names.processes().filter(|count| *count <= PROCESSES_MAX);
        Some(FolderRun { path: path.into(), workload, processes, state: FolderState::Failed })
    }
}

impl Data {
    /// The runs that may be used.
    pub fn used(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.unusable.is_none())
    }

    /// The throughput metric for figures of these runs.
    pub(super) fn throughput(&self) -> &'static Metric {
        throughput(self.used())
    }

    /// The utilisation for figures of these runs: that of their search, else that over all steps.
    pub(super) fn utilisation(&self) -> &'static Metric {
        self.search_response.filter(|metric| metric.is_utilisation()).unwrap_or(&AU_ALL_STEPS)
    }

    /// Utilisation, if any run has compute time, and throughput.
    pub(super) fn responses(&self) -> impl Iterator<Item = &'static Metric> {
        let computes = self.used().any(|run| run.metric(&AU_ALL_STEPS) != Some(0.0));
        computes.then(|| self.utilisation()).into_iter().chain([self.throughput()])
    }

    /// Whether the user left the choice of factors to the plot, or chose this one.
    pub(super) fn may_draw(&self, factor: &str) -> bool {
        self.chosen_factors.is_empty() || self.chosen_factors.iter().any(|name| name == factor)
    }

    /// The used runs by workload and source.
    pub(super) fn blocks(&self) -> Vec<PlotBlock<'_>> {
        PlotBlock::all(&self.runs, &self.designs)
    }

    /// Sentences for a caption on the number of runs that a figure shows, and on the doubts that could change their answers. Empty if all runs are shown and have no such doubts. A figure
    /// whose marks name no folders counts as showing all runs.
    pub fn doubts(&self, figure: &Figure) -> String {
        let drawn: BTreeSet<&Path> =
            figure.points().flat_map(|point| &point.folders).map(PathBuf::as_path).collect();
        let is_drawn = |run: &&Run| drawn.is_empty() || drawn.contains(run.path.as_path());
        let runs: Vec<&Run> = self.used().filter(is_drawn).collect();
        let all = self.used().count();
        let shown = runs.len();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &runs {
            for doubt in relevant_doubts(Answer::from_run(run).as_ref(), &run.doubts) {
                *counts.entry(&doubt.name).or_default() += 1;
            }
        }
        let mut text = String::new();
        if shown < all {
            text = format!(" Drawn: {shown} of {all} runs.");
        }
        let counts = counts.into_iter();
        let counts: Vec<String> =
            counts.map(|(name, count)| format!("{name} ({count} of {shown} runs)")).collect();
        if !counts.is_empty() {
            text.push_str(&format!(" Doubts: {}.", counts.join(", ")));
        }
        text
    }
}
