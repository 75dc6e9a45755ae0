//! The chooser of `advise --try`: runs a workload and its changes in turns until the effect of each change is decided, and then the best two together.

use super::{Chooser, FinishedRun, History, PastRun};
use feedrate_analysis::trial::{self, MARGIN_POINTS, Outcome};
use feedrate_measure::metric::{
    AU_ALL_STEPS, DEVICE_BYTES, DURATION_S, LOAD_S, LOGICAL_BYTES, Metric,
};
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

/// Index of the unchanged workload among the candidates.
pub const BASELINE: usize = 0;
/// Runs of each change before the best two are tried together. Fewer runs decide nothing.
const RUNS_EACH_FIRST: usize = 3;
/// Maximum number of runs of a change. An effect that these runs do not decide is too small to matter, or hidden by noise.
const MAX_RUNS_EACH: usize = 16;
const RUNS_EACH: RangeInclusive<usize> = RUNS_EACH_FIRST..=MAX_RUNS_EACH;
/// Share of bytes from a device below which a run counts as served from memory.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// Reason why a change is not judged if memory served it.
const SERVED_FROM_MEMORY: &str =
    "its data came from memory, unlike the unchanged workload's: try `--cold`";

/// The metric by which changes are judged.
#[derive(Clone, Copy)]
pub struct TrialResponse {
    /// The metric; larger values are better.
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
    pub skip_reason: Option<String>,
    /// Whether the change serves the data from memory or from a copy on purpose.
    pub uses_copy: bool,
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
    pub runs: Vec<&'h FinishedRun>,
    /// Reason why there are no further runs.
    pub skip_reason: Option<String>,
}

