//! `feedrate advise --try`: selects the changes to try and shows their outcomes as a table and as JSON. The chooser decides the order of
//! the runs.

use crate::command::study::conclusion::{
    TRIALS, conclude, interrupted, lines_of, relative_to_working_folder,
};
use crate::exit::Exit;
use crate::{messages, text};
use clap::ValueEnum;
use feedrate_analysis::advice::{Advice, Proposal};
use feedrate_analysis::answer::{AnswerKind, AnsweredSummary};
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_analysis::predict::{PipelinePool, Prediction};
use feedrate_measure::checkpoints::CheckpointSummary;
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{AU_ALL_STEPS, DURATION_S, SAMPLES_WHOLE, Unit};
use feedrate_measure::record::file::write_atomically;
use feedrate_measure::record::{Record, StagingSummary};
use feedrate_measure::stats;
use feedrate_report::table::ReportTable;
use feedrate_report::words::advice as words;
use feedrate_report::words::answer;
use feedrate_report::words::trials::{mispredicted, tried_change};
use feedrate_results::conclusion::Conclusion;
use feedrate_results::load_run;
use feedrate_results::replan::Replan;
use feedrate_results::trials::{
    COMBINATION, Outcome, REQUESTED, TRIALS_FILE, TrialRuns, TrialsResult, TriedAdvice,
};
use feedrate_session::template::RunTemplate;
use feedrate_spec::plan::Plan;
use feedrate_spec::units;
use feedrate_study::chooser::{
    BASELINE, Candidate, History, Observation, Trial, TrialResponse, Trials, UTILISATION,
};
use feedrate_study::chosen::{self, ChosenStudy};
use feedrate_study::reader_settings::{ChangeCost, promising_settings};
use feedrate_study::trial_candidates::{candidate, remove_unneeded_datasets};

/// Time that starting a process adds to its run, in seconds.
const START_S: f64 = 1.0;
/// Fraction of the best result within which the cheapest change is the answer to a goal.
const EQUIVALENCE_FRACTION: f64 = 0.02;
/// Name in the results for a reader setting that is tried for a goal.
const SETTING: &str = "setting";

/// A goal of `--try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Goal {
    /// Utilisation over all steps.
    Au,
    /// Samples per second.
    Throughput,
}

impl Goal {
    fn response(self) -> TrialResponse {
        let metric = match self {
            Goal::Au => &AU_ALL_STEPS,
            Goal::Throughput => &SAMPLES_WHOLE,
        };
        TrialResponse { metric, margin: |mean| EQUIVALENCE_FRACTION * mean }
    }

    fn predicted_value(self) -> fn(&Prediction) -> f64 {
        match self {
            Goal::Au => |predicted| predicted.au_percent,
            Goal::Throughput => |predicted| predicted.samples_per_second,
        }
    }
}

/// The advice to try, and the time limit.
pub(super) struct TryOut<'a> {
    pub(super) template: &'a RunTemplate,
    pub(super) record: &'a Record,
    /// Predicts changes; `None` if the record does not allow it.
    pub(super) pipeline: Option<PipelinePool>,
    pub(super) opening: &'a str,
    pub(super) advice: Vec<Advice>,
    /// Changes that the user requested.
    pub(super) also: Vec<Vec<String>>,
    pub(super) goal: Option<Goal>,
    pub(super) budget_s: f64,
    /// Whether to print JSON.
    pub(super) json: bool,
}

/// A change to try, with its name, text and prediction.
struct Change {
    name: String,
    text: String,
    prediction: Option<Prediction>,
}

/// Extracts the values from a record that decide whether a change helps.
pub(super) fn observe(record: &Record) -> Observation {
    let saves = CheckpointSummary::new(record).and_then(|checkpoint| checkpoint.save);
    let checkpoint_wait_s = saves.map(|saves| saves.stall_s);
    let mut observation = Observation::new(record);
    observation.checkpoint_wait_s = checkpoint_wait_s;
    let answered = AnsweredSummary::new(record);
    if answered.answer.kind == AnswerKind::Unknown {
        let lines = answer::lines(&answered.answer, &answered.summary.doubts);
        observation.invalid_reason = Some(lines.join("; "));
    }
    observation
}

