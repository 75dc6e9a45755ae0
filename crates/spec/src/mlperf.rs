//! The rules of MLPerf Storage 0.5 to 3.0: its workloads, their required utilisation, the required dataset size, and the settings that
//! submissions may change. [`rules`] applies them to facts; the numbers are all here.

pub mod rules;

mod core_config;
mod classes;

pub use classes::{CLASSES, Class, Identity, is_named_after_class};
pub use core_config::{CoreConfig, canonical_json};

use rules::Edition;

/// Minimum ratio of the dataset to the memory of all client hosts together.
pub const DATASET_TO_MEMORY_MIN: u64 = 5;

/// Minimum number of steps per epoch.
pub const STEPS_PER_EPOCH_MIN: u64 = 500;

/// Tolerance for the size of published datasets: the official tools round the memory and the number of files.
const DATASET_ROUNDING: f64 = 0.01;

/// Settings that submissions of the closed division may change.
pub const CLOSED_KEYS: [&str; 10] = [
    "dataset.num_files_train",
    "dataset.num_subfolders_train",
    "dataset.data_folder",
    "reader.read_threads",
    "reader.computation_threads",
    "reader.transfer_size",
    "reader.prefetch_size",
    "reader.odirect",
    "checkpoint.checkpoint_folder",
    "storage",
];

/// Settings that submissions of the open division may change in addition.
pub const OPEN_KEYS: [&str; 4] =
    ["framework", "dataset.format", "dataset.num_samples_per_file", "reader.data_loader"];

/// Settings that the official tools (`benchmark.sh` of 1.0, `mlpstorage` of 3.0) set themselves, with the value if it is fixed.
const TOOL_SETTINGS: [(&str, Option<&str>); 4] = [
    ("profiling.profiler", Some("none")),
    ("dataset.skip_listing", None),
    ("dataset.listing_validation_interval", None),
    ("dataset.num_files_generated", None),
];

/// The rules of a workload.
#[derive(Debug, PartialEq)]
pub struct Rule {
    /// Name of the model.
    pub model: &'static str,
    /// Minimum AU in percent, without the first step of each block.
    pub au_percent: f64,
    /// Formats of the files. Several formats are allowed if they are read in the same way.
    pub formats: &'static [&'static str],
    /// Samples in a file.
    pub samples_per_file: u64,
    /// Whether the official client decodes samples. It does not decode images, which its generator fills with random bytes.
    pub decodes_samples: bool,
    /// `record_length_bytes`.
    pub record_bytes: f64,
    /// The training step on each accelerator.
    pub steps: &'static [RuleStep],
}

/// A training step on an accelerator.
#[derive(Debug, PartialEq)]
pub struct RuleStep {
    /// Name of the accelerator.
    pub accelerator: &'static str,
    /// Compute time of a step.
    pub compute_s: f64,
    /// Samples in a batch.
    pub batch_size: u64,
}

const fn step(accelerator: &'static str, compute_s: f64, batch_size: u64) -> RuleStep {
    RuleStep { accelerator, compute_s, batch_size }
}

