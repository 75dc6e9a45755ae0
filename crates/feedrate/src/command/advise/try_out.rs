//! `feedrate advise --try`: runs the workload and what is advised for it in turns, then the best two together, and withdraws what does not help.

use crate::changed::Changeable;
use crate::exit::{Exit, Interrupted};
use crate::probe::Probes;
use crate::trials::{BASELINE, Trial, Trials, UTILISATION};
use crate::{messages, results, text};
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
use feedrate_results::trials::{
    ASKED, COMBINATION, Outcome, TRIALS_FILE, TRIALS_FOLDER, TrialsResult, Tried, TriedAdvice,
};
use feedrate_run::live::Signals;
use feedrate_spec::units;
use std::ops::RangeInclusive;
use std::path::Path;

/// Runs of each change before the best two are tried together; what is not decided then is run again after that. Fewer decide nothing.
const RUNS_EACH_FIRST: usize = 3;
/// Whoever is not told apart by the most of them differs by about what matters to nobody, or is too noisy.
const RUNS_EACH: RangeInclusive<usize> = RUNS_EACH_FIRST..=16;

/// Advice to be tried, and how long.
pub(super) struct TryOut<'a> {
    pub(super) of: &'a Changeable,
    pub(super) record: &'a Record,
    pub(super) opening: &'a str,
    pub(super) advice: Vec<Advice>,
    /// Changes that the user asked for.
    pub(super) also: Vec<Vec<String>>,
    pub(super) budget_s: f64,
    pub(super) results: Option<&'a Path>,
    pub(super) signals: &'a Signals,
}

/// A change, and its place among the trials, or the reason why it has none.
struct Candidate {
    name: String,
    overrides: Vec<String>,
    change: String,
    prediction: Option<Prediction>,
    place: Result<usize, String>,
}

impl TryOut<'_> {
    /// Try, tell, and keep the result.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let data = &self.of.data;
        let root = results::root(self.results, &self.of.resolve(&[])?.workload)?;
        let folder = results::make_folder(&root, TRIALS_FOLDER)?;
        let probes = Probes { folder: &folder, cache: self.of.cache(), signals: self.signals };
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
            Err(error) if error.is::<Interrupted>() => Some("the trials were interrupted".into()),
            Err(error) => Some(crate::changed::why_not(error)),
        };
        let result = self.result(&trials, &candidates, stopped, &folder);
        let text = serde_json::to_string(&result)?;
        let kept = write_atomically(&folder.join(TRIALS_FILE), text.as_bytes());
        if data.json {
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
            let overrides = proposal.overrides.clone();
            let place = match &overrides[..] {
                [] => Err(untried(proposal)),
                overrides => Ok(trials.add(&overrides.join(" "), overrides)),
            };
            let (name, change) = (proposal.rule.to_string(), words::change(proposal));
            candidates.push(Candidate { name, overrides, change, prediction: *prediction, place });
        }
        for overrides in &self.also {
            if !candidates.iter().any(|of| of.overrides == *overrides) {
                candidates.push(self.candidate(ASKED, overrides.clone(), trials));
            }
        }
        candidates
    }

    /// A change that no rule advises as it is.
    fn candidate(&self, name: &str, overrides: Vec<String>, trials: &mut Trials<'_>) -> Candidate {
        let change = overrides.join(" ");
        let place = Ok(trials.add(&change, &overrides));
        let plan = self.of.plan(&overrides).ok();
        let prediction =
            plan.and_then(|plan| Pipeline::new(self.record).ok()?.predict(&plan, &[]).ok());
        Candidate { name: name.into(), overrides, change, prediction, place }
    }

    /// Each by itself, then the best two together. Says whether time was too short.
    fn try_all(
        &self,
        trials: &mut Trials<'_>,
        candidates: &mut Vec<Candidate>,
    ) -> anyhow::Result<bool> {
        let places: Vec<usize> = candidates.iter().filter_map(|of| of.place.clone().ok()).collect();
        let is_short = trials.decide(BASELINE, &places, RUNS_EACH_FIRST..=RUNS_EACH_FIRST)?;
        let mut helping = helping(trials, candidates);
        // Both together are judged by utilisation, in which checkpoints do not show.
        helping.retain(|of| of.place.as_ref().is_ok_and(|at| !trials.at(*at).is_of_checkpoints()));
        let keys = |of: &Candidate| {
            let keys = of.overrides.iter().filter_map(|text| text.split('=').next());
            keys.map(str::to_string).collect::<Vec<_>>()
        };
        let both = helping.iter().enumerate().find_map(|(at, first)| {
            let apart =
                |second: &&&Candidate| keys(first).iter().all(|key| !keys(second).contains(key));
            helping[at + 1..].iter().find(apart).map(|second| (*first, *second))
        });
        let Some((first, second)) = both else {
            return Ok(trials.decide(BASELINE, &places, RUNS_EACH)? || is_short);
        };
        let overrides = [first.overrides.clone(), second.overrides.clone()].concat();
        let single = *first.place.as_ref().unwrap_or(&BASELINE);
        let both = self.candidate(COMBINATION, overrides, trials);
        let both_place: Vec<usize> = both.place.clone().into_iter().collect();
        candidates.push(both);
        let is_short = trials.decide(single, &both_place, RUNS_EACH)? || is_short;
        Ok(trials.decide(BASELINE, &places, RUNS_EACH)? || is_short)
    }

    fn result(
        &self,
        trials: &Trials<'_>,
        candidates: &[Candidate],
        stopped: Option<String>,
        folder: &Path,
    ) -> TrialsResult {
        let data = &self.of.data;
        TrialsResult {
            workload: self.record.plan.workload.clone(),
            asked: data.words(),
            plan: Some(self.record.plan.clone()),
            baseline: trials.at(BASELINE).tried(),
            advice: candidates
                .iter()
                .map(|of| self.advised(trials, of, stopped.as_deref()))
                .collect(),
            stopped,
            runs: trials.count(),
            took_s: trials.took_s(),
            results: folder.display().to_string(),
        }
    }

    fn advised(&self, trials: &Trials<'_>, of: &Candidate, stopped: Option<&str>) -> TriedAdvice {
        let trial = of.place.as_ref().ok().map(|&place| trials.at(place));
        let tried = trial.and_then(|trial| trial.tried());
        let hindrance = trial.and_then(|trial| trial.hindrance.clone());
        let outcome = match (&of.place, &hindrance) {
            (Err(_), _) => Outcome::NotTried,
            (Ok(_), Some(_)) if tried.is_some() => Outcome::NotDecided,
            (Ok(place), _) => trials.outcome(BASELINE, *place),
        };
        let reason = match (&of.place, outcome) {
            (Err(why), _) => Some(why.clone()),
            _ if hindrance.is_some() => hindrance,
            (_, Outcome::NotTried) => Some(stopped.unwrap_or("no time was left").into()),
            (_, Outcome::NotDecided) => Some("the runs differ too much, or are too few".into()),
            _ if trial.is_some_and(Trial::is_of_checkpoints) => {
                trial.and_then(|trial| checkpoint_waits(trials.at(BASELINE), trial))
            }
            _ => None,
        };
        TriedAdvice {
            name: of.name.clone(),
            overrides: of.overrides.clone(),
            change: of.change.clone(),
            predicted_percent: of.prediction.map(|of| of.au_percent),
            interval: of.prediction.map(|of| of.interval),
            tried,
            outcome,
            reason,
            break_even_epochs: trial.and_then(|trial| break_even(trials.at(BASELINE), trial)),
            command: of.place.is_ok().then(|| self.of.command(&of.overrides)),
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
        let epochs = trial.runs.first()?.epochs;
        Some(stats::mean(&trial.values(&DURATION_S))? / epochs as f64)
    };
    let staging = with.runs.iter().find_map(|run| run.staging.as_ref())?;
    staging.break_even_epochs(epoch_s(without)?, epoch_s(with)?)
}

