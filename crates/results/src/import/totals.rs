//! Totals of epochs of a run whose step times were not published, as usual in results of MLPerf Storage: duration of blocks, number of steps, and
//! compute time of a step. They follow from rank 0's block times, the log, the summary and the config; no single steps are invented.

use super::json::{self, Fields, text};
use feedrate_measure::dlio::micros;
use feedrate_measure::stats::{mean, median};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Totals of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Epochs with steps, in order.
    pub epochs: Vec<EpochTotal>,
    /// Whether an older version of DLIO wrote the block times, in one file for all ranks.
    pub is_older: bool,
    /// Whether the utilisation over all steps is only an upper or a lower bound.
    pub bound: Option<Bound>,
    /// Steps that the reported throughput counts; `None` if it fits no release of DLIO.
    pub counted: Option<CountedSteps>,
    /// Median over epochs of a plausible throughput ÷ the reported one; 1 if the reported throughputs are plausible, `None` if unknown.
    pub plausible_rate_ratio: Option<f64>,
    /// Mean over epochs of the utilisation that follows from the reported throughput and the measured compute time. `None` if the version of DLIO
    /// computes the throughput from other times, or a value is unknown.
    pub au_from_rate_percent: Option<f64>,
    /// Median over epochs of the reported utilisation ÷ the lowest possible one, for which the window is as long as the blocks. `None` if unknown.
    pub au_to_lowest: Option<f64>,
}

/// Totals of an epoch, summed over its blocks.
#[derive(Clone, Debug, Default)]
pub struct EpochTotal {
    /// Number of the epoch.
    pub number: u32,
    /// Number of blocks with steps.
    pub blocks: u64,
    /// Number of steps of each rank.
    pub steps: u64,
    /// Total duration of the blocks.
    pub length_s: f64,
    /// Time from the start of the first block to the end of the last.
    pub wall_s: f64,
    /// Compute time of a step.
    pub compute_s: Option<f64>,
    /// Mean time per block outside DLIO's window; known only if the window leaves out exactly the first step.
    pub first_step_s: Option<f64>,
}

/// Whether a value is an upper or a lower bound of the true utilisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The true value is at most this: only the config has the number of steps, and an interrupted run has fewer.
    AtMost,
    /// The true value is at least this: compute times are drawn from a distribution, and sleeps take at least the drawn time.
    AtLeast,
}

/// Steps that DLIO's throughput counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedSteps {
    /// All steps over the duration of the block, as in releases up to MLPerf Storage 1.0. Their utilisation uses the configured compute time.
    All,
    /// All steps but two over the duration of the window, as in later releases.
    AllButTwo,
    /// The steps in the window over its duration.
    Window,
}

/// Input for totals.
pub(super) struct TotalFacts<'a> {
    /// Start and end of blocks, in the structure of DLIO's `per_epoch_stats.json`.
    pub(super) spans: &'a Fields,
    /// Whether an older version of DLIO wrote them, in one file for all ranks.
    pub(super) is_older: bool,
    pub(super) ranks: u32,
    /// Number of samples in a batch; 0 if unknown.
    pub(super) batch_size: u64,
    /// Number of steps of an epoch.
    pub(super) steps: u64,
    /// Whether the number of steps is known only from the config.
    pub(super) are_steps_configured: bool,
    /// Number of steps that the window leaves out at the start and at the end.
    pub(super) excluded: [u64; 2],
    /// Configured compute time of a step, or its mean if it is drawn.
    pub(super) compute_s: Option<f64>,
    /// Whether compute times are drawn from a distribution.
    pub(super) is_drawn: bool,
    /// Measured compute time of a step in the log, with four digits, by epoch.
    pub(super) logged_compute_s: &'a BTreeMap<u32, f64>,
    /// Mean compute time of the steps that are available.
    pub(super) measured_compute_s: Option<f64>,
    /// Reported utilisation of each epoch.
    pub(super) au_percent: Vec<f64>,
    /// Reported throughput of each epoch.
    pub(super) samples_per_second: Vec<f64>,
}

