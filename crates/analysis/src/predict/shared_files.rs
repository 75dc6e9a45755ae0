//! Counts opens, reads and bytes per sample for files that hold several samples, by reading a small dataset of the same format in the
//! same way.
//!
//! These counts depend on which workers read which samples of a file, so they cannot be calculated from the plan alone.

use super::miniature::mean_sample_bytes;
use feedrate_engine::job::ReadJob;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::record::IoCounters;
use feedrate_spec::plan::{DatasetPlan, FileAccess, Plan};
use feedrate_spec::shape::{Element, Encoding};
use feedrate_spec::workload::TimeSpec;

/// Maximum number of samples of the small dataset.
const SAMPLES_MAX: f64 = 1024.0;
/// Approximate size of the small dataset. Samples are shrunk only if it would be larger.
const BYTES: f64 = 16e6;
/// Minimum number of files of the small dataset.
const FILES_MIN: f64 = 4.0;
/// Maximum number of simulated accelerators that share files.
const SHARING_MAX: u32 = 16;
/// Time of every open and read. It does not affect the counts.
const OPERATION_S: f64 = 1e-3;

/// Opens, reads and bytes per sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleWork {
    pub(super) opens: f64,
    pub(super) reads: f64,
    pub(super) bytes: f64,
}

impl SampleWork {
    /// Counts the work for `plan`; `None` if the format cannot be read in memory.
    pub(super) fn count(plan: &Plan) -> Option<Self> {
        let scale = CopyScale::new(plan);
        let small = scale.small_plan(plan);
        let time = TimeSpec::Constant { mean: OPERATION_S };
        let storage = SimulatedStorage { latency: time, open: time, ..SimulatedStorage::default() };
        let mut driver = SimulatedDriver::new(ReadJob::in_memory(&small)?, storage);
        let mut io = IoCounters::default();
        for accelerator in driver.run_epoch(small.train.steps_per_epoch).ok()? {
            io.add(&accelerator.io);
        }
        let samples = io.samples as f64 * scale.real_samples_per_sample as f64;
        // A shrunk file is read without the requests of a library after it is opened.
        let opening_reads = if scale.is_shrunk() { plan.loader.opening_reads(0.0) } else { 0 };
        (io.opens > 0 && io.reads > 0).then(|| SampleWork {
            opens: io.opens as f64 / samples,
            reads: (io.reads + io.opens * opening_reads) as f64 / samples,
            bytes: io.read_bytes as f64 / samples / scale.bytes_factor,
        })
    }
}

/// The scale of the small dataset.
#[derive(Clone, Copy, Debug)]
struct CopyScale {
    /// Number of samples of the small dataset.
    total_samples: f64,
    /// Number of real samples that a sample of the small dataset represents.
    real_samples_per_sample: u64,
    /// Factor by which sizes of samples and requests are reduced.
    bytes_factor: f64,
}

impl CopyScale {
    fn new(plan: &Plan) -> Self {
        let sample_bytes = mean_sample_bytes(plan).max(1.0);
        let readers = f64::from(sharing_accelerators(plan) * plan.loader.workers.max(1));
        let two_batches_each = 2.0 * plan.loader.batch_size as f64 * readers;
        let wanted = two_batches_each.max(FILES_MIN * plan.dataset.samples_per_file as f64);
        let total_samples = (BYTES / sample_bytes).clamp(wanted.min(SAMPLES_MAX), SAMPLES_MAX);
        let real_samples_per_sample = (wanted / total_samples).ceil().max(1.0);
        let represented_bytes = total_samples * real_samples_per_sample * sample_bytes;
        CopyScale {
            total_samples,
            real_samples_per_sample: real_samples_per_sample as u64,
            bytes_factor: (BYTES / represented_bytes).min(1.0),
        }
    }

    /// Whether samples are smaller than those of the plan.
    fn is_shrunk(self) -> bool {
        self.bytes_factor < 1.0
    }

    fn small_plan(self, plan: &Plan) -> Plan {
        let fewer = |samples: u64| samples.div_ceil(self.real_samples_per_sample).max(1);
        let smaller = |bytes: f64| ((bytes * self.bytes_factor) as u64).max(1);
        let mut small = plan.clone();
        small.accelerators = sharing_accelerators(plan);
        small.checkpoint = None;
        small.evaluation = None;
        small.stage = None;

        let loader = &mut small.loader;
        loader.batch_size = fewer(loader.batch_size);
        loader.shuffle_block = loader.shuffle_block.map(fewer);
        loader.reread_share = 0.0;
        if let Some(head) = &mut loader.head {
            head.bytes = smaller(head.bytes as f64);
        }
        if let Some(library) = loader.library.filter(|_| self.is_shrunk()) {
            // The requests of the library are as long for a shrunk file, so that their mean length represents them.
            let sizes = library.requests().sizes;
            let bytes = sizes.period_bytes.map_or(loader.piece_bytes as f64, |period| {
                period as f64 / sizes.requests_per_period() as f64
            });
            loader.piece_bytes = smaller(bytes);
            loader.library = None;
        } else {
            loader.piece_bytes = smaller(loader.piece_bytes as f64);
        }
        loader.held_batches = 0;
        loader.held_at_start = 0;
        loader.decode_threads = None;
        loader.in_memory = false;
        loader.materialize = false;
        loader.verify = false;
        loader.preprocess = TimeSpec::None;

        let step_samples = loader.batch_size * u64::from(small.accelerators);
        let workers = u64::from(loader.workers.max(1));
        let steps = (self.total_samples as u64 / step_samples).max(1).next_multiple_of(workers);
        let train = &mut small.train;
        train.epochs = 1;
        train.steps_per_epoch = steps;
        train.total_steps = None;
        train.compute = TimeSpec::None;
        train.slow_accelerators.clear();

        let dataset = &plan.dataset;
        let samples_per_file = fewer(dataset.samples_per_file);
        let represented_bytes = mean_sample_bytes(plan) * self.real_samples_per_sample as f64;
        small.dataset = DatasetPlan {
            format: dataset.format.clone(),
            extension: dataset.extension.clone(),
            prefix: dataset.prefix.clone(),
            files_train: (steps * step_samples).div_ceil(samples_per_file),
            samples_per_file,
            record_bytes: represented_bytes * self.bytes_factor,
            element: Element::Uint8,
            encoding: Encoding {
                row_group_samples: fewer(dataset.encoding.row_group_samples),
                ..Encoding::default()
            },
            ..DatasetPlan::default()
        };
        small
    }
}

/// Number of simulated accelerators that share files; 1 if each accelerator reads separate files.
fn sharing_accelerators(plan: &Plan) -> u32 {
    match plan.loader.file_access {
        FileAccess::Multi => 1,
        FileAccess::Shared | FileAccess::Same | FileAccess::Mpio => {
            plan.accelerators.clamp(1, SHARING_MAX)
        }
    }
}
