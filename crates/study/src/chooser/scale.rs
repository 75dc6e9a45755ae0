//! `scale`: the search for the largest or smallest number at which a response holds, over the finished runs of a study.
//!
//! The dataset grows with the numbers: each stage of the range has its own, and a row belongs to the stage whose settings it has.

use super::{Chooser, ChooserEvent, History, Measured, RunState};

use crate::search::{Goal, Search};
use feedrate_measure::metric::{Better, Metric};
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;
use std::collections::BTreeMap;

pub(super) static MEMBER: Member = Member {
    name: "scale",
    summary: "`scale`: doubles and halves a number, and repeats the runs at the edge until they decide",
    abilities: &[],
};

/// The numbers that can be tried with one dataset.
pub trait NumberRange: Clone {
    /// The largest number.
    fn max(&self) -> u64;
    /// The row that runs one number.
    fn row(&self, number: u64) -> Option<Row>;
    /// The utilisation that the client alone leaves at a number, where that misses the target and no run is needed.
    fn client_leaves(&self, number: u64) -> Option<f64>;
    /// A number in words: `4 accelerators`.
    fn words(&self, number: u64) -> String;
    /// The number that a row runs.
    fn number(&self, row: &Row) -> Option<u64>;
    /// Extend the range to larger numbers with a larger dataset, that of the row `known` where there is one. False where that is not possible.
    fn grow(&mut self, known: Option<&Row>) -> bool;
    /// Notes for the user about this range.
    fn notes(&self) -> &[String];
}

/// Limits of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleLimits {
    /// Most runs.
    pub runs_max: u64,
    /// Time of all runs, in seconds, without making datasets.
    pub budget_s: f64,
}

/// Why a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ScaleEnd {
    /// All numbers are decided.
    Decided,
    /// The number of runs is used up.
    OutOfRuns,
    /// Another run would probably end after the budget.
    OutOfTime,
    /// A run says nothing about the storage.
    Worthless {
        /// Counted over the search, from 1.
        run: usize,
        /// What it ran.
        number: u64,
        /// The reason.
        reason: String,
    },
    /// A run has no value of the response.
    NoValue {
        /// What it ran.
        number: u64,
    },
    /// A run failed.
    Failed {
        /// Counted over the search, from 1.
        run: usize,
        /// What it ran.
        number: u64,
        /// The reason.
        reason: String,
    },
}

/// A search over the rows of a study.
#[derive(Debug)]
pub struct ScaleSearch<R> {
    goal: Goal,
    response: &'static Metric,
    limits: ScaleLimits,
    /// The range of each dataset, the current one last.
    stages: Vec<R>,
    /// Utilisations that the client alone leaves, of numbers at which that misses the target.
    left_by_client: BTreeMap<u64, f64>,
    events: Vec<ChooserEvent>,
}

/// The finished runs of a search.
#[derive(Clone, Debug)]
pub struct ScaleRuns {
    /// The search with all values that count.
    pub search: Search,
    /// Finished runs that count, by number.
    pub by_number: BTreeMap<u64, Vec<Measured>>,
    /// Duration of each run by number, in seconds, with those that count no more.
    times_s: BTreeMap<u64, Vec<f64>>,
    /// The first run after which the search cannot go on.
    obstacle: Option<ScaleEnd>,
    /// The first row of a stage that is not reached yet: it was chosen before a restart.
    later: Option<Row>,
    /// Some row of such a stage is finished.
    has_later_run: bool,
}

impl ScaleRuns {
    /// Number of finished runs.
    pub fn count(&self) -> u64 {
        self.times_s.values().map(|times| times.len() as u64).sum()
    }

    /// Time of all finished runs, in seconds.
    pub fn seconds(&self) -> f64 {
        self.times_s.values().flatten().sum()
    }

    /// Expected duration of a run at `number`: the longest there, else of the next smaller number, in proportion.
    fn expected_s(&self, number: u64) -> f64 {
        self.times_s.range(..=number).next_back().map_or(0.0, |(measured_at, times_s)| {
            let longest_s = times_s.iter().copied().fold(0.0, f64::max);
            longest_s * number as f64 / *measured_at as f64
        })
    }
}

impl<R: NumberRange> ScaleSearch<R> {
    /// A search in `range` and the ranges that it grows to. `goal.least` is in the unit of `response`; for metrics of which low is good, its upper limit.
    pub fn new(goal: Goal, response: &'static Metric, limits: ScaleLimits, range: R) -> Self {
        let goal = Goal { least: score(response, goal.least), max: range.max(), ..goal };
        let (stages, left_by_client, events) = (vec![range], BTreeMap::new(), Vec::new());
        ScaleSearch { goal, response, limits, stages, left_by_client, events }
    }

    /// The range with the current dataset.
    pub fn range(&self) -> &R {
        &self.stages[self.stages.len() - 1]
    }

    /// Utilisations that the client alone leaves, of numbers at which that misses the target.
    pub fn left_by_client(&self) -> &BTreeMap<u64, f64> {
        &self.left_by_client
    }

