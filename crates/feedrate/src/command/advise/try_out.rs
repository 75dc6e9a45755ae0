//! `feedrate advise --try`: runs the workload and what is advised for it in turns, then the best two together, and withdraws what does not help.

use crate::changed::Changeable;
use crate::exit::{Exit, Interrupted};
use crate::probe::Probes;
use crate::trials::{BASELINE, Trials};
use crate::{messages, results, text};
use feedrate_analysis::advice::Advice;
use feedrate_analysis::predict::{Pipeline, Prediction};
use feedrate_measure::metric::Unit;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::write_atomically;
use feedrate_results::trials::{
    COMBINATION, Outcome, TRIALS_FILE, TRIALS_FOLDER, TrialsResult, Tried, TriedAdvice,
};
use feedrate_run::driver::Signals;
use feedrate_spec::units;
use std::path::Path;

/// Advice to be tried, and how long.
pub(super) struct TryOut<'a> {
    pub(super) of: &'a Changeable,
    pub(super) record: &'a Record,
    pub(super) opening: &'a str,
    pub(super) advice: Vec<Advice>,
    pub(super) budget_s: f64,
    pub(super) results: Option<&'a Path>,
    pub(super) signals: &'a Signals,
}

/// A change, and its place among the trials; none where it is no change of the workload.
struct Candidate {
    name: String,
    overrides: Vec<String>,
    prediction: Option<Prediction>,
    place: Option<usize>,
}

impl TryOut<'_> {
    /// Try, tell, and keep the result.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let data = &self.of.data;
        let root = results::root(self.results, &self.of.resolve(&[])?.workload)?;
        let folder = results::make_folder(&root, TRIALS_FOLDER)?;
        let probes = Probes { folder: &folder, cache: self.of.cache(), signals: self.signals };
        let mut trials = Trials::new(self.of, probes, self.budget_s, data.quiet)?;
        let mut candidates = Vec::new();
        for Advice { proposal, prediction } in &self.advice {
            let overrides = proposal.overrides.clone();
            let place =
                (!overrides.is_empty()).then(|| trials.add(&overrides.join(" "), &overrides));
            let name = proposal.rule.to_string();
            candidates.push(Candidate { name, overrides, prediction: *prediction, place });
        }
        let tried = self.try_all(&mut trials, &mut candidates);
        let stopped = match &tried {
            Ok(is_short) => is_short.then(|| "the budget is spent".to_string()),
            Err(error) if error.is::<Interrupted>() => Some("the trials were interrupted".into()),
            Err(error) => Some(crate::changed::why_not(error)),
        };
        let result = self.result(&trials, &candidates, stopped, &folder);
        let text = serde_json::to_string(&result)?;
        let kept = write_atomically(&folder.join(TRIALS_FILE), text.as_bytes());
        if data.json {
            messages::print_json(serde_json::to_value(&result)?)?;
        } else {
            messages::print_page(&page(self.opening, &result, best(&trials, &candidates)))?;
        }
        kept?;
        tried?;
        let is_open = |of: &TriedAdvice| of.outcome == Outcome::NotDecided;
        Ok(if result.advice.iter().any(is_open) { Exit::Undecided } else { Exit::Fine })
    }

    /// Each by itself, then the best two together. Says whether time was too short.
    fn try_all(
        &self,
        trials: &mut Trials<'_>,
        candidates: &mut Vec<Candidate>,
    ) -> anyhow::Result<bool> {
        let places: Vec<usize> = candidates.iter().filter_map(|of| of.place).collect();
        let is_short = trials.decide(BASELINE, &places)?;
        let helping = helping(trials, candidates);
        let keys = |of: &Candidate| {
            let keys = of.overrides.iter().filter_map(|text| text.split('=').next());
            keys.map(str::to_string).collect::<Vec<_>>()
        };
        let both = helping.iter().enumerate().find_map(|(at, first)| {
            let apart =
                |second: &&&Candidate| keys(first).iter().all(|key| !keys(second).contains(key));
            helping[at + 1..].iter().find(apart).map(|second| (*first, *second))
        });
        let Some((first, second)) = both else { return Ok(is_short) };
        let overrides = [first.overrides.clone(), second.overrides.clone()].concat();
        let place = trials.add(&overrides.join(" "), &overrides);
        let single = first.place.unwrap_or(BASELINE);
        let prediction = self
            .of
            .plan(&overrides)
            .ok()
            .and_then(|plan| Pipeline::new(self.record).ok()?.predict(&plan, &[]).ok());
        let name = COMBINATION.to_string();
        candidates.push(Candidate { name, overrides, prediction, place: Some(place) });
        Ok(trials.decide(single, &[place])? || is_short)
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
            advice: candidates.iter().map(|of| self.advised(trials, of)).collect(),
            stopped,
            runs: trials.count(),
            took_s: trials.took_s(),
            results: folder.display().to_string(),
        }
    }

    fn advised(&self, trials: &Trials<'_>, of: &Candidate) -> TriedAdvice {
        let trial = of.place.map(|place| trials.at(place));
        let tried = trial.and_then(|trial| trial.tried());
        let hindrance = trial.and_then(|trial| trial.hindrance.clone());
        let outcome = match (of.place, &hindrance) {
            (None, _) => Outcome::NotTried,
            (Some(_), Some(_)) if tried.is_some() => Outcome::NotDecided,
            (Some(place), _) => trials.outcome(BASELINE, place),
        };
        let reason = match outcome {
            _ if hindrance.is_some() => hindrance,
            Outcome::NotTried if of.place.is_none() => Some("it is no key of the workload".into()),
            Outcome::NotTried => Some("no time was left".into()),
            Outcome::NotDecided => Some("the runs differ too much, or are too few".into()),
            _ => None,
        };
        TriedAdvice {
            name: of.name.clone(),
            overrides: of.overrides.clone(),
            predicted_percent: of.prediction.map(|of| of.au_percent),
            interval: of.prediction.map(|of| of.interval),
            tried,
            outcome,
            reason,
            command: self.of.command(&of.overrides),
        }
    }
}

