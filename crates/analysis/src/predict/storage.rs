//! Finds the storage models that explain how long the reads of a record took, by latency, bandwidth and concurrency.
//!
//! With one request in flight, latency, bandwidth and concurrency cannot be distinguished, so all models that fit are kept. Requests of
//! different sizes, and reads of an idle storage, rule out some models.

use super::NotPredictable;
use super::miniature::{SimulatedRun, Simulation};
use super::model::StorageModel;
use feedrate_measure::histogram::Histogram;
use feedrate_measure::record::IoCounters;

/// Request size above which a request probably waits for bandwidth rather than for latency.
const LONG_BYTES: f64 = 262_144.0;
/// Number of reads of one size that are enough for a mean.
const READS_MIN: u64 = 10;
/// Smallest ratio of request sizes that distinguishes bandwidth from latency.
const SIZE_RATIO_MIN: f64 = 4.0;
/// Number of iterations that fit a parameter until simulated reads take as long as recorded ones.
const ROUNDS: usize = 6;
/// A model is dropped if its misfit exceeds the misfit of the best model by more than this.
const MISFIT_EXCESS_MAX: f64 = 0.12;

/// The reads of a record.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) io: &'a IoCounters,
    /// Mean time of a read.
    pub(super) read_s: f64,
    /// Mean size of a read.
    pub(super) bytes: f64,
    /// Number of reading threads of all accelerators.
    pub(super) threads: u32,
    /// The known part of the storage, which requests pass first.
    pub(super) known: StorageModel,
}

