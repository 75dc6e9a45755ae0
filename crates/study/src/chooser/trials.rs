//! `advise --try`: a workload as it is and changes of it, run in turns until the effect of each is decided, then the best two together.

use super::{Chooser, History, Measured, PastRun};
use feedrate_analysis::trial::{self, MARGIN_POINTS, Outcome};
use feedrate_measure::metric::{AU_ALL_STEPS, DEVICE_BYTES, DURATION_S, LOGICAL_BYTES, Metric};
use feedrate_measure::stats;
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;
use std::fmt;
use std::ops::RangeInclusive;

pub(super) static MEMBER: Member = Member {
    name: "trials",
    summary: "`advise --try`: changes against the workload as it is, then the best two together",
    abilities: &[],
};

/// Place of the workload as it is.
pub const BASELINE: usize = 0;
/// Runs of each change before the best two are tried together. Fewer decide nothing.
const RUNS_EACH_FIRST: usize = 3;
/// Most runs of a change. A difference that these do not decide is too small to matter, or lost in noise.
const MAX_RUNS_EACH: usize = 16;
const RUNS_EACH: RangeInclusive<usize> = RUNS_EACH_FIRST..=MAX_RUNS_EACH;
/// Change that memory served, by the share of bytes from a device.
const DEVICE_SHARE_LEAST: f64 = 0.5;
/// Reason why a change that memory served is not judged.
const WARMED: &str = "memory served it, and not the run without it: try `--cold`";

/// The metric that changes are judged by.
#[derive(Clone, Copy)]
pub struct TrialResponse {
    /// The metric; more of it is better.
    pub metric: &'static Metric,
    /// Largest difference that does not matter, for a mean without the change.
    pub margin: fn(f64) -> f64,
}

/// A change that may be tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Its row; `None` where it cannot be run.
    pub row: Option<Row>,
    /// Overrides of the workload.
    pub change: Vec<String>,
    /// Reason why it cannot be run.
    pub hindrance: Option<String>,
    /// It is meant to be served from memory or from a copy.
    pub is_copied: bool,
}

impl Candidate {
    /// Whether it changes nothing but checkpoints.
    pub fn is_of_checkpoints(&self) -> bool {
        !self.change.is_empty() && self.change.iter().all(|text| text.starts_with("checkpoint."))
    }
}

/// A candidate with its finished runs.
#[derive(Clone, Debug)]
pub struct Trial<'h> {
    /// Finished runs, in order.
    pub runs: Vec<&'h Measured>,
    /// Reason why there are no more.
    pub hindrance: Option<String>,
}

impl Trial<'_> {
    /// Values of a metric, run by run.
    pub fn values(&self, metric: &Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.observation.value(metric)).collect()
    }

    /// Seconds that training waited for checkpoints, run by run.
    pub fn checkpoint_waits(&self) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.observation.checkpoint_wait_s).collect()
    }

    /// The longest run, in seconds; `None` without runs.
    fn longest_s(&self) -> Option<f64> {
        self.runs.iter().map(|run| run.seconds).reduce(f64::max)
    }

    /// Share of the bytes that came from a device; `None` where that is unknown.
    fn device_share(&self) -> Option<f64> {
        let [device, read] =
            [&DEVICE_BYTES, &LOGICAL_BYTES].map(|metric| stats::mean(&self.values(metric)));
        device.zip(read).map(|(device, read)| device / read)
    }
}

/// Makes a candidate of two changes together.
type Combine<'a> = Box<dyn Fn(&[String]) -> Candidate + 'a>;

/// Trials of a workload.
pub struct Trials<'a> {
    response: TrialResponse,
    budget_s: f64,
    /// Expected duration of the first run, in seconds.
    first_run_s: f64,
    /// The workload as it is, then the changes, the cheapest first, then the best two together.
    candidates: Vec<Candidate>,
    combine: Combine<'a>,
    /// Places of the two changes that the last candidate has.
    combined: Option<[usize; 2]>,
}

impl fmt::Debug for Trials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trials").field("candidates", &self.candidates).finish_non_exhaustive()
    }
}

impl<'a> Trials<'a> {
    /// Trials of `changes` against `baseline`, within `budget_s` seconds of runs. `combine` makes a candidate of the overrides of two changes.
    pub fn new(
        baseline: Row,
        changes: Vec<Candidate>,
        response: TrialResponse,
        budget_s: f64,
        combine: impl Fn(&[String]) -> Candidate + 'a,
    ) -> Self {
        let unchanged = Candidate { row: Some(baseline), ..Candidate::default() };
        let candidates = [vec![unchanged], changes].concat();
        let combine = Box::new(combine);
        Trials { response, budget_s, first_run_s: 0.0, candidates, combine, combined: None }
    }

    /// Expect a first run of this duration, in seconds.
    pub fn expect(&mut self, run_s: f64) {
        self.first_run_s = run_s;
    }

    /// All candidates by place, the workload as it is first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Place of the best two together.
    pub fn combination(&self) -> Option<usize> {
        self.combined.map(|_| self.candidates.len() - 1)
    }

