//! The answer to the question of a run: did the storage feed the accelerators, and if not, what was missing?
//!
//! An answer is data; `report` words it. Unknown values are `None`.

use feedrate_measure::budget::{BudgetPart, TimeBudget};
use feedrate_measure::checkpoints::CheckpointSummary;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{
    Bias, CHECKPOINTS_FROM_PAGE_CACHE, CHECKPOINTS_NOT_SYNCED, CPU_SATURATED, Doubt,
    INCOMPLETE_RUN, OTHER_IO, Severity, VALUES_ELSEWHERE, compute_stretch, find_origin_doubt,
};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Metric, SAMPLES_WHOLE, Values};
use feedrate_measure::noise::{Noise, is_too_wide};
use feedrate_measure::record::Record;
use feedrate_measure::slow_accelerators::SlowAccelerators;
use feedrate_measure::stats::Interval;
use feedrate_measure::summary::Summary;
use feedrate_measure::supply::{AnswerWindow, RequestsInFlight, RunEnd, Supply};
use feedrate_measure::transfers::Retries;
use feedrate_measure::verdict::{self, Bound, Verdict};
use feedrate_measure::waits::WaitPart;
use feedrate_measure::watched_io::WatchedIo;
use feedrate_results::run::Run;
use feedrate_spec::bundled;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;

names! {
    /// The verdict that an answer begins with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum AnswerKind {
        /// The accelerators were fed.
        Yes = "yes",
        /// The accelerators were not fed.
        No = "no",
        /// The run does not show whether they were fed.
        Unknown = "unknown",
        /// No accelerator computed, or the compute time is unknown: the run has a rate but no utilisation.
        Rate = "rate",
        /// Nothing was trained, and the checkpoints were written to and read from the storage.
        Checkpoints = "checkpoints",
    }
}

names! {
    /// Reasons why a run does not show whether its accelerators were fed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum UnknownBecause {
        /// The page cache served the bytes, or may have.
        CacheFed = "cache-fed",
        /// The cores of the machine were busy, so reads may have waited for a processor.
        CpuSaturated = "cpu-saturated",
        /// Values that samples could include are stored elsewhere and were not read.
        DataUnread = "data-unread",
        /// The run has a doubt that makes its numbers unusable.
        Invalid = "invalid",
        /// The run failed, was killed, or is still in progress.
        Incomplete = "incomplete",
        /// The user stopped the run.
        Interrupted = "interrupted",
    }
}

impl UnknownBecause {
    /// How the measured utilisation and rates may differ from those that the storage reaches.
    pub fn bias(self) -> Bias {
        match self {
            UnknownBecause::CacheFed | UnknownBecause::DataUnread => Bias::Raised,
            UnknownBecause::CpuSaturated => Bias::Lowered,
            UnknownBecause::Invalid | UnknownBecause::Incomplete | UnknownBecause::Interrupted => {
                Bias::Either
            }
        }
    }
}

