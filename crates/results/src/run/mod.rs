//! A run from any source: its settings, its numbers with their provenance, its doubts, and whether it may be used. [`crate::index`] adds the doubts
//! that follow from comparing runs.

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
mod mlperf_class;

pub use checkpoint_schedule::CheckpointSchedule;
pub use dataset_use::DatasetUse;
pub use figures::OtherNumber;
pub use folder_names::FolderNames;
pub(crate) use mlperf::{AU_MISREPORTED, MEAN_MISREPORTED};
pub use mlperf::{MlperfCheck, RuleOutcome};
pub use mlperf_class::MlperfClass;
pub(crate) use settings::ACCELERATORS;
pub use settings::{IMPLIED, ROWS, Settings, factor, settings};
pub use step_times::StepTimeSummary;
pub use submission::{REHEARSAL, SCALED_REHEARSAL, Submission};
pub(crate) use submission::{has_warm_up, warm_ups};

use crate::import::{Bound, RunOrigin};
use crate::row::WARM_UP;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::{
    AU_WINDOWED, Metric, MetricId, NOMINAL_WINDOWED, Provenance, SAMPLES_WINDOWED, Values,
};
use feedrate_measure::phase::Phase;
use feedrate_measure::record::Contradiction;
use feedrate_measure::record::{Record, StudyRun, System};
use feedrate_measure::supply::Supply;
use feedrate_spec::mlperf::CoreConfig;
use feedrate_spec::mlperf::rules::Edition;
use feedrate_spec::units::MIB;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Purpose of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Training, successful or not.
    Training,
    /// Generation of a dataset without training.
    Generation,
    /// Writing or reading checkpoints without training.
    Checkpoints,
    /// The files of the run do not determine its purpose.
    #[default]
    Unknown,
}

/// Name of an unknown workload. Runs of unknown workloads are not compared with other runs.
pub const UNKNOWN: &str = "unknown";

/// Source of a workload's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadSource {
    /// The override `workload=NAME`.
    Overrides,
    /// The model's name in the config, or the plan of a record.
    Config,
    /// Names of the folders that contain the run.
    Path,
    /// `dlio.log` or `summary.json`.
    Log,
    /// The compute time of a step, which is specific to a workload of MLPerf Storage.
    Compute,
}

/// One run. Unknown fields are `None`, and unknown values and settings are missing from their maps.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Result folder.
    pub path: PathBuf,
    /// Path that the user named and below which the run was found.
    pub source: String,
    /// Program that made the run.
    pub origin: RunOrigin,
    /// Purpose of the run.
    pub activity: Activity,
    /// `incomplete` or `superseded` if a study moved the run there, or `warm-up` for a run that `run --repeat` does not count, unless the user
    /// named the run explicitly.
    pub put_aside: Option<String>,
    /// Submitter and system, if the run is in a tree of MLPerf Storage results.
    pub submission: Option<Submission>,
    /// Edition of MLPerf Storage's rules that the results name, or that their folders show.
    pub rules_edition: Option<Edition>,
    /// Name of the workload, or [`UNKNOWN`].
    pub workload: String,
    /// Source of the workload's name.
    pub workload_from: Option<WorkloadSource>,
    /// Settings that the files of the run state differently.
    pub contradictions: Vec<Contradiction>,
    /// The settings by which MLPerf Storage identifies the workload; `None` if they are unknown.
    pub core_config: Option<CoreConfig>,
    /// Required utilisation, as configured or as MLPerf Storage requires for the workload.
    pub bar_percent: Option<f64>,
    /// Number of emulated accelerators, or of DLIO's ranks.
    pub accelerators: Option<u32>,
    /// Varied parameters: the last components of their keys, joined by commas; `processes` for a baseline.
    pub parameter: String,
    /// Values of the varied parameters, joined by commas.
    pub value: String,
    /// Number of the replicate, from the study or counted in the order of starts. Only results are counted.
    pub replicate: Option<u32>,
    /// Position in the order of execution, from the study or counted in the order of starts among the source's runs with results.
    pub order: Option<u32>,
    /// Overrides, verbatim, except for the workload's name, the workflow and folders.
    pub overrides: Vec<String>,
    /// Study, row and attempt of the run.
    pub study: Option<StudyRun>,
    /// Local wall-clock time of the start, in DLIO's notation.
    pub started: Option<String>,
    /// Local wall-clock time of the end, likewise.
    pub ended: Option<String>,
    /// Name of rank 0's machine.
    pub hostname: Option<String>,
    /// Number of machines.
    pub hosts: Option<u64>,
    /// Folders of the hosts, if each host executed a separate part of the run.
    pub parts: Vec<PathBuf>,
    /// Descriptions of machines.
    pub machines: Vec<System>,
    /// Memory of rank 0's machine; for runs of DLIO, memory of all hosts.
    pub memory_bytes: Option<u64>,
    /// Most memory that all hosts can have, even if their memory is unknown.
    pub memory_bytes_max: Option<u64>,
    /// Whether the description of the submitted system mentions a cgroup, which may limit the memory.
    pub may_limit_memory: bool,
    /// Program, machine, kernel, file system and device.
    pub place: Settings,
    /// Settings by the keys of plans. Only the workload and the number of accelerators if the config is unknown.
    pub settings: Settings,
    /// Whether the storage has no device: it serves samples from memory or reads nothing.
    pub has_no_device: bool,
    /// Whether steps ran on GPUs. If not, they were emulated by waiting, and any use of GPUs is by other programs.
    pub computes_on_devices: bool,
    /// Number of epochs with steps.
    pub epochs: u64,
    /// Number of steps of the longest epoch.
    pub steps: u64,
    /// File format.
    pub format: Option<String>,
    /// Configured size of a sample.
    pub record_length_bytes: Option<f64>,
    /// Mean size of a sample that DLIO's generator gives for these settings; unknown if the run may have read another dataset.
    pub mean_sample_bytes: Option<f64>,
    /// Number of training files.
    pub files: Option<u64>,
    /// Number of samples in each file.
    pub samples_per_file: Option<u64>,
    /// Number of samples in a batch.
    pub batch_size: Option<u64>,
    /// Number of reading threads of each accelerator.
    pub read_threads: Option<u32>,
    /// Configured checkpoints; `None` if there are none or the configuration is unknown.
    pub checkpoints: Option<CheckpointSchedule>,
    /// Metrics of the whole run.
    pub values: Values,
    /// Metrics of each epoch.
    pub series: BTreeMap<MetricId, Vec<Option<f64>>>,
    /// Time that accelerators spent in their steps.
    pub step_times: StepTimeSummary,
    /// Whether the utilisation over all steps is only an upper or a lower bound.
    pub bound: Option<Bound>,
    /// Finite numbers in `metric` of DLIO's `summary.json`, by DLIO's names. MB and GB in these names are 2^20 and 2^30 bytes.
    pub reported: BTreeMap<String, f64>,
    /// Epochs, evaluations, and the times before, during and after checkpoints.
    pub phases: Vec<Phase>,
    /// The dataset that the run was configured to read.
    pub dataset_use: DatasetUse,
    /// Supply of the accelerators, from which the answer is derived; `None` for runs of other programs.
    pub supply: Option<Supply>,
    /// Doubts, the worst first.
    pub doubts: Vec<Doubt>,
    /// Reason why the numbers must not be used; `None` if they may.
    pub unusable: Option<Reason>,
    /// The record with all steps, if it was kept.
    pub record: Option<Box<Record>>,
}

