//! Predicts the utilisation of a changed run from the record of another run, with an interval for the remaining uncertainty.
//!
//! First, a [`Pipeline`] is fitted to the record, with every storage model that explains the record. A prediction then simulates the changed
//! plan on each model in virtual time. Predictions are data; `report` words them.

mod model;
mod miniature;
mod shared_files;
mod storage;
mod pipeline;
mod pool;
#[cfg(test)]
mod tests;

pub use model::StorageModel;
pub use pipeline::Pipeline;
pub use pool::PipelinePool;

use feedrate_measure::metric::{AU_ALL_STEPS, Metric};
use feedrate_measure::noise::Noise;
use feedrate_measure::verdict::Bound;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use miniature::{EpochTimes, Simulation, scale_time};
use model::SampleCost;
use pipeline::FittedModel;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// A change of the storage or of decoding, below the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PipelineChange {
    /// `storage.bandwidth`: the total rate of all readers, limited in bytes or in requests.
    Bandwidth(Scale),
    /// `storage.latency`: the latency of a read.
    Latency(Scale),
    /// `storage.open_latency`: the time of an open.
    OpenLatency(Scale),
    /// `storage.concurrency`: the number of reads served at a time.
    Concurrency(Scale),
    /// `decode.time`: the time to decode a sample.
    DecodeTime(Scale),
    /// `train.slow_accelerators={}`: no accelerator is emulated to be slower than the others.
    EqualAccelerators,
}

/// The size of a change: a factor such as `2x`, or a new value in bytes per second, seconds or reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// A factor.
    Times(f64),
    /// A new value.
    Value(f64),
}

impl Scale {
    /// The new value that replaces `old`.
    pub fn apply(self, old: f64) -> f64 {
        match self {
            Scale::Times(factor) => old * factor,
            Scale::Value(value) => value,
        }
    }
}

/// A predicted run. All values are estimates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    /// The utilisation, in percent.
    pub au_percent: f64,
    /// The metric of `au_percent`: au_all_steps or au_sustained.
    pub au_kind: &'static str,
    /// The lowest and the highest utilisation that are consistent with the record.
    pub interval: [f64; 2],
    /// The stage that limits the run.
    pub bottleneck: Bound,
    /// Bytes that all accelerators read per second.
    pub bytes_per_second: f64,
    /// Samples that all accelerators train on per second.
    pub samples_per_second: f64,
}

/// The reason why a record does not allow a prediction. The descriptions name a run that would.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum NotPredictable {
    /// No accelerator computed, or none finished a step. A run that trains is needed.
    NothingTrained,
    /// The reads were not counted. A run of feedrate is needed.
    NotCounted,
    /// The record is of a watched training whose loader is unknown. A run of a similar workload is needed.
    OnlyWatched,
    /// The record has too few steps. A longer run is needed.
    TooFewSteps {
        /// Number of finished steps over all epochs.
        steps: u64,
        /// Number of steps that a prediction needs.
        needed: u64,
    },
    /// The cores were busy, or steps differ too much. A run on an idle machine, or a longer run, is needed.
    TooNoisy {
        /// The reason why no model is fitted.
        noise: Noise,
    },
    /// Memory served most bytes, so the storage is unknown. A run with a cold cache or a larger dataset is needed.
    ServedFromMemory,
    /// The changed plan reads other files, or reads files differently, at an unknown cost. A run of that plan is needed.
    OtherFiles,
    /// The changed plan reads samples in another order, with an unknown number of opens and reads. A run of that plan is needed.
    OtherOrder,
    /// Accelerators read collectively, or one accelerator reads for all; neither is modelled. A run of the changed plan is needed.
    CollectiveReads,
    /// The record does not show whether reads wait for latency or for bandwidth. A run with more reading threads or with requests of
    /// another size is needed.
    LatencyOrBandwidth {
        /// The lowest utilisation that is consistent with the record.
        least_percent: f64,
        /// The highest utilisation that is consistent with the record.
        most_percent: f64,
        /// The run that would decide.
        #[serde(rename = "tell_by")]
        deciding_run: DecidingRun,
    },
    /// The record does not contain the limit or time that the change scales.
    NotSeen {
        /// The key of the change.
        key: &'static str,
    },
}

