//! Totals of a run whose ranks left no step times, as submitters of MLPerf Storage publish them: how long the blocks of its epochs were, how many steps they had, and how
//! long a step computed. From rank 0's times of blocks, log, summary and config; no step is made up.

use super::json::{self, Fields, text};
use feedrate_measure::dlio::micros;
use feedrate_measure::stats::median;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Totals of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Its epochs with steps, in their order.
    pub epochs: Vec<EpochTotal>,
    /// On which side of the true figure its utilisation over all steps lies, where it is no more than a bound.
    pub bound: Option<Bound>,
    /// The steps that its reported rates count; `None` where they fit no release of DLIO.
    pub counted: Option<CountedSteps>,
}

/// Totals of an epoch; those of its blocks are added up.
#[derive(Clone, Debug, Default)]
pub struct EpochTotal {
    /// Its number.
    pub number: u32,
    /// Blocks with steps.
    pub blocks: u64,
    /// Steps of each rank.
    pub steps: u64,
    /// Time of its blocks.
    pub length_s: f64,
    /// From the begin of the first block to the end of the last one.
    pub wall_s: f64,
    /// Computing of a step.
    pub compute_s: Option<f64>,
    /// Time that its blocks spent outside of DLIO's window, where that leaves out the first step alone; of one block.
    pub first_step_s: Option<f64>,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Only the config tells how many steps there were, and a run that breaks off has fewer.
    AtMost,
    /// Compute is drawn from a distribution, and a sleep lasts no less than what was drawn.
    AtLeast,
}

/// Steps that DLIO's throughput is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedSteps {
    /// All, in the time of the whole block: releases up to MLPerf Storage 1.0, whose compute is that of the config.
    All,
    /// All but two, in the time of the window: later ones.
    AllButTwo,
    /// Those in the window, in its time.
    Window,
}

/// Facts that totals are made of.
pub(super) struct TotalFacts<'a> {
    /// Begin and end of blocks, in the form of DLIO's file of that.
    pub(super) spans: &'a Fields,
    /// Whether they are in the one file of older DLIO.
    pub(super) is_older: bool,
    pub(super) ranks: u32,
    /// Samples in a batch; 0 where it is not known.
    pub(super) batch_size: u64,
    /// Steps of an epoch.
    pub(super) steps: u64,
    /// Whether nothing but the config tells them.
    pub(super) are_steps_configured: bool,
    /// Steps that the window leaves out, at the start and at the end.
    pub(super) excluded: [u64; 2],
    /// Compute of a step by the config: its mean where it is drawn.
    pub(super) compute_s: Option<f64>,
    pub(super) is_drawn: bool,
    /// The same as the log has it measured, to four digits; by epoch.
    pub(super) logged_compute_s: &'a BTreeMap<u32, f64>,
    /// The same as a rank measured it, in the mean of its steps.
    pub(super) measured_compute_s: Option<f64>,
    /// Reported utilisations and rates of epochs.
    pub(super) au_percent: Vec<f64>,
    pub(super) samples_per_second: Vec<f64>,
}

/// Share by which a rate of all steps may miss them, and what two calls of the clock are apart.
const ALL_TOLERANCE: f64 = 2e-4;
const CLOCK_S: f64 = 0.002;
/// The same of the middle epoch of a run on several hosts, whose ranks begin their blocks at other moments than rank 0.
const ALL_MIDDLE_MAX: f64 = 0.005;
/// A sleep is never shorter than asked, and not longer by more than this share and time.
const EARLY_MAX: f64 = 2e-4;
const LATE_MAX: f64 = 0.1;
const LATE_MAX_S: f64 = 0.001;
/// Half of the log's last digit, and what the mean of all ranks may differ from rank 0's.
const LOGGED_MAX_S: f64 = 6e-5;
const LOGGED_MAX: f64 = 0.01;
/// A drawn compute has this mean, to a share.
const DRAWN_MAX: f64 = 0.1;

