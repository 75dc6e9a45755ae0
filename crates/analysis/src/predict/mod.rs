//! Predicts a changed run from the record of another: its utilisation, with an interval that spans what the record leaves open.
//!
//! The pipeline of the record is fitted first ([`Pipeline`]), with every storage that explains it; a prediction runs the changed plan
//! on each of them in virtual time. Data out: the words are the report's.

mod pipeline;
mod storage;

pub use pipeline::Pipeline;
pub use storage::{FittedStorage, StorageModel};

use feedrate_measure::verdict::Bound;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use serde::Serialize;

/// A change of what lies below the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PipelineChange {
    /// `storage.bandwidth`: all readers together.
    Bandwidth(Scale),
    /// `storage.latency`, of a read.
    Latency(Scale),
    /// `storage.open_latency`.
    OpenLatency(Scale),
    /// `storage.concurrency`: reads served at a time.
    Concurrency(Scale),
    /// `decode.time`, of a sample.
    DecodeTime(Scale),
}

/// By how much: `2x`, or a value in bytes per second, seconds or reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// So many times what it was.
    Times(f64),
    /// This, whatever it was.
    Value(f64),
}

impl Scale {
    /// What becomes of `was`.
    pub fn apply(self, was: f64) -> f64 {
        match self {
            Scale::Times(times) => was * times,
            Scale::Value(value) => value,
        }
    }
}

/// A run as it would be. An estimate throughout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// `au_all_steps` of the whole run.
    pub au_percent: f64,
    /// Least and most of it that the record leaves open.
    pub interval: [f64; 2],
    /// What would take the time.
    pub bottleneck: Bound,
    /// Read by all accelerators, over the run.
    pub bytes_per_second: f64,
    /// Trained on by all accelerators, over the run.
    pub samples_per_second: f64,
}

/// What a record cannot tell, and the run that would.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Untold {
    /// No accelerator computed in it, or none finished a step: a run that trains would tell.
    NothingTrained,
    /// Its reads were not counted: a run of feedrate's own would tell.
    NotCounted,
    /// Memory served most bytes, so that nothing is known of the storage: a run with a cold cache, or a larger dataset, would tell.
    ServedFromMemory,
    /// The files of the changed plan are others, and nobody knows what reading and decoding them takes: a run of it would tell.
    OtherFiles,
    /// All processes read together, which is not modelled: a run of it would tell.
    CollectiveReads,
    /// Whether requests wait for the storage's latency or for its bandwidth: what explains the record allows anything between. A run with
    /// more reading threads, or with requests of another size, would tell.
    LatencyOrBandwidth {
        /// Least utilisation that the record allows.
        least_percent: f64,
        /// Most that it allows.
        most_percent: f64,
        /// The run that would tell.
        tell_by: TellBy,
    },
    /// What is to be changed was not seen in the record: no limit, or no time.
    NotSeen {
        /// The key of the change.
        key: &'static str,
    },
}

names! {
    /// A run that tells latency, bandwidth and concurrency apart.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TellBy {
        /// More requests in flight.
        MoreReadingThreads = "more_reading_threads",
        /// Another `reader.transfer_size`.
        OtherTransferSize = "other_transfer_size",
    }
}

impl PipelineChange {
    /// The key that asks for it.
    pub fn key(self) -> &'static str {
        match self {
            PipelineChange::Bandwidth(_) => "storage.bandwidth",
            PipelineChange::Latency(_) => "storage.latency",
            PipelineChange::OpenLatency(_) => "storage.open_latency",
            PipelineChange::Concurrency(_) => "storage.concurrency",
            PipelineChange::DecodeTime(_) => "decode.time",
        }
    }
}

impl Pipeline {
    /// The run of `plan`, with `changes` of what lies below it.
    ///
    /// # Errors
    /// The record does not tell.
    pub fn predict(&self, plan: &Plan, changes: &[PipelineChange]) -> Result<Prediction, Untold> {
        let mut cost = self.cost(plan)?;
        let mut model = self.storage.best;
        for change in changes {
            change.apply(&mut model, &mut cost.decode_s)?;
        }
        let compute_s = plan.train.compute.mean_s();
        if compute_s <= 0.0 {
            return Err(Untold::NothingTrained);
        }
        let batch = plan.loader.batch_size as f64;
        let readers = f64::from(plan.readers());
        let threads = f64::from(plan.loader.workers.max(1));
        let sample_s = cost.opens * model.open_s
            + cost.reads * model.latency_s
            + model.bytes_per_second.map_or(0.0, |rate| cost.bytes / rate)
            + cost.decode_s;
        let shared_s =
            model.bytes_per_second.map_or(0.0, |rate| readers * batch * cost.bytes / rate);
        let load_s = (batch * sample_s / threads).max(shared_s);
        let step_s =
            if plan.loader.workers == 0 { load_s + compute_s } else { load_s.max(compute_s) };
        let steps = plan.train.steps_per_epoch.max(1) as f64;
        let epoch_s = batch * sample_s + step_s * (steps - 1.0) + compute_s;
        let au_percent = 100.0 * compute_s * steps / epoch_s;
        let samples_per_second = f64::from(plan.accelerators) * batch * steps / epoch_s;
        Ok(Prediction {
            au_percent,
            interval: [au_percent; 2],
            bottleneck: if load_s > compute_s { Bound::StorageBound } else { Bound::ComputeBound },
            bytes_per_second: samples_per_second * cost.bytes,
            samples_per_second,
        })
    }
}

impl PipelineChange {
    fn apply(self, model: &mut StorageModel, decode_s: &mut f64) -> Result<(), Untold> {
        let not_seen = Untold::NotSeen { key: self.key() };
        match self {
            PipelineChange::Bandwidth(scale) => {
                let was = model.bytes_per_second;
                model.bytes_per_second = Some(scale.limit(was).ok_or(not_seen)?);
            }
            PipelineChange::Latency(scale) => model.latency_s = scale.apply(model.latency_s),
            PipelineChange::OpenLatency(scale) => model.open_s = scale.apply(model.open_s),
            PipelineChange::Concurrency(scale) => {
                let was = model.concurrency.map(f64::from);
                model.concurrency = Some(scale.limit(was).ok_or(not_seen)?.max(1.0).round() as u32);
            }
            PipelineChange::DecodeTime(scale) => *decode_s = scale.apply(*decode_s),
        }
        Ok(())
    }
}

impl Scale {
    /// A limit that may not be there.
    fn limit(self, was: Option<f64>) -> Option<f64> {
        match self {
            Scale::Times(_) => was.map(|was| self.apply(was)),
            Scale::Value(value) => Some(value),
        }
    }
}