fn mean(trials: &Trials<'_>, of: &Candidate) -> f64 {
    let mean = of.place.as_ref().ok().and_then(|&place| trials.mean(place));
    mean.unwrap_or(f64::NEG_INFINITY)
}

/// Those that help for certain, the best first.
fn helping<'c>(trials: &Trials<'_>, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
    let helps = |of: &&Candidate| {
        of.place.as_ref().is_ok_and(|&place| {
            trials.at(place).hindrance.is_none()
                && trials.outcome(BASELINE, place) == Outcome::Helps
        })
    };
    let mut helping: Vec<&Candidate> = candidates.iter().filter(helps).collect();
    helping.sort_by(|a, b| mean(trials, b).total_cmp(&mean(trials, a)));
    helping
}

/// The one to use, by its place: the first of those as good as the best, for the cheapest come first; both together only where they are better than that
/// for certain.
fn best(trials: &Trials<'_>, candidates: &[Candidate]) -> Option<usize> {
    let helping = helping(trials, candidates);
    let is_single = |of: &&&Candidate| of.name != COMBINATION;
    let most = mean(trials, helping.iter().find(is_single)?);
    let as_good = |of: &&Candidate| {
        let is_helping = helping.iter().any(|one| one.place == of.place);
        is_helping && of.name != COMBINATION && most - MATTERS_POINTS <= mean(trials, of)
    };
    let place = |of: &Candidate| of.place.clone().ok();
    let single = place(candidates.iter().find(as_good)?)?;
    let both = helping.iter().find(|of| of.name == COMBINATION).and_then(|of| place(of));
    let is_better = |both: &usize| trials.outcome(single, *both) == Outcome::Helps;
    let best = both.filter(is_better).unwrap_or(single);
    candidates.iter().position(|of| of.place == Ok(best))
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