fn mean(trials: &Trials<'_>, of: &Candidate) -> f64 {
    let tried = of.place.and_then(|place| trials.at(place).tried());
    tried.map_or(f64::NEG_INFINITY, |of: Tried| of.mean_percent)
}

/// Those that help for certain, the best first.
fn helping<'c>(trials: &Trials<'_>, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
    let helps = |of: &&Candidate| {
        of.place.is_some_and(|place| {
            trials.at(place).hindrance.is_none()
                && trials.outcome(BASELINE, place) == Outcome::Helps
        })
    };
    let mut helping: Vec<&Candidate> = candidates.iter().filter(helps).collect();
    helping.sort_by(|a, b| mean(trials, b).total_cmp(&mean(trials, a)));
    helping
}

/// The one to use, by its place: both together only where they are better than the better of them for certain.
fn best(trials: &Trials<'_>, candidates: &[Candidate]) -> Option<usize> {
    let helping = helping(trials, candidates);
    let single = helping.iter().find(|of| of.name != COMBINATION)?;
    let both = helping.iter().find(|of| of.name == COMBINATION);
    let (single_place, both_place) = (single.place?, both.and_then(|of| of.place));
    let is_better = |place: &usize| trials.outcome(single_place, *place) == Outcome::Helps;
    let best = both_place.filter(is_better).unwrap_or(single_place);
    candidates.iter().position(|of| of.place == Some(best))
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
    for (at, row) in of.advice.iter().enumerate() {
        let change = match row.overrides.join("\n") {
            _ if row.name == COMBINATION => "the best two together".to_string(),
            none if none.is_empty() => row.name.clone(),
            overrides => overrides,
        };
        let outcome = if best == Some(at) { "best" } else { row.outcome.name() };
        notes.extend(
            row.reason
                .as_ref()
                .map(|why| format!("{} {}: {why}", change.replace('\n', " "), row.outcome.name())),
        );
        let predicted = text::known(row.predicted_percent, |percent| format!("{percent:.0} %"));
        rows.push([change, predicted, au(row.tried), runs(row.tried), outcome.into()]);
    }
    let withdrawn = of.advice.iter().filter(|of| of.is_withdrawn() && of.name != COMBINATION);
    let withdrawn: Vec<String> = withdrawn.map(|of| of.overrides.join(" ")).collect();
    if !withdrawn.is_empty() {
        notes.push(format!("Withdrawn: {}", withdrawn.join(", ")));
    }
    notes.extend(of.stopped.iter().map(|why| format!("Stopped: {why}")));
    let table = text::table(["Change", "Predicted", "Tried", "Runs", ""], rows);
    let mut parts = vec![opening.to_string(), table];
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    parts.extend(best.map(|at| of.advice[at].command.clone()));
    let (counted, took) = (units::counted(of.runs, "run"), units::seconds(of.took_s));
    parts.push(format!("{counted} in {took}\nResults: {}", of.results));
    parts.join("\n\n")
}
