//! One run, whoever made it: its settings, its numbers with their provenance, its doubts, and whether it may be used. Doubts among runs are made elsewhere.

mod step_times;
mod folder_names;
mod submission;
mod dataset_use;
mod settings;
mod checkpoint_schedule;
mod from_record;
mod from_dlio;
mod figures;
mod ignored;
mod mlperf;

pub use checkpoint_schedule::CheckpointSchedule;
pub use dataset_use::DatasetUse;
pub use figures::OtherNumber;
pub use folder_names::FolderNames;
pub use mlperf::{Changed, MlperfCheck};
pub(crate) use settings::ACCELERATORS;
pub use settings::{ROWS, Settings, factor, settings};
pub use step_times::StepTimeSummary;
pub use submission::Submission;

use crate::import::{Bound, RunOrigin};
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::{
    AU_WINDOWED, Metric, MetricId, NOMINAL_WINDOWED, Provenance, SAMPLES_WINDOWED, Values,
};
use feedrate_measure::phase::Phase;
use feedrate_measure::record::{Record, StudyRun, System};
use feedrate_measure::supply::Supply;
use feedrate_spec::units::MIB;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A run's purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It trained, or should have.
    Training,
    /// It made a dataset, and trained nothing.
    Generation,
    /// It wrote or read checkpoints, and trained nothing.
    Checkpoints,
    /// Its files do not tell.
    #[default]
    Unknown,
}

/// Name of a workload that nothing tells: such a run is compared with no other.
pub const UNKNOWN: &str = "unknown";

/// The sources that tell a run's workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadSource {
    /// `workload=NAME`.
    Overrides,
    /// The model's name in the config, or the plan of a run of ours.
    Config,
    /// Names of the folders it lies in.
    Path,
    /// `dlio.log`, or `summary.json`.
    Log,
    /// The compute of a step, which one workload of MLPerf Storage has.
    Compute,
}

/// One run. A field is `None`, and a value or setting is not there, where it is not known.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its folder.
    pub path: PathBuf,
    /// The argument it was found under.
    pub source: String,
    /// Its maker.
    pub origin: RunOrigin,
    /// Training, or something else.
    pub activity: Activity,
    /// `incomplete` or `superseded`, where a study put it aside and nobody asked for it by name.
    pub put_aside: Option<String>,
    /// The system whose results they are, in a tree of MLPerf Storage's results.
    pub submission: Option<Submission>,
    /// The workload's name; [`UNKNOWN`] where nothing tells it.
    pub workload: String,
    /// The source of it.
    pub workload_from: Option<WorkloadSource>,
    /// The least utilisation that was asked for, or that MLPerf Storage asks of the workload.
    pub bar_percent: Option<f64>,
    /// Emulated accelerators; DLIO's ranks.
    pub accelerators: Option<u32>,
    /// The parameter that was varied: the last word of its key, several joined by commas; `processes` of a baseline.
    pub parameter: String,
    /// Its value.
    pub value: String,
    /// Number among the runs of its experiment: its study's, else counted in the order they were started, those with results alone.
    pub replicate: Option<u32>,
    /// Place in the order of running of its source's runs with results: its study's, else counted in the order they were started.
    pub order: Option<u32>,
    /// Overrides as they were given, but for the workload, the workflow and folders.
    pub overrides: Vec<String>,
    /// Its place in the study that made it.
    pub study: Option<StudyRun>,
    /// Local wall-clock start, as DLIO writes it.
    pub started: Option<String>,
    /// Local wall-clock end.
    pub ended: Option<String>,
    /// The machine of rank 0.
    pub hostname: Option<String>,
    /// Number of machines.
    pub hosts: Option<u64>,
    /// The folders of its hosts, where each ran a part by itself; none where all ran it together.
    pub parts: Vec<PathBuf>,
    /// Machines that are described.
    pub machines: Vec<System>,
    /// Memory of the machine of rank 0; of DLIO's runs that of all hosts.
    pub memory_bytes: Option<u64>,
    /// Program, machine, kernel, file system and device.
    pub place: Settings,
    /// Settings by the keys of plans; of a run whose config is not known, workload and accelerators.
    pub settings: Settings,
    /// Epochs with steps.
    pub epochs: u64,
    /// Steps of the longest epoch.
    pub steps: u64,
    /// File format.
    pub format: Option<String>,
    /// As configured.
    pub record_length_bytes: Option<f64>,
    /// Bytes of a sample in the mean, as DLIO's generator draws them for these settings; of a stale run those of the data it read.
    pub mean_sample_bytes: Option<f64>,
    /// Training files.
    pub files: Option<u64>,
    /// Samples in each.
    pub samples_per_file: Option<u64>,
    /// Samples in a batch.
    pub batch_size: Option<u64>,
    /// Reading threads of each accelerator.
    pub read_threads: Option<u32>,
    /// The checkpoints that it was to write; `None` where it was to write none, or it is not known.
    pub checkpoints: Option<CheckpointSchedule>,
    /// Metrics of the whole run.
    pub values: Values,
    /// The same metrics by epoch.
    pub series: BTreeMap<MetricId, Vec<Option<f64>>>,
    /// How accelerators spent their time, and how far they differ.
    pub step_times: StepTimeSummary,
    /// The side of the true figure on which the utilisation over all steps lies, where it is no more than a bound.
    pub bound: Option<Bound>,
    /// All that `metric` of DLIO's `summary.json` has as one finite number, by DLIO's names, whose MB and GB are 2^20 and 2^30 bytes.
    pub reported: BTreeMap<String, f64>,
    /// Epochs, evaluations, and before, during and after checkpoints.
    pub phases: Vec<Phase>,
    /// The dataset it was to read, and signs of the one it read.
    pub dataset_use: DatasetUse,
    /// How its accelerators were supplied, which its answer rests on; `None` of other programs' runs.
    pub supply: Option<Supply>,
    /// Reasons not to believe, the worst first.
    pub doubts: Vec<Doubt>,
    /// The reason for which its numbers must not be used; `None` where they may.
    pub unusable: Option<Reason>,
    /// Every step, where it was asked for.
    pub record: Option<Box<Record>>,
}