/// Reason why a run must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A study moved the run to this folder, `incomplete` or `superseded`, or made it as a `warm-up`.
    PutAside(String),
    /// The run only generated a dataset.
    GeneratedOnly,
    /// The run only wrote or read checkpoints.
    CheckpointsOnly,
    /// The run has a doubt that invalidates its numbers.
    Invalid {
        /// Name of the doubt.
        doubt: String,
        /// Evidence of the doubt.
        evidence: String,
    },
    /// The run has no readable steps.
    NoSteps,
}

impl Reason {
    /// Returns a short name; for invalid runs the name of the doubt.
    pub fn name(&self) -> &str {
        match self {
            Reason::PutAside(folder) => folder,
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
            Reason::PutAside(folder) if folder == WARM_UP => {
                write!(f, "{folder}: it does not count")
            }
            Reason::PutAside(folder) => write!(f, "{folder}: a study put it aside"),
            Reason::GeneratedOnly => f.write_str("it generated data without training"),
            Reason::CheckpointsOnly => f.write_str("it wrote or read checkpoints without training"),
            Reason::Invalid { doubt, evidence } => write!(f, "{doubt}: {evidence}"),
            Reason::NoSteps => f.write_str("it has no readable steps"),
        }
    }
}

impl Run {
    /// Returns a metric of the whole run, unless its value was only reported.
    pub fn metric(&self, metric: &Metric) -> Option<f64> {
        let value = self.values.get(&metric.id)?;
        (value.provenance != Provenance::Reported).then_some(value.number)
    }

    /// Returns the provenance of [`Run::metric`].
    pub fn provenance(&self, metric: &Metric) -> Option<Provenance> {
        self.metric(metric).and_then(|_| Some(self.values.get(&metric.id)?.provenance))
    }

    /// Returns whether feedrate made the run, which therefore has a record.
    pub fn is_from_feedrate(&self) -> bool {
        self.origin == RunOrigin::Feedrate
    }

    /// Returns whether there is a record with all settings. Records of watched training loops have few.
    pub fn has_settings(&self) -> bool {
        self.is_from_feedrate() && self.settings.contains_key("dataset.format")
    }

    /// Returns the mean size of a sample in bytes, or the configured size if the mean is unknown.
    pub fn sample_bytes(&self) -> Option<f64> {
        self.mean_sample_bytes.or(self.record_length_bytes).filter(|bytes| *bytes > 0.0)
    }