impl Reads<'_> {
    /// Fits the remainder of an emulated storage: the latency by which reads took longer than emulated.
    pub(super) fn fit_remainder(
        self,
        simulation: Simulation,
    ) -> Result<StorageModel, NotPredictable> {
        let mut remainder = StorageModel::default();
        for _ in 0..ROUNDS {
            let model = remainder.combine_with(self.known);
            let simulated_s = Simulation { model: &model, ..simulation }.run()?.read_s;
            remainder.latency_s = (remainder.latency_s + self.read_s - simulated_s).max(0.0);
        }
        Ok(remainder)
    }

    /// Fits the remainder of a storage whose known limit was reached: the latency of a read of the idle storage.
    pub(super) fn fit_beside_limits(self) -> StorageModel {
        StorageModel { latency_s: self.idle_read_s(), ..StorageModel::default() }
    }

    /// Time of a read of the idle storage, which is the fastest read.
    fn idle_read_s(self) -> f64 {
        self.io.read_latency.counts().first().map_or(0.0, |(ns, _)| *ns as f64 / 1e9)
    }

    /// Finds all storage models that explain the reads, best first. Of equally good models, the more likely comes first.
    pub(super) fn find_models(
        self,
        simulation: Simulation,
    ) -> Result<Vec<StorageModel>, NotPredictable> {
        if self.read_s <= 0.0 {
            return Ok(vec![StorageModel::default()]);
        }
        let mut fits = Vec::new();
        for candidate in self.candidates() {
            let (model, simulated) = self.fit(candidate, simulation)?;
            fits.push((self.misfit(&simulated), model));
        }
        let best = fits.iter().map(|(misfit, _)| *misfit).fold(f64::INFINITY, f64::min);
        fits.retain(|(misfit, _)| *misfit <= best + MISFIT_EXCESS_MAX);
        let rank = |misfit: f64| ((misfit - best) / MISFIT_EXCESS_MAX * 2.0).round();
        fits.sort_by(|(a, _), (b, _)| rank(*a).total_cmp(&rank(*b)));
        Ok(fits.into_iter().map(|(_, model)| model).collect())
    }

    /// One model of each kind, more likely models first: long requests probably wait for bandwidth, short ones for latency.
    fn candidates(self) -> Vec<StorageModel> {
        let unlimited = StorageModel::default();
        let read_s = self.read_s;
        let rate = self.bytes / read_s;
        let is_long = LONG_BYTES <= self.bytes;
        let shared_rate = StorageModel { bytes_per_second: Some(rate), ..unlimited };
        let shared_requests = StorageModel { request_s: read_s, ..unlimited };
        let mut shared =
            if is_long { [shared_rate, shared_requests] } else { [shared_requests, shared_rate] };
        let latency_spread = spread(&self.io.read_latency);
        let latency = StorageModel { latency_s: read_s, latency_spread, ..unlimited };
        let stream = StorageModel { stream_bytes_per_second: Some(rate), ..unlimited };
        let mut candidates = vec![latency, stream];
        let by_size = fit_by_size(self.io);
        if let Some(LatencyAndRate { latency_s, bytes_per_second }) = by_size {
            // Latency and rate are known. It is unknown whether readers share the rate.
            let rate = Some(bytes_per_second);
            let with_stream_rate =
                StorageModel { stream_bytes_per_second: rate, latency_s, ..unlimited };
            let shared_with_latency =
                StorageModel { bytes_per_second: rate, latency_s, ..unlimited };
            candidates = vec![with_stream_rate];
            candidates.insert(usize::from(!is_long), shared_with_latency);
            if self.threads == 1 {
                let with_interval =
                    StorageModel { request_s: latency_s, latency_s: 0.0, ..shared_with_latency };
                shared = [with_interval; 2];
            }
        }
        let position = usize::from(!is_long);
        candidates.splice(position..position, shared);
        candidates.dedup();
        let slot_counts = std::iter::successors(Some(2), |slots| Some(slots * 2));
        candidates.extend(slot_counts.take_while(|&slots| slots < self.threads).map(|slots| {
            let readers_per_slot = f64::from(self.threads) / f64::from(slots);
            StorageModel {
                latency_s: read_s / readers_per_slot.max(1.0),
                concurrency: Some(slots),
                ..unlimited
            }
        }));
        // A latency followed by a queue for the bandwidth.
        let total_rate = rate * f64::from(self.threads);
        let idle_read_s = self.idle_read_s();
        let latency_s = idle_read_s - self.bytes / total_rate;
        if by_size.is_none() && self.threads > 1 && latency_s > 0.1 * idle_read_s {
            let bytes_per_second = Some(total_rate);
            candidates.push(StorageModel { bytes_per_second, latency_s, ..unlimited });
        }
        candidates
    }

    /// Adjusts a model until simulated reads take as long as the reads of the record.
    fn fit(
        self,
        mut model: StorageModel,
        simulation: Simulation,
    ) -> Result<(StorageModel, SimulatedRun), NotPredictable> {
        let run = |model: StorageModel| {
            Simulation { model: &model.combine_with(self.known), ..simulation }.run()
        };
        let mut simulated = run(model)?;
        // Shared times are scaled by a factor. Read times grow with the factor, but in jumps if storage and steps interact. The factor is
        // therefore bisected between the last factor that was too small and the last that was too large.
        let mut factor = 1.0;
        let mut too_small = None;
        let mut too_large = None;
        let initial = model;
        for _ in 1..ROUNDS {
            let ratio = self.read_s / simulated.read_s.max(1e-9);
            if (ratio - 1.0).abs() < 0.01 {
                break;
            }
            if model.is_shared() && model.latency_s > 0.0 {
                // The rate is known; the latency is the remaining time.
                model.latency_s = (model.latency_s + self.read_s - simulated.read_s).max(0.0);
            } else if model.is_shared() {
                if ratio > 1.0 {
                    too_small = Some(factor);
                } else {
                    too_large = Some(factor);
                }
                factor = match (too_small, too_large) {
                    (Some(small), Some(large)) => f64::sqrt(small * large),
                    _ => factor * ratio,
                };
                model.request_s = initial.request_s * factor;
                model.bytes_per_second = initial.bytes_per_second.map(|rate| rate / factor);
            } else {
                model.latency_s *= ratio;
            }
            simulated = run(model)?;
        }
        Ok((model, simulated))
    }

    /// The distance between simulated reads and the reads of the record, in mean and distribution.
    fn misfit(self, simulated: &SimulatedRun) -> f64 {
        let log_ratio =
            |a: Option<f64>, b: Option<f64>| a.zip(b).map_or(0.0, |(a, b)| (a / b).ln().abs());
        let minimum = |latency: &Histogram| latency.counts().first().map(|&(ns, _)| ns as f64);
        let quantile = |latency: &Histogram, q: f64| latency.quantile(q).map(|ns| ns as f64);
        let relative_to_median = |latency: &Histogram, value: Option<f64>| {
            let median = quantile(latency, 0.5).filter(|&median| median > 0.0)?;
            value.map(|value| (value / median).max(0.01))
        };
        let recorded = &self.io.read_latency;
        let found = &simulated.read_latency;
        let mut sum = log_ratio(Some(simulated.read_s), Some(self.read_s));
        sum += 0.25
            * log_ratio(
                relative_to_median(found, minimum(found)),
                relative_to_median(recorded, minimum(recorded)),
            );
        for q in [0.1, 0.9] {
            sum += 0.25
                * log_ratio(
                    relative_to_median(found, quantile(found, q)),
                    relative_to_median(recorded, quantile(recorded, q)),
                );
        }
        sum
    }
}