/// Whether the storage fed the accelerators.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The verdict that the answer begins with.
    pub kind: AnswerKind,
    /// Whether the accelerators were fed; `null` if the run does not show or test this.
    pub fed: Option<bool>,
    /// The reason why `kind` is `unknown`; otherwise `null`.
    pub unknown_because: Option<UnknownBecause>,
    /// What limited the run.
    pub verdict: Bound,
    /// The reasons for the verdict, in sentences.
    #[serde(skip)]
    pub evidence: String,
    /// Whether memory served more than half of the bytes, or may have served them because device bytes are unknown. Accelerators that memory
    /// cannot feed cannot be fed by slower storage either.
    pub is_memory_served: bool,
    /// Whether other processes used the device so much that the measured rates are too low.
    #[serde(skip)]
    pub shares_device: bool,
    /// Measured ÷ configured compute time of a step if the emulated accelerators were too slow; `None` otherwise. They needed less of the
    /// storage than they should have.
    #[serde(skip)]
    pub compute_stretch: Option<f64>,
    /// The deciding utilisation in percent.
    pub au_percent: Option<f64>,
    /// The metric of `au_percent`: au_sustained, or au_all_steps if au_sustained cannot be measured.
    pub au_kind: Option<&'static str>,
    /// The 95 % interval of au_all_steps if that is the deciding metric, assuming independent steps; `null` for fewer than two steps.
    pub interval: Option<[f64; 2]>,
    /// The reason why the bottleneck is not named and nothing is advised; `null` if the measurement is precise enough.
    pub noise: Option<Noise>,
    /// The utilisation that is required: `metric.au` of the workload, or that of a gate (`--fail-below-au`, `expect.au`).
    #[serde(rename = "asked_percent")]
    pub required_percent: f64,
    /// MLPerf Storage's utilisation in percent if it leads to the opposite decision; otherwise `null`.
    pub windowed_disagrees_percent: Option<f64>,
    /// The rate at which no accelerator would wait, computed from the workload's compute time if it is constant, otherwise from the measured compute time.
    pub needed_bytes_per_second: Option<f64>,
    /// The rate of reads in the window.
    pub delivered_bytes_per_second: Option<f64>,
    /// Samples trained on per second.
    pub samples_per_second: Option<f64>,
    /// The largest part of the wait.
    pub wait: Option<WaitPart>,
    /// Share of time that an accelerator did not compute, in percent.
    pub waited_percent: Option<f64>,
    /// Accelerators for which the others wait; `null` if the wait takes no more than 2 % of the run, or if the cores were busy.
    pub slow_accelerators: Option<SlowAccelerators>,
    /// The parts of the run's time; `null` if the record lacks some of its accelerators.
    pub time_budget: Option<TimeBudget>,
    /// The utilisation over all steps of all evaluations, in percent; `null` if there were none.
    pub evaluation_au_percent: Option<f64>,
    /// Checkpoints that were written and read; `null` if there were none.
    pub checkpoints: Option<CheckpointSummary>,
    /// The part of the run in which utilisation and rates were measured.
    pub window: Option<AnswerWindow>,
    /// Whether the storage is the problem of a watched training loop; `null` for other runs.
    pub watched_io: Option<WatchedIo>,
    /// Figures of an MLPerf workload that are not public and were chosen by feedrate; `null` if all are official.
    pub chosen_figures: Option<&'static str>,
    /// Requests that workers had in flight; `null` if each had one at a time.
    pub requests_in_flight: Option<RequestsInFlight>,
    /// Requests to an object store that were repeated; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
}

/// Difference in points from which an answer by the sustained utilisation also names that over all steps.
const NAMED_DIFFERENCE_POINTS: f64 = 5.0;

/// Share of the run's time in percent above which the answer names a part of it.
pub const NAMED_PERCENT_MIN: f64 = 2.0;

/// The summary of a record, with its answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredSummary {
    #[serde(flatten)]
    #[expect(missing_docs, reason = "its fields are flattened beside the answer")]
    pub summary: Summary,
    /// Whether the accelerators were fed.
    pub answer: Answer,
}

impl AnsweredSummary {
    /// Summarises a record with its answer.
    pub fn new(record: &Record) -> Self {
        AnsweredSummary::with_target(record, None)
    }

    /// Summarises a record and answers whether it reaches another target than that of its plan.
    pub fn with_target(record: &Record, target_percent: Option<f64>) -> Self {
        let derived = Derived::new(record).with_target(target_percent);
        let summary = Summary::from_derived(&derived);
        let answer = Answer::from_record(&derived, &summary.doubts);
        AnsweredSummary { summary, answer }
    }
}

impl Answer {
    /// The answer for a run that was read from its results; `None` for a run of another program.
    pub fn from_run(run: &Run) -> Option<Self> {
        let answer = Answer::new(run.supply.as_ref()?, &run.values, run.bar_percent?, &run.doubts);
        Some(Answer { chosen_figures: bundled::chosen_figures(&run.workload), ..answer })
    }

