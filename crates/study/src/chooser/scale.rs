//! The chooser of `scale`, which searches for the largest or smallest number at which a response holds.
//!
//! The dataset grows with the numbers: each stage of the search has its own range and dataset, and a row belongs to the stage whose settings it has.

use super::{Chooser, ChooserEvent, History, Measured, RunState};
use crate::search::{Goal, Search};
use feedrate_measure::metric::{Better, Metric};
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;
use std::collections::BTreeMap;

pub(super) static MEMBER: Member = Member {
    name: "scale",
    summary: "`scale`: doubles and halves a number, and repeats the runs at the edge until the result is certain",
    abilities: &[],
};

/// The numbers that can be tried with one dataset.
pub trait NumberRange: Clone {
    /// The largest number.
    fn max(&self) -> u64;
    /// The row that runs one number.
    fn row(&self, number: u64) -> Option<Row>;
    /// Upper limit of the utilisation at a number by the client's own work, in percent. `None` if the target is possible, so that a run is needed.
    fn client_limit(&self, number: u64) -> Option<f64>;
    /// A number in words: `4 accelerators`.
    fn words(&self, number: u64) -> String;
    /// The number that a row runs.
    fn number(&self, row: &Row) -> Option<u64>;
    /// Extends the range with a larger dataset: that of the row `known`, if given. Returns false if that is not possible.
    fn grow(&mut self, known: Option<&Row>) -> bool;
    /// Notes for the user about this range.
    fn notes(&self) -> &[String];
}

/// Limits of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleLimits {
    /// Maximum number of runs.
    pub runs_max: u64,
    /// Time of all runs, in seconds, without generating datasets.
    pub budget_s: f64,
}

/// The reason why a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ScaleEnd {
    /// All numbers are decided.
    Decided,
    /// The number of runs is used up.
    OutOfRuns,
    /// Another run would probably end after the budget.
    OutOfTime,
    /// The result of a run does not measure the storage.
    Worthless {
        /// Number of the run in the search, from 1.
        run: usize,
        /// The number that it ran.
        number: u64,
        /// The reason.
        reason: String,
    },
    /// A run has no value of the response.
    NoValue {
        /// The number that it ran.
        number: u64,
    },
    /// A run failed.
    Failed {
        /// Number of the run in the search, from 1.
        run: usize,
        /// The number that it ran.
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
    /// Upper limits of the utilisation by the client's own work, in percent, at numbers that miss the target because of it.
    client_limits: BTreeMap<u64, f64>,
    events: Vec<ChooserEvent>,
}

/// The finished runs of a search.
#[derive(Clone, Debug)]
pub struct ScaleRuns {
    /// The search with all values that count.
    pub search: Search,
    /// Finished runs that count, by number.
    pub by_number: BTreeMap<u64, Vec<Measured>>,
    /// Duration of each run by number, in seconds, including runs that no longer count.
    times_s: BTreeMap<u64, Vec<f64>>,
    /// The first run that ends the search.
    obstacle: Option<ScaleEnd>,
    /// The first row of a later stage, which was chosen before a restart.
    later: Option<Row>,
    /// Whether a row of a later stage is finished.
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

    /// Expected duration of a run at `number`, in seconds: the longest run there or at the next smaller number, scaled in proportion.
    fn expected_s(&self, number: u64) -> f64 {
        self.times_s.range(..=number).next_back().map_or(0.0, |(measured_at, times_s)| {
            let longest_s = times_s.iter().copied().fold(0.0, f64::max);
            longest_s * number as f64 / *measured_at as f64
        })
    }
}

/// A finished run of a search.
struct FinishedRun<'h> {
    /// Number of the run in the search, from 1.
    run: usize,
    /// The number that it ran.
    number: u64,
    /// Index of its stage.
    stage: usize,
    measured: &'h Measured,
}

impl<R: NumberRange> ScaleSearch<R> {
    /// Creates a search in `range` and its extensions. `goal.least` is in the unit of `response`; if lower values are better, it is an upper limit.
    pub fn new(goal: Goal, response: &'static Metric, limits: ScaleLimits, range: R) -> Self {
        let goal = Goal { least: score(response, goal.least), max: range.max(), ..goal };
        ScaleSearch {
            goal,
            response,
            limits,
            stages: vec![range],
            client_limits: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// The range with the current dataset.
    pub fn range(&self) -> &R {
        &self.stages[self.stages.len() - 1]
    }

    /// Upper limits of the utilisation by the client's own work, in percent, at numbers that miss the target because of it.
    pub fn client_limits(&self) -> &BTreeMap<u64, f64> {
        &self.client_limits
    }

    /// Groups the finished runs by number.
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
                RunState::Done(measured) => {
                    let finished = FinishedRun { run, number, stage, measured };
                    self.count(&mut runs, &finished);
                }
                RunState::Pending | RunState::LeftOut => {}
            }
        }
        for (&number, &percent) in &self.client_limits {
            // The limit does not vary, and a search needs two values to decide.
            (0..2).for_each(|_| runs.search.add(number, percent));
        }
        runs
    }

    /// Adds a finished run to `runs`.
    fn count(&self, runs: &mut ScaleRuns, finished: &FinishedRun<'_>) {
        let FinishedRun { run, number, stage, measured } = *finished;
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

    /// The stage and the number of a row; `None` if it belongs to a later stage.
    fn place(&self, row: &Row) -> Option<(usize, u64)> {
        let number = self.range().number(row)?;
        let key = row.experiment_key();
        let makes_row = |range: &R| {
            range.row(number).is_some_and(|candidate| candidate.experiment_key() == key)
        };
        Some((self.stages.iter().rposition(makes_row)?, number))
    }

    /// Extends the range if its largest number holds and a run remains. Runs with a larger dataset from before a restart are used in any case. Returns
    /// whether the range was extended.
    fn grow_range(&mut self, runs: &ScaleRuns) -> bool {
        // After growing, the largest number runs again with the larger dataset. Without time for that run, the range stays.
        let has_run = runs.count() < self.limits.runs_max
            && runs.expected_s(self.range().max()) <= self.limits.budget_s - runs.seconds();
        if !runs.search.is_beyond_range() || !(has_run || runs.has_later_run) {
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
            // The range has recorded why it is not larger.
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

    /// The reason why the search ended. Call it after [`Chooser::next`] returned `None`.
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
            if self.grow_range(&runs) {
                continue;
            }
            let number = self.number_to_run(&runs)?;
            if let Some(percent) = self.range().client_limit(number) {
                self.client_limits.insert(number, percent);
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

/// The value, negated if lower values are better, so that larger scores are better.
pub fn score(response: &Metric, value: f64) -> f64 {
    match response.better {
        Better::Higher => value,
        Better::Lower => -value,
    }
}
