//! `feedrate advise --try`: runs the workload and what is advised for it in turns, then the best two together, and withdraws what does not help.

use crate::exit::Exit;
use crate::probe::Probes;
use crate::progress::Progress;
use crate::trials::{BASELINE, Trial, Trials, UTILISATION};
use crate::{messages, text};
use feedrate_analysis::advice::{Advice, Proposal};
use feedrate_analysis::predict::{Pipeline, Prediction};
use feedrate_analysis::trial::MATTERS_POINTS;
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{DURATION_S, Unit};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::write_atomically;
use feedrate_measure::stats;
use feedrate_report::output::Schema;
use feedrate_report::words::advice as words;
use feedrate_report::words::trials::tried_change;
use feedrate_results::replan::Replan;
use feedrate_results::trials::{
    ASKED, COMBINATION, Outcome, TRIALS_FILE, TRIALS_FOLDER, TrialsResult, Tried, TriedAdvice,
};
use feedrate_run::live::Signals;
use feedrate_session::failure::reason_stopped;
use feedrate_session::template::RunTemplate;
use feedrate_spec::units;
use std::ops::RangeInclusive;
use std::path::Path;

/// Runs of each change before the best two are tried together; what they leave undecided is run again afterwards. Fewer decide nothing.
const RUNS_EACH_FIRST: usize = 3;
/// Fewest and most runs of a change. A difference that the most of them do not decide is too small to matter, or lost in noise.
const RUNS_EACH: RangeInclusive<usize> = RUNS_EACH_FIRST..=16;

/// Advice to be tried, and how long.
pub(super) struct TryOut<'a> {
    pub(super) of: &'a RunTemplate,
    pub(super) record: &'a Record,
    pub(super) opening: &'a str,
    pub(super) advice: Vec<Advice>,
    /// Changes that the user asked for.
    pub(super) also: Vec<Vec<String>>,
    pub(super) budget_s: f64,
    pub(super) results: Option<&'a Path>,
    pub(super) json: bool,
    pub(super) progress: Progress,
    pub(super) signals: &'a Signals,
}

/// A change, and its place among the trials.
struct Candidate {
    name: String,
    change: String,
    prediction: Option<Prediction>,
    place: usize,
}

