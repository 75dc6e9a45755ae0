//! The chooser of `advise --try`: runs a workload and changes of it in turns until the effect of each is decided, and then the best two together.

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
    summary: "`advise --try`: the unchanged workload and each change in turn, then the best two together",
    abilities: &[],
};

/// Place of the unchanged workload among the candidates.
pub const BASELINE: usize = 0;
/// Runs of each change before the best two are tried together. Fewer runs decide nothing.
const RUNS_EACH_FIRST: usize = 3;
/// Maximum number of runs of a change. A difference that these do not decide is too small to matter, or hidden by noise.
const MAX_RUNS_EACH: usize = 16;
const RUNS_EACH: RangeInclusive<usize> = RUNS_EACH_FIRST..=MAX_RUNS_EACH;
/// Share of bytes from a device below which memory served a run.
const DEVICE_SHARE_LEAST: f64 = 0.5;
/// Reason why a change that memory served is not judged.
const WARMED: &str = "memory served it, but not the unchanged workload: try `--cold`";

/// The metric that changes are judged by.
#[derive(Clone, Copy)]
pub struct TrialResponse {
    /// The metric; more of it is better.
    pub metric: &'static Metric,
    /// The equivalence margin for a given mean of the unchanged workload.
    pub margin: fn(f64) -> f64,
}

/// A change that may be tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Its row; `None` if it cannot be run.
    pub row: Option<Row>,
    /// Overrides of the workload.
    pub change: Vec<String>,
    /// Reason why it cannot be run.
    pub hindrance: Option<String>,
    /// Whether the change intends to serve the data from memory or from a copy.
    pub is_copied: bool,
}

impl Candidate {
    /// Whether only settings of checkpoints change.
    pub fn changes_only_checkpoints(&self) -> bool {
        !self.change.is_empty() && self.change.iter().all(|text| text.starts_with("checkpoint."))
    }
}

/// A candidate with its finished runs.
#[derive(Clone, Debug)]
pub struct Trial<'h> {
    /// Finished runs, in order.
    pub runs: Vec<&'h Measured>,
    /// Reason why there are no further runs.
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

    /// Share of the bytes that came from a device; `None` if unknown.
    fn device_share(&self) -> Option<f64> {
        let device_bytes = stats::mean(&self.values(&DEVICE_BYTES))?;
        let read_bytes = stats::mean(&self.values(&LOGICAL_BYTES))?;
        Some(device_bytes / read_bytes)
    }
}

/// Creates a candidate from the overrides of two changes.
type Combine<'a> = Box<dyn Fn(&[String]) -> Candidate + 'a>;

/// Trials of a workload.
pub struct Trials<'a> {
    response: TrialResponse,
    budget_s: f64,
    /// Expected duration of the first run, in seconds.
    first_run_s: f64,
    /// The unchanged workload, the changes, the cheapest first, and the best two together.
    candidates: Vec<Candidate>,
    combine: Combine<'a>,
    /// Places of the two changes that the last candidate combines; `None` before it exists.
    combined: Option<[usize; 2]>,
}

impl fmt::Debug for Trials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trials").field("candidates", &self.candidates).finish_non_exhaustive()
    }
}

impl<'a> Trials<'a> {
    /// Creates trials of `changes` against `baseline`, with `budget_s` seconds for all runs. `combine` creates a candidate from the overrides of two changes.
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

    /// Sets the expected duration of the first run, in seconds.
    pub fn set_expected_run_s(&mut self, run_s: f64) {
        self.first_run_s = run_s;
    }

    /// All candidates by place, the unchanged workload first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Place of the combination of the best two changes; `None` before it exists.
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