    /// A candidate with its finished runs.
    pub fn trial<'h>(&self, history: &'h History, place: usize) -> Trial<'h> {
        let mut trial = self.finished(history, place);
        if trial.hindrance.is_none() && self.is_warmed(history, &trial, place) {
            trial.hindrance = Some(WARMED.into());
        }
        trial
    }

    fn finished<'h>(&self, history: &'h History, place: usize) -> Trial<'h> {
        let Candidate { row, hindrance, .. } = &self.candidates[place];
        let Some(key) = row.as_ref().map(Row::experiment_key) else {
            return Trial { runs: Vec::new(), hindrance: hindrance.clone() };
        };
        let failure = history.failure(&key).map(str::to_string);
        Trial { runs: history.measured(&key).collect(), hindrance: hindrance.clone().or(failure) }
    }

    /// Whether memory served a change and a device the workload without it.
    fn is_warmed(&self, history: &History, trial: &Trial<'_>, place: usize) -> bool {
        if place == BASELINE || self.candidates[place].is_copied {
            return false;
        }
        let without = self.finished(history, BASELINE).device_share();
        let both = without.zip(trial.device_share());
        both.is_some_and(|(without, with)| {
            with < DEVICE_SHARE_LEAST && DEVICE_SHARE_LEAST <= without
        })
    }

    /// Mean of the response over the runs of a candidate.
    pub fn mean(&self, history: &History, place: usize) -> Option<f64> {
        stats::mean(&self.trial(history, place).values(self.response.metric))
    }

    /// Conclusion about a candidate against another.
    pub fn outcome(&self, history: &History, against: usize, place: usize) -> Outcome {
        let trials = [against, place].map(|place| self.trial(history, place));
        self.outcome_of_first(&trials, place, usize::MAX)
    }

    /// The conclusion from the first `most` runs of both. Utilisation leaves checkpoints out, so a change of these alone is judged by the waits for
    /// them, unless it costs utilisation.
    fn outcome_of_first(&self, trials: &[Trial<'_>; 2], place: usize, most: usize) -> Outcome {
        let TrialResponse { metric, margin } = self.response;
        let first = |mut values: Vec<f64>| {
            values.truncate(most);
            values
        };
        let [without, with] = trials.each_ref().map(|trial| first(trial.values(metric)));
        let margin = stats::mean(&without).map_or(0.0, margin);
        let outcome = trial::outcome(&without, &with, margin);
        let lost =
            stats::mean(&without).zip(stats::mean(&with)).map(|(without, with)| without - with);
        let is_hurt = outcome == Outcome::Hurts && lost.is_some_and(|lost| margin < lost);
        if !self.candidates[place].is_of_checkpoints() || is_hurt {
            return outcome;
        }
        let [without, with] = trials.each_ref().map(|trial| {
            first(trial.checkpoint_waits()).into_iter().map(|wait_s| -wait_s).collect::<Vec<_>>()
        });
        let run_s = stats::mean(&first(trials[0].values(&DURATION_S))).unwrap_or_default();
        trial::outcome(&without, &with, MARGIN_POINTS / 100.0 * run_s)
    }

    /// Places of changes that help for certain, the best first.
    pub fn helping(&self, history: &History) -> Vec<usize> {
        self.helping_by_first(history, usize::MAX)
    }

    fn helping_by_first(&self, history: &History, most: usize) -> Vec<usize> {
        let mut helping = Vec::new();
        for place in 1..self.candidates.len() {
            let trials = [BASELINE, place].map(|place| self.trial(history, place));
            let mut values = trials[1].values(self.response.metric);
            values.truncate(most);
            if trials[1].hindrance.is_none()
                && self.outcome_of_first(&trials, place, most) == Outcome::Helps
                && let Some(mean) = stats::mean(&values)
            {
                helping.push((mean, place));
            }
        }
        helping.sort_by(|first, second| second.0.total_cmp(&first.0));
        helping.into_iter().map(|(_, place)| place).collect()
    }

    /// The place of the change to use: the cheapest within the margin of the best; both together only where they are better for certain.
    pub fn best(&self, history: &History) -> Option<usize> {
        let (both, single): (Vec<usize>, Vec<usize>) =
            self.helping(history).into_iter().partition(|place| Some(*place) == self.combination());
        let mean = |place: usize| self.mean(history, place).unwrap_or(f64::NEG_INFINITY);
        let most = mean(*single.first()?);
        let least = most - (self.response.margin)(most);
        let cheapest = single.into_iter().filter(|place| least <= mean(*place)).min()?;
        let is_better = |both: &usize| self.outcome(history, cheapest, *both) == Outcome::Helps;
        Some(both.into_iter().find(is_better).unwrap_or(cheapest))
    }

    /// The two best changes that set different keys, by the first runs of each. Checkpoints do not show in utilisation, by which both together are judged.
    fn best_two(&self, history: &History) -> Option<[usize; 2]> {
        let mut helping = self.helping_by_first(history, RUNS_EACH_FIRST);
        helping.retain(|&place| !self.candidates[place].is_of_checkpoints());
        let keys = |place: usize| -> Vec<&str> {
            let change = self.candidates[place].change.iter();
            change.filter_map(|text| text.split('=').next()).collect()
        };
        helping.iter().enumerate().find_map(|(rank, &first)| {
            let is_apart =
                |second: &&usize| keys(first).iter().all(|key| !keys(**second).contains(key));
            helping[rank + 1..].iter().find(is_apart).map(|&second| [first, second])
        })
    }

    /// The place to run next so that each of `places` is decided against another, with the number of runs in `runs_each`; `None` where all are.
    fn turn(
        &self,
        history: &History,
        against: usize,
        places: &[usize],
        runs_each: RangeInclusive<usize>,
    ) -> Option<usize> {
        let base = self.trial(history, against);
        let is_open = |place: &usize| {
            let trial = self.trial(history, *place);
            let count = trial.runs.len().min(base.runs.len());
            let is_undecided = || {
                let outcome = self.outcome(history, against, *place);
                [Outcome::NotTried, Outcome::NotDecided].contains(&outcome)
            };
            trial.hindrance.is_none()
                && count < *runs_each.end()
                && (count < *runs_each.start() || is_undecided())
        };
        let open: Vec<usize> = places.iter().copied().filter(is_open).collect();
        if open.is_empty() || base.hindrance.is_some() {
            return None;
        }
        // Of equally many runs, what the others are compared with comes first.
        let turns = [against].into_iter().chain(open);
        turns.min_by_key(|&place| self.trial(history, place).runs.len())
    }

    /// The next place to run, regardless of the budget.
    fn wanted(&mut self, history: &History) -> Option<usize> {
        let base = self.trial(history, BASELINE);
        if base.hindrance.is_some() {
            return None;
        }
        if base.runs.is_empty() {
            return Some(BASELINE);
        }
        let singles: Vec<usize> =
            (1..self.combination().unwrap_or(self.candidates.len())).collect();
        let first = RUNS_EACH_FIRST..=RUNS_EACH_FIRST;
        if let Some(place) = self.turn(history, BASELINE, &singles, first) {
            return Some(place);
        }
        if self.combined.is_none()
            && let Some(both) = self.best_two(history)
        {
            let change = both.map(|place| self.candidates[place].change.clone()).concat();
            self.candidates.push((self.combine)(&change));
            self.combined = Some(both);
        }
        let together = self
            .combined
            .zip(self.combination())
            .and_then(|([best, _], both)| self.turn(history, best, &[both], RUNS_EACH));
        together.or_else(|| self.turn(history, BASELINE, &singles, RUNS_EACH))
    }

    /// Number of finished runs.
    pub fn count(&self, history: &History) -> usize {
        self.all_runs(history).count()
    }

    /// Time of all finished runs, in seconds.
    pub fn seconds(&self, history: &History) -> f64 {
        self.all_runs(history).map(|run| run.seconds).sum()
    }

    fn all_runs<'h>(&self, history: &'h History) -> impl Iterator<Item = &'h Measured> {
        let trials = (0..self.candidates.len()).map(|place| self.trial(history, place));
        trials.flat_map(|trial| trial.runs).collect::<Vec<_>>().into_iter()
    }

    /// Expected duration of the next run of a candidate, in seconds.
    pub fn expected_s(&self, history: &History, place: usize) -> f64 {
        let known = [place, BASELINE].map(|place| self.trial(history, place).longest_s());
        known.into_iter().flatten().next().unwrap_or(self.first_run_s)
    }

    /// Whether the budget ended the trials, once [`Chooser::next`] found no row.
    pub fn is_out_of_time(&mut self, history: &History) -> bool {
        self.wanted(history).is_some()
    }
}

