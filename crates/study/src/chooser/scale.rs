//! The chooser of `scale`, which searches for the largest or smallest number at which a response holds.
//!
//! Larger numbers need larger datasets. Each stage of the search has its own range and dataset; a row belongs to the stage with the same settings.

use super::{Chooser, ChooserEvent, FinishedRun, History, RunState};
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
    /// Upper limit of the utilisation that the client's own work permits, in percent. `None` if the limit is above the target; a run must then decide.
    fn client_limit(&self, number: u64) -> Option<f64>;
    /// Describes a number: `4 accelerators`.
    fn describe(&self, number: u64) -> String;
    /// The number that a row tests.
    fn number(&self, row: &Row) -> Option<u64>;
    /// Extends the range with a larger dataset, or with the dataset of `earlier_row`, if given. Returns false if no larger dataset is possible.
    fn grow(&mut self, earlier_row: Option<&Row>) -> bool;
    /// Notes for the user about this range.
    fn notes(&self) -> &[String];
}

/// Limits of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleLimits {
    /// Maximum number of runs.
    pub runs_max: u64,
    /// Maximum time of all runs, in seconds, without generating datasets.
    pub budget_s: f64,
}

/// The reason why a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ScaleEnd {
    /// All numbers are decided.
    Decided,
    /// The maximum number of runs is reached.
    OutOfRuns,
    /// Another run would probably exceed the time budget.
    OutOfTime,
    /// The result of a run does not measure the storage.
    InvalidRun {
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
    /// Upper limits of the utilisation at numbers that miss the target because of the client's own work, in percent.
    client_limits: BTreeMap<u64, f64>,
    events: Vec<ChooserEvent>,
}

/// The finished runs of a search.
#[derive(Clone, Debug)]
pub struct ScaleRuns {
    /// The search with all values that count.
    pub search: Search,
    /// Finished runs that count, by number.
    pub by_number: BTreeMap<u64, Vec<FinishedRun>>,
    /// Duration of each run by number, in seconds, including runs that no longer count.
    times_s: BTreeMap<u64, Vec<f64>>,
    /// The first reason to end the search early.
    early_end: Option<ScaleEnd>,
    /// The first row of a later stage; it was chosen before a restart.
    later_row: Option<Row>,
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

    /// Expected duration of a run at `number`, in seconds: the longest run at this or the next smaller number, scaled in proportion.
    fn expected_s(&self, number: u64) -> f64 {
        self.times_s.range(..=number).next_back().map_or(0.0, |(measured_at, times_s)| {
            let longest_s = times_s.iter().copied().fold(0.0, f64::max);
            longest_s * number as f64 / *measured_at as f64
        })
    }
}

/// A finished run of a search.
struct SearchRun<'h> {
    /// Number of the run in the search, from 1.
    run: usize,
    /// The number that it ran.
    number: u64,
    /// Index of its stage.
    stage: usize,
    measured: &'h FinishedRun,
}

