//! The pipeline of a record: what a sample takes by stage, and how many requests were in flight.

use super::Untold;
use super::storage::{FittedStorage, StorageModel};
use feedrate_measure::derived::Derived;
use feedrate_measure::record::Record;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{FileAccess, Plan};
use feedrate_spec::shape::FileShape;

/// A record's pipeline: service times by stage, requests in flight, workers, and the storage that explains them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Of the whole run.
    pub accelerators: u32,
    /// Reading threads of an accelerator; 0 where it reads itself.
    pub workers: u32,
    /// Logical CPUs of all machines.
    pub cores: u32,
    /// Of a step, as it was.
    pub compute_s: f64,
    /// Samples of a batch.
    pub batch_samples: u64,
    /// Read per sample, headers and all.
    pub sample_bytes: f64,
    /// Files opened per sample.
    pub opens_per_sample: f64,
    /// Reads per sample.
    pub reads_per_sample: f64,
    /// Mean bytes of a read.
    pub request_bytes: f64,
    /// An open, with length and close; `None` where nothing was opened.
    pub open_s: Option<f64>,
    /// A read, waits in the storage included; `None` where nothing was read.
    pub read_s: Option<f64>,
    /// Decoding, checking and handing over of a sample.
    pub decode_s: f64,
    /// Reads under way at a time, in the mean over the epochs.
    pub requests_in_flight: f64,
    /// What explains these times.
    pub storage: FittedStorage,
    /// The plan that was run.
    plan: Plan,
}

/// What a sample of a plan takes, but for the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleCost {
    pub(super) opens: f64,
    pub(super) reads: f64,
    pub(super) bytes: f64,
    pub(super) decode_s: f64,
}

impl Pipeline {
    /// Fit `record`.
    ///
    /// # Errors
    /// It does not tell.
    pub fn new(record: &Record) -> Result<Self, Untold> {
        let derived = Derived::new(record);
        let (plan, io) = (&record.plan, &derived.io);
        let blocks = || {
            let accelerators = record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
            accelerators.flat_map(|one| &one.blocks)
        };
        let steps: usize = blocks().map(|block| block.steps()).sum();
        let compute_ns: u64 = blocks().flat_map(|block| &block.compute_ns).sum();
        if steps == 0 || compute_ns == 0 {
            return Err(Untold::NothingTrained);
        }
        if io.samples == 0 || io.reads == 0 {
            return Err(Untold::NotCounted);
        }
        if plan.loader.file_access == FileAccess::Mpio {
            return Err(Untold::CollectiveReads);
        }
        if derived.is_memory_served() {
            return Err(Untold::ServedFromMemory);
        }
        let length_ns: u64 = record.epochs.iter().map(|epoch| epoch.end_ns - epoch.start_ns).sum();
        let samples = io.access.samples_read.max(1) as f64;
        let each_s = |ns: u64, count: u64| (count > 0).then(|| ns as f64 / 1e9 / count as f64);
        let (open_s, read_s) = (each_s(io.open_ns, io.opens), each_s(io.read_ns, io.reads));
        let best = StorageModel {
            latency_s: read_s.unwrap_or_default(),
            open_s: open_s.unwrap_or_default(),
            ..StorageModel::default()
        };
        Ok(Pipeline {
            accelerators: plan.accelerators,
            workers: plan.loader.workers,
            cores: record.machines().iter().map(|machine| machine.cpus).sum(),
            compute_s: compute_ns as f64 / 1e9 / steps as f64,
            batch_samples: plan.loader.batch_size,
            sample_bytes: io.read_bytes as f64 / samples,
            opens_per_sample: io.opens as f64 / samples,
            reads_per_sample: io.reads as f64 / samples,
            request_bytes: io.read_bytes as f64 / io.reads as f64,
            open_s,
            read_s,
            decode_s: io.decode_ns as f64 / 1e9 / io.samples as f64,
            requests_in_flight: io.read_ns as f64 / length_ns.max(1) as f64,
            storage: FittedStorage { best, others: Vec::new() },
            plan: plan.clone(),
        })
    }

    /// What a sample of `plan` takes, from what one of the record took.
    pub(super) fn cost(&self, plan: &Plan) -> Result<SampleCost, Untold> {
        let (was, is) = (&self.plan, plan);
        if was.dataset.format != is.dataset.format || was.dataset.encoding != is.dataset.encoding {
            return Err(Untold::OtherFiles);
        }
        if is.loader.file_access == FileAccess::Mpio {
            return Err(Untold::CollectiveReads);
        }
        let [bytes_were, bytes] = [was, is].map(mean_sample_bytes);
        let pieces =
            |bytes: f64, plan: &Plan| (bytes / plan.loader.piece_bytes.max(1) as f64).ceil();
        let (pieces_were, pieces) = (pieces(bytes_were, was), pieces(bytes, is));
        let grows = bytes / bytes_were.max(1.0);
        // A file kept open serves all its samples; else each sample opens it.
        let samples_were = was.dataset.samples_per_file.max(1) as f64;
        let keeps_open = samples_were > 1.0 && self.opens_per_sample < 0.5;
        let files =
            if keeps_open { samples_were / is.dataset.samples_per_file.max(1) as f64 } else { 1.0 };
        let opens = self.opens_per_sample * files;
        // Fewer reads than pieces of a sample: a read holds several samples.
        let reads = if self.reads_per_sample < pieces_were {
            let longer = was.loader.piece_bytes as f64 / is.loader.piece_bytes.max(1) as f64;
            (self.reads_per_sample * longer * grows).max(opens)
        } else {
            self.reads_per_sample - pieces_were + pieces
        };
        Ok(SampleCost {
            opens,
            reads,
            bytes: self.sample_bytes * grows,
            decode_s: self.decode_s * grows,
        })
    }
}

/// Payload of a training sample, in the mean.
fn mean_sample_bytes(plan: &Plan) -> f64 {
    let layout = Layout::new(&plan.dataset);
    let sum = |measure: fn(&FileShape) -> u64| layout.sum(layout.files_train(), measure) as f64;
    sum(FileShape::payload_bytes) / sum(|shape| shape.samples).max(1.0)
}