impl TryOut<'_> {
    /// Try, tell, and keep the result.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let workload = &self.of.unchanged.workload;
        let progress = self.progress.clone();
        let probes = Probes::new(TRIALS_FOLDER, self.results, workload, progress, self.signals)?;
        let mut trials = Trials::new(self.of, probes, self.budget_s, UTILISATION)?;
        trials.expect(Derived::new(self.record).value(&DURATION_S).unwrap_or_default());
        let mut candidates = self.candidates(&mut trials);
        let tried = self.try_all(&mut trials, &mut candidates);
        let stopped = match &tried {
            Ok(false) => None,
            Ok(true) if trials.count() == 0 => {
                let run = units::seconds(trials.expected_s(BASELINE));
                Some(format!("a run takes about {run}, which is more than the budget"))
            }
            Ok(true) => Some("the budget is spent".into()),
            Err(error) => Some(reason_stopped(error, "the trials were")),
        };
        let result = self.result(&trials, &candidates, stopped);
        let text = serde_json::to_string(&result)?;
        let kept = write_atomically(&trials.folder().join(TRIALS_FILE), text.as_bytes());
        if self.json {
            messages::print_json(Schema::Trials.object(serde_json::to_value(&result)?))?;
        } else {
            messages::print_page(&page(self.opening, &result, best(&trials, &candidates)))?;
        }
        kept?;
        tried?;
        let is_open = |of: &TriedAdvice| of.outcome == Outcome::NotDecided;
        let is_open = result.stopped.is_some() || result.advice.iter().any(is_open);
        Ok(if is_open { Exit::Undecided } else { Exit::Fine })
    }

    /// Changes that are advised, and those that were asked for.
    fn candidates(&self, trials: &mut Trials<'_>) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for Advice { proposal, prediction } in &self.advice {
            let place = match &proposal.overrides[..] {
                [] => trials.leave_out(untried(proposal)),
                overrides => trials.add(overrides),
            };
            let (name, change) = (proposal.rule.to_string(), words::change(proposal));
            candidates.push(Candidate { name, change, prediction: *prediction, place });
        }
        for overrides in &self.also {
            if !candidates.iter().any(|of| trials.at(of.place).change == *overrides) {
                candidates.push(self.candidate(ASKED, overrides, trials));
            }
        }
        candidates
    }

    /// A change that no rule advises as it is.
    fn candidate(&self, name: &str, overrides: &[String], trials: &mut Trials<'_>) -> Candidate {
        let plan = self.of.plan(overrides);
        let prediction =
            plan.and_then(|plan| Pipeline::new(self.record).ok()?.predict(&plan, &[]).ok());
        let place = trials.add(overrides);
        Candidate { name: name.into(), change: overrides.join(" "), prediction, place }
    }

    /// Each by itself, then the best two together. Says whether time was too short.
    fn try_all(
        &self,
        trials: &mut Trials<'_>,
        candidates: &mut Vec<Candidate>,
    ) -> anyhow::Result<bool> {
        let places: Vec<usize> = candidates.iter().map(|of| of.place).collect();
        let is_short = trials.decide(BASELINE, &places, RUNS_EACH_FIRST..=RUNS_EACH_FIRST)?;
        let mut helping = helping(trials, candidates);
        // Both together are judged by utilisation, in which checkpoints do not show.
        helping.retain(|of| !trials.at(of.place).is_of_checkpoints());
        let keys = |of: &Candidate| {
            let change = trials.at(of.place).change.iter();
            let keys = change.filter_map(|text| text.split('=').next());
            keys.map(str::to_string).collect::<Vec<_>>()
        };
        let both = helping.iter().enumerate().find_map(|(at, first)| {
            let apart =
                |second: &&&Candidate| keys(first).iter().all(|key| !keys(second).contains(key));
            helping[at + 1..].iter().find(apart).map(|second| [first.place, second.place])
        });
        let Some(both) = both else {
            return Ok(trials.decide(BASELINE, &places, RUNS_EACH)? || is_short);
        };
        let overrides = both.map(|place| trials.at(place).change.clone()).concat();
        let both_together = self.candidate(COMBINATION, &overrides, trials);
        let place = both_together.place;
        candidates.push(both_together);
        let is_short = trials.decide(both[0], &[place], RUNS_EACH)? || is_short;
        Ok(trials.decide(BASELINE, &places, RUNS_EACH)? || is_short)
    }

    fn result(
        &self,
        trials: &Trials<'_>,
        candidates: &[Candidate],
        stopped: Option<String>,
    ) -> TrialsResult {
        let data = &self.of.request;
        TrialsResult {
            workload: self.record.plan.workload.clone(),
            asked: data.data_arguments(),
            plan: Some(self.record.plan.clone()),
            baseline: trials.at(BASELINE).tried(),
            advice: candidates
                .iter()
                .map(|of| self.advised(trials, of, stopped.as_deref()))
                .collect(),
            stopped,
            runs: trials.count(),
            took_s: trials.took_s(),
            results: trials.folder().display().to_string(),
        }
    }

    fn advised(&self, trials: &Trials<'_>, of: &Candidate, stopped: Option<&str>) -> TriedAdvice {
        let (trial, baseline) = (trials.at(of.place), trials.at(BASELINE));
        let (tried, hindrance) = (trial.tried(), trial.hindrance.clone());
        let outcome = if hindrance.is_some() && tried.is_some() {
            Outcome::NotDecided
        } else {
            trials.outcome(BASELINE, of.place)
        };
        let reason = match outcome {
            _ if hindrance.is_some() => hindrance,
            Outcome::NotTried => Some(stopped.unwrap_or("no time was left").into()),
            Outcome::NotDecided => Some("the runs differ too much, or are too few".into()),
            _ if trial.is_of_checkpoints() => checkpoint_waits(baseline, trial),
            _ => None,
        };
        TriedAdvice {
            name: of.name.clone(),
            overrides: trial.change.clone(),
            change: of.change.clone(),
            predicted_percent: of.prediction.map(|of| of.au_percent),
            interval: of.prediction.map(|of| of.interval),
            tried,
            outcome,
            reason,
            break_even_epochs: break_even(baseline, trial),
            command: (!trial.change.is_empty()).then(|| self.of.command(&trial.change)),
        }
    }
}

/// The reason why advice is not tried that no key of the workload follows.
fn untried(proposal: &Proposal) -> String {
    let (why, change) = (words::why(proposal), words::change(proposal));
    match change.split_once("=DIR") {
        Some((key, _)) => format!("{why}; `--also {key}=DIR` tries it, with a folder of yours"),
        None => format!("{why}; no key of the workload does that"),
    }
}

/// The waits by which a change of checkpoints is judged.
fn checkpoint_waits(without: &Trial, with: &Trial) -> Option<String> {
    let mean = |of: &Trial| stats::mean(&of.checkpoint_waits().collect::<Vec<_>>());
    let [without, with] = [mean(without)?, mean(with)?].map(units::seconds);
    Some(format!("training waits {with} for checkpoints instead of {without}, which AU leaves out"))
}