/// Maximum relative difference between the throughput of all steps and the reported one.
const ALL_TOLERANCE: f64 = 2e-4;
/// Time between two clock calls, which also contributes to that difference.
const CLOCK_S: f64 = 0.002;
/// Maximum relative difference for the median epoch. On several hosts, ranks may start blocks at other times than rank 0.
const ALL_MEDIAN_MAX: f64 = 0.005;
/// Share by which the throughput of all steps may differ, if ranks started blocks at other times than rank 0.
const STARTS_APART_MAX: f64 = 0.015;
/// Share by which a sleep may be shorter than configured.
const EARLY_MAX: f64 = 2e-4;
/// Share by which a sleep may be longer than configured, in addition to [`LATE_MAX_S`].
const LATE_MAX: f64 = 0.1;
const LATE_MAX_S: f64 = 0.001;
/// The same in older versions of DLIO, whose utilisation is computed with the configured time.
const OLDER_LATE_MAX: f64 = 0.01;
/// Rounding error of logged times.
const LOGGED_MAX_S: f64 = 6e-5;
/// Share by which the mean of all ranks may differ from rank 0's logged time.
const LOGGED_MAX: f64 = 0.01;
/// Share by which the mean of drawn compute times may differ from the configured mean.
const DRAWN_MAX: f64 = 0.1;

impl Totals {
    /// Computes totals; `None` if no block has a duration.
    pub(super) fn new(facts: &TotalFacts) -> Option<Self> {
        // Shorter blocks have no steps: DLIO may start a block after the last step of an epoch and end it immediately.
        let length_min_s = if facts.is_drawn { 0.0 } else { facts.compute_s.unwrap_or(0.0) };
        let mut epochs: Vec<EpochTotal> = facts
            .spans
            .iter()
            .filter_map(|(key, spans)| epoch_total(key.parse().ok()?, spans, length_min_s))
            .collect();
        epochs.sort_unstable_by_key(|epoch| epoch.number);
        if epochs.is_empty() {
            return None;
        }
        let count = epochs.len();
        let epoch_value = |list: &[f64], index: usize| {
            let value = if list.len() == count { list.get(index).copied() } else { None };
            value.filter(|value| value.is_finite() && 0.0 < *value)
        };
        let rates: Vec<Option<f64>> =
            (0..count).map(|index| epoch_value(&facts.samples_per_second, index)).collect();
        let counts_all = facts.counts_all_steps(&epochs, &rates);
        let mut counted = Vec::new();
        for (index, epoch) in epochs.iter_mut().enumerate() {
            epoch.steps = facts.steps;
            let au = epoch_value(&facts.au_percent, index);
            let (inferred_s, counted_steps) = if counts_all {
                (facts.compute_s, Some(CountedSteps::All))
            } else {
                facts.compute_from_rates(epoch, au, rates[index])
            };
            epoch.compute_s = facts.measured_compute_s.or(inferred_s);
            epoch.first_step_s = facts.first_step_s(epoch, au);
            counted.push(counted_steps);
        }
        let common = counted[0].filter(|first| counted.iter().all(|other| *other == Some(*first)));
        let may_have_fewer_steps = facts.are_steps_configured && common != Some(CountedSteps::All);
        let is_compute_measured = facts.measured_compute_s.is_some()
            || common.is_some_and(|counted| counted != CountedSteps::All);
        let bound = match (may_have_fewer_steps, facts.is_drawn && !is_compute_measured) {
            _ if epochs.iter().any(|epoch| epoch.au_all_steps_percent().is_none()) => None,
            (true, _) => Some(Bound::AtMost),
            (_, true) => Some(Bound::AtLeast),
            _ => None,
        };
        let ratios = epochs.iter().enumerate().filter_map(|(index, epoch)| {
            let rate = rates[index]?;
            Some(facts.plausible_rate(epoch, epoch_value(&facts.au_percent, index), rate)? / rate)
        });
        let plausible_rate_ratio = median(&ratios.collect::<Vec<f64>>());
        let au_from_rates = epochs.iter().enumerate().map(|(index, epoch)| {
            let au = epoch_value(&facts.au_percent, index)?;
            facts.au_from_rate_percent(epoch, au, rates[index]?)
        });
        let au_from_rates: Option<Vec<f64>> = au_from_rates.collect();
        let au_from_rate_percent = au_from_rates.and_then(|percents| mean(&percents));
        let is_exact = bound.is_none() && !facts.is_drawn;
        let au_ratios = epochs.iter().enumerate().filter_map(|(index, epoch)| {
            let lowest = facts.lowest_au_percent(epoch).filter(|_| is_exact)?;
            Some(epoch_value(&facts.au_percent, index)? / lowest)
        });
        let au_to_lowest = median(&au_ratios.collect::<Vec<f64>>());
        Some(Totals {
            epochs,
            is_older: facts.is_older,
            bound,
            counted: common,
            plausible_rate_ratio,
            au_from_rate_percent,
            au_to_lowest,
        })
    }

