//! How steadily the bytes of a record came: a rate that all readers share is kept to, while waits that are drawn add up.

use feedrate_measure::record::{EpochRecord, Record};

/// Points of an epoch that are looked at, at most.
const POINTS_MAX: usize = 1000;
/// And at least: fewer tell nothing.
const POINTS_MIN: usize = 8;

/// Deviations from a constant rate, in the mean over the epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Steadiness {
    /// Variance of the share of an epoch's bytes that had come, about the share of its time that had passed.
    variance: f64,
    /// Its variance if each sample took its time by chance, for a coefficient of variation of 1.
    by_chance: f64,
    /// An epoch.
    length_s: f64,
}

impl Steadiness {
    /// `None` where there are too few steps.
    pub(super) fn new(record: &Record) -> Option<Self> {
        let each: Vec<Steadiness> = record.epochs.iter().filter_map(of_epoch).collect();
        let mean = |value: fn(&Steadiness) -> f64| {
            (!each.is_empty()).then(|| each.iter().map(value).sum::<f64>() / each.len() as f64)
        };
        Some(Steadiness {
            variance: mean(|one| one.variance)?,
            by_chance: mean(|one| one.by_chance)?,
            length_s: mean(|one| one.length_s)?,
        })
    }

    /// Variance as a share of what it would be if samples whose times have this coefficient of variation took them by chance.
    pub(super) fn of_chance(&self, spread: f64) -> f64 {
        self.variance / (self.by_chance * spread * spread)
    }

    /// The standard deviation, in seconds by which bytes came early or late.
    pub(super) fn deviation_s(&self) -> f64 {
        self.variance.sqrt() * self.length_s
    }
}

/// Steps of the first accelerator, and the bytes of all by then, until the last were read.
fn of_epoch(epoch: &EpochRecord) -> Option<Steadiness> {
    let blocks = &epoch.accelerators.first()?.blocks;
    let mut ends_s = Vec::new();
    let mut at_ns = 0;
    for block in blocks {
        let times = block.load_ns.iter().zip(&block.compute_ns).zip(&block.barrier_ns);
        ends_s.extend(times.map(|((load_ns, compute_ns), barrier_ns)| {
            at_ns += load_ns + compute_ns + barrier_ns;
            at_ns as f64 / 1e9
        }));
    }
    let samples: u64 = epoch.accelerators.iter().map(|one| one.io.samples).sum();
    let stride = ends_s.len().div_ceil(POINTS_MAX).max(1);
    let mut points: Vec<(f64, f64)> =
        ends_s.into_iter().step_by(stride).map(|end_s| (end_s, 0.0)).collect();
    for one in &epoch.accelerators {
        let come = one.blocks.iter().flat_map(|block| &block.read_bytes).step_by(stride);
        points.iter_mut().zip(come).for_each(|(point, &bytes)| point.1 += bytes as f64);
    }
    let all = points.last()?.1;
    points.truncate(points.iter().position(|point| point.1 >= all)? + 1);
    let (first, last) = (*points.first()?, *points.last()?);
    if points.len() < POINTS_MIN || last.1 <= first.1 {
        return None;
    }
    let ahead = points.iter().map(|point| {
        (point.1 - first.1) / (last.1 - first.1) - (point.0 - first.0) / (last.0 - first.0)
    });
    let counted = samples as f64 * (last.1 - first.1) / all;
    Some(Steadiness {
        variance: ahead.map(|ahead| ahead * ahead).sum::<f64>() / points.len() as f64,
        // The mean square of a Brownian bridge.
        by_chance: 1.0 / (6.0 * counted.max(1.0)),
        length_s: last.0 - first.0,
    })
}