    /// The answer for a record with its doubts.
    pub fn from_record(derived: &Derived, doubts: &[Doubt]) -> Self {
        let supply = Supply::new(derived, doubts);
        let answer = Answer::new(&supply, &derived.values, derived.target_percent, doubts);
        Answer { chosen_figures: bundled::chosen_figures(&derived.record.plan.workload), ..answer }
    }

    fn new(supply: &Supply, values: &Values, required_percent: f64, doubts: &[Doubt]) -> Self {
        let value = |metric: &Metric| values.get(&metric.id).map(|value| value.number);
        let is_reached = |percent: f64| required_percent <= percent;
        // Comparisons with other runs can add doubts to those of the record.
        let Verdict { name: bound, evidence } =
            verdict::invalid_verdict(doubts).unwrap_or_else(|| supply.verdict.clone());
        let au_percent = supply.deciding_metric.and_then(value);
        let unknown = unknown_because(supply, doubts, bound);
        let kind = match (unknown, au_percent) {
            (Some(_), _) if !supply.trains => AnswerKind::Unknown,
            (None, _) if !supply.trains => AnswerKind::Checkpoints,
            (Some(UnknownBecause::CacheFed | UnknownBecause::CpuSaturated), None) => {
                AnswerKind::Rate
            }
            (Some(_), _) => AnswerKind::Unknown,
            (None, None) => AnswerKind::Rate,
            (None, Some(percent)) if is_reached(percent) => AnswerKind::Yes,
            (None, Some(_)) => AnswerKind::No,
        };
        let fed = match kind {
            AnswerKind::Yes => Some(true),
            AnswerKind::No => Some(false),
            _ => None,
        };
        let windowed = supply.deciding_metric.and_then(|_| value(&AU_WINDOWED));
        let answer = Answer {
            kind,
            fed,
            unknown_because: if kind == AnswerKind::Unknown { unknown } else { None },
            verdict: bound,
            evidence,
            is_memory_served: supply.is_memory_served,
            shares_device: doubts.iter().any(|doubt| doubt.name == OTHER_IO),
            compute_stretch: compute_stretch(doubts),
            au_percent,
            au_kind: supply.deciding_metric.map(|metric| metric.id.name()),
            interval: supply.interval.map(|interval| [interval.low, interval.high]),
            noise: None,
            required_percent,
            windowed_disagrees_percent: windowed
                .filter(|&percent| fed.is_some_and(|fed| fed != is_reached(percent))),
            needed_bytes_per_second: supply.needed_bytes_per_second,
            delivered_bytes_per_second: supply.delivered_bytes_per_second,
            samples_per_second: if supply.trains { value(&SAMPLES_WHOLE) } else { None },
            wait: supply.wait,
            waited_percent: au_percent.and_then(|_| value(&AU_ALL_STEPS)).map(|au| 100.0 - au),
            slow_accelerators: supply
                .slow_accelerators
                .clone()
                .filter(|_| bound != Bound::CpuSaturated)
                .filter(|_| is_named(supply.time_budget, BudgetPart::SkewWait)),
            time_budget: supply.time_budget,
            evaluation_au_percent: supply.evaluation_au_percent,
            checkpoints: supply.checkpoints,
            window: supply.window,
            watched_io: supply.watched_io,
            chosen_figures: None,
            requests_in_flight: supply.requests_in_flight,
            retries: supply.retries,
        };
        Answer { noise: answer.find_noise(supply.interval), ..answer }
    }

    /// Finds the reason why the bottleneck must not be named. A wide interval counts only if it leaves open whether the accelerators were fed.
    fn find_noise(&self, interval: Option<Interval>) -> Option<Noise> {
        let is_wide = self.rests_on_few_steps() && interval.as_ref().is_some_and(is_too_wide);
        match self.verdict {
            Bound::CpuSaturated => Some(Noise::BusyCores),
            _ => is_wide.then_some(Noise::WideInterval),
        }
    }