    /// Returns a hash of the totals, used to recognise copies.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        for epoch in &self.epochs {
            (epoch.steps, epoch.length_s.to_bits(), epoch.wall_s.to_bits()).hash(&mut hasher);
        }
        (!self.epochs.is_empty()).then(|| hasher.finish())
    }

    /// Returns the throughput of all ranks over the time of all epochs.
    pub(crate) fn samples_per_second(&self, samples_per_step: f64) -> Option<f64> {
        let steps: u64 = self.epochs.iter().map(|epoch| epoch.steps).sum();
        let wall_s: f64 = self.epochs.iter().map(|epoch| epoch.wall_s).sum();
        (0.0 < wall_s && 0 < steps).then(|| steps as f64 * samples_per_step / wall_s)
    }

    /// Returns the compute time of all steps ÷ the duration of all blocks, in percent; `None` if the compute time of an epoch is unknown.
    pub fn au_all_steps_percent(&self) -> Option<f64> {
        let compute_s = self.epochs.iter().map(EpochTotal::total_compute_s).sum::<Option<f64>>()?;
        let length_s: f64 = self.epochs.iter().map(|epoch| epoch.length_s).sum();
        (0.0 < length_s).then(|| compute_s / length_s * 100.0)
    }
}

impl EpochTotal {
    /// Returns the compute time of all steps ÷ the duration of their blocks, in percent.
    pub fn au_all_steps_percent(&self) -> Option<f64> {
        Some(self.total_compute_s()? / self.length_s * 100.0)
    }

    /// Returns the compute time of all steps.
    fn total_compute_s(&self) -> Option<f64> {
        let total_s = self.steps as f64 * self.compute_s?;
        (0 < self.steps).then_some(total_s)
    }
}