impl Trial<'_> {
    /// Values of a metric, run by run.
    pub fn values(&self, metric: &Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.observation.value(metric)).collect()
    }

    /// Seconds that training waited for checkpoints and for batches, run by run; none without checkpoints.
    pub fn waits_s(&self) -> Vec<f64> {
        let wait_s = |run: &&FinishedRun| {
            Some(run.observation.checkpoint_wait_s? + run.observation.value(&LOAD_S)?)
        };
        self.runs.iter().filter_map(wait_s).collect()
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
    /// The unchanged workload, then the changes from the cheapest on, then the combination of the best two.
    candidates: Vec<Candidate>,
    combine: Combine<'a>,
    /// Indices of the two changes that the last candidate combines; `None` before it exists.
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

    /// All candidates by index, the unchanged workload first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Index of the combination of the best two changes; `None` before it exists.
    pub fn combination(&self) -> Option<usize> {
        self.combined.map(|_| self.candidates.len() - 1)
    }

    /// A candidate with its finished runs.
    pub fn trial<'h>(&self, history: &'h History, index: usize) -> Trial<'h> {
        let mut trial = self.unchecked_trial(history, index);
        if trial.skip_reason.is_none() && self.is_served_from_memory(history, &trial, index) {
            trial.skip_reason = Some(SERVED_FROM_MEMORY.into());
        }
        trial
    }

    /// A candidate with its finished runs, without the check whether memory served them.
    fn unchecked_trial<'h>(&self, history: &'h History, index: usize) -> Trial<'h> {
        let Candidate { row, skip_reason, .. } = &self.candidates[index];
        let Some(key) = row.as_ref().map(Row::experiment_key) else {
            return Trial { runs: Vec::new(), skip_reason: skip_reason.clone() };
        };
        let failure = history.failure(&key).map(str::to_string);
        Trial {
            runs: history.finished_runs(&key).collect(),
            skip_reason: skip_reason.clone().or(failure),
        }
    }

    /// Whether memory served a change, but a device served the unchanged workload.
    fn is_served_from_memory(&self, history: &History, trial: &Trial<'_>, index: usize) -> bool {
        if index == BASELINE || self.candidates[index].uses_copy {
            return false;
        }
        let baseline_share = self.unchecked_trial(history, BASELINE).device_share();
        let shares = baseline_share.zip(trial.device_share());
        shares.is_some_and(|(unchanged, changed)| {
            changed < DEVICE_SHARE_MIN && DEVICE_SHARE_MIN <= unchanged
        })
    }

    /// Mean of the response over the runs of a candidate.
    pub fn mean(&self, history: &History, index: usize) -> Option<f64> {
        stats::mean(&self.trial(history, index).values(self.response.metric))
    }

    /// Compares the candidate `index` with the candidate `reference`.
    pub fn outcome(&self, history: &History, reference: usize, index: usize) -> Outcome {
        let trials = [reference, index].map(|index| self.trial(history, index));
        self.outcome_of_first_runs(&trials, index, usize::MAX)
    }

    /// Compares the first `runs_max` runs of two trials. Utilisation does not include checkpoints, during which batches are loaded. A change of only
    /// checkpoints is therefore judged by the time that training waits for checkpoints and batches.
    fn outcome_of_first_runs(
        &self,
        trials: &[Trial<'_>; 2],
        index: usize,
        runs_max: usize,
    ) -> Outcome {
        let first = |mut values: Vec<f64>| {
            values.truncate(runs_max);
            values
        };
        if self.candidates[index].changes_only_checkpoints() {
            let run_s = stats::mean(&first(trials[0].values(&DURATION_S))).unwrap_or_default();
            let saved = |trial: &Trial<'_>| -> Vec<f64> {
                first(trial.waits_s()).into_iter().map(|wait_s| -wait_s).collect()
            };
            let margin_s = MARGIN_POINTS / 100.0 * run_s;
            return trial::outcome(&saved(&trials[0]), &saved(&trials[1]), margin_s);
        }
        let TrialResponse { metric, margin } = self.response;
        let [without, with] = trials.each_ref().map(|trial| first(trial.values(metric)));
        let margin = stats::mean(&without).map_or(0.0, margin);
        trial::outcome(&without, &with, margin)
    }

    /// Indices of the changes that certainly help, the best first.
    pub fn helpful_changes(&self, history: &History) -> Vec<usize> {
        self.helpful_by_first_runs(history, usize::MAX)
    }

    /// Indices of the changes that help according to the first `runs_max` runs, the best first.
    fn helpful_by_first_runs(&self, history: &History, runs_max: usize) -> Vec<usize> {
        let mut helpful = Vec::new();
        for index in 1..self.candidates.len() {
            let trials = [BASELINE, index].map(|index| self.trial(history, index));
            let mut values = trials[1].values(self.response.metric);
            values.truncate(runs_max);
            if trials[1].skip_reason.is_none()
                && self.outcome_of_first_runs(&trials, index, runs_max) == Outcome::Helps
                && let Some(mean) = stats::mean(&values)
            {
                helpful.push((mean, index));
            }
        }
        helpful.sort_by(|first, second| second.0.total_cmp(&first.0));
        helpful.into_iter().map(|(_, index)| index).collect()
    }

    /// Index of the change to use: the cheapest change within the margin of the best, or the combination if it is certainly better.
    pub fn best(&self, history: &History) -> Option<usize> {
        let (combined, single): (Vec<usize>, Vec<usize>) = self
            .helpful_changes(history)
            .into_iter()
            .partition(|index| Some(*index) == self.combination());
        let mean = |index: usize| self.mean(history, index).unwrap_or(f64::NEG_INFINITY);
        let best = mean(*single.first()?);
        let threshold = best - (self.response.margin)(best);
        let cheapest = single.into_iter().filter(|index| threshold <= mean(*index)).min()?;
        let is_better = |index: &usize| self.outcome(history, cheapest, *index) == Outcome::Helps;
        Some(combined.into_iter().find(is_better).unwrap_or(cheapest))
    }

    /// The two best changes that set different keys, by the first runs of each. Changes of checkpoints are excluded: the combination is judged by
    /// utilisation, which does not include checkpoints.
    fn best_two(&self, history: &History) -> Option<[usize; 2]> {
        let mut helpful = self.helpful_by_first_runs(history, RUNS_EACH_FIRST);
        helpful.retain(|&index| !self.candidates[index].changes_only_checkpoints());
        let keys = |index: usize| -> Vec<&str> {
            let change = self.candidates[index].change.iter();
            change.filter_map(|text| text.split('=').next()).collect()
        };
        helpful.iter().enumerate().find_map(|(rank, &first)| {
            let is_independent =
                |second: &&usize| keys(first).iter().all(|key| !keys(**second).contains(key));
            helpful[rank + 1..].iter().find(is_independent).map(|&second| [first, second])
        })
    }

    /// The candidate to run next in order to compare each of `indices` with `reference`, with `runs_each` runs per candidate. `None` if all are decided.
    fn next_turn(
        &self,
        history: &History,
        reference: usize,
        indices: &[usize],
        runs_each: RangeInclusive<usize>,
    ) -> Option<usize> {
        let base = self.trial(history, reference);
        let is_open = |index: &usize| {
            let trial = self.trial(history, *index);
            let count = trial.runs.len().min(base.runs.len());
            let is_undecided = || {
                let outcome = self.outcome(history, reference, *index);
                [Outcome::NotTried, Outcome::NotDecided].contains(&outcome)
            };
            trial.skip_reason.is_none()
                && count < *runs_each.end()
                && (count < *runs_each.start() || is_undecided())
        };
        let open: Vec<usize> = indices.iter().copied().filter(is_open).collect();
        if open.is_empty() || base.skip_reason.is_some() {
            return None;
        }
        // With equal numbers of runs, the reference comes first.
        let turns = [reference].into_iter().chain(open);
        turns.min_by_key(|&index| self.trial(history, index).runs.len())
    }

    /// Index of the next candidate to run, regardless of the budget.
    fn next_candidate(&mut self, history: &History) -> Option<usize> {
        let base = self.trial(history, BASELINE);
        if base.skip_reason.is_some() {
            return None;
        }
        if base.runs.is_empty() {
            return Some(BASELINE);
        }
        let singles: Vec<usize> =
            (1..self.combination().unwrap_or(self.candidates.len())).collect();
        let first = RUNS_EACH_FIRST..=RUNS_EACH_FIRST;
        if let Some(index) = self.next_turn(history, BASELINE, &singles, first) {
            return Some(index);
        }
        if self.combined.is_none()
            && let Some(best_two) = self.best_two(history)
        {
            let change = best_two.map(|index| self.candidates[index].change.clone()).concat();
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

    fn all_runs<'h>(&self, history: &'h History) -> impl Iterator<Item = &'h FinishedRun> {
        let trials = (0..self.candidates.len()).map(|index| self.trial(history, index));
        trials.flat_map(|trial| trial.runs).collect::<Vec<_>>().into_iter()
    }

    /// Expected duration of the next run of a candidate, in seconds.
    pub fn expected_s(&self, history: &History, index: usize) -> f64 {
        let longest_s = [index, BASELINE].map(|index| self.trial(history, index).longest_s());
        longest_s.into_iter().flatten().next().unwrap_or(self.first_run_s)
    }

    /// Whether the budget ended the trials. Call it after [`Chooser::next`] returned `None`.
    pub fn is_out_of_time(&mut self, history: &History) -> bool {
        self.next_candidate(history).is_some()
    }
}