    /// The parts of the run outside of training that take more than [`NAMED_PERCENT_MIN`], the longest first. An evaluation whose utilisation
    /// is below the required one is always included.
    pub fn parts_outside_training(&self) -> Vec<BudgetPart> {
        let Some(budget) = self.time_budget else { return Vec::new() };
        let is_slow_evaluation = |part| {
            let below = |au: f64| au < self.required_percent;
            part == BudgetPart::Evaluation && self.evaluation_au_percent.is_some_and(below)
        };
        let outside = [BudgetPart::Checkpoints, BudgetPart::Evaluation, BudgetPart::Other];
        let named = |part: &BudgetPart| is_named(Some(budget), *part) || is_slow_evaluation(*part);
        let mut parts: Vec<BudgetPart> = outside.into_iter().filter(named).collect();
        parts.sort_by(|a, b| {
            budget.part_s(*b).partial_cmp(&budget.part_s(*a)).unwrap_or(Ordering::Equal)
        });
        parts
    }

    /// The utilisation over all steps in percent if another one decides and differs by 5 points or more, or if it would lead to the
    /// opposite decision.
    pub fn differing_all_steps_percent(&self) -> Option<f64> {
        let au_percent = self.au_percent.filter(|_| self.fed.is_some())?;
        let all_steps_percent = 100.0 - self.waited_percent?;
        let is_reached = |percent: f64| self.required_percent <= percent;
        let differs = NAMED_DIFFERENCE_POINTS <= (au_percent - all_steps_percent).abs()
            || is_reached(au_percent) != is_reached(all_steps_percent);
        (differs && self.au_kind != Some(AU_ALL_STEPS.id.name())).then_some(all_steps_percent)
    }

    /// Whether the answer holds for training alone, because checkpoints or evaluations take a part of the run that is named.
    pub fn is_about_training_alone(&self) -> bool {
        let parts = self.parts_outside_training();
        parts.contains(&BudgetPart::Checkpoints) || parts.contains(&BudgetPart::Evaluation)
    }

    /// Whether the run has too few steps for a certain answer: the interval of its utilisation is unknown or contains the required
    /// utilisation.
    pub fn rests_on_few_steps(&self) -> bool {
        let excludes_required =
            |[low, high]: [f64; 2]| self.required_percent < low || high < self.required_percent;
        let uses_all_steps = self.au_kind == Some(AU_ALL_STEPS.id.name());
        self.fed.is_some() && uses_all_steps && !self.interval.is_some_and(excludes_required)
    }

    /// Whether the answer is only probable: the run has too few steps, a quiet device might have fed the accelerators, or the storage might not
    /// have fed them if their steps had not taken too long.
    pub fn is_only_probable(&self) -> bool {
        let could_be_fed = self.kind == AnswerKind::No && self.shares_device;
        let at_configured_compute = self.au_percent.zip(self.compute_stretch);
        let could_wait = self.kind == AnswerKind::Yes
            && at_configured_compute
                .is_some_and(|(au, stretch)| au / stretch < self.required_percent);
        self.rests_on_few_steps() || could_be_fed || could_wait
    }

    /// Whether a doubt could change the answer. Notes could not. A cause that only made the run slower cannot change a YES, and one that
    /// only made it faster cannot change a NO. An unknown answer could change if its own cause were removed.
    pub fn could_be_changed_by(&self, doubt: &Doubt) -> bool {
        match (doubt.severity, self.kind, doubt.bias) {
            (Severity::Invalid, _, _) => true,
            (Severity::Note, _, _) | (_, _, Bias::Unaffected) => false,
            (_, _, Bias::Checkpoints) => self.verdict == Bound::CheckpointsOnly,
            (_, AnswerKind::Checkpoints, _) => true,
            (_, AnswerKind::Yes, bias) => bias != Bias::Lowered,
            (_, AnswerKind::No, bias) => bias != Bias::Raised,
            (_, AnswerKind::Rate, _) => true,
            (_, AnswerKind::Unknown, bias) => {
                match self.unknown_because.map(UnknownBecause::bias) {
                    Some(Bias::Raised) => bias != Bias::Lowered,
                    Some(Bias::Lowered) => bias != Bias::Raised,
                    _ => bias == Bias::Either,
                }
            }
        }
    }