impl Totals {
    /// `None` where no block has a length.
    pub(super) fn new(facts: &TotalFacts) -> Option<Self> {
        // A block may begin after the last step of an epoch, and end at once.
        let least_s = if facts.is_drawn { 0.0 } else { facts.compute_s.unwrap_or(0.0) };
        let epochs = facts.spans.iter();
        let epochs = epochs.filter_map(|(key, spans)| lengths(key.parse().ok()?, spans, least_s));
        let mut epochs: Vec<EpochTotal> = epochs.collect();
        epochs.sort_unstable_by_key(|epoch| epoch.number);
        if epochs.is_empty() {
            return None;
        }
        let count = epochs.len();
        let of_epoch = |list: &[f64], at: usize| {
            let known = if list.len() == count { list.get(at).copied() } else { None };
            known.filter(|value| value.is_finite() && 0.0 < *value)
        };
        let rates: Vec<Option<f64>> =
            (0..count).map(|at| of_epoch(&facts.samples_per_second, at)).collect();
        let is_run_of_all = facts.is_run_of_all(&epochs, &rates);
        let mut counted = Vec::new();
        for (at, epoch) in epochs.iter_mut().enumerate() {
            epoch.steps = facts.steps;
            let au = of_epoch(&facts.au_percent, at);
            let (by_rates, by) = if is_run_of_all {
                (facts.compute_s, Some(CountedSteps::All))
            } else {
                facts.compute_by_rates(epoch, au, rates[at])
            };
            epoch.compute_s = facts.measured_compute_s.or(by_rates);
            epoch.first_step_s = facts.first_step_s(epoch, au);
            counted.push(by);
        }
        let first = counted[0].filter(|by| counted.iter().all(|other| *other == Some(*by)));
        let is_unsure = facts.are_steps_configured && first != Some(CountedSteps::All);
        let is_measured =
            facts.measured_compute_s.is_some() || first.is_some_and(|by| by != CountedSteps::All);
        let bound = match (is_unsure, facts.is_drawn && !is_measured) {
            _ if epochs.iter().any(|epoch| epoch.au_all_steps_percent().is_none()) => None,
            (true, _) => Some(Bound::AtMost),
            (_, true) => Some(Bound::AtLeast),
            _ => None,
        };
        Some(Totals { epochs, bound, counted: first })
    }

    /// Hash of what its files tell of its blocks, by which copies are known.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        for epoch in &self.epochs {
            (epoch.steps, epoch.length_s.to_bits(), epoch.wall_s.to_bits()).hash(&mut hasher);
        }
        (!self.epochs.is_empty()).then(|| hasher.finish())
    }

    /// Samples of all ranks in an epoch by a rate, in the time of the epoch.
    pub(crate) fn samples_per_second(&self, samples_per_step: f64) -> Option<f64> {
        let steps: u64 = self.epochs.iter().map(|epoch| epoch.steps).sum();
        let wall_s: f64 = self.epochs.iter().map(|epoch| epoch.wall_s).sum();
        (0.0 < wall_s && 0 < steps).then(|| steps as f64 * samples_per_step / wall_s)
    }
}

impl EpochTotal {
    /// Computing of all steps ÷ time of their blocks.
    pub fn au_all_steps_percent(&self) -> Option<f64> {
        let percent = self.steps as f64 * self.compute_s? / self.length_s * 100.0;
        (0 < self.steps).then_some(percent)
    }
}

