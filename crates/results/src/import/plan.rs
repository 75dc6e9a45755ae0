//! The plan that a DLIO run followed, as far as its config and files tell, so that metrics and doubts can be had of it. What nobody knows
//! is 0 or empty there, and stays unknown outside.

use super::config::Config;
use feedrate_spec::plan::{
    Barrier, Cache, DatasetPlan, FileAccess, LoaderPlan, MetricPlan, Plan, Shuffle, StoragePlan,
    TrainPlan,
};
use feedrate_spec::shape::{Element, Encoding, Redundancy};
use feedrate_spec::workload::TimeSpec;

/// Sizes of more files are not drawn one by one.
const DRAWN_FILES_MAX: u64 = 1 << 14;

/// Counts that the config asks for; nothing where there is none, or no count at its key.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Training files.
    pub files: Option<u64>,
    /// Samples in each.
    pub samples_per_file: Option<u64>,
    /// Samples in a batch.
    pub batch_size: Option<u64>,
    /// Epochs.
    pub epochs: Option<u64>,
}

impl Asked {
    /// With DLIO's defaults for what is not given.
    pub fn new(config: &Config) -> Self {
        Asked {
            files: config.count(&["dataset.num_files_train"], 8),
            samples_per_file: config.count(&["dataset.num_samples_per_file"], 1),
            batch_size: config.count(&BATCH_SIZE, 1),
            epochs: config.count(&["train.epochs"], 1),
        }
    }

    /// Steps of an epoch: files × samples ÷ (batch × ranks), rounded down, is what DLIO runs.
    pub fn steps(&self, config: &Config, ranks: u32) -> Option<u64> {
        let per_step = self.batch_size?.saturating_mul(u64::from(ranks));
        let made = self.files?.saturating_mul(self.samples_per_file?).checked_div(per_step)?;
        let most = config.number(&["train.total_training_steps"]).filter(|most| 0.0 < *most);
        // DLIO counts them anew in each epoch.
        Some(most.map_or(made, |most| made.min(most as u64)))
    }
}

/// Keys of MLPerf Storage 0.5 and of DLIO.
const BATCH_SIZE: [&str; 2] = ["data_reader.batch_size", "reader.batch_size"];

/// Keys of DLIO and of its older releases.
const RECORD_LENGTH: [&str; 2] = ["dataset.record_length_bytes", "dataset.record_length"];

/// Counts of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) accelerators: u32,
    pub(super) files: u64,
    pub(super) samples_per_file: u64,
    pub(super) batch_size: u64,
    pub(super) epochs: u32,
    pub(super) steps: u64,
}

pub(super) fn plan(config: &Config, counts: Counts) -> Plan {
    let text = |paths: &[&str]| config.text(paths).unwrap_or_default();
    Plan {
        workload: text(&["model.name", "model"]),
        model: text(&["model.name", "model"]),
        framework: text(&["framework"]),
        accelerators: counts.accelerators,
        dataset: dataset(config, counts),
        storage: StoragePlan {
            kind: "file".into(),
            engine: None,
            throttle_bytes_per_second: None,
            throttle_latency_s: 0.0,
            delay_s: 0.0,
        },
        loader: loader(config, counts),
        train: TrainPlan {
            epochs: counts.epochs,
            steps_per_epoch: counts.steps,
            total_steps: None,
            compute: config.compute_s().map_or(TimeSpec::None, |mean| TimeSpec::Constant { mean }),
            compute_seed: 0,
            on_devices: None,
            cache: Cache::default(),
            barrier: Barrier::EachStep,
        },
        checkpoint: None,
        evaluation: None,
        metric: MetricPlan {
            au_target_percent: config.number(&["metric.au"]).unwrap_or(0.9) * 100.0,
            exclude_start_steps: excluded(config, "start", 1),
            exclude_end_steps: excluded(config, "end", 0),
        },
        timeline: false,
        doubts: vec![],
    }
}

fn excluded(config: &Config, which: &str, default: u64) -> u64 {
    let path = format!("output.metric.exclude_{which}_steps");
    config.count(&[&path], default).unwrap_or(default)
}