impl Chooser for Trials<'_> {
    fn next(&mut self, history: &History) -> Option<Row> {
        let index = self.next_candidate(history)?;
        if self.budget_s < self.seconds(history) + self.expected_s(history, index) {
            return None;
        }
        let row = self.candidates[index].row.clone()?;
        let replicate = history.finished_runs(&row.experiment_key()).count() + 1;
        Some(Row { replicate: u32::try_from(replicate).ok(), ..row })
    }

    /// Repeats only runs of the unchanged workload, as a change may intend to serve data from memory.
    fn is_invalid(&self, past: &PastRun) -> bool {
        let baseline = self.candidates[BASELINE].row.as_ref().map(Row::experiment_key);
        past.is_invalid() && baseline == Some(past.row.experiment_key())
    }

    fn label(&self, row: &Row, number: usize) -> Option<String> {
        let key = row.experiment_key();
        let mut candidates = self.candidates.iter();
        let candidate = candidates.find(|candidate| {
            candidate.row.as_ref().is_some_and(|row| row.experiment_key() == key)
        })?;
        let change = match candidate.change.join(" ") {
            change if change.is_empty() => "unchanged".into(),
            change => change,
        };
        Some(format!("run {number}: {change}"))
    }

    fn response(&self) -> Option<&'static Metric> {
        Some(self.response.metric)
    }
}

/// Utilisation over all steps.
pub const UTILISATION: TrialResponse =
    TrialResponse { metric: &AU_ALL_STEPS, margin: |_| MARGIN_POINTS };