/// All training workloads.
pub const RULES: [Rule; 7] = [
    Rule {
        model: "unet3d",
        au_percent: 90.0,
        formats: &["npz"],
        samples_per_file: 1,
        decodes_samples: true,
        record_bytes: 146_600_628.0,
        steps: &[
            step("v100", 1.3604, 4),
            step("a100", 0.636, 7),
            step("h100", 0.323, 7),
            step("b200", 0.162, 7),
            // An assumption: the official template is not public.
            step("mi355", 0.162, 7),
        ],
    },
    Rule {
        model: "resnet50",
        au_percent: 90.0,
        formats: &["tfrecord"],
        samples_per_file: 1251,
        decodes_samples: true,
        record_bytes: 114_660.07,
        steps: &[step("v100", 0.195, 64), step("a100", 0.435, 400), step("h100", 0.224, 400)],
    },
    Rule {
        model: "cosmoflow",
        au_percent: 70.0,
        formats: &["tfrecord"],
        samples_per_file: 1,
        decodes_samples: true,
        record_bytes: 2_828_486.0,
        steps: &[step("v100", 0.00936, 1), step("a100", 0.00551, 1), step("h100", 0.0035, 1)],
    },
    Rule {
        model: "retinanet",
        au_percent: 85.0,
        formats: &["jpeg", "raw"],
        samples_per_file: 1,
        decodes_samples: false,
        record_bytes: 322_957.0,
        steps: &[step("b200", 0.04755, 24), step("mi355", 0.071325, 36)],
    },
    Rule {
        model: "dlrm",
        au_percent: 70.0,
        formats: &["parquet"],
        samples_per_file: 4_718_592,
        decodes_samples: true,
        record_bytes: 761.0,
        steps: &[step("b200", 0.000375, 16384), step("mi355", 0.0005625, 16384)],
    },
    Rule {
        model: "flux",
        au_percent: 90.0,
        formats: &["parquet"],
        samples_per_file: 288,
        decodes_samples: true,
        record_bytes: 2_164_832.0,
        steps: &[step("b200", 1.35, 48), step("mi355", 2.025, 72)],
    },
    Rule {
        model: "bert",
        au_percent: 90.0,
        formats: &["tfrecord"],
        samples_per_file: 313_532,
        decodes_samples: true,
        record_bytes: 2500.0,
        steps: &[step("v100", 0.968, 48)],
    },
];

/// A model whose checkpoints can be submitted.
#[derive(Debug, PartialEq, Eq)]
pub struct CheckpointModel {
    /// Number of parameters, as in the model's name.
    pub name: &'static str,
    /// Tensor parallelism.
    pub tensor: u64,
    /// Pipeline parallelism.
    pub pipeline: u64,
    /// Data parallelism.
    pub data: u64,
    /// Bytes of a checkpoint over all ranks.
    pub bytes: u64,
}

/// All models of checkpoints.
pub const CHECKPOINTS: [CheckpointModel; 4] = [
    CheckpointModel { name: "8b", tensor: 1, pipeline: 1, data: 8, bytes: 112_425_623_552 },
    CheckpointModel { name: "70b", tensor: 8, pipeline: 1, data: 8, bytes: 978_406_572_032 },
    CheckpointModel { name: "405b", tensor: 8, pipeline: 32, data: 2, bytes: 5_682_508_791_808 },
    CheckpointModel { name: "1t", tensor: 8, pipeline: 64, data: 2, bytes: 16_564_174_094_592 },
];

/// Number of processes in the mode `subset`.
const SUBSET_PROCESSES: u64 = 8;

impl CheckpointModel {
    /// Finds the model in a workload's name, such as `llama3_70b` or `llama3-70b`.
    pub fn find(workload: &str) -> Option<&'static Self> {
        let mut words = words(workload);
        words.next().filter(|word| word == "llama3")?;
        let name = words.next()?;
        CHECKPOINTS.iter().find(|model| model.name == name)
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> u64 {
        self.tensor * self.pipeline * self.data
    }

    /// Whether the mode `subset` writes the whole model.
    pub fn is_whole_in_subset(&self) -> bool {
        self.processes() == SUBSET_PROCESSES
    }
}

/// Accelerators that occur in folder names.
const ACCELERATORS: [&str; 5] = ["v100", "a100", "h100", "b200", "mi355"];

/// Relative difference up to which a configured number counts as equal to the number in the rules.
const TOLERANCE: f64 = 1e-3;

/// Returns the minimum AU in percent of a workload whose name begins with its model.
pub fn au_percent(workload: &str) -> Option<f64> {
    let model = words(workload).next()?;
    RULES.iter().find(|rule| rule.model == model).map(|rule| rule.au_percent)
}