    /// The doubts that make the answer unknown; empty for other answers.
    pub fn causes_of_unknown<'d>(&self, doubts: &'d [Doubt]) -> Vec<&'d Doubt> {
        let Some(because) = self.unknown_because else { return Vec::new() };
        let origin = find_origin_doubt(doubts).map(|doubt| doubt.name.as_str());
        let is_cause = |doubt: &&Doubt| {
            let name = doubt.name.as_str();
            match because {
                UnknownBecause::CacheFed if self.verdict == Bound::CheckpointsOnly => {
                    [CHECKPOINTS_FROM_PAGE_CACHE, CHECKPOINTS_NOT_SYNCED].contains(&name)
                }
                UnknownBecause::CacheFed => origin == Some(name),
                UnknownBecause::CpuSaturated => name == CPU_SATURATED,
                UnknownBecause::DataUnread => name == VALUES_ELSEWHERE,
                UnknownBecause::Interrupted | UnknownBecause::Incomplete => name == INCOMPLETE_RUN,
                UnknownBecause::Invalid => doubt.severity == Severity::Invalid,
            }
        };
        doubts.iter().filter(is_cause).collect()
    }

    /// The rate that is missing to reach the required utilisation; `None` if the accelerators do not wait for reads, or a
    /// rate is unknown.
    pub fn missing_bytes_per_second(&self) -> Option<f64> {
        let share = self.required_percent / 100.0;
        let missing = share * self.needed_bytes_per_second? - self.delivered_bytes_per_second?;
        let waits_for_reads = self.fed == Some(false) && self.verdict == Bound::StorageBound;
        (waits_for_reads && missing > 0.0).then_some(missing)
    }
}

/// The doubts that could change an answer. Runs of other programs have no answer, and their notes are left out.
pub fn relevant_doubts<'a>(answer: Option<&Answer>, doubts: &'a [Doubt]) -> Vec<&'a Doubt> {
    let is_relevant = |doubt: &&Doubt| match answer {
        Some(answer) => answer.could_be_changed_by(doubt),
        None => doubt.severity != Severity::Note,
    };
    doubts.iter().filter(is_relevant).collect()
}

/// Whether a part takes more than [`NAMED_PERCENT_MIN`] of the run.
fn is_named(budget: Option<TimeBudget>, part: BudgetPart) -> bool {
    let percent = budget.and_then(|budget| budget.percent(part));
    percent.is_some_and(|percent| NAMED_PERCENT_MIN < percent)
}

fn unknown_because(supply: &Supply, doubts: &[Doubt], bound: Bound) -> Option<UnknownBecause> {
    let are_rates_of_storage =
        supply.checkpoints.is_some_and(|checkpoints| checkpoints.are_rates_of_storage());
    let is_invalid = doubts.iter().any(|doubt| doubt.severity == Severity::Invalid);
    match (supply.end, bound) {
        (RunEnd::Interrupted, _) => Some(UnknownBecause::Interrupted),
        (RunEnd::Incomplete, _) => Some(UnknownBecause::Incomplete),
        (_, Bound::CacheFed) => Some(UnknownBecause::CacheFed),
        (_, Bound::CpuSaturated) => Some(UnknownBecause::CpuSaturated),
        (_, Bound::DataUnread) => Some(UnknownBecause::DataUnread),
        (_, Bound::Invalid) => Some(UnknownBecause::Invalid),
        (_, Bound::CheckpointsOnly) if !is_invalid => {
            (!are_rates_of_storage).then_some(UnknownBecause::CacheFed)
        }
        _ => is_invalid.then_some(UnknownBecause::Invalid),
    }
}

#[cfg(test)]
mod tests;