impl<R: NumberRange> ScaleSearch<R> {
    /// Creates a search in `range` and its extensions. `goal.threshold` is in the unit of `response`; if lower values are better, it is an upper limit.
    pub fn new(goal: Goal, response: &'static Metric, limits: ScaleLimits, range: R) -> Self {
        let goal = Goal { threshold: score(response, goal.threshold), max: range.max(), ..goal };
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

    /// Upper limits of the utilisation at numbers that miss the target because of the client's own work, in percent.
    pub fn client_limits(&self) -> &BTreeMap<u64, f64> {
        &self.client_limits
    }

    /// Groups the finished runs by number.
    pub fn runs(&self, history: &History) -> ScaleRuns {
        let mut runs = ScaleRuns {
            search: Search::new(Goal { max: self.range().max(), ..self.goal }),
            by_number: BTreeMap::new(),
            times_s: BTreeMap::new(),
            early_end: None,
            later_row: None,
            has_later_run: false,
        };
        for (index, past) in history.runs.iter().enumerate() {
            let Some((stage, number)) = self.locate(&past.row) else {
                runs.later_row.get_or_insert_with(|| past.row.clone());
                runs.has_later_run |= matches!(past.state, RunState::Done(_));
                continue;
            };
            let run = index + 1;
            match &past.state {
                RunState::Failed(reason) => {
                    let failed = ScaleEnd::Failed { run, number, reason: reason.clone() };
                    runs.early_end.get_or_insert(failed);
                }
                RunState::Done(measured) => {
                    let finished = SearchRun { run, number, stage, measured };
                    self.add_run(&mut runs, &finished);
                }
                RunState::Pending | RunState::Skipped => {}
            }
        }
        for (&number, &percent) in &self.client_limits {
            // The limit does not vary, and a search needs two values to decide.
            (0..2).for_each(|_| runs.search.add(number, percent));
        }
        runs
    }

    /// Adds a finished run to `runs`.
    fn add_run(&self, runs: &mut ScaleRuns, finished: &SearchRun<'_>) {
        let SearchRun { run, number, stage, measured } = *finished;
        runs.times_s.entry(number).or_default().push(measured.seconds);
        // After an extension, the largest number of the old range is measured again with the larger dataset.
        if stage + 1 < self.stages.len() && number == self.stages[stage].max() {
            return;
        }
        let early_end =
            match (&measured.observation.invalid_reason, measured.observation.value(self.response))
            {
                (Some(reason), _) => {
                    Some(ScaleEnd::InvalidRun { run, number, reason: reason.clone() })
                }
                (None, None) => Some(ScaleEnd::NoValue { number }),
                (None, Some(value)) => {
                    runs.search.add(number, score(self.response, value));
                    None
                }
            };
        if let Some(early_end) = early_end {
            runs.early_end.get_or_insert(early_end);
        }
        runs.by_number.entry(number).or_default().push(measured.clone());
    }

    /// The stage and the number of a row; `None` if it belongs to a later stage.
    fn locate(&self, row: &Row) -> Option<(usize, u64)> {
        let number = self.range().number(row)?;
        let key = row.experiment_key();
        let makes_row = |range: &R| {
            range.row(number).is_some_and(|candidate| candidate.experiment_key() == key)
        };
        Some((self.stages.iter().rposition(makes_row)?, number))
    }

    /// Extends the range if its largest number holds, and the limits allow another run or a run with a larger dataset exists from before a restart.
    /// Returns whether the range was extended.
    fn grow_range(&mut self, runs: &ScaleRuns) -> bool {
        // After an extension, the largest number must run again with the larger dataset.
        let allows_run = runs.count() < self.limits.runs_max
            && runs.expected_s(self.range().max()) <= self.limits.budget_s - runs.seconds();
        if !runs.search.is_edge_beyond_range() || !(allows_run || runs.has_later_run) {
            return false;
        }
        let mut larger = self.range().clone();
        let notes_before = larger.notes().len();
        let has_grown = larger.grow(runs.later_row.as_ref());
        if has_grown {
            let notes = larger.notes().iter().skip(notes_before).cloned();
            self.events.extend(notes.map(ChooserEvent::Note));
            self.stages.push(larger);
        } else if let Some(last) = self.stages.last_mut() {
            // Its notes say why it could not grow.
            *last = larger;
        }
        has_grown
    }

    /// The number to run next, if the limits allow one.
    fn number_to_run(&self, runs: &ScaleRuns) -> Option<u64> {
        let runs_left = self.limits.runs_max.saturating_sub(runs.count());
        let time_left_s = self.limits.budget_s - runs.seconds();
        let runs_in_time = match runs.count() {
            0 => runs_left,
            count => (time_left_s / (runs.seconds() / count as f64)) as u64,
        };
        let number = runs.search.next(runs_left.min(runs_in_time.max(1)))?;
        (runs.expected_s(number) <= time_left_s).then_some(number)
    }

    /// The reason why the search ended. Call it after [`Chooser::next`] returned `None`.
    pub fn end(&self, history: &History) -> ScaleEnd {
        let runs = self.runs(history);
        match runs.early_end {
            Some(early_end) => early_end,
            None if runs.search.bounds().not_decided.is_none() => ScaleEnd::Decided,
            None if runs.count() < self.limits.runs_max => ScaleEnd::OutOfTime,
            None => ScaleEnd::OutOfRuns,
        }
    }
}

impl<R: NumberRange> Chooser for ScaleSearch<R> {
    fn next(&mut self, history: &History) -> Option<Row> {
        loop {
            let runs = self.runs(history);
            if runs.early_end.is_some() {
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
            let replicate = history.finished_runs(&row.experiment_key()).count() + 1;
            return Some(Row { replicate: u32::try_from(replicate).ok(), ..row });
        }
    }

    fn response(&self) -> Option<&'static Metric> {
        Some(self.response)
    }

    fn label(&self, row: &Row, number: usize) -> Option<String> {
        let searched = self.range().number(row)?;
        Some(format!("run {number}: {}", self.range().describe(searched)))
    }

    fn verdict(&self, value: f64) -> Option<String> {
        let reaches = self.goal.threshold <= score(self.response, value);
        let relation = match (reaches, self.response.better) {
            (true, _) => "reaches",
            (false, Better::Higher) => "below",
            (false, Better::Lower) => "above",
        };
        // The score is its own inverse.
        let bound = score(self.response, self.goal.threshold);
        let bound = self.response.unit.limit_text(bound);
        Some(format!("{relation} {bound}"))
    }

    fn take_events(&mut self) -> Vec<ChooserEvent> {
        std::mem::take(&mut self.events)
    }
}

/// The score of a value: larger scores are better. It is the value, negated if lower values are better.
pub fn score(response: &Metric, value: f64) -> f64 {
    match response.better {
        Better::Higher => value,
        Better::Lower => -value,
    }
}