/// Whether the official client decodes the samples of a workload whose name begins with its model; true for other workloads.
pub fn decodes_samples(workload: &str) -> bool {
    let model = words(workload).next();
    let mut rules = RULES.iter();
    rules.find(|rule| Some(rule.model) == model.as_deref()).is_none_or(|rule| rule.decodes_samples)
}

/// Whether only version 3.0 has the workload, by the model and the accelerator in its name. Its client decodes no files of one sample.
pub fn is_only_of_v3(workload: &str) -> bool {
    let step = find_rule(workload, None).map(|(_, step)| step);
    step.is_some_and(|step| Edition::last_accepting(step.accelerator) == Some(Edition::V3_0))
}

/// Finds the rule of a workload whose name begins with its model, and the step on its accelerator. The accelerator is found in the name,
/// else by the compute time `compute_s`. Without an accelerator returns `None`, since other benchmarks use the same model names.
pub fn find_rule(
    workload: &str,
    compute_s: Option<f64>,
) -> Option<(&'static Rule, &'static RuleStep)> {
    let model = words(workload).next()?;
    let rule = RULES.iter().find(|rule| rule.model == model)?;
    let named =
        words(workload).find_map(|word| rule.steps.iter().find(|step| step.accelerator == word));
    let by_compute = || {
        rule.steps
            .iter()
            .find(|step| compute_s.is_some_and(|compute_s| matches_rule(compute_s, step.compute_s)))
    };
    Some((rule, named.or_else(by_compute)?))
}

/// Whether a configured number equals the number in the rules, within their rounding.
pub fn matches_rule(configured: f64, required: f64) -> bool {
    (configured / required - 1.0).abs() <= TOLERANCE
}

/// Whether a published dataset is large enough, given its ratio to the memory of all client hosts.
pub fn is_large_enough(dataset_to_memory: f64) -> bool {
    (1.0 - DATASET_ROUNDING) * DATASET_TO_MEMORY_MIN as f64 <= dataset_to_memory
}

/// Returns the steps per epoch of the smallest dataset that the official tools accept. They round the number of files down, so these
/// can be fewer than [`STEPS_PER_EPOCH_MIN`].
pub fn steps_of_smallest_dataset(accelerators: u32, batch_size: u64, samples_per_file: u64) -> u64 {
    let step_samples = u64::from(accelerators).saturating_mul(batch_size).max(1);
    let samples = STEPS_PER_EPOCH_MIN.saturating_mul(step_samples);
    let files = samples.checked_div(samples_per_file).unwrap_or(0).max(1);
    (files.saturating_mul(samples_per_file) / step_samples).min(STEPS_PER_EPOCH_MIN)
}

/// Whether the official tools themselves set DLIO's `key` to `value`.
pub fn is_set_by_official_tools(key: &str, value: &str) -> bool {
    TOOL_SETTINGS
        .iter()
        .any(|(name, fixed)| *name == key && fixed.is_none_or(|fixed| fixed == value))
}

/// The facts that determine the required size of a dataset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatasetRequirement {
    /// Memory of all client hosts together.
    pub memory_bytes: u64,
    /// Accelerators of all hosts.
    pub accelerators: u32,
    /// Samples in a batch.
    pub batch_size: u64,
    /// Samples in a file.
    pub samples_per_file: u64,
    /// `record_length_bytes`.
    pub record_bytes: f64,
}

impl DatasetRequirement {
    /// Returns the number of files that hold five times the memory.
    pub fn files_by_memory(self) -> u64 {
        let bytes = DATASET_TO_MEMORY_MIN as f64 * self.memory_bytes as f64;
        (bytes / (self.samples_per_file as f64 * self.record_bytes)).ceil() as u64
    }

    /// Returns the number of files that suffice for the required steps.
    pub fn files_by_steps(self) -> u64 {
        let step_samples = u64::from(self.accelerators).saturating_mul(self.batch_size);
        STEPS_PER_EPOCH_MIN.saturating_mul(step_samples).div_ceil(self.samples_per_file.max(1))
    }

