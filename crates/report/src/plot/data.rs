//! The data of plots: runs, whoever made them, and their designs. Draws nothing.

use super::block::PlotBlock;
use crate::draw::figure::Figure;
use feedrate_analysis::design::Design;
use feedrate_analysis::throughput::throughput;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE};
use feedrate_results::diagnosis::Diagnosis;
use feedrate_results::overview::Overview;
use feedrate_results::place::INCOMPLETE;
use feedrate_results::run::{Activity, FolderNames, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// All that a plot may show.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// In the order they were started.
    pub runs: Vec<Run>,
    /// Designs of those that have results, by places in `runs`; where there are several sources, `source` is a factor.
    pub designs: Vec<Design>,
    /// Those beside runs whose records there are.
    pub diagnoses: Vec<Diagnosis>,
    /// The state of a study.
    pub overview: Option<Overview>,
    /// Every folder with results, used or not.
    pub folders: Vec<FolderRun>,
}

/// The folder of a run, and how far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRun {
    /// The folder.
    pub path: PathBuf,
    /// The workload's name.
    pub workload: String,
    /// Emulated accelerators, where the folder tells.
    pub processes: Option<u32>,
    /// How far it came.
    pub state: FolderState,
}

/// How far the run of a folder came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// All its results are there.
    Done,
    /// Some of its results are there.
    Partial,
    /// No step of it is there, or its files cannot be read.
    Failed,
    /// It was not to train: it made data or checkpoints.
    NoTraining,
}

/// More than any machine has: where a folder says so, the name of a file in it does, or a broken number.
pub(crate) const PROCESSES_MAX: u32 = 1 << 20;

/// Samples of so many steps of all accelerators; `None` where batch or ranks are not known.
pub(super) fn samples(run: &Run, steps: u64) -> Option<f64> {
    run.metric(&SAMPLES_WHOLE)?;
    Some(steps as f64 * run.batch_size? as f64 * f64::from(run.accelerators?))
}

impl FolderRun {
    /// From a run; `None` of one that a later run has replaced.
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

    /// From the names of a folder that cannot be read; `None` of one that these do not call a run.
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

    /// The throughput that figures of these runs show.
    pub(super) fn throughput(&self) -> &'static Metric {
        throughput(self.used())
    }

    /// Utilisation, where any run computes, and throughput.
    pub(super) fn responses(&self) -> impl Iterator<Item = &'static Metric> {
        let computes = self.used().any(|run| run.metric(&AU_ALL_STEPS) != Some(0.0));
        computes.then_some(&AU_ALL_STEPS).into_iter().chain([self.throughput()])
    }

    /// The same by workload and source.
    pub(super) fn blocks(&self) -> Vec<PlotBlock<'_>> {
        PlotBlock::all(&self.runs, &self.designs)
    }

    /// Tell in a caption how many of its runs a figure shows, and warnings about those; nothing where all are shown and there is none. A figure whose
    /// marks name no folders shows all.
    pub fn doubts(&self, figure: &Figure) -> String {
        let drawn: BTreeSet<&Path> =
            figure.points().flat_map(|point| &point.folders).map(PathBuf::as_path).collect();
        let is_drawn = |run: &&Run| drawn.is_empty() || drawn.contains(run.path.as_path());
        let runs: Vec<&Run> = self.used().filter(is_drawn).collect();
        let (all, shown) = (self.used().count(), runs.len());
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for doubt in runs.iter().flat_map(|run| &run.doubts) {
            if doubt.severity != Severity::Note {
                *counts.entry(&doubt.name).or_default() += 1;
            }
        }
        let mut told = String::new();
        if shown < all {
            told = format!(" Drawn: {shown} of {all} runs.");
        }
        let counts = counts.into_iter();
        let counts: Vec<String> =
            counts.map(|(name, count)| format!("{name} ({count} of {shown} runs)")).collect();
        if !counts.is_empty() {
            told.push_str(&format!(" Doubts: {}.", counts.join(", ")));
        }
        told
    }
}