impl Chooser for Trials<'_> {
    fn next(&mut self, history: &History) -> Option<Row> {
        let place = self.wanted(history)?;
        if self.budget_s < self.seconds(history) + self.expected_s(history, place) {
            return None;
        }
        let row = self.candidates[place].row.clone()?;
        let replicate = history.measured(&row.experiment_key()).count() + 1;
        Some(Row { replicate: u32::try_from(replicate).ok(), ..row })
    }

    /// A change may be meant to be served from memory: only runs of the workload as it is are repeated.
    fn is_worthless(&self, past: &PastRun) -> bool {
        let baseline = self.candidates[BASELINE].row.as_ref().map(Row::experiment_key);
        past.is_worthless() && baseline == Some(past.row.experiment_key())
    }

    fn label(&self, row: &Row, number: usize) -> Option<String> {
        let key = row.experiment_key();
        let mut candidates = self.candidates.iter();
        let candidate = candidates.find(|candidate| {
            candidate.row.as_ref().is_some_and(|row| row.experiment_key() == key)
        })?;
        let change = match candidate.change.join(" ") {
            change if change.is_empty() => "as it is".into(),
            change => change,
        };
        Some(format!("run {number}: {change}"))
    }

    fn response(&self) -> &'static Metric {
        self.response.metric
    }
}

/// Utilisation over all steps.
pub const UTILISATION: TrialResponse =
    TrialResponse { metric: &AU_ALL_STEPS, margin: |_| MARGIN_POINTS };