    /// Returns the required number of files: the larger of `files_by_memory` and `files_by_steps`.
    pub fn files(self) -> u64 {
        self.files_by_memory().max(self.files_by_steps())
    }

    /// Returns the nominal bytes of `files` files.
    pub fn bytes(self, files: u64) -> f64 {
        files as f64 * self.samples_per_file as f64 * self.record_bytes
    }
}

/// The divisions of MLPerf Storage in which submissions may change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Both divisions.
    Closed,
    /// Only the open division.
    Open,
    /// Neither division.
    None,
}

/// Returns the strictest division that may change DLIO's `key`.
pub fn division_for_key(key: &str) -> Division {
    let contains_key = |section: &str| {
        let rest = key.strip_prefix(section);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if CLOSED_KEYS.iter().any(|section| contains_key(section)) {
        Division::Closed
    } else if OPEN_KEYS.iter().any(|section| contains_key(section)) {
        Division::Open
    } else {
        Division::None
    }
}

/// Returns the workload whose model and accelerator occur in `names`, such as `unet3d_h100`. Earlier names take precedence. If no
/// accelerator occurs, returns the model alone.
pub fn workload_from_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut model = None;
    let mut accelerator = None;
    for name in names {
        for word in words(name).collect::<Vec<_>>() {
            let known_model = RULES.iter().map(|rule| rule.model).find(|known| *known == word);
            model = model.or(known_model);
            let known_accelerator = ACCELERATORS.iter().copied().find(|known| *known == word);
            accelerator = accelerator.or(known_accelerator);
        }
        if model.is_some() && accelerator.is_some() {
            break;
        }
    }
    Some(workload_name(model?, accelerator))
}

/// Appends the accelerator to a workload name that is only a model. The accelerator is found by the compute time of a step, else in `names`.
pub fn with_accelerator<'a>(
    workload: &str,
    compute_s: Option<f64>,
    names: impl Iterator<Item = &'a str>,
) -> String {
    let Some(rule) = RULES.iter().find(|rule| rule.model == workload) else {
        return workload.into();
    };
    let named = names
        .flat_map(words)
        .find_map(|word| ACCELERATORS.iter().copied().find(|known| *known == word));
    let computed = compute_s.and_then(|compute_s| rule.accelerator(compute_s, named));
    workload_name(rule.model, computed.or(named))
}

/// Returns the workload with the compute time `compute_s` per step; `None` if several workloads have it.
pub fn workload_from_compute(compute_s: f64) -> Option<String> {
    let mut matches = RULES.iter().flat_map(|rule| {
        rule.accelerator(compute_s, None)
            .map(|accelerator| workload_name(rule.model, Some(accelerator)))
    });
    let first = matches.next();
    if matches.next().is_none() { first } else { None }
}

impl Rule {
    /// Returns the accelerator with this compute time. If several have it, returns `preferred` or else the first.
    fn accelerator(&self, compute_s: f64, preferred: Option<&str>) -> Option<&'static str> {
        let steps = self.steps.iter().filter(|step| matches_rule(compute_s, step.compute_s));
        let mut accelerators: Vec<&str> = steps.map(|step| step.accelerator).collect();
        accelerators.sort_by_key(|name| Some(*name) != preferred);
        accelerators.first().copied()
    }
}

fn workload_name(model: &str, accelerator: Option<&str>) -> String {
    accelerator.map_or_else(|| model.into(), |accelerator| format!("{model}_{accelerator}"))
}