impl TryOut<'_> {
    /// Runs the trials, prints the outcomes and writes them to the study.
    pub(super) fn run(&self, study: &mut ChosenStudy) -> anyhow::Result<Exit> {
        let template = self.template;
        template.refuse_processes()?;
        let (mut changes, candidates): (Vec<Change>, Vec<Candidate>) =
            self.candidates().into_iter().unzip();
        let response = self.goal.map_or(UTILISATION, Goal::response);
        let baseline = chosen::row(&template.request, template.unchanged.plan.accelerators)?;
        let combine = |change: &[String]| candidate(template, change);
        let mut trials = Trials::new(baseline, candidates, response, self.budget_s, combine);
        let run_s = Derived::new(self.record).value(&DURATION_S).unwrap_or_default();
        trials.set_expected_run_s(run_s + START_S);
        let ended = study.run(&mut trials, observe);
        remove_unneeded_datasets(template, study, trials.candidates())?;
        let end = ended?;
        if let Some(both) = trials.combination() {
            let change = &trials.candidates()[both].change;
            changes.push(self.predicted_change(COMBINATION, change));
        }
        let history = &end.history;
        let is_out_of_time = trials.is_out_of_time(history);
        let failed = trials.trial(history, BASELINE).skip_reason;
        let stopped = match &failed {
            _ if end.report.is_stopped => Some("the trials were interrupted".to_string()),
            Some(why) => Some(why.clone()),
            None if is_out_of_time && trials.count(history) == 0 => {
                let run = units::seconds(trials.expected_s(history, BASELINE));
                Some(format!("a run takes about {run}, more than the budget"))
            }
            None => is_out_of_time.then(|| "the budget is used up".into()),
        };
        let outcomes = Outcomes { template, goal: self.goal, trials: &trials, history, response };
        let result = outcomes.result(self.record, &changes, stopped, study);
        let written = write_atomically(
            &study.folder.join(TRIALS_FILE),
            serde_json::to_string(&result)?.as_bytes(),
        );
        let conclusion = Conclusion {
            // Empty, since reports read the outcomes from the trials' file.
            lines: Vec::new(),
            schema: TRIALS.into(),
            answer: lines_of(self.opening),
            rest: lines_of(&outcomes.page(&result)),
            object: serde_json::to_value(&result)?,
        };
        conclude(study, &conclusion, self.json)?;
        written?;
        if end.report.is_stopped {
            return Err(interrupted(study));
        }
        if let Some(why) = failed {
            anyhow::bail!("the unchanged workload failed: {why}");
        }
        let is_undecided = |row: &TriedAdvice| row.outcome == Outcome::NotDecided;
        let is_undecided = result.stopped.is_some() || result.advice.iter().any(is_undecided);
        Ok(if is_undecided { Exit::Undecided } else { Exit::Fine })
    }

    /// Changes to try: advised changes, requested changes and, for a goal, reader settings. With a goal, the cheapest changes come first.
    fn candidates(&self) -> Vec<(Change, Candidate)> {
        let template = self.template;
        let mut all: Vec<(Change, Candidate)> = Vec::new();
        for Advice { proposal, prediction } in &self.advice {
            let change = Change {
                name: proposal.rule.to_string(),
                text: words::change(proposal),
                // Trials measure the utilisation over all steps, which need not be the metric of the answer.
                prediction: prediction.and_then(|_| self.predict(&proposal.overrides)),
            };
            all.push(match &proposal.overrides[..] {
                [] => {
                    let skip_reason = Some(reason_not_tried(proposal));
                    (change, Candidate { skip_reason, ..Candidate::default() })
                }
                overrides => (change, candidate(template, overrides)),
            });
        }
        let settings = self.goal.map_or_else(Vec::new, |goal| {
            promising_settings(template, self.record, goal.predicted_value())
        });
        let named = settings.iter().map(|overrides| (SETTING, overrides));
        for (name, overrides) in
            self.also.iter().map(|overrides| (REQUESTED, overrides)).chain(named)
        {
            if !all.iter().any(|(_, known)| known.change == *overrides) {
                all.push((self.predicted_change(name, overrides), candidate(template, overrides)));
            }
        }
        if self.goal.is_some() {
            // Cached, since each sort key requires planning the run again.
            all.sort_by_cached_key(|(_, candidate)| {
                let plan = template.plan(&candidate.change);
                let cost = |plan: Plan| {
                    ChangeCost::new(&plan, &template.unchanged.plan, candidate.change.len())
                };
                (candidate.row.is_none(), plan.map(cost))
            });
        }
        all
    }

    /// A change that does not come from a rule, with its prediction.
    fn predicted_change(&self, name: &str, overrides: &[String]) -> Change {
        let prediction = self.predict(overrides);
        Change { name: name.into(), text: overrides.join(" "), prediction }
    }

    /// Predicts the run with a change; `None` if the record does not allow it, or for a change that settings cannot make.
    fn predict(&self, overrides: &[String]) -> Option<Prediction> {
        let plan = self.template.plan(overrides).filter(|_| !overrides.is_empty())?;
        self.pipeline.as_ref()?.predict(&plan, &[], &AU_ALL_STEPS).ok()
    }
}