impl TotalFacts<'_> {
    /// Whether the rates of a run are of all steps: its release says so, and the middle one of its epochs fits. One epoch whose ranks begin far apart changes nothing.
    fn is_run_of_all(&self, epochs: &[EpochTotal], rates: &[Option<f64>]) -> bool {
        if !self.is_older || !self.logged_compute_s.is_empty() || self.compute_s.is_none() {
            return false;
        }
        let per_step = f64::from(self.ranks) * self.batch_size as f64;
        let all = per_step * self.steps as f64;
        let misses = epochs.iter().zip(rates);
        let misses = misses.filter_map(|(epoch, rate)| Some((*rate)? * epoch.length_s / all - 1.0));
        median(&misses.map(f64::abs).collect::<Vec<f64>>())
            .is_some_and(|miss| miss <= ALL_MIDDLE_MAX)
    }

    /// Compute of a step, and what the rate counts. A window's utilisation and rate are of the same time: by both, compute is as it really lasted.
    fn compute_by_rates(
        &self,
        epoch: &EpochTotal,
        au: Option<f64>,
        rate: Option<f64>,
    ) -> (Option<f64>, Option<CountedSteps>) {
        let (Some(au), Some(rate), 1.., 1..) = (au, rate, self.batch_size, epoch.steps) else {
            return (self.compute_s, None);
        };
        let steps = epoch.steps as f64;
        let per_step = f64::from(self.ranks) * self.batch_size as f64;
        let is_all = {
            let miss = (rate * epoch.length_s / per_step / steps - 1.0).abs();
            miss <= ALL_TOLERANCE.max(CLOCK_S / epoch.length_s)
        };
        let inside = steps - (self.excluded.iter().sum::<u64>() * epoch.blocks) as f64;
        let less_two = steps - 2.0 * epoch.blocks as f64;
        let by_window = [(less_two, CountedSteps::AllButTwo), (inside, CountedSteps::Window)];
        let by_window = by_window.into_iter().filter(|(count, _)| 0.0 < *count && 0.0 < inside);
        let by_window =
            by_window.map(|(count, by)| (au / 100.0 * per_step * count / rate / inside, by));
        let logged_s = self.logged_compute_s.get(&epoch.number).copied();
        let fits = by_window.filter(|(compute_s, _)| self.is_likely(*compute_s, logged_s));
        // Where the log does not tell, the least is the likeliest: sleeps last longer than asked, but not much.
        let apart_s = |compute_s: f64| (compute_s - logged_s.unwrap_or(0.0)).abs();
        match fits.min_by(|(a, _), (b, _)| apart_s(*a).total_cmp(&apart_s(*b))) {
            // Rates of either kind fit where the first step is like the others.
            Some((compute_s, by)) if !is_all || !self.is_older || logged_s.is_some() => {
                (Some(compute_s), Some(by))
            }
            _ if is_all && logged_s.is_none() => (self.compute_s, Some(CountedSteps::All)),
            _ => (logged_s.or(self.compute_s), None),
        }
    }

    fn is_likely(&self, compute_s: f64, logged_s: Option<f64>) -> bool {
        if let Some(logged_s) = logged_s {
            return (compute_s - logged_s).abs() <= LOGGED_MAX * logged_s + LOGGED_MAX_S;
        }
        self.compute_s.is_some_and(|asked_s| {
            let (early, late_s) = if self.is_drawn {
                (DRAWN_MAX, DRAWN_MAX * asked_s)
            } else {
                (EARLY_MAX, LATE_MAX * asked_s + LATE_MAX_S)
            };
            (asked_s * (1.0 - early)..=asked_s + late_s).contains(&compute_s)
        })
    }

    /// The rest of a block beside its window, which is of all steps but the first.
    fn first_step_s(&self, epoch: &EpochTotal, au: Option<f64>) -> Option<f64> {
        let window_s =
            epoch.steps.checked_sub(epoch.blocks)? as f64 * epoch.compute_s? / (au? / 100.0);
        let first_s = (epoch.length_s - window_s) / epoch.blocks as f64;
        (self.excluded == [1, 0] && 0.0 < first_s).then_some(first_s)
    }
}

/// The blocks of an epoch; `None` where none has a length.
fn lengths(number: u32, spans: &Value, least_s: f64) -> Option<EpochTotal> {
    let blocks = spans.as_object()?.iter().filter(|(name, _)| name.starts_with("block"));
    let (mut epoch, mut ends) = (EpochTotal { number, ..EpochTotal::default() }, Vec::new());
    for (_, block) in blocks {
        let [from, to] =
            ["start", "end"].map(|end| text(block.get(end)?).as_deref().and_then(micros));
        let length_s = match (from, to) {
            (Some(from), Some(to)) => (to - from) as f64 / 1e6,
            _ => block.get("duration").map(json::number)?,
        };
        if !length_s.is_finite() || length_s <= least_s {
            continue;
        }
        ends.extend(from.into_iter().chain(to));
        epoch.blocks += 1;
        epoch.length_s += length_s;
    }
    let span_us = ends.iter().max().zip(ends.iter().min()).map(|(last, first)| last - first);
    epoch.wall_s = span_us.map_or(epoch.length_s, |us| us as f64 / 1e6);
    (0 < epoch.blocks).then_some(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Five epochs of 500 steps on 36 ranks of several hosts: by the rates there were 501.1, 499.7, 499.7, 554.6 and 500.5.
    #[test]
    fn one_epoch_of_ranks_that_began_apart_does_not_change_what_a_run_counts() {
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
        assert_eq!((totals.counted, totals.bound), (Some(CountedSteps::All), None));
        for (epoch, length_s) in totals.epochs.iter().zip(lengths) {
            let expected = 500.0 * 0.323 / length_s * 100.0;
            assert!((epoch.au_all_steps_percent().unwrap() - expected).abs() < 1e-9);
        }
    }
}
