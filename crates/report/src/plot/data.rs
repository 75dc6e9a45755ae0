//! What plots are drawn from: plain numbers of each run, whoever wrote its results.

use crate::draw::figure::Figure;
use feedrate_results::overview::Overview;
use feedrate_results::runs::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// All that a plot may show.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// In the order they were started.
    pub runs: Vec<RunPoint>,
    /// Of a study.
    pub overview: Option<Overview>,
    /// Every folder with results, used or not.
    pub folders: Vec<FolderRun>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct RunPoint {
    /// Its folder.
    pub path: String,
    /// What makes it the experiment it is: `workload` and `accelerators`, the factors of its workload by the names that findings use, and
    /// `source` where there are several.
    pub settings: Settings,
    /// Values by the name of the response; what is not known is not there.
    pub responses: BTreeMap<&'static str, f64>,
    /// Where the time of an accelerator went.
    pub time: Option<TimeParts>,
    /// Epochs, and what is around checkpoints.
    pub phases: Vec<PhasePoint>,
    /// What takes the whole record.
    pub details: Option<Details>,
    /// Names of warnings about it.
    pub doubts: Vec<String>,
}

/// Seconds of an accelerator in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in `docs/guide/numbers.md`")]
pub struct TimeParts {
    pub compute_s: f64,
    pub wait: Wait,
    pub barrier_s: f64,
}

/// Waiting for data.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in `docs/guide/numbers.md`")]
pub enum Wait {
    /// Its parts are not known.
    Whole {
        load_s: f64,
    },
    Split {
        open_s: f64,
        read_s: f64,
        decode_s: f64,
        queue_s: f64,
    },
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

/// A phase of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhasePoint {
    /// What it is: `epoch`, `before save`.
    pub name: String,
    /// Utilisation.
    pub au_percent: Option<f64>,
    /// What read calls returned.
    pub delivered_bytes_per_second: Option<f64>,
    /// What write calls took.
    pub written_bytes_per_second: Option<f64>,
    /// Utilisation of the machine's GPUs in the mean.
    pub gpu_percent: Option<f64>,
}

/// What takes the whole record.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// What happened when; `None` where it was not kept.
    pub timeline: Option<Moments>,
    /// Epochs and blocks, where there is no timeline: what DLIO's files tell of when something happened.
    pub blocks: Option<Blocks>,
    /// Calls by how long they took.
    pub latencies: Vec<Latencies>,
}

/// A run in blocks: the steps between two checkpoints.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Epochs.
    pub stretches: Vec<Stretch>,
    /// When each block began and ended, the first and the last of all accelerators.
    pub spans_s: Vec<(f64, f64)>,
    /// Bytes a second of each, of the samples of its steps; `None` where it is not known how large they are.
    pub bytes_per_second: Vec<Option<f64>>,
    /// Samples a second of each; `None` where batch or ranks are not known.
    pub samples_per_second: Vec<Option<f64>>,
    /// For each step of all blocks how long accelerators waited for its data: mean and longest.
    pub step_waits_s: Vec<(f64, f64)>,
}

/// A run as columns, a row for each sample.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// When each sample ended; the first began at `start_s`.
    pub ends_s: Vec<f64>,
    /// When the first began.
    pub start_s: f64,
    /// What read calls returned.
    pub read_bytes: Option<Vec<f64>>,
    /// What write calls took.
    pub written_bytes: Option<Vec<f64>>,
    /// Mean over the machine's GPUs; `None` where none tells.
    pub gpu_percent: Option<Vec<Option<f64>>>,
    /// What went on when.
    pub stretches: Vec<Stretch>,
}

/// Something that began and ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// `epoch 1`, `save`.
    pub name: String,
    /// What it is.
    pub kind: StretchKind,
    /// From the start of the run.
    pub from_s: f64,
    /// From the start of the run.
    pub to_s: f64,
}

/// What a stretch of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StretchKind {
    Epoch,
    Evaluation,
    Checkpoint,
}

/// Calls of one kind by how long they took.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// `read`; `wait` of the wait for the data of a step.
    pub name: &'static str,
    /// (seconds, calls that took about so long), ascending.
    pub counts: Vec<(f64, u64)>,
}

impl Data {
    /// How many of its runs a figure shows, and warnings about those, in the words of a caption; empty where all are shown and there is none. A
    /// figure whose marks name no folders shows all.
    pub fn doubts(&self, figure: &Figure) -> String {
        let points = figure.points();
        let drawn: BTreeSet<&str> =
            points.flat_map(|point| &point.folders).map(String::as_str).collect();
        let is_drawn = |run: &&RunPoint| drawn.is_empty() || drawn.contains(run.path.as_str());
        let runs: Vec<&RunPoint> = self.runs.iter().filter(is_drawn).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in runs.iter().flat_map(|run| &run.doubts) {
            *counts.entry(name).or_default() += 1;
        }
        let all = runs.len();
        let few = match all < self.runs.len() {
            true => format!(" Drawn: {all} of {} runs.", self.runs.len()),
            false => String::new(),
        };
        let told: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{name} ({count} of {all} runs)"))
            .collect();
        match told.is_empty() {
            true => few,
            false => format!("{few} Doubts: {}.", told.join(", ")),
        }
    }
}
