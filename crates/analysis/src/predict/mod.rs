//! Predicts a changed run from the record of another: its utilisation, with an interval that spans what the record leaves open.
//!
//! The pipeline of the record is fitted first ([`Pipeline`]), with every storage that explains it; a prediction runs the changed plan
//! on each of them in virtual time. Data out: the words are the report's.

mod model;
mod miniature;
mod shared_files;
mod storage;
mod pipeline;
#[cfg(test)]
mod tests;

pub use model::StorageModel;
pub use pipeline::Pipeline;

use feedrate_measure::verdict::Bound;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use miniature::{EpochTimes, Scene, scaled};
use model::SampleCost;
use pipeline::Residual;
use schemars::JsonSchema;
use serde::Serialize;

/// A change of what lies below the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PipelineChange {
    /// `storage.bandwidth`: all readers together, whether it is bytes or requests that are limited.
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
    /// The new value in place of `was`.
    pub fn apply(self, was: f64) -> f64 {
        match self {
            Scale::Times(times) => was * times,
            Scale::Value(value) => value,
        }
    }
}

/// A run as it would be. An estimate throughout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    /// `au_all_steps` of the whole run.
    pub au_percent: f64,
    /// Least and most of it that the record leaves open.
    pub interval: [f64; 2],
    /// The stage that would take the time.
    pub bottleneck: Bound,
    /// Read by all accelerators, over the run.
    pub bytes_per_second: f64,
    /// Trained on by all accelerators, over the run.
    pub samples_per_second: f64,
}

/// Something that a record cannot tell, and the run that would.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum NotPredictable {
    /// No accelerator computed in it, or none finished a step: a run that trains would tell.
    NothingTrained,
    /// Its reads were not counted: a run of feedrate's own would tell.
    NotCounted,
    /// A loop of somebody's own was watched, and what its loader does is not known: a run of a workload like it would tell.
    OnlyWatched,
    /// Memory served most bytes, so that nothing is known of the storage: a run with a cold cache, or a larger dataset, would tell.
    ServedFromMemory,
    /// The files of the changed plan are others, or are read another way, and nobody knows what reading and decoding them takes: a run of it
    /// would tell.
    OtherFiles,
    /// Samples come from the files in another order, and nobody knows how often files are opened and how much of them is read
    /// then: a run of it would tell.
    OtherOrder,
    /// Accelerators read together, or one for all, which is not modelled: a run of it would tell.
    CollectiveReads,
    /// Whether requests wait for the storage's latency or for its bandwidth: what explains the record allows anything between. A run with
    /// more reading threads, or with requests of another size, would tell.
    LatencyOrBandwidth {
        /// Least utilisation that the record allows.
        least_percent: f64,
        /// Most that it allows.
        most_percent: f64,
        /// The run that would tell.
        #[serde(rename = "tell_by")]
        deciding_run: DecidingRun,
    },
    /// The record has nothing of the kind that is to be changed: no limit, or no time.
    NotSeen {
        /// The key of the change.
        key: &'static str,
    },
}