/// Reason that advice without a change of the workload is not tried.
fn reason_not_tried(proposal: &Proposal) -> String {
    let why = words::why(proposal);
    let change = words::change(proposal);
    match change.split_once("=DIR") {
        Some((key, _)) => format!("{why}; try it by `--also {key}=DIR`, with a folder of yours"),
        None => format!("{why}; no workload key makes this change"),
    }
}

/// The outcomes of trials.
struct Outcomes<'a> {
    template: &'a RunTemplate,
    goal: Option<Goal>,
    trials: &'a Trials<'a>,
    history: &'a History,
    response: TrialResponse,
}

impl Outcomes<'_> {
    fn result(
        &self,
        record: &Record,
        changes: &[Change],
        stopped: Option<String>,
        study: &ChosenStudy,
    ) -> TrialsResult {
        let trials = self.trials;
        let history = self.history;
        // Candidate 0 is the baseline.
        let numbered = (1..).zip(changes);
        let rows =
            numbered.map(|(index, change)| self.tried_advice(index, change, stopped.as_deref()));
        let best = trials.best(history);
        TrialsResult {
            workload: record.plan.workload.clone(),
            base: self.template.request.data_arguments(),
            plan: Some(record.plan.clone()),
            goal: self.goal.map(crate::cli::name_of),
            baseline: tried_utilisation(&trials.trial(history, BASELINE)),
            best: best.map(|index| trials.candidates()[index].change.clone()),
            advice: rows.collect(),
            stopped,
            runs: trials.count(history) as u64,
            took_s: trials.seconds(history),
            oldest_run: study.oldest_run.clone(),
            results: relative_to_working_folder(&study.folder),
        }
    }

    fn tried_advice(&self, index: usize, change: &Change, stopped: Option<&str>) -> TriedAdvice {
        let trials = self.trials;
        let history = self.history;
        let baseline = trials.trial(history, BASELINE);
        let trial = trials.trial(history, index);
        let candidate = &trials.candidates()[index];
        let tried = tried_utilisation(&trial);
        let skip_reason = trial.skip_reason.clone();
        let outcome = if skip_reason.is_some() && tried.is_some() {
            Outcome::NotDecided
        } else {
            trials.outcome(history, BASELINE, index)
        };
        let reason = match outcome {
            _ if skip_reason.is_some() => skip_reason,
            Outcome::NotTried => Some(stopped.unwrap_or("no time was left").into()),
            Outcome::NotDecided => Some("the runs vary too much or are too few".into()),
            _ if candidate.changes_only_checkpoints() => compare_waits(&baseline, &trial),
            _ => None,
        };
        TriedAdvice {
            name: change.name.clone(),
            overrides: candidate.change.clone(),
            change: change.text.clone(),
            predicted_percent: change.prediction.map(|prediction| prediction.au_percent),
            interval: change.prediction.map(|prediction| prediction.interval),
            tried,
            is_mispredicted: is_mispredicted(change.prediction, tried),
            outcome,
            reason,
            break_even_epochs: break_even_epochs(&baseline, &trial),
            command: (!candidate.change.is_empty())
                .then(|| self.template.command(&candidate.change)),
        }
    }

    /// Mean and interval of the response of one candidate, with its unit.
    fn mean_text(&self, index: usize) -> String {
        let metric = self.response.metric;
        let values = self.trials.trial(self.history, index).values(metric);
        let is_percent = metric.unit == Unit::Percent;
        let interval = if is_percent {
            stats::percent_interval(&values, CONFIDENCE)
        } else {
            stats::mean_interval(&values, CONFIDENCE)
        };
        text::known(stats::mean(&values), |mean| {
            let interval = interval.map(|range| format!(" [{:.1}, {:.1}]", range.low, range.high));
            format!("{}{}", metric.unit.text(mean), interval.unwrap_or_default())
        })
    }

    fn run_count(&self, index: usize) -> String {
        self.trials.trial(self.history, index).values(self.response.metric).len().to_string()
    }

    fn page(&self, result: &TrialsResult) -> String {
        let best = self.trials.best(self.history).map(|candidate| candidate - 1);
        let no_change = [
            "unchanged".into(),
            "-".into(),
            self.mean_text(BASELINE),
            self.run_count(BASELINE),
            String::new(),
        ];
        let mut rows = vec![no_change];
        let mut notes = Vec::new();
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for (index, row) in result.advice.iter().enumerate() {
            let description = tried_change(row);
            let outcome = if best == Some(index) { "best" } else { row.outcome.name() };
            if let Some(why) = &row.reason {
                let why = format!("{}: {why}", row.outcome.name());
                match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                    Some((_, changes)) => changes.push(description.clone()),
                    None => reasons.push((why, vec![description.clone()])),
                }
            }
            notes.extend(row.break_even_epochs.map(|epochs| {
                format!("{description}: the copy saves time from {epochs:.1} epochs on")
            }));
            let predicted = text::known(row.predicted_percent, |percent| format!("{percent:.0} %"));
            let is_described = row.name == COMBINATION || row.overrides.is_empty();
            let change = if is_described { description } else { row.overrides.join("\n") };
            let candidate = index + 1;
            rows.push([
                change,
                predicted,
                self.mean_text(candidate),
                self.run_count(candidate),
                outcome.into(),
            ]);
        }
        notes.extend(reasons.iter().map(|(why, changes)| format!("{} {why}", changes.join(", "))));
        let withdrawn =
            result.advice.iter().filter(|row| row.is_withdrawn() && row.name != COMBINATION);
        let withdrawn: Vec<String> = withdrawn.map(|row| row.overrides.join(" ")).collect();
        if !withdrawn.is_empty() {
            notes.push(format!("Withdrawn: {}", withdrawn.join(", ")));
        }
        notes.extend(mispredicted(&result.advice).map(|rows| format!("Mispredicted: {rows}")));
        notes.extend(result.stopped.iter().map(|why| format!("Stopped: {why}")));
        let header = ["Change", "Predicted", "Tried", "n", ""];
        let table = ReportTable::from_text("", header, rows);
        let mut parts = vec![text::report_table(&table, messages::page_width())];
        if !notes.is_empty() {
            parts.push(notes.join("\n"));
        }
        parts.extend(best.and_then(|index| result.advice[index].command.clone()));
        let count = units::counted(result.runs, "run");
        let took = units::seconds(result.took_s);
        let ran = if result.runs == 0 { String::new() } else { format!("{count} in {took}\n") };
        parts.push(format!("{ran}Results: {}", result.results));
        parts.join("\n\n")
    }
}