names! {
    /// A run that would distinguish latency, bandwidth and concurrency.
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
    /// The key that users write for the change.
    pub fn key(self) -> &'static str {
        match self {
            PipelineChange::Bandwidth(_) => "storage.bandwidth",
            PipelineChange::Latency(_) => "storage.latency",
            PipelineChange::OpenLatency(_) => "storage.open_latency",
            PipelineChange::Concurrency(_) => "storage.concurrency",
            PipelineChange::DecodeTime(_) => "decode.time",
            PipelineChange::EqualAccelerators => "train.slow_accelerators",
        }
    }

    /// The change as users write it: `storage.latency=0.5x` or `storage.bandwidth=4000000B/s`.
    pub fn setting(self) -> String {
        let (scale, unit) = match self {
            PipelineChange::Bandwidth(scale) => (scale, "B/s"),
            PipelineChange::Latency(scale)
            | PipelineChange::OpenLatency(scale)
            | PipelineChange::DecodeTime(scale) => (scale, "s"),
            PipelineChange::Concurrency(scale) => (scale, ""),
            PipelineChange::EqualAccelerators => return format!("{}={{}}", self.key()),
        };
        match scale {
            Scale::Times(factor) => format!("{}={factor}x", self.key()),
            Scale::Value(value) => format!("{}={value}{unit}", self.key()),
        }
    }
}

impl Serialize for PipelineChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.setting())
    }
}

/// Largest difference, in points, between the predictions of models that explain the record.
const SPAN_MAX_POINTS: f64 = 16.0;
/// Expected difference between runs on the same emulated storage, in points.
const NOISE_EMULATED_POINTS: f64 = 1.5;
/// Expected difference between runs on the same real storage, in points.
const NOISE_POINTS: f64 = 3.0;
/// Uncertainty of a prediction for each point by which it changes the utilisation, in points.
const UNCERTAINTY_OF_CHANGE: f64 = 0.05;

/// The smallest interval that contains the intervals of all predictions.
fn interval_of_all(predictions: &[Prediction]) -> [f64; 2] {
    let ends = predictions.iter().map(|prediction| prediction.interval);
    ends.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], [from, to]| {
        [low.min(from), high.max(to)]
    })
}

impl Pipeline {
    /// Predicts the utilisation over all steps of the run of `plan` with `changes` of the storage and of decoding.
    ///
    /// # Errors
    /// The record does not allow the prediction.
    pub fn predict(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
    ) -> Result<Prediction, NotPredictable> {
        self.predict_metric(plan, changes, &AU_ALL_STEPS)
    }