    /// Sort finished runs by number.
    pub fn runs(&self, history: &History) -> ScaleRuns {
        let mut runs = ScaleRuns {
            search: Search::new(Goal { max: self.range().max(), ..self.goal }),
            by_number: BTreeMap::new(),
            times_s: BTreeMap::new(),
            obstacle: None,
            later: None,
            has_later_run: false,
        };
        for (place, past) in history.runs.iter().enumerate() {
            let Some((stage, number)) = self.place(&past.row) else {
                runs.later.get_or_insert_with(|| past.row.clone());
                runs.has_later_run |= matches!(past.state, RunState::Done(_));
                continue;
            };
            let run = place + 1;
            match &past.state {
                RunState::Failed(reason) => {
                    let failed = ScaleEnd::Failed { run, number, reason: reason.clone() };
                    runs.obstacle.get_or_insert(failed);
                }
                RunState::Done(measured) => self.count(&mut runs, stage, (run, number), measured),
                RunState::Pending | RunState::LeftOut => {}
            }
        }
        for (&number, &percent) in &self.left_by_client {
            // It does not vary, and two values decide.
            (0..2).for_each(|_| runs.search.add(number, percent));
        }
        runs
    }

    fn count(
        &self,
        runs: &mut ScaleRuns,
        stage: usize,
        (run, number): (usize, u64),
        measured: &Measured,
    ) {
        runs.times_s.entry(number).or_default().push(measured.seconds);
        // The largest number of a range that was extended is measured again with the larger dataset.
        if stage + 1 < self.stages.len() && number == self.stages[stage].max() {
            return;
        }
        let obstacle =
            match (&measured.observation.worthless, measured.observation.value(self.response)) {
                (Some(reason), _) => {
                    Some(ScaleEnd::Worthless { run, number, reason: reason.clone() })
                }
                (None, None) => Some(ScaleEnd::NoValue { number }),
                (None, Some(value)) => {
                    runs.search.add(number, score(self.response, value));
                    None
                }
            };
        if let Some(obstacle) = obstacle {
            runs.obstacle.get_or_insert(obstacle);
        }
        runs.by_number.entry(number).or_default().push(measured.clone());
    }

    /// The stage and the number of a row.
    fn place(&self, row: &Row) -> Option<(usize, u64)> {
        let number = self.range().number(row)?;
        let key = row.experiment_key();
        let makes_row = |range: &R| {
            range.row(number).is_some_and(|candidate| candidate.experiment_key() == key)
        };
        Some((self.stages.iter().rposition(makes_row)?, number))
    }

    /// Extend the range where the largest number holds and a run is left. What was measured with a larger dataset before a restart needs no run.
    fn grows(&mut self, runs: &ScaleRuns) -> bool {
        // The largest number is run again with the larger dataset: without time for that, the result stays.
        let has_run = runs.count() < self.limits.runs_max
            && runs.expected_s(self.range().max()) <= self.limits.budget_s - runs.seconds();
        if !runs.search.lies_beyond() || !(has_run || runs.has_later_run) {
            return false;
        }
        let mut larger = self.range().clone();
        let known = larger.notes().len();
        let has_grown = larger.grow(runs.later.as_ref());
        if has_grown {
            let notes = larger.notes().iter().skip(known).cloned();
            self.events.extend(notes.map(ChooserEvent::Note));
            self.stages.push(larger);
        } else if let Some(last) = self.stages.last_mut() {
            // It states why it is not larger.
            *last = larger;
        }
        has_grown
    }

    /// The number to run next, if the limits allow one.
    fn number_to_run(&self, runs: &ScaleRuns) -> Option<u64> {
        let left = self.limits.runs_max.saturating_sub(runs.count());
        let left_s = self.limits.budget_s - runs.seconds();
        let in_time = match runs.count() {
            0 => left,
            count => (left_s / (runs.seconds() / count as f64)) as u64,
        };
        let number = runs.search.next(left.min(in_time.max(1)))?;
        (runs.expected_s(number) <= left_s).then_some(number)
    }

    /// Why there is no next run, once [`Chooser::next`] found none.
    pub fn end(&self, history: &History) -> ScaleEnd {
        let runs = self.runs(history);
        match runs.obstacle {
            Some(obstacle) => obstacle,
            None if runs.search.found().not_decided.is_none() => ScaleEnd::Decided,
            None if runs.count() < self.limits.runs_max => ScaleEnd::OutOfTime,
            None => ScaleEnd::OutOfRuns,
        }
    }
}

impl<R: NumberRange> Chooser for ScaleSearch<R> {
    fn next(&mut self, history: &History) -> Option<Row> {
        loop {
            let runs = self.runs(history);
            if runs.obstacle.is_some() {
                return None;
            }
            if self.grows(&runs) {
                continue;
            }
            let number = self.number_to_run(&runs)?;
            if let Some(percent) = self.range().client_leaves(number) {
                self.left_by_client.insert(number, percent);
                continue;
            }
            let row = self.range().row(number)?;
            let replicate = history.measured(&row.experiment_key()).count() + 1;
            return Some(Row { replicate: u32::try_from(replicate).ok(), ..row });
        }
    }

    fn response(&self) -> &'static Metric {
        self.response
    }

    fn label(&self, row: &Row, number: usize) -> Option<String> {
        let searched = self.range().number(row)?;
        Some(format!("run {number}: {}", self.range().words(searched)))
    }

    fn verdict(&self, value: f64) -> Option<&'static str> {
        let holds = self.goal.least <= score(self.response, value);
        Some(if holds { "holds" } else { "does not hold" })
    }

    fn take_events(&mut self) -> Vec<ChooserEvent> {
        std::mem::take(&mut self.events)
    }
}

/// The value, negated where low is good: larger is better.
pub fn score(response: &Metric, value: f64) -> f64 {
    match response.better {
        Better::Higher => value,
        Better::Lower => -value,
    }
}