    /// A candidate with its finished runs, before the check of what served them.
    fn finished<'h>(&self, history: &'h History, place: usize) -> Trial<'h> {
        let Candidate { row, hindrance, .. } = &self.candidates[place];
        let Some(key) = row.as_ref().map(Row::experiment_key) else {
            return Trial { runs: Vec::new(), hindrance: hindrance.clone() };
        };
        let failure = history.failure(&key).map(str::to_string);
        Trial { runs: history.measured(&key).collect(), hindrance: hindrance.clone().or(failure) }
    }

    /// Whether memory served a change, but a device served the unchanged workload.
    fn is_warmed(&self, history: &History, trial: &Trial<'_>, place: usize) -> bool {
        if place == BASELINE || self.candidates[place].is_copied {
            return false;
        }
        let without = self.finished(history, BASELINE).device_share();
        let shares = without.zip(trial.device_share());
        shares.is_some_and(|(without, with)| {
            with < DEVICE_SHARE_LEAST && DEVICE_SHARE_LEAST <= without
        })
    }

    /// Mean of the response over the runs of a candidate.
    pub fn mean(&self, history: &History, place: usize) -> Option<f64> {
        stats::mean(&self.trial(history, place).values(self.response.metric))
    }

    /// Compares the candidate at `place` with the one at `against`.
    pub fn outcome(&self, history: &History, against: usize, place: usize) -> Outcome {
        let trials = [against, place].map(|place| self.trial(history, place));
        self.outcome_of_first(&trials, place, usize::MAX)
    }

    /// Compares the first `runs_max` runs of two trials. Utilisation does not include checkpoints, so a change that affects only checkpoints is judged by the
    /// waits for them, unless it reduces utilisation.
    fn outcome_of_first(&self, trials: &[Trial<'_>; 2], place: usize, runs_max: usize) -> Outcome {
        let TrialResponse { metric, margin } = self.response;
        let first = |mut values: Vec<f64>| {
            values.truncate(runs_max);
            values
        };
        let [without, with] = trials.each_ref().map(|trial| first(trial.values(metric)));
        let margin = stats::mean(&without).map_or(0.0, margin);
        let outcome = trial::outcome(&without, &with, margin);
        let lost =
            stats::mean(&without).zip(stats::mean(&with)).map(|(without, with)| without - with);
        let is_worse = outcome == Outcome::Hurts && lost.is_some_and(|lost| margin < lost);
        if !self.candidates[place].changes_only_checkpoints() || is_worse {
            return outcome;
        }
        let [saved_without, saved_with] = trials.each_ref().map(|trial| {
            first(trial.checkpoint_waits()).into_iter().map(|wait_s| -wait_s).collect::<Vec<_>>()
        });
        let run_s = stats::mean(&first(trials[0].values(&DURATION_S))).unwrap_or_default();
        trial::outcome(&saved_without, &saved_with, MARGIN_POINTS / 100.0 * run_s)
    }

    /// Places of the changes that certainly help, the best first.
    pub fn helping(&self, history: &History) -> Vec<usize> {
        self.helping_by_first(history, usize::MAX)
    }

    /// Places of the changes that help according to the first `runs_max` runs, the best first.
    fn helping_by_first(&self, history: &History, runs_max: usize) -> Vec<usize> {
        let mut helping = Vec::new();
        for place in 1..self.candidates.len() {
            let trials = [BASELINE, place].map(|place| self.trial(history, place));
            let mut values = trials[1].values(self.response.metric);
            values.truncate(runs_max);
            if trials[1].hindrance.is_none()
                && self.outcome_of_first(&trials, place, runs_max) == Outcome::Helps
                && let Some(mean) = stats::mean(&values)
            {
                helping.push((mean, place));
            }
        }
        helping.sort_by(|first, second| second.0.total_cmp(&first.0));
        helping.into_iter().map(|(_, place)| place).collect()
    }

    /// The place of the change to use: the cheapest one within the margin of the best. The combination is used only if it is certainly better.
    pub fn best(&self, history: &History) -> Option<usize> {
        let (combined, single): (Vec<usize>, Vec<usize>) =
            self.helping(history).into_iter().partition(|place| Some(*place) == self.combination());
        let mean = |place: usize| self.mean(history, place).unwrap_or(f64::NEG_INFINITY);
        let best = mean(*single.first()?);
        let threshold = best - (self.response.margin)(best);
        let cheapest = single.into_iter().filter(|place| threshold <= mean(*place)).min()?;
        let is_better = |place: &usize| self.outcome(history, cheapest, *place) == Outcome::Helps;
        Some(combined.into_iter().find(is_better).unwrap_or(cheapest))
    }

    /// The two best changes that set different keys, by the first runs of each. Changes of checkpoints are left out, as the combination is judged by
    /// utilisation, which does not include checkpoints.
    fn best_two(&self, history: &History) -> Option<[usize; 2]> {
        let mut helping = self.helping_by_first(history, RUNS_EACH_FIRST);
        helping.retain(|&place| !self.candidates[place].changes_only_checkpoints());
        let keys = |place: usize| -> Vec<&str> {
            let change = self.candidates[place].change.iter();
            change.filter_map(|text| text.split('=').next()).collect()
        };
        helping.iter().enumerate().find_map(|(rank, &first)| {
            let is_independent =
                |second: &&usize| keys(first).iter().all(|key| !keys(**second).contains(key));
            helping[rank + 1..].iter().find(is_independent).map(|&second| [first, second])
        })
    }

    /// The place to run next to decide each of `places` against the candidate at `against`, with a number of runs in `runs_each`. `None` if all are
    /// decided.
    fn next_turn(
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
        // With equal numbers of runs, the candidate to compare with comes first.
        let turns = [against].into_iter().chain(open);
        turns.min_by_key(|&place| self.trial(history, place).runs.len())
    }

    /// The next place to run, regardless of the budget.
    fn next_place(&mut self, history: &History) -> Option<usize> {
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
        if let Some(place) = self.next_turn(history, BASELINE, &singles, first) {
            return Some(place);
        }
        if self.combined.is_none()
            && let Some(best_two) = self.best_two(history)
        {
            let change = best_two.map(|place| self.candidates[place].change.clone()).concat();
            self.candidates.push((self.combine)(&change));
            self.combined = Some(best_two);
        }
        let together =
            self.combined.zip(self.combination()).and_then(|([best, _], combination)| {
                self.next_turn(history, best, &[combination], RUNS_EACH)
            });
        together.or_else(|| self.next_turn(history, BASELINE, &singles, RUNS_EACH))
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
        let longest_s = [place, BASELINE].map(|place| self.trial(history, place).longest_s());
        longest_s.into_iter().flatten().next().unwrap_or(self.first_run_s)
    }

    /// Whether the budget ended the trials. Call it after [`Chooser::next`] returned `None`.
    pub fn is_out_of_time(&mut self, history: &History) -> bool {
        self.next_place(history).is_some()
    }
}

impl Chooser for Trials<'_> {
    fn next(&mut self, history: &History) -> Option<Row> {
        let place = self.next_place(history)?;
        if self.budget_s < self.seconds(history) + self.expected_s(history, place) {
            return None;
        }
        let row = self.candidates[place].row.clone()?;
        let replicate = history.measured(&row.experiment_key()).count() + 1;
        Some(Row { replicate: u32::try_from(replicate).ok(), ..row })
    }

    /// Repeats only runs of the unchanged workload, as a change may intend to serve data from memory.
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
