//! The storage of a record: every latency, bandwidth and concurrency that explains how long its reads took.
//!
//! One request in flight cannot tell them apart, so that all are kept; sizes that differ, and reads that found the storage
//! empty, rule some of them out.

use super::NotPredictable;
use super::miniature::{Scene, Simulated};
use super::model::StorageModel;
use feedrate_measure::histogram::Histogram;
use feedrate_measure::record::IoCounters;

/// From this size on a request is long: it waits for bandwidth rather than for latency.
const LONG_BYTES: f64 = 262_144.0;
/// Reads of a size that are enough for its mean.
const READS_MIN: u64 = 10;
/// Between mean sizes that tell bandwidth from latency, at least.
const SIZES_APART: f64 = 4.0;
/// Rounds in which a parameter is brought to where the simulated reads take as long as those of the record.
const ROUNDS: usize = 6;
/// A model explains reads as well as another whose misfit is less by no more than this.
const MISFIT_MORE: f64 = 0.12;

/// Reads of a record.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) io: &'a IoCounters,
    /// A read, in the mean.
    pub(super) read_s: f64,
    /// Bytes of one.
    pub(super) bytes: f64,
    /// Reading threads of all accelerators.
    pub(super) threads: u32,
    /// The part of the storage that is known, and stands before the fitted one.
    pub(super) known: StorageModel,
}

impl Reads<'_> {
    /// The rest of a storage that is known: how much longer reads took than it.
    pub(super) fn rest(self, scene: Scene) -> Result<Vec<StorageModel>, NotPredictable> {
        let mut rest = StorageModel::default();
        for _ in 0..ROUNDS {
            let model = rest.behind(self.known);
            let found_s = Scene { model: &model, ..scene }.run()?.read_s;
            rest.latency_s = (rest.latency_s + self.read_s - found_s).max(0.0);
        }
        Ok(vec![rest])
    }

    /// Rest of a storage whose limit is known and reached: the time of a read that found nobody before it.
    pub(super) fn beside_limits(self) -> StorageModel {
        StorageModel { latency_s: self.alone_s(), ..StorageModel::default() }
    }

    /// The fastest read found nobody before it.
    fn alone_s(self) -> f64 {
        self.io.read_latency.counts().first().map_or(0.0, |one| one.0 as f64 / 1e9)
    }

    /// Every storage that explains the reads, the best first.
    pub(super) fn explained(self, scene: Scene) -> Result<Vec<StorageModel>, NotPredictable> {
        let mut fits = Vec::new();
        if self.read_s <= 0.0 {
            return Ok(vec![StorageModel::default()]);
        }
        for model in self.candidates() {
            let (model, simulated) = self.fitted(model, scene)?;
            let misfit = self.misfit(&simulated);
            fits.push((misfit, model));
        }
        let least = fits.iter().map(|fit| fit.0).fold(f64::INFINITY, f64::min);
        fits.retain(|fit| fit.0 <= least + MISFIT_MORE);
        // Of those that explain it as well, the order of the candidates decides.
        fits.sort_by(|a, b| {
            ((a.0 - least) / MISFIT_MORE * 2.0)
                .round()
                .total_cmp(&((b.0 - least) / MISFIT_MORE * 2.0).round())
        });
        Ok(fits.into_iter().map(|fit| fit.1).collect())
    }

    /// One of each kind, the likelier first: long requests wait for bandwidth, short ones for latency.
    fn candidates(self) -> Vec<StorageModel> {
        let nothing = StorageModel::default();
        let (read_s, rate) = (self.read_s, self.bytes / self.read_s);
        let is_long = LONG_BYTES <= self.bytes;
        let latency_spread = spread(&self.io.read_latency);
        let pipe = StorageModel { bytes_per_second: Some(rate), ..nothing };
        let turns = StorageModel { request_s: read_s, ..nothing };
        let mut shared = if is_long { [pipe, turns] } else { [turns, pipe] };
        let alone_s = self.alone_s();
        let latency = StorageModel { latency_s: read_s, latency_spread, ..nothing };
        let stream = StorageModel { stream_bytes_per_second: Some(rate), ..nothing };
        let mut all = vec![latency, stream];
        let by_size = by_size(self.io);
        if let Some((latency_s, rate)) = by_size {
            // What sizes tell apart needs no other model.
            all = vec![StorageModel { stream_bytes_per_second: Some(rate), latency_s, ..nothing }];
            let beside = StorageModel { bytes_per_second: Some(rate), latency_s, ..nothing };
            all.insert(usize::from(!is_long), beside);
            if self.threads == 1 {
                let turns = StorageModel { request_s: latency_s, latency_s: 0.0, ..beside };
                shared = [turns; 2];
            }
        }
        all.splice(usize::from(!is_long)..usize::from(!is_long), shared);
        all.dedup();
        let in_turn = std::iter::successors(Some(2), |places| Some(places * 2));
        all.extend(in_turn.take_while(|&places| places < self.threads).map(|places| {
            StorageModel {
                latency_s: read_s / (f64::from(self.threads) / f64::from(places)).max(1.0),
                concurrency: Some(places),
                ..nothing
            }
        }));
        // Latency, and a queue behind it.
        let rate = rate * f64::from(self.threads);
        let latency_s = alone_s - self.bytes / rate;
        if by_size.is_none() && self.threads > 1 && latency_s > 0.1 * alone_s {
            all.push(StorageModel { bytes_per_second: Some(rate), latency_s, ..nothing });
        }
        all
    }

    /// The model whose simulated reads take as long as those of the record.
    fn fitted(
        self,
        mut model: StorageModel,
        scene: Scene,
    ) -> Result<(StorageModel, Simulated), NotPredictable> {
        let run = |model: StorageModel| Scene { model: &model.behind(self.known), ..scene }.run();
        let mut simulated = run(model)?;
        // Factors of a turn that were too small and too large: reads take longer with each, by leaps where storage and steps meet.
        let (mut factor, mut too_small, mut too_large) = (1.0, None, None);
        let turns = (model.request_s, model.bytes_per_second);
        for _ in 1..ROUNDS {
            let times = self.read_s / simulated.read_s.max(1e-9);
            if (times - 1.0).abs() < 0.01 {
                break;
            }
            // Latency beside a queue: it takes what the queue leaves.
            if model.is_shared() && model.latency_s > 0.0 {
                model.latency_s = (model.latency_s + self.read_s - simulated.read_s).max(0.0);
            } else if model.is_shared() {
                *(if times > 1.0 { &mut too_small } else { &mut too_large }) = Some(factor);
                factor = match (too_small, too_large) {
                    (Some(small), Some(large)) => f64::sqrt(small * large),
                    _ => factor * times,
                };
                model.request_s = turns.0 * factor;
                model.bytes_per_second = turns.1.map(|rate| rate / factor);
            } else {
                model.latency_s *= times;
            }
            simulated = run(model)?;
        }
        Ok((model, simulated))
    }

    /// How far simulated reads are from those of the record: the mean, and how it is spread.
    fn misfit(self, simulated: &Simulated) -> f64 {
        let apart =
            |a: Option<f64>, b: Option<f64>| a.zip(b).map_or(0.0, |(a, b)| (a / b).ln().abs());
        let least = |latency: &Histogram| latency.counts().first().map(|&(ns, _)| ns as f64);
        let at = |latency: &Histogram, q: f64| latency.quantile(q).map(|ns| ns as f64);
        let relative = |latency: &Histogram, value: Option<f64>| {
            let middle = at(latency, 0.5).filter(|&middle| middle > 0.0)?;
            value.map(|value| (value / middle).max(0.01))
        };
        let (found, real) = (&simulated.read_latency, &self.io.read_latency);
        let mut sum = apart(Some(simulated.read_s), Some(self.read_s));
        sum += 0.25 * apart(relative(found, least(found)), relative(real, least(real)));
        for q in [0.1, 0.9] {
            sum += 0.25 * apart(relative(found, at(found, q)), relative(real, at(real, q)));
        }
        sum
    }
}