    /// Predicts a run as [`Pipeline::predict`] does, in terms of au_all_steps or au_sustained.
    ///
    /// # Errors
    /// The record does not allow the prediction.
    pub(crate) fn predict_metric(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
        metric: &'static Metric,
    ) -> Result<Prediction, NotPredictable> {
        let plan = &self.with_compute(plan);
        let is_applicable =
            |change: &&PipelineChange| self.storage.iter().any(|model| change.is_applicable(model));
        if let Some(inapplicable) = changes.iter().find(|change| !is_applicable(change)) {
            return Err(NotPredictable::NotSeen { key: inapplicable.key() });
        }
        let changes_storage = |change: &PipelineChange| match change {
            PipelineChange::DecodeTime(_) | PipelineChange::EqualAccelerators => false,
            PipelineChange::Bandwidth(_)
            | PipelineChange::Latency(_)
            | PipelineChange::OpenLatency(_)
            | PipelineChange::Concurrency(_) => true,
        };
        if self.is_cached && changes.iter().any(changes_storage) {
            return Err(NotPredictable::ServedFromMemory);
        }
        let cost = self.cost(plan)?;
        let mut predictions = Vec::new();
        for fitted in &self.models {
            predictions.push(self.predict_with(fitted, plan, cost, changes, metric)?);
        }
        let Some(best) = predictions.first().copied() else {
            return Err(NotPredictable::NotCounted);
        };
        let lowest = |value: fn(&Prediction) -> f64| {
            predictions.iter().map(value).fold(f64::INFINITY, f64::min)
        };
        let highest = |value: fn(&Prediction) -> f64| {
            predictions.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
        };
        let interval = interval_of_all(&predictions);
        let least_percent = lowest(|prediction| prediction.au_percent);
        let most_percent = highest(|prediction| prediction.au_percent);
        if most_percent - least_percent > SPAN_MAX_POINTS {
            // If readers share a limit in all models, more threads do not distinguish the models.
            let have_shared_limit = self.models.iter().all(|fitted| fitted.storage.is_shared());
            let has_one_request =
                plan.readers() * plan.loader.streams() == 1 || self.requests_in_flight < 1.5;
            let reads_whole_requests = plan.loader.requests.is_some();
            let deciding_run = if reads_whole_requests || has_one_request && !have_shared_limit {
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

    /// Predicts with one of the storage models that explain the record.
    fn predict_with(
        &self,
        fitted: &FittedModel,
        plan: &Plan,
        mut cost: SampleCost,
        changes: &[PipelineChange],
        metric: &'static Metric,
    ) -> Result<Prediction, NotPredictable> {
        let mut changed = plan.clone();
        let mut model =
            fitted.storage.combine_with(StorageModel::from_emulation(&plan.storage_of_steps()));
        for change in changes {
            change.apply(&mut model, &mut cost, &mut changed);
            if matches!(change, PipelineChange::Bandwidth(Scale::Value(_))) {
                // A higher rate in bytes does not raise a known limit of requests.
                model.request_s = self.limited_request_s;
            }
        }
        let simulation =
            Simulation { plan: &changed, cost: &cost, model: &model, cores: self.cores };
        let simulated = simulation.run()?;
        let step_samples = plan.loader.batch_size as f64 * f64::from(plan.accelerators);
        // A step takes at least its processor time on all cores.
        let cpu_s = self.cpu_per_sample_s(&changed, &cost);
        let step_s_min = cpu_s * step_samples / f64::from(self.cores);
        let corrected = fitted.correct(self, &simulated, &changed, metric);
        let with_cores = |epoch: &EpochTimes| EpochTimes {
            length_s: epoch.length_s.max(step_s_min * epoch.steps),
            ..*epoch
        };
        let epochs: Vec<EpochTimes> = corrected.epochs.iter().map(with_cores).collect();
        let au_percent = miniature::au_percent(&epochs);
        let sum = |value: fn(&EpochTimes) -> f64| epochs.iter().map(value).sum::<f64>();
        let samples_per_second =
            step_samples * sum(|epoch| epoch.steps) / sum(|epoch| epoch.length_s);
        let noise_points = if self.is_emulated { NOISE_EMULATED_POINTS } else { NOISE_POINTS };
        let uncertainty_points = noise_points
            + corrected.missed_percent.abs()
            + UNCERTAINTY_OF_CHANGE * (au_percent - corrected.recorded_percent).abs();
        let is_fed = plan.metric.au_target_percent <= au_percent;
        let is_short_of_cores =
            corrected.epochs.iter().any(|epoch| epoch.length_s < with_cores(epoch).length_s);
        let bottleneck = match (is_fed, is_short_of_cores) {
            (true, _) => Bound::ComputeBound,
            (false, true) => Bound::CpuSaturated,
            // The run lost more time than its simulation, for a reason that is not modelled.
            (false, false) if simulated.bound == Bound::ComputeBound => Bound::InputBound,
            (false, false) => simulated.bound,
        };
        Ok(Prediction {
            au_percent,
            au_kind: corrected.metric.id.name(),
            interval: [
                (au_percent - uncertainty_points).max(0.0),
                (au_percent + uncertainty_points).min(100.0),
            ],
            bottleneck,
            bytes_per_second: samples_per_second * cost.bytes,
            samples_per_second,
        })
    }
}

impl PipelineChange {
    /// Whether `model` has the limit or time that the change scales. A new value always applies.
    fn is_applicable(self, model: &StorageModel) -> bool {
        let rates = [model.bytes_per_second, model.stream_bytes_per_second];
        match self {
            PipelineChange::Bandwidth(Scale::Times(factor)) => {
                factor.is_infinite() || model.request_s > 0.0 || rates.iter().any(Option::is_some)
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
                model.bytes_per_second = Some(value);
                model.stream_bytes_per_second = None;
            }
            PipelineChange::Bandwidth(Scale::Times(factor)) => {
                model.request_s /= factor;
                for rate in [&mut model.bytes_per_second, &mut model.stream_bytes_per_second] {
                    *rate = rate.map(|rate| rate * factor);
                }
            }
            PipelineChange::Latency(scale) => model.latency_s = scale.apply(model.latency_s),
            PipelineChange::OpenLatency(scale) => model.open_s = scale.apply(model.open_s),
            PipelineChange::Concurrency(scale) => {
                // An unlimited concurrency stays unlimited if it is multiplied.
                let slots = scale.apply(model.concurrency.map_or(f64::INFINITY, f64::from));
                model.concurrency = slots.is_finite().then(|| (slots.round() as u32).max(1));
            }
            PipelineChange::DecodeTime(scale) => {
                let decode_s = cost.cpu_s + plan.loader.preprocess.mean_s();
                let factor = if decode_s > 0.0 { scale.apply(decode_s) / decode_s } else { 1.0 };
                cost.cpu_s *= factor;
                plan.loader.preprocess = scale_time(plan.loader.preprocess, factor);
            }
            PipelineChange::EqualAccelerators => plan.train.slow_accelerators.clear(),
        }
    }
}