/// Epochs from which on a copy is worth it, by the epochs without and with it.
fn break_even(without: &Trial, with: &Trial) -> Option<f64> {
    let epoch_s = |trial: &Trial| {
        let epochs = trial.runs.first()?.summary.epochs;
        Some(stats::mean(&trial.values(&DURATION_S))? / epochs as f64)
    };
    let staging = with.runs.iter().find_map(|run| run.summary.staging.as_ref())?;
    staging.break_even_epochs(epoch_s(without)?, epoch_s(with)?)
}

fn mean(trials: &Trials<'_>, of: &Candidate) -> f64 {
    trials.mean(of.place).unwrap_or(f64::NEG_INFINITY)
}

/// Whether it helps for certain.
fn helps(trials: &Trials<'_>, of: &Candidate) -> bool {
    trials.at(of.place).hindrance.is_none() && trials.outcome(BASELINE, of.place) == Outcome::Helps
}

/// Those that help for certain, the best first.
fn helping<'c>(trials: &Trials<'_>, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
    let mut helping: Vec<_> = candidates.iter().filter(|of| helps(trials, of)).collect();
    helping.sort_by(|a, b| mean(trials, b).total_cmp(&mean(trials, a)));
    helping
}

/// The one to use, by its place: the first of those as good as the best, for the cheapest come first; both together only where they are better than that
/// for certain.
fn best(trials: &Trials<'_>, candidates: &[Candidate]) -> Option<usize> {
    let (both, singles): (Vec<_>, Vec<_>) =
        helping(trials, candidates).into_iter().partition(|of| of.name == COMBINATION);
    let most = mean(trials, singles.first()?);
    let is_as_good = |of: &&Candidate| most - MATTERS_POINTS <= mean(trials, of);
    let single = singles.into_iter().filter(is_as_good).min_by_key(|of| of.place)?;
    let is_better = |both: &&Candidate| trials.outcome(single.place, both.place) == Outcome::Helps;
    let best = both.into_iter().find(is_better).unwrap_or(single);
    candidates.iter().position(|of| of.place == best.place)
}

fn page(opening: &str, of: &TrialsResult, best: Option<usize>) -> String {
    let au = |tried: Option<Tried>| {
        text::known(tried, |tried| {
            let interval = tried.interval.map(|[low, high]| format!(" [{low:.1}, {high:.1}]"));
            format!("{}{}", Unit::Percent.text(tried.mean_percent), interval.unwrap_or_default())
        })
    };
    let runs = |tried: Option<Tried>| tried.map_or(0, |tried| tried.n).to_string();
    let no_change =
        ["as it is".into(), "-".into(), au(of.baseline), runs(of.baseline), String::new()];
    let mut rows = vec![no_change];
    let mut notes = Vec::new();
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (at, row) in of.advice.iter().enumerate() {
        let told = tried_change(row);
        let outcome = if best == Some(at) { "best" } else { row.outcome.name() };
        if let Some(why) = &row.reason {
            let why = format!("{}: {why}", row.outcome.name());
            match reasons.iter_mut().find(|(of, _)| *of == why) {
                Some((_, changes)) => changes.push(told.clone()),
                None => reasons.push((why, vec![told.clone()])),
            }
        }
        notes.extend(row.break_even_epochs.map(|epochs| {
            format!("{told}: the copy is worth its time from {epochs:.1} epochs on")
        }));
        let predicted = text::known(row.predicted_percent, |percent| format!("{percent:.0} %"));
        let is_one = row.name == COMBINATION || row.overrides.is_empty();
        let change = if is_one { told } else { row.overrides.join("\n") };
        rows.push([change, predicted, au(row.tried), runs(row.tried), outcome.into()]);
    }
    notes.extend(reasons.iter().map(|(why, changes)| format!("{} {why}", changes.join(", "))));
    let withdrawn = of.advice.iter().filter(|of| of.is_withdrawn() && of.name != COMBINATION);
    let withdrawn: Vec<String> = withdrawn.map(|of| of.overrides.join(" ")).collect();
    if !withdrawn.is_empty() {
        notes.push(format!("Withdrawn: {}", withdrawn.join(", ")));
    }
    notes.extend(of.stopped.iter().map(|why| format!("Stopped: {why}")));
    let header = ["Change", "Predicted", "Tried", "n", ""];
    let table = text::table_of_changes(header, rows, 0, messages::page_width());
    let mut parts = vec![opening.to_string(), table];
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    parts.extend(best.and_then(|at| of.advice[at].command.clone()));
    let (counted, took) = (units::counted(of.runs, "run"), units::seconds(of.took_s));
    let ran = if of.runs == 0 { String::new() } else { format!("{counted} in {took}\n") };
    parts.push(format!("{ran}Results: {}", of.results));
    parts.join("\n\n")
}