/// Coefficient of variation.
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

/// Latency, and bytes per second of the rest, where reads of sizes that are far apart were counted: the line through the means of
/// the size bins, each weighted by its reads.
fn by_size(io: &IoCounters) -> Option<(f64, f64)> {
    let bins = io.access.sizes.iter().zip(&io.access.size_bytes).zip(&io.size_ns);
    let points: Vec<(f64, f64, f64)> = bins
        .filter(|((reads, bytes), ns)| **reads >= READS_MIN && **bytes > 0 && **ns > 0)
        .map(|((&reads, &bytes), &ns)| {
            let reads = reads as f64;
            (reads, bytes as f64 / reads, ns as f64 / 1e9 / reads)
        })
        .collect();
    let (least, most) = (points.first()?.1, points.last()?.1);
    if most < SIZES_APART * least {
        return None;
    }
    let weight: f64 = points.iter().map(|point| point.0).sum();
    let mean = |value: fn(&(f64, f64, f64)) -> f64| {
        points.iter().map(|point| point.0 * value(point)).sum::<f64>() / weight
    };
    let (bytes, seconds) = (mean(|point| point.1), mean(|point| point.2));
    let across: f64 =
        points.iter().map(|point| point.0 * (point.1 - bytes) * (point.2 - seconds)).sum();
    let along: f64 = points.iter().map(|point| point.0 * (point.1 - bytes).powi(2)).sum();
    let slope = across / along;
    let latency_s = seconds - slope * bytes;
    (slope > 0.0 && latency_s >= 0.0).then(|| (latency_s, 1.0 / slope))
}
