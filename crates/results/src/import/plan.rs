//! Reconstructs the plan of a DLIO run from its config and files, as input for metrics and doubts. Unknown values are 0 or empty in the plan, and
//! are not reported.

use super::abilities::DlioAbility::{KeepsOrder, ReadsAhead};
use super::abilities::dlio_has;
use super::config::Config;
use feedrate_spec::plan::{DatasetPlan, LoaderPlan, MetricPlan, Plan, StoragePlan, TrainPlan};
use feedrate_spec::shape::Element;
use feedrate_spec::units;
use feedrate_spec::workload::TimeSpec;

/// Maximum number of files whose random sizes are reproduced one by one.
const DRAWN_FILES_MAX: u64 = 1 << 14;

/// Counts in a config; `None` if there is no config or its value is not a count.
#[derive(Clone, Copy, Debug)]
pub struct ConfiguredCounts {
    /// Number of training files.
    pub files: Option<u64>,
    /// Number of samples in each file.
    pub samples_per_file: Option<u64>,
    /// Number of samples in a batch.
    pub batch_size: Option<u64>,
    /// Number of epochs.
    pub epochs: Option<u64>,
}

impl ConfiguredCounts {
    /// Reads the counts, with DLIO's defaults for missing keys.
    pub fn new(config: &Config) -> Self {
        ConfiguredCounts {
            files: config.count(&["dataset.num_files_train"], 8),
            samples_per_file: config.count(&["dataset.num_samples_per_file"], 1),
            batch_size: config.count(&BATCH_SIZE, 1),
            epochs: config.count(&["train.epochs"], 1),
        }
    }

    /// Returns the number of steps of an epoch as DLIO computes it: files × samples ÷ (batch × ranks), rounded down.
    pub fn steps(&self, config: &Config, ranks: u32) -> Option<u64> {
        let samples_per_step = self.batch_size?.saturating_mul(u64::from(ranks));
        let samples = self.files?.saturating_mul(self.samples_per_file?);
        let steps = samples.checked_div(samples_per_step)?;
        // DLIO applies the limit to each epoch separately.
        let limit = config.number(&["train.total_training_steps"]).filter(|limit| 0.0 < *limit);
        Some(limit.map_or(steps, |limit| steps.min(limit as u64)))
    }
}

/// Keys of the batch size in MLPerf Storage 0.5 and in DLIO.
const BATCH_SIZE: [&str; 2] = ["data_reader.batch_size", "reader.batch_size"];

/// Keys of the record length in DLIO and in its older releases.
const RECORD_LENGTH: [&str; 2] = ["dataset.record_length_bytes", "dataset.record_length"];
/// Keys of the record length's standard deviation, likewise.
pub(super) const RECORD_STDEV: [&str; 2] =
    ["dataset.record_length_bytes_stdev", "dataset.record_length_stdev"];

/// Builds the plan of a run. `counts` override the counts in the config.
pub(super) fn plan(
    config: &Config,
    counts: ConfiguredCounts,
    accelerators: u32,
    steps_per_epoch: u64,
) -> Plan {
    let model = config.text(&["model.name", "model"]).unwrap_or_default();
    let epochs = counts.epochs.map_or(0, |epochs| u32::try_from(epochs).unwrap_or(u32::MAX));
    Plan {
        workload: model.clone(),
        model,
        framework: config.text(&["framework"]).unwrap_or_default(),
        accelerators,
        dataset: dataset(config, counts),
        storage: StoragePlan { kind: "file".into(), ..StoragePlan::default() },
        loader: loader(config, counts),
        train: TrainPlan {
            epochs,
            steps_per_epoch,
            compute: config.compute_s().map_or(TimeSpec::None, |mean| TimeSpec::Constant { mean }),
            ..TrainPlan::default()
        },
        metric: MetricPlan {
            au_target_percent: units::round_noise(
                config.number(&["metric.au"]).unwrap_or(0.9) * 100.0,
            ),
            exclude_start_steps: excluded_steps(config, "start", 1),
            exclude_end_steps: excluded_steps(config, "end", 0),
            ..MetricPlan::default()
        },
        ..Plan::default()
    }
}

fn excluded_steps(config: &Config, which: &str, default: u64) -> u64 {
    let path = format!("output.metric.exclude_{which}_steps");
    config.count(&[&path], default).unwrap_or(default)
}

fn dataset(config: &Config, counts: ConfiguredCounts) -> DatasetPlan {
    let format = config.text(&["dataset.format"]).unwrap_or_default();
    let length = config.bytes(&RECORD_LENGTH);
    let is_given = RECORD_LENGTH.iter().any(|path| config.has(path));
    let files_train = counts.files.unwrap_or(0);
    let stdev = config.bytes(&RECORD_STDEV).filter(|_| files_train <= DRAWN_FILES_MAX);
    let element = config.text(&["dataset.record_element_type"]);
    DatasetPlan {
        extension: format.clone(),
        format,
        files_train,
        samples_per_file: counts.samples_per_file.unwrap_or(0),
        record_bytes: length.unwrap_or(if is_given || !config.is_known() { 0.0 } else { 65536.0 }),
        record_stdev_bytes: stdev.unwrap_or(0.0),
        element: element.and_then(|name| Element::from_name(&name)).unwrap_or_default(),
        ..DatasetPlan::default()
    }
}

fn loader(config: &Config, counts: ConfiguredCounts) -> LoaderPlan {
    let count = |key: &str, default: u64| {
        let paths = [format!("data_reader.{key}"), format!("reader.{key}")];
        let count = config.count(&[&paths[0], &paths[1]], default).unwrap_or(default);
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    let workers = count("read_threads", 1);
    let prefetch_size = count("prefetch_size", 2);
    let kind = config.text(&["data_reader.data_loader", "reader.data_loader", "framework"]);
    let kind = kind.unwrap_or_default();
    let batch_size = counts.batch_size.unwrap_or(0);
    LoaderPlan {
        batch_size,
        workers,
        prefetch_size,
        batches_in_flight: batches_in_flight(&kind, workers, prefetch_size, batch_size),
        kind,
        group_accelerators: 1,
        interleaved_files: 1,
        ..LoaderPlan::default()
    }
}

/// Returns the number of batches that a loader of DLIO has in flight.
fn batches_in_flight(kind: &str, workers: u32, prefetch_size: u32, batch_size: u64) -> u32 {
    if dlio_has(kind, KeepsOrder) {
        let per_worker = prefetch_size.div_ceil(workers.max(1));
        return workers.saturating_mul(if per_worker == 0 { 2 } else { per_worker });
    }
    if dlio_has(kind, ReadsAhead) {
        let ahead = u64::from(workers).div_ceil(batch_size.max(1));
        return u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(prefetch_size).max(1);
    }
    prefetch_size.max(1)
}

#[cfg(test)]
mod tests {
    use super::batches_in_flight;

    #[test]
    fn batches_in_flight_follow_dlios_loaders() {
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