impl TotalFacts<'_> {
    /// Returns whether the throughputs of the run count all steps: it is of an older release, and the median epoch fits. The median tolerates single
    /// epochs in which ranks started far apart.
    fn counts_all_steps(&self, epochs: &[EpochTotal], rates: &[Option<f64>]) -> bool {
        if !self.is_older || !self.logged_compute_s.is_empty() || self.compute_s.is_none() {
            return false;
        }
        let samples_per_step = f64::from(self.ranks) * self.batch_size as f64;
        let samples = samples_per_step * self.steps as f64;
        let differences = epochs
            .iter()
            .zip(rates)
            .filter_map(|(epoch, rate)| Some(((*rate)? * epoch.length_s / samples - 1.0).abs()));
        median(&differences.collect::<Vec<f64>>())
            .is_some_and(|difference| difference <= ALL_MEDIAN_MAX)
    }

    /// Infers the actual compute time of a step, and the steps that the throughput counts. Utilisation and throughput of a window refer to the same
    /// duration, so that their ratio gives the compute time.
    fn compute_from_rates(
        &self,
        epoch: &EpochTotal,
        au: Option<f64>,
        rate: Option<f64>,
    ) -> (Option<f64>, Option<CountedSteps>) {
        let (Some(au), Some(rate), 1.., 1..) = (au, rate, self.batch_size, epoch.steps) else {
            return (self.compute_s, None);
        };
        let steps = epoch.steps as f64;
        let samples_per_step = f64::from(self.ranks) * self.batch_size as f64;
        let difference = (rate * epoch.length_s / samples_per_step / steps - 1.0).abs();
        let fits_all = difference <= ALL_TOLERANCE.max(CLOCK_S / epoch.length_s);
        let inside = steps - self.left_out(epoch);
        let all_but_two = steps - 2.0 * epoch.blocks as f64;
        let logged_s = self.logged_compute_s.get(&epoch.number).copied();
        let candidates = [(all_but_two, CountedSteps::AllButTwo), (inside, CountedSteps::Window)]
            .into_iter()
            .filter(|(count, _)| 0.0 < *count && 0.0 < inside)
            .map(|(count, counted)| {
                (au / 100.0 * samples_per_step * count / rate / inside, counted)
            })
            .filter(|(compute_s, _)| self.is_plausible(*compute_s, logged_s));
        // Without a logged time, the lowest is the most plausible, since sleeps take only slightly longer than configured.
        let distance_s = |compute_s: f64| (compute_s - logged_s.unwrap_or(0.0)).abs();
        match candidates.min_by(|(a, _), (b, _)| distance_s(*a).total_cmp(&distance_s(*b))) {
            // If the first step is like the others, both kinds of throughput fit, and the version of DLIO decides.
            Some((compute_s, counted)) if !fits_all || !self.is_older || logged_s.is_some() => {
                (Some(compute_s), Some(counted))
            }
            _ if fits_all && logged_s.is_none() => (self.compute_s, Some(CountedSteps::All)),
            _ => (logged_s.or(self.compute_s), None),
        }
    }

    /// Returns the utilisation that follows from the throughput, if the throughput is of the window and the compute time was measured. Of the formulas
    /// of two versions of DLIO, the one with the value nearest to `au` is used.
    fn au_from_rate_percent(&self, epoch: &EpochTotal, au: f64, rate: f64) -> Option<f64> {
        let logged_s = self.logged_compute_s.get(&epoch.number).copied();
        let compute_s = self.measured_compute_s.or(logged_s).filter(|_| !self.is_older)?;
        let steps = epoch.steps as f64;
        let inside = steps - self.left_out(epoch);
        let samples_per_step = f64::from(self.ranks) * self.batch_size as f64;
        let percents = [steps - 2.0 * epoch.blocks as f64, inside].map(|counted| {
            let window_s = counted * samples_per_step / rate;
            inside * compute_s / window_s * 100.0
        });
        let positive = percents.into_iter().filter(|percent| percent.is_finite() && 0.0 < *percent);
        positive.min_by(|a, b| (a - au).abs().total_cmp(&(b - au).abs()))
    }

    /// Returns the utilisation of the steps in the window if the window is as long as the blocks. Without measured compute times, steps take at least
    /// the configured time.
    fn lowest_au_percent(&self, epoch: &EpochTotal) -> Option<f64> {
        let logged_s = self.logged_compute_s.get(&epoch.number).copied();
        let compute_s = self.measured_compute_s.or(logged_s).or(self.compute_s)?;
        let inside = epoch.steps as f64 - self.left_out(epoch);
        let percent = inside * compute_s / epoch.length_s * 100.0;
        (0.0 < percent).then_some(percent)
    }

    /// Returns the number of steps outside the window.
    fn left_out(&self, epoch: &EpochTotal) -> f64 {
        (self.excluded.iter().sum::<u64>() * epoch.blocks) as f64
    }

    /// Returns the throughput nearest to `rate` that a release of DLIO could report for an epoch: all steps ÷ the duration of its blocks, or the steps
    /// of the window ÷ its duration. A window is no longer than its block, and its duration follows from utilisation and compute time.
    fn plausible_rate(&self, epoch: &EpochTotal, au: Option<f64>, rate: f64) -> Option<f64> {
        let samples_per_step = f64::from(self.ranks) * self.batch_size as f64;
        let steps = epoch.steps as f64;
        let inside = steps - self.left_out(epoch);
        let all_but_two = steps - 2.0 * epoch.blocks as f64;
        if samples_per_step == 0.0 || inside <= 0.0 || all_but_two <= 0.0 {
            return None;
        }
        let logged_s = self.logged_compute_s.get(&epoch.number).copied();
        let [shortest_s, longest_s] = match (self.measured_compute_s.or(logged_s), self.compute_s) {
            (Some(measured_s), _) => {
                let difference_s = LOGGED_MAX * measured_s + LOGGED_MAX_S;
                [(measured_s - difference_s).max(0.0), measured_s + difference_s]
            }
            (None, Some(configured_s)) if self.is_drawn => {
                [configured_s * (1.0 - DRAWN_MAX), configured_s * (1.0 + DRAWN_MAX) + LATE_MAX_S]
            }
            (None, Some(configured_s)) if self.is_older => {
                [configured_s * (1.0 - EARLY_MAX), configured_s * (1.0 + OLDER_LATE_MAX)]
            }
            (None, Some(configured_s)) => {
                [configured_s * (1.0 - EARLY_MAX), configured_s * (1.0 + LATE_MAX) + LATE_MAX_S]
            }
            (None, None) => [0.0, f64::INFINITY],
        };
        let window_rates = [all_but_two, inside].map(|counted| {
            let in_window = |window_s: f64| counted * samples_per_step / window_s;
            let slowest = in_window(epoch.length_s);
            match au {
                Some(au) => {
                    let window_s = |compute_s: f64| inside * compute_s / (au / 100.0);
                    let fastest = in_window(window_s(shortest_s)).max(slowest);
                    rate.clamp(in_window(window_s(longest_s)).max(slowest).min(fastest), fastest)
                }
                None => rate.max(slowest),
            }
        });
        let whole_rate = steps * samples_per_step / epoch.length_s;
        let apart = if self.is_older { STARTS_APART_MAX } else { 0.0 };
        let whole_rate = rate.clamp(whole_rate * (1.0 - apart), whole_rate * (1.0 + apart));
        let rates = [whole_rate, window_rates[0], window_rates[1]];
        rates.into_iter().min_by(|a, b| (a - rate).abs().total_cmp(&(b - rate).abs()))
    }

    /// Returns whether an inferred compute time agrees with the logged or the configured one.
    fn is_plausible(&self, compute_s: f64, logged_s: Option<f64>) -> bool {
        if let Some(logged_s) = logged_s {
            return (compute_s - logged_s).abs() <= LOGGED_MAX * logged_s + LOGGED_MAX_S;
        }
        self.compute_s.is_some_and(|configured_s| {
            let (early, late_s) = if self.is_drawn {
                (DRAWN_MAX, DRAWN_MAX * configured_s)
            } else {
                (EARLY_MAX, LATE_MAX * configured_s + LATE_MAX_S)
            };
            (configured_s * (1.0 - early)..=configured_s + late_s).contains(&compute_s)
        })
    }

    /// Returns the duration of the first step: the duration of the block minus the window, which has all other steps.
    fn first_step_s(&self, epoch: &EpochTotal, au: Option<f64>) -> Option<f64> {
        let window_s =
            epoch.steps.checked_sub(epoch.blocks)? as f64 * epoch.compute_s? / (au? / 100.0);
        let first_s = (epoch.length_s - window_s) / epoch.blocks as f64;
        (self.excluded == [1, 0] && 0.0 < first_s).then_some(first_s)
    }
}