/// Splits a name into words in lower case: `UNET3D-H100` into `unet3d` and `h100`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_recognised_by_names_and_compute_time() {
        for (names, expected) in [
            (&["run_1", "unet3d-h100"][..], Some("unet3d_h100")),
            (&["run1", "H100", "unet3d"], Some("unet3d_h100")),
            (&["Vendor_resnet50_1Client_A100"], Some("resnet50_a100")),
            (&["run_1", "cosmoflow"], Some("cosmoflow")),
            (&["4", "unet3dish"], None),
        ] {
            let found = workload_from_names(names.iter().copied());
            assert_eq!(found.as_deref(), expected, "{names:?}");
        }
        assert_eq!(workload_from_compute(0.224).as_deref(), Some("resnet50_h100"));
        assert_eq!(workload_from_compute(0.3), None);
        let named =
            |names: &[&'static str]| with_accelerator("unet3d", Some(0.162), names.iter().copied());
        assert_eq!((named(&[]), named(&["mi355"])), ("unet3d_b200".into(), "unet3d_mi355".into()));
        assert_eq!(with_accelerator("mine", Some(0.323), [].into_iter()), "mine");
        assert_eq!(
            (au_percent("cosmoflow_h100"), au_percent("unet3d-a100")),
            (Some(70.0), Some(90.0))
        );
        assert_eq!(au_percent("mine"), None);
    }

    /// 500 steps of 8 × 7 samples need 28,000 files of one sample. Five times 100 GiB are 3663 files of 146.6 MB.
    #[test]
    fn the_size_of_a_dataset_follows_from_memory_and_steps() {
        let required = DatasetRequirement {
            memory_bytes: 100 << 30,
            accelerators: 8,
            batch_size: 7,
            samples_per_file: 1,
            record_bytes: 146_600_628.0,
        };
        assert_eq!((required.files_by_steps(), required.files_by_memory()), (28_000, 3663));
        assert_eq!(required.files(), 28_000);
        let required = DatasetRequirement { memory_bytes: 1 << 40, ..required };
        assert_eq!(required.files(), 37_501);
        let shared = DatasetRequirement { batch_size: 400, samples_per_file: 1251, ..required };
        assert_eq!(shared.files_by_steps(), 1279);
        let hosts = 51 * (189 << 30);
        let required = DatasetRequirement { memory_bytes: hosts, accelerators: 204, ..required };
        assert_eq!((required.files_by_memory(), required.files()), (352_993, 714_000));
    }

    #[test]
    fn official_tools_round_the_number_of_files_down() {
        for (accelerators, batch_size, samples_per_file, expected) in [
            (8, 7, 1, 500),
            // 159 files of 1251 samples, for 500 steps of 400.
            (1, 400, 1251, 497),
            (36, 400, 1251, 499),
            // One file has more than 500 steps.
            (1, 48, 313_532, 500),
            (0, 0, 0, 0),
        ] {
            let steps = steps_of_smallest_dataset(accelerators, batch_size, samples_per_file);
            assert_eq!(steps, expected, "{accelerators} {batch_size} {samples_per_file}");
        }
        assert!(is_large_enough(4.95) && !is_large_enough(4.94));
    }

    #[test]
    fn a_rule_needs_more_than_the_name_of_a_model() {
        let check = |name, compute_s, expected: Option<(&str, &str)>| {
            let found = find_rule(name, compute_s);
            let names = found.map(|(rule, step)| (rule.model, step.accelerator));
            assert_eq!(names, expected, "{name}");
        };
        check("unet3d_h100_custom", None, Some(("unet3d", "h100")));
        check("unet3d_h100", Some(1.0), Some(("unet3d", "h100")));
        check("dlrm_parquet", Some(0.000375), Some(("dlrm", "b200")));
        check("bert_mrpc", Some(0.5), None);
        check("mine", Some(0.323), None);
    }

    #[test]
    fn divisions_may_change_their_keys_and_the_keys_below() {
        for (key, division) in [
            ("reader.read_threads", Division::Closed),
            ("storage.storage_type", Division::Closed),
            ("dataset.format", Division::Open),
            ("reader.batch_size", Division::None),
            ("reader.read_threads_more", Division::None),
        ] {
            assert_eq!(division_for_key(key), division, "{key}");
        }
    }
}