    /// Returns the total size of the dataset's samples in bytes.
    pub(crate) fn dataset_bytes(&self) -> Option<f64> {
        Some(self.sample_bytes()? * self.files? as f64 * self.samples_per_file? as f64)
    }

    /// Returns the utilisation in `summary.json`. For runs of feedrate it is computed from the record, even if the file is missing.
    pub fn reported_au_percent(&self) -> Option<f64> {
        self.reported("train_au_mean_percentage", &AU_WINDOWED, 1.0)
    }

    /// Returns the throughput in samples per second in `summary.json`, likewise.
    pub fn reported_samples_per_second(&self) -> Option<f64> {
        self.reported("train_throughput_mean_samples_per_second", &SAMPLES_WINDOWED, 1.0)
    }

    /// Returns the throughput in MiB/s in `summary.json`, likewise.
    pub fn reported_mib_per_second(&self) -> Option<f64> {
        self.reported("train_io_mean_MB_per_second", &NOMINAL_WINDOWED, MIB)
    }

    fn reported(&self, name: &str, metric: &Metric, unit: f64) -> Option<f64> {
        match self.origin {
            RunOrigin::Feedrate => self.metric(metric).map(|number| number / unit),
            RunOrigin::Dlio | RunOrigin::MlperfStorage => self.reported.get(name).copied(),
        }
    }

    /// Returns whether the run trained and counts as a run of its experiment, valid or not.
    pub fn is_result(&self) -> bool {
        self.activity == Activity::Training && self.put_aside.is_none() && self.steps > 0
    }

    /// Returns whether the run has numbers, usable or not.
    pub fn has_result(&self) -> bool {
        matches!(self.unusable, None | Some(Reason::Invalid { .. }))
    }

    /// Sets whether the run may be used, and the reason if not. All doubts must have been added before.
    pub(crate) fn set_usability(&mut self) {
        let invalid = self.doubts.iter().find(|doubt| doubt.severity == Severity::Invalid);
        self.unusable = match (self.activity, &self.put_aside, invalid) {
            (_, Some(folder), _) => Some(Reason::PutAside(folder.clone())),
            (Activity::Generation, ..) => Some(Reason::GeneratedOnly),
            (Activity::Checkpoints, ..) => Some(Reason::CheckpointsOnly),
            (_, _, Some(Doubt { name, evidence, .. })) => {
                Some(Reason::Invalid { doubt: name.clone(), evidence: evidence.clone() })
            }
            _ => (self.steps == 0).then_some(Reason::NoSteps),
        };
    }

    /// Returns whether the workload is known.
    pub fn is_workload_known(&self) -> bool {
        self.workload != UNKNOWN
    }

    /// Returns source, system and workload, which the runs of a study share. The key of an unknown workload is unique.
    pub(crate) fn study_key(&self) -> StudyKey<'_> {
        let path = if self.is_workload_known() { None } else { self.path.to_str() };
        (&self.source, self.submission.as_ref(), path.unwrap_or(&self.workload))
    }

    /// Returns the key that replicates share.
    pub(crate) fn experiment_key(&self) -> ExperimentKey<'_> {
        (self.study_key(), self.accelerators, &self.parameter, &self.value)
    }

    /// Returns a key to sort runs by start time.
    pub fn start_key(&self) -> (&Option<String>, &Path) {
        (&self.started, &self.path)
    }

    /// Returns the end of the path, which identifies the run within a study: the last two folders, or more if they are called `run` as in MLPerf
    /// Storage. For submissions it starts at the system's folder.
    pub fn short_path(&self) -> String {
        let names: Vec<_> = self.path.iter().map(|name| name.to_string_lossy()).collect();
        let mut first = names.len().saturating_sub(2);
        if let Some(submission) = &self.submission {
            first = names.iter().rposition(|name| *name == submission.system).unwrap_or(first);
        }
        while 0 < first && ["run", "datagen"].iter().any(|word| names[first].starts_with(word)) {
            first -= 1;
        }
        names[first..].join("/")
    }

    /// Returns the display name that the run shares with its replicates, such as `4_batch_size_1`.
    pub fn experiment(&self) -> String {
        let accelerators = self.accelerators.map_or("?".into(), |count| count.to_string());
        match self.parameter.as_str() {
            "processes" => accelerators,
            _ => format!("{accelerators}_{}_{}", self.parameter, self.value),
        }
    }
}

/// Source, system and workload.
pub(crate) type StudyKey<'a> = (&'a str, Option<&'a Submission>, &'a str);

/// Key of the study, accelerators, parameter and value.
pub(crate) type ExperimentKey<'a> = (StudyKey<'a>, Option<u32>, &'a str, &'a str);

/// Groups the indices of the runs that satisfy `is_member` by a key.
pub(crate) fn group_runs<'a, K: Ord>(
    runs: &'a [Run],
    is_member: impl Fn(&Run) -> bool,
    key: impl Fn(&'a Run) -> K,
) -> BTreeMap<K, Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| is_member(run)) {
        groups.entry(key(run)).or_default().push(index);
    }
    groups
}