/// Coefficient of variation of durations.
fn spread(latency: &Histogram) -> f64 {
    let counts = latency.counts();
    let sum = |value: &dyn Fn(f64) -> f64| -> f64 {
        counts.iter().map(|&(ns, count)| value(ns as f64) * count as f64).sum()
    };
    let count = sum(&|_| 1.0);
    let mean = sum(&|ns| ns) / count;
    if count < 2.0 || mean <= 0.0 {
        return 0.0;
    }
    (sum(&|ns| (ns - mean).powi(2)) / count).sqrt() / mean
}

/// The time of a read as a latency and a rate for its bytes.
#[derive(Clone, Copy)]
struct LatencyAndRate {
    latency_s: f64,
    bytes_per_second: f64,
}

/// The mean size and time of the reads in one size bin.
struct SizeBin {
    reads: f64,
    bytes: f64,
    read_s: f64,
}

/// Fits a line through the means of the size bins, weighted by their reads. `None` if the sizes are too similar, or the line has no
/// positive rate and latency.
fn fit_by_size(io: &IoCounters) -> Option<LatencyAndRate> {
    let counters = io.access.sizes.iter().zip(&io.access.size_bytes).zip(&io.size_ns);
    let bins: Vec<SizeBin> = counters
        .filter(|((reads, bytes), ns)| **reads >= READS_MIN && **bytes > 0 && **ns > 0)
        .map(|((&reads, &bytes), &ns)| {
            let reads = reads as f64;
            SizeBin { reads, bytes: bytes as f64 / reads, read_s: ns as f64 / 1e9 / reads }
        })
        .collect();
    let smallest = bins.first()?.bytes;
    let largest = bins.last()?.bytes;
    if largest < SIZE_RATIO_MIN * smallest {
        return None;
    }
    let weight: f64 = bins.iter().map(|bin| bin.reads).sum();
    let mean = |value: fn(&SizeBin) -> f64| {
        bins.iter().map(|bin| bin.reads * value(bin)).sum::<f64>() / weight
    };
    let mean_bytes = mean(|bin| bin.bytes);
    let mean_s = mean(|bin| bin.read_s);
    let covariance: f64 =
        bins.iter().map(|bin| bin.reads * (bin.bytes - mean_bytes) * (bin.read_s - mean_s)).sum();
    let variance: f64 = bins.iter().map(|bin| bin.reads * (bin.bytes - mean_bytes).powi(2)).sum();
    let slope = covariance / variance;
    let latency_s = mean_s - slope * mean_bytes;
    let is_possible = slope > 0.0 && latency_s >= 0.0;
    is_possible.then(|| LatencyAndRate { latency_s, bytes_per_second: 1.0 / slope })
}