/// The reason for which a run must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `incomplete` or `superseded`.
    PutAside(String),
    /// It generated data.
    GeneratedOnly,
    /// It wrote or read checkpoints.
    CheckpointsOnly,
    /// A doubt that makes its numbers invalid.
    Invalid {
        /// The doubt's name.
        doubt: String,
        /// Its evidence.
        evidence: String,
    },
    /// No step is known.
    NoSteps,
}

impl Reason {
    /// A short name; of an invalid run that of the doubt.
    pub fn name(&self) -> &str {
        match self {
            Reason::PutAside(word) => word,
            Reason::GeneratedOnly => "generated data only",
            Reason::CheckpointsOnly => "checkpoints only",
            Reason::Invalid { doubt, .. } => doubt,
            Reason::NoSteps => "no steps",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::PutAside(word) => write!(f, "{word}: a study put it aside"),
            Reason::GeneratedOnly => f.write_str("it generated data, and trained nothing"),
            Reason::CheckpointsOnly => f.write_str("it trained nothing: checkpoints only"),
            Reason::Invalid { doubt, evidence } => write!(f, "{doubt}: {evidence}"),
            Reason::NoSteps => f.write_str("it has no steps that can be read"),
        }
    }
}

impl Run {
    /// A metric of the whole run, unless all that is known of it is reported.
    pub fn metric(&self, metric: &Metric) -> Option<f64> {
        let value = self.values.get(&metric.id)?;
        (value.provenance != Provenance::Reported).then_some(value.number)
    }

    /// How [`Run::metric`] came to be known.
    pub fn provenance(&self, metric: &Metric) -> Option<Provenance> {
        self.metric(metric).and_then(|_| Some(self.values.get(&metric.id)?.provenance))
    }

    /// Whether there is a record of ours.
    pub fn is_own(&self) -> bool {
        self.origin == RunOrigin::Feedrate
    }

    /// Whether a record has all its settings: that of a loop which was watched has few.
    pub fn has_settings(&self) -> bool {
        self.is_own() && self.settings.contains_key("dataset.format")
    }

    /// Bytes of a sample: in the mean, else as configured.
    pub fn sample_bytes(&self) -> Option<f64> {
        self.mean_sample_bytes.or(self.record_length_bytes).filter(|bytes| *bytes > 0.0)
    }

    /// Bytes of the samples of its dataset.
    pub(crate) fn dataset_bytes(&self) -> Option<f64> {
        Some(self.sample_bytes()? * self.files? as f64 * self.samples_per_file? as f64)
    }

    /// The utilisation in `summary.json`. A run of ours fills that with its own, whatever became of the file.
    pub fn reported_au_percent(&self) -> Option<f64> {
        self.reported("train_au_mean_percentage", &AU_WINDOWED, 1.0)
    }