/// Sums up the blocks of an epoch that are longer than `length_min_s`. `None` if there are none.
fn epoch_total(number: u32, spans: &Value, length_min_s: f64) -> Option<EpochTotal> {
    let blocks = spans.as_object()?.iter().filter(|(name, _)| name.starts_with("block"));
    let mut epoch = EpochTotal { number, ..EpochTotal::default() };
    let mut times_us = Vec::new();
    for (_, block) in blocks {
        let time_us = |key: &str| text(block.get(key)?).as_deref().and_then(micros);
        let start_us = time_us("start");
        let end_us = time_us("end");
        let length_s = match (start_us, end_us) {
            (Some(start_us), Some(end_us)) => (end_us - start_us) as f64 / 1e6,
            _ => block.get("duration").map(json::number)?,
        };
        if !length_s.is_finite() || length_s <= length_min_s {
            continue;
        }
        times_us.extend(start_us.into_iter().chain(end_us));
        epoch.blocks += 1;
        epoch.length_s += length_s;
    }
    let last_us = times_us.iter().max();
    let span_us = last_us.zip(times_us.iter().min()).map(|(last, first)| last - first);
    epoch.wall_s = span_us.map_or(epoch.length_s, |us| us as f64 / 1e6);
    (0 < epoch.blocks).then_some(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Five epochs of 500 steps on 36 ranks of several hosts, whose throughputs give 501.1, 499.7, 499.7, 554.6 and 500.5 steps.
    #[test]
    fn one_epoch_of_ranks_that_started_apart_does_not_change_the_counted_steps() {
        let lengths = [179.74_f64, 176.64, 178.57, 177.31, 176.83];
        let steps = [501.14, 499.69, 499.71, 554.6, 500.46];
        let spans = (1..).zip(lengths).map(|(epoch, length_s)| {
            let block = json!({"duration": format!("{length_s}")});
            (epoch.to_string(), json!({"block1": block}))
        });
        let spans: Fields = spans.collect();
        let rates = steps.iter().zip(lengths).map(|(n, length_s)| n * 36.0 * 7.0 / length_s);
        let facts = TotalFacts {
            spans: &spans,
            is_older: true,
            ranks: 36,
            batch_size: 7,
            steps: 500,
            are_steps_configured: true,
            excluded: [1, 0],
            compute_s: Some(0.323),
            is_drawn: false,
            logged_compute_s: &BTreeMap::new(),
            measured_compute_s: None,
            au_percent: vec![93.4; 5],
            samples_per_second: rates.collect(),
        };
        let totals = Totals::new(&facts).unwrap();
        let percent = 5.0 * 500.0 * 0.323 / lengths.iter().sum::<f64>() * 100.0;
        assert!((totals.au_all_steps_percent().unwrap() - percent).abs() < 1e-9);
        assert_eq!((totals.counted, totals.bound), (Some(CountedSteps::All), None));
        for (epoch, length_s) in totals.epochs.iter().zip(lengths) {
            let expected = 500.0 * 0.323 / length_s * 100.0;
            assert!((epoch.au_all_steps_percent().unwrap() - expected).abs() < 1e-9);
        }
    }
}