/// Mean utilisation of the runs of a trial; `None` without runs.
fn tried_utilisation(trial: &Trial<'_>) -> Option<TrialRuns> {
    let values = trial.values(&AU_ALL_STEPS);
    let interval = stats::percent_interval(&values, CONFIDENCE);
    Some(TrialRuns {
        mean_percent: stats::mean(&values)?,
        interval: interval.map(|range| [range.low, range.high]),
        n: values.len() as u64,
    })
}

/// Whether the measured utilisation is outside of the predicted interval; `None` without a prediction or without runs.
fn is_mispredicted(prediction: Option<Prediction>, tried: Option<TrialRuns>) -> Option<bool> {
    let [low, high] = prediction?.interval;
    Some(!(low..=high).contains(&tried?.mean_percent))
}

/// Compares the waits that decide whether a change of checkpoints helps.
fn compare_waits(without: &Trial<'_>, with: &Trial<'_>) -> Option<String> {
    let mean = |trial: &Trial<'_>| stats::mean(&trial.waits_s());
    let without = units::seconds(mean(without)?);
    let with = units::seconds(mean(with)?);
    Some(format!("training waits {with} for checkpoints and batches instead of {without}"))
}

/// Number of epochs after which staging (copying the dataset first) has saved more time than it took.
fn break_even_epochs(without: &Trial<'_>, with: &Trial<'_>) -> Option<f64> {
    let records = with.runs.iter().filter_map(|run| load_run(&run.run_dir).ok());
    let staged = records.map(|record| (record.epochs.len(), record.staging));
    let (epochs, staging) =
        staged.into_iter().find_map(|(epochs, staging)| Some((epochs, staging?)))?;
    let epoch_s =
        |trial: &Trial<'_>| Some(stats::mean(&trial.values(&DURATION_S))? / epochs as f64);
    StagingSummary::new(&staging).break_even_epochs(epoch_s(without)?, epoch_s(with)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::verdict::Bound;

    #[test]
    fn a_trial_outside_of_the_predicted_interval_is_mispredicted() {
        let prediction = Prediction {
            au_percent: 60.0,
            au_kind: AU_ALL_STEPS.id.name(),
            interval: [55.0, 65.0],
            bottleneck: Bound::StorageBound,
            bytes_per_second: 1.0,
            samples_per_second: 1.0,
        };
        let tried = |mean_percent| Some(TrialRuns { mean_percent, interval: None, n: 1 });
        for (percent, expected) in [(54.9, true), (55.0, false), (65.0, false), (65.1, true)] {
            assert_eq!(is_mispredicted(Some(prediction), tried(percent)), Some(expected));
        }
        assert_eq!(is_mispredicted(None, tried(60.0)), None);
        assert_eq!(is_mispredicted(Some(prediction), None), None);
    }
}