names! {
    /// A run that tells latency, bandwidth and concurrency apart.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum DecidingRun {
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

/// Points of utilisation between the least and the most that the record allows, from which on nothing is predicted.
const SPAN_MAX_PERCENT: f64 = 16.0;
/// Points by which runs on the same storage differ: one that is emulated, one that is not.
const NOISE_PERCENT: [f64; 2] = [1.5, 3.0];
/// Points of doubt for each by which a change moves the utilisation.
const DOUBT_OF_CHANGE: f64 = 0.05;

impl Pipeline {
    /// The run of `plan`, with `changes` of what lies below it.
    ///
    /// # Errors
    /// The record does not tell.
    pub fn predict(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
    ) -> Result<Prediction, NotPredictable> {
        let plan = &self.with_compute(plan);
        let is_seen =
            |change: &&PipelineChange| self.storage.iter().any(|model| change.is_seen(model));
        if let Some(unseen) = changes.iter().find(|change| !is_seen(change)) {
            return Err(NotPredictable::NotSeen { key: unseen.key() });
        }
        let cost = self.cost(plan)?;
        let mut predicted = Vec::new();
        for (rest, residual) in &self.models {
            predicted.push(self.predict_on(plan, cost, changes, rest, residual)?);
        }
        let Some(best) = predicted.first().copied() else { return Err(NotPredictable::NotCounted) };
        let ends = |pick: fn(f64, f64) -> f64, at: usize| {
            predicted.iter().map(|one| one.interval[at]).reduce(pick).unwrap_or(best.au_percent)
        };
        let interval = [ends(f64::min, 0), ends(f64::max, 1)];
        let among =
            |pick: fn(f64, f64) -> f64| predicted.iter().map(|one| one.au_percent).reduce(pick);
        let (least_percent, most_percent) =
            among(f64::min).zip(among(f64::max)).unwrap_or_default();
        if most_percent - least_percent > SPAN_MAX_PERCENT {
            // More threads tell nothing of what all of them share anyway.
            let all_share = self.models.iter().all(|(rest, _)| rest.is_shared());
            let alone =
                plan.readers() * plan.loader.workers.max(1) == 1 || self.requests_in_flight < 1.5;
            let deciding_run = if alone && !all_share {
                DecidingRun::MoreReadingThreads
            } else {
                DecidingRun::OtherTransferSize
            };
            return Err(NotPredictable::LatencyOrBandwidth {
                least_percent,
                most_percent,
                deciding_run,
            });
        }
        Ok(Prediction { interval, ..best })
    }

    /// The same, on one of the storages that explain the record.
    fn predict_on(
        &self,
        plan: &Plan,
        mut cost: SampleCost,
        changes: &[PipelineChange],
        rest: &StorageModel,
        residual: &Residual,
    ) -> Result<Prediction, NotPredictable> {
        let mut changed = plan.clone();
        let mut model = rest.behind(StorageModel::emulated(&plan.storage_of_steps()));
        for change in changes {
            change.apply(&mut model, &mut cost, &mut changed);
            if matches!(change, PipelineChange::Bandwidth(Scale::Value(_))) {
                // More bytes are no more requests, where those are limited for certain.
                model.request_s = self.limited_request_s;
            }
        }
        let scene = Scene { plan: &changed, cost: &cost, model: &model, cores: self.cores };
        let simulated = scene.run()?;
        let samples = plan.loader.batch_size as f64 * f64::from(plan.accelerators);
        // What all cores together have to do takes that long, however it is shared.
        let busy_s = self.all_cpu_s(&changed, &cost) * samples / f64::from(self.cores);
        let epochs: Vec<EpochTimes> = simulated
            .epochs
            .iter()
            .map(|epoch| {
                let epoch = residual.corrected(epoch);
                EpochTimes { length_s: epoch.length_s.max(busy_s * epoch.steps), ..epoch }
            })
            .collect();
        let au_percent = miniature::au_percent(&epochs);
        let sum = |value: fn(&EpochTimes) -> f64| epochs.iter().map(value).sum::<f64>();
        let samples_per_second = samples * sum(|one| one.steps) / sum(|one| one.length_s);
        let doubt = NOISE_PERCENT[usize::from(!self.is_emulated)]
            + residual.missed_percent.abs()
            + DOUBT_OF_CHANGE * (au_percent - self.au_percent).abs();
        let is_fed = plan.metric.au_target_percent <= au_percent;
        Ok(Prediction {
            au_percent,
            // No accelerator computes for longer than a run lasts.
            interval: [(au_percent - doubt).max(0.0), (au_percent + doubt).min(100.0)],
            bottleneck: if is_fed { Bound::ComputeBound } else { simulated.bound },
            bytes_per_second: samples_per_second * cost.bytes,
            samples_per_second,
        })
    }
}

impl PipelineChange {
    /// Whether it changes anything that `model` has.
    fn is_seen(self, model: &StorageModel) -> bool {
        let rates = [model.bytes_per_second, model.stream_bytes_per_second];
        match self {
            PipelineChange::Bandwidth(Scale::Times(times)) => {
                times.is_infinite() || model.request_s > 0.0 || rates.iter().any(Option::is_some)
            }
            PipelineChange::Latency(Scale::Times(_)) => model.latency_s > 0.0,
            PipelineChange::OpenLatency(Scale::Times(_)) => model.open_s > 0.0,
            PipelineChange::Concurrency(Scale::Times(_)) => model.concurrency.is_some(),
            _ => true,
        }
    }

    fn apply(self, model: &mut StorageModel, cost: &mut SampleCost, plan: &mut Plan) {
        match self {
            PipelineChange::Bandwidth(Scale::Value(value)) => {
                (model.bytes_per_second, model.stream_bytes_per_second) = (Some(value), None);
            }
            PipelineChange::Bandwidth(Scale::Times(times)) => {
                model.request_s /= times;
                for rate in [&mut model.bytes_per_second, &mut model.stream_bytes_per_second] {
                    *rate = rate.map(|rate| rate * times);
                }
            }
            PipelineChange::Latency(scale) => model.latency_s = scale.apply(model.latency_s),
            PipelineChange::OpenLatency(scale) => model.open_s = scale.apply(model.open_s),
            PipelineChange::Concurrency(scale) => {
                let places = model.concurrency.map_or(f64::INFINITY, f64::from);
                // Any number of them stays any number.
                let places = Some(scale.apply(places)).filter(|places| places.is_finite());
                model.concurrency = places.map(|places| (places.round() as u32).max(1));
            }
            PipelineChange::DecodeTime(scale) => {
                let was_s = cost.cpu_s + plan.loader.preprocess.mean_s();
                let times = if was_s > 0.0 { scale.apply(was_s) / was_s } else { 1.0 };
                cost.cpu_s *= times;
                plan.loader.preprocess = scaled(plan.loader.preprocess, times);
            }
        }
    }
}
