//! Opens, reads and bytes of the samples of a file that holds many: how often it is opened and how much of it is read depends on who reads which of them.
//! Counted, by reading a small dataset of the same format the same way.

use super::miniature::mean_sample_bytes;
use feedrate_engine::job::ReadJob;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::record::IoCounters;
use feedrate_spec::plan::{DatasetPlan, FileAccess, Plan};
use feedrate_spec::shape::{Element, Encoding};
use feedrate_spec::workload::TimeSpec;

/// Samples of the small dataset, at most.
const SAMPLES_MAX: f64 = 1024.0;
/// Its bytes, about: below that samples are as long as they are, so that as many pieces make one.
const BYTES: f64 = 16e6;
/// Its files, at least.
const FILES_MIN: f64 = 4.0;
/// Accelerators that read one file together, at most.
const TOGETHER_MAX: u32 = 16;
/// An open or a read takes as long as another.
const EACH_S: f64 = 1e-3;

/// Work of the storage for a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleWork {
    pub(super) opens: f64,
    pub(super) reads: f64,
    pub(super) bytes: f64,
}

impl SampleWork {
    /// That of `plan`; `None` where it cannot be counted.
    pub(super) fn counted(plan: &Plan) -> Option<Self> {
        let scale = CopyScale::new(plan);
        let plan = scale.small(plan);
        let each = TimeSpec::Constant { mean: EACH_S };
        let storage = SimulatedStorage { latency: each, open: each, ..SimulatedStorage::default() };
        let mut driver = SimulatedDriver::new(ReadJob::in_memory(&plan)?, storage);
        let mut io = IoCounters::default();
        for accelerator in driver.epoch(plan.train.steps_per_epoch).ok()? {
            io.add(&accelerator.io);
        }
        let samples = io.samples as f64 * scale.samples as f64;
        (io.opens > 0 && io.reads > 0).then(|| SampleWork {
            opens: io.opens as f64 / samples,
            reads: io.reads as f64 / samples,
            bytes: io.read_bytes as f64 / samples / scale.bytes,
        })
    }
}

/// How much smaller the dataset is.
#[derive(Clone, Copy, Debug)]
struct CopyScale {
    /// Samples of the small dataset.
    all: f64,
    /// Samples that one of it stands for.
    samples: u64,
    /// Bytes of a sample and of a piece, in what they were.
    bytes: f64,
}

impl CopyScale {
    fn new(plan: &Plan) -> Self {
        let sample_bytes = mean_sample_bytes(plan).max(1.0);
        let readers = f64::from(together(plan) * plan.loader.workers.max(1));
        // Each reader has two batches.
        let in_turn = 2.0 * plan.loader.batch_size as f64 * readers;
        let wanted = in_turn.max(FILES_MIN * plan.dataset.samples_per_file as f64);
        let all = (BYTES / sample_bytes).clamp(wanted.min(SAMPLES_MAX), SAMPLES_MAX);
        let samples = (wanted / all).ceil().max(1.0);
        CopyScale {
            all,
            samples: samples as u64,
            bytes: (BYTES / (all * samples * sample_bytes)).min(1.0),
        }
    }

    fn small(self, plan: &Plan) -> Plan {
        let mut small = plan.clone();
        let fewer = |samples: u64| samples.div_ceil(self.samples).max(1);
        let (loader, train) = (&mut small.loader, &mut small.train);
        loader.batch_size = fewer(loader.batch_size);
        loader.shuffle_block = loader.shuffle_block.map(fewer);
        loader.reread_share = 0.0;
        if let Some(head) = &mut loader.head {
            head.bytes = ((head.bytes as f64 * self.bytes) as u64).max(1);
        }
        loader.piece_bytes = ((loader.piece_bytes as f64 * self.bytes) as u64).max(1);
        (loader.held_batches, loader.held_at_start, loader.decode_threads) = (0, 0, None);
        (loader.in_memory, loader.materialize, loader.verify) = (false, false, false);
        loader.preprocess = TimeSpec::None;
        small.accelerators = together(plan);
        let batch = loader.batch_size * u64::from(small.accelerators);
        let steps =
            (self.all as u64 / batch).max(1).next_multiple_of(u64::from(loader.workers.max(1)));
        (train.epochs, train.steps_per_epoch, train.total_steps) = (1, steps, None);
        train.compute = TimeSpec::None;
        train.slow_accelerators.clear();
        let was = &plan.dataset;
        let samples_per_file = fewer(was.samples_per_file);
        small.dataset = DatasetPlan {
            format: was.format.clone(),
            extension: was.extension.clone(),
            prefix: was.prefix.clone(),
            files_train: (steps * batch).div_ceil(samples_per_file),
            samples_per_file,
            record_bytes: mean_sample_bytes(plan) * self.samples as f64 * self.bytes,
            element: Element::Uint8,
            encoding: Encoding {
                row_group_samples: fewer(was.encoding.row_group_samples),
                ..Encoding::default()
            },
            ..DatasetPlan::default()
        };
        (small.checkpoint, small.evaluation, small.stage) = (None, None, None);
        small
    }
}

/// Accelerators whose samples lie side by side: elsewhere each reads for itself.
fn together(plan: &Plan) -> u32 {
    match plan.loader.file_access {
        FileAccess::Multi => 1,
        FileAccess::Shared | FileAccess::Same | FileAccess::Mpio => {
            plan.accelerators.clamp(1, TOGETHER_MAX)
        }
    }
}