fn dataset(config: &Config, counts: Counts) -> DatasetPlan {
    let format = config.text(&["dataset.format"]).unwrap_or_default();
    let number = |paths: &[&str]| config.number(paths).filter(|n| (0.0..1e15).contains(n));
    let is_given = RECORD_LENGTH.iter().any(|path| config.has(path));
    let length = number(&RECORD_LENGTH);
    let stdev = number(&["dataset.record_length_bytes_stdev", "dataset.record_length_stdev"]);
    DatasetPlan {
        extension: format.clone(),
        format,
        files_train: counts.files,
        files_eval: 0,
        samples_per_file: counts.samples_per_file,
        subfolders_train: 0,
        subfolders_eval: 0,
        prefix: String::new(),
        record_bytes: length.unwrap_or(if is_given || !config.is_known() { 0.0 } else { 65536.0 }),
        record_stdev_bytes: if counts.files <= DRAWN_FILES_MAX {
            stdev.unwrap_or(0.0)
        } else {
            0.0
        },
        record_dims: vec![],
        element: element(config),
        encoding: Encoding::default(),
        content_seed: 0,
        redundancy: Redundancy::default(),
    }
}

fn element(config: &Config) -> Element {
    let name = config.text(&["dataset.record_element_type"]);
    let known = Element::ALL.into_iter().find(|element| Some(element.name()) == name.as_deref());
    known.unwrap_or(Element::Uint8)
}

fn loader(config: &Config, counts: Counts) -> LoaderPlan {
    let count = |key: &str, default: u64| {
        let paths = [format!("data_reader.{key}"), format!("reader.{key}")];
        let found = config.count(&[&paths[0], &paths[1]], default).unwrap_or(default);
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let kind = config.text(&["data_reader.data_loader", "reader.data_loader"]);
    let kind = kind.or_else(|| config.text(&["framework"])).unwrap_or_default();
    let (workers, prefetch_size) = (count("read_threads", 1), count("prefetch_size", 2));
    LoaderPlan {
        batch_size: counts.batch_size,
        workers,
        prefetch_size,
        batches_in_flight: batches_in_flight(&kind, workers, prefetch_size, counts.batch_size),
        kind,
        file_access: FileAccess::Multi,
        group_accelerators: 1,
        interleaved_files: 1,
        held_batches: 0,
        held_at_start: 0,
        decode_threads: None,
        in_memory: false,
        preprocess: TimeSpec::None,
        preprocess_seed: 0,
        file_shuffle: Shuffle::Off,
        sample_shuffle: Shuffle::Off,
        shuffles_in_buffer: false,
        order_seed: 0,
        seed_change_epoch: true,
        piece_bytes: 0,
        materialize: true,
        verify: false,
        check_crc: true,
    }
}

/// Batches that DLIO's loaders have in flight (`torch_data_loader.py`, `tf_data_loader.py`, `dali_data_loader.py`).
fn batches_in_flight(kind: &str, workers: u32, prefetch_size: u32, batch_size: u64) -> u32 {
    match kind {
        "pytorch" if workers == 0 => 0,
        "pytorch" => match prefetch_size.div_ceil(workers) {
            0 => workers.saturating_mul(2),
            factor => workers.saturating_mul(factor),
        },
        "tensorflow" => {
            let ahead = u64::from(workers).div_ceil(batch_size.max(1));
            u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(prefetch_size).max(1)
        }
        _ => prefetch_size.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::batches_in_flight;

    #[test]
    fn the_stock_is_that_of_dlios_loaders() {
        let check = |kind, workers, prefetch, expected| {
            assert_eq!(
                batches_in_flight(kind, workers, prefetch, 7),
                expected,
                "{kind} {workers} {prefetch}"
            );
        };
        check("pytorch", 4, 2, 4);
        check("pytorch", 4, 8, 8);
        check("pytorch", 1, 2, 2);
        check("pytorch", 0, 2, 0);
        check("pytorch", 4, 0, 8);
        check("pytorch", u32::MAX, u32::MAX, u32::MAX);
        check("tensorflow", 8, 2, 4);
        check("dali", 8, 2, 2);
    }
}