    /// The rate in `summary.json`.
    pub fn reported_samples_per_second(&self) -> Option<f64> {
        self.reported("train_throughput_mean_samples_per_second", &SAMPLES_WINDOWED, 1.0)
    }

    /// The rate in `summary.json`, whose `MB` is 2^20 bytes.
    pub fn reported_mib_per_second(&self) -> Option<f64> {
        self.reported("train_io_mean_MB_per_second", &NOMINAL_WINDOWED, MIB)
    }

    fn reported(&self, name: &str, own: &Metric, unit: f64) -> Option<f64> {
        match self.origin {
            RunOrigin::Feedrate => self.metric(own).map(|number| number / unit),
            RunOrigin::Dlio | RunOrigin::MlperfStorage => self.reported.get(name).copied(),
        }
    }

    /// Whether it trained and counts as a run of its experiment, be its numbers valid or not.
    pub fn is_result(&self) -> bool {
        self.activity == Activity::Training && self.put_aside.is_none() && self.steps > 0
    }

    /// Whether it has numbers, be it such that must not be used.
    pub fn has_result(&self) -> bool {
        matches!(self.unusable, None | Some(Reason::Invalid { .. }))
    }

    /// Decide whether it may be used: after its last doubt.
    pub(crate) fn decide(&mut self) {
        let invalid = self.doubts.iter().find(|doubt| doubt.severity == Severity::Invalid);
        self.unusable = match (self.activity, &self.put_aside, invalid) {
            (_, Some(word), _) => Some(Reason::PutAside(word.clone())),
            (Activity::Generation, ..) => Some(Reason::GeneratedOnly),
            (Activity::Checkpoints, ..) => Some(Reason::CheckpointsOnly),
            (_, _, Some(Doubt { name, evidence, .. })) => {
                Some(Reason::Invalid { doubt: name.clone(), evidence: evidence.clone() })
            }
            _ => (self.steps == 0).then_some(Reason::NoSteps),
        };
    }

    /// Whether anything tells its workload: what is not known is compared with nothing.
    pub fn is_workload_known(&self) -> bool {
        self.workload != UNKNOWN
    }

    /// Source, system and workload, which runs of one study share. One whose workload is not known shares its own with none.
    pub(crate) fn study_key(&self) -> StudyKey<'_> {
        let path = if self.is_workload_known() { None } else { self.path.to_str() };
        (&self.source, self.submission.as_ref(), path.unwrap_or(&self.workload))
    }

    /// The key that replicates share.
    pub(crate) fn experiment_key(&self) -> ExperimentKey<'_> {
        (self.study_key(), self.accelerators, &self.parameter, &self.value)
    }

    /// Key of the order in which runs are numbered.
    pub fn start_key(&self) -> (&Option<String>, &Path) {
        (&self.started, &self.path)
    }

    /// The last two folders of its path, which tell runs of a study apart; of MLPerf Storage, where these are called `run`, some more, and of a submission all from its system's on.
    pub fn short_path(&self) -> String {
        let names: Vec<_> = self.path.iter().map(|name| name.to_string_lossy()).collect();
        let mut from = names.len().saturating_sub(2);
        if let Some(submission) = &self.submission {
            from = names.iter().rposition(|name| *name == submission.system).unwrap_or(from);
        }
        while 0 < from && ["run", "datagen"].iter().any(|word| names[from].starts_with(word)) {
            from -= 1;
        }
        names[from..].join("/")
    }

    /// The name that it shares with its replicates, as people call it: `4_batch_size_1`.
    pub fn experiment(&self) -> String {
        let accelerators = self.accelerators.map_or("?".into(), |count| count.to_string());
        match self.parameter.as_str() {
            "processes" => accelerators,
            _ => format!("{accelerators}_{}_{}", self.parameter, self.value),
        }
    }
}

/// Source, system, workload.
pub(crate) type StudyKey<'a> = (&'a str, Option<&'a Submission>, &'a str);

/// The same, and accelerators, parameter, value.
pub(crate) type ExperimentKey<'a> = (StudyKey<'a>, Option<u32>, &'a str, &'a str);

/// The places of runs by a key, of those that count.
pub(crate) fn grouped<'a, K: Ord>(
    runs: &'a [Run],
    counts: impl Fn(&Run) -> bool,
    key: impl Fn(&'a Run) -> K,
) -> BTreeMap<K, Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| counts(run)) {
        groups.entry(key(run)).or_default().push(index);
    }
    groups
}
