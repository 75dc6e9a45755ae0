//! `feedrate advise`: lists changes that would help a run, best first, each with its evidence, its predicted effect and a command.

mod predict;
mod try_out;

use super::study::conclusion::{interrupted, relative_to_working_folder};
use super::study::runner_host;
use crate::cli::{CacheArguments, DataArguments, OUTPUT, name_of};
use crate::exit::Exit;
use crate::progress::TERMINAL;
use crate::{messages, text, time};
use clap::Args;
use feedrate_analysis::advice::{self, Advice, Case, Cost, Proposal, RULES};
use feedrate_analysis::answer::{AnswerKind, AnsweredSummary};
use feedrate_analysis::predict::{NotPredictable, PipelinePool};
use feedrate_measure::derived::Derived;
use feedrate_measure::record::Record;
use feedrate_measure::verdict::Bound;
use feedrate_report::document::{Block, Detail, Document, Item};
use feedrate_report::output::Schema;
use feedrate_report::table::ReportTable;
use feedrate_report::words::{advice as words, unpredicted};
use feedrate_results::load_run;
use feedrate_results::replan::Replan;
use feedrate_results::trials::Outcome;
use feedrate_session::request::Request;
use feedrate_session::resolve;
use feedrate_session::template::RunTemplate;
use feedrate_spec::bundled;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_study::chooser::{BASELINE, Trials, UTILISATION};
use feedrate_study::chosen::{self, ChosenStudy, StudyIdentity};
pub(super) use predict::WhatifOutput;
use predict::{PredictArguments, Predictor, refusal_of_watched};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use try_out::{Goal, TryOut, observe};

/// Heading of the options of `--try`.
const TRIALS: &str = "Try";

/// `feedrate advise`.
#[derive(Debug, Args)]
#[command(after_help = "\
For the folder of a run, nothing is run. A workload is run once first, as by `feedrate run`.

Examples:
  feedrate advise results/unet3d/RUN
  feedrate advise results/unet3d/RUN --set storage.bandwidth=2x -n 64

Exit codes: 0 done; 1 a run failed; 2 bad usage or workload; 4 the effect of a change is not decided; 130 interrupted.")]
pub(super) struct AdviseArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Folder of all results [default: `output.folder`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    results: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArguments,
    #[command(flatten)]
    predict: PredictArguments,
    /// Run the workload with each change until its effect is decided.
    #[arg(long = "try", help_heading = TRIALS)]
    try_out: bool,
    /// Also try this change; put several keys in quotes. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", requires = "try_out", help_heading = TRIALS)]
    also: Vec<String>,
    /// Also try reader settings, and name the cheapest within 2 % of the best.
    #[arg(long, value_enum, requires = "try_out", help_heading = TRIALS)]
    goal: Option<Goal>,
    /// Limit the total time of the runs, without generating datasets.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "10m", help_heading = TRIALS)]
    budget: f64,
    /// Repeat runs that exist from before; their results are moved aside.
    #[arg(long, help_heading = TRIALS, hide_short_help = true)]
    again: bool,
}

/// A piece of advice. `command` applies it; `None` if the advice does not change the workload.
struct AdviceRow {
    advice: Advice,
    command: Option<String>,
}

/// Prints advice on a run, or runs a workload and prints advice on the new run.
pub(super) fn advise(arguments: &AdviseArguments) -> anyhow::Result<Exit> {
    let cache = arguments.cache.cache();
    let request = arguments.data.request();
    let data = &with_newest_run(Request { cache, ..request.clone() });
    let json = arguments.data.json;
    let run = resolve::is_run(&data.workload).then(|| load_run(Path::new(&data.workload)));
    let predict = &arguments.predict;
    let mut accelerators = None;
    if let Some(record) = run.transpose()? {
        accelerators = data.accelerators;
        if !data.overrides.is_empty() || accelerators.is_some() && !predict.are_given() {
            let folder = &data.workload;
            let message = format!("settings of the finished run in `{folder}` cannot be changed");
            return refuse(
                message,
                "predict a change by `--set KEY=VALUE`, or try it by `feedrate run`",
            );
        }
        match record.watched {
            Some(_) if predict.are_given() => {
                return Err(refusal_of_watched(&data.workload).into());
            }
            Some(_) => return print_watched(data, json, &record),
            None => {}
        }
    }
    let budget_s = arguments.budget;
    let (template, record) = RunTemplate::find(data)?;
    let also = changes_to_try(&template, &arguments.also)?;
    let mut study = None;
    let (run_dir, record) = match record {
        Some(record) => (data.workload.clone(), record),
        None => run_baseline(study.insert(open_study(arguments, &template)?), &template)?,
    };
    let replicates = replicates(&request, data, &record);
    if predict.are_given() {
        let predictor = Predictor {
            run_dir: &run_dir,
            record: &record,
            replicates: &replicates,
            template: &template,
        };
        return predictor.predict(predict, accelerators, json);
    }
    let answered = AnsweredSummary::new(&record);
    let derived = Derived::new(&record);
    let opening = words::opening(&answered.answer, &derived);
    let case = Case::new(&derived, &answered.answer, &answered.summary.doubts);
    let rows = advice_rows(&template, &case.with_replicates(&replicates));
    let is_setting = |row: &AdviceRow| !row.advice.proposal.overrides.is_empty();
    let has_candidates =
        rows.iter().any(is_setting) || !also.is_empty() || arguments.goal.is_some();
    if arguments.try_out && !has_candidates {
        messages::note("nothing to try: no advised change is a setting of the workload");
    }
    if arguments.try_out && has_candidates {
        let advice = rows.into_iter().map(|row| row.advice).collect();
        let trials = TryOut {
            template: &template,
            record: &record,
            pipeline: PipelinePool::from_records(&record, &replicates).ok(),
            opening: &opening,
            advice,
            also,
            goal: arguments.goal,
            budget_s,
            json,
        };
        let study = match study {
            Some(mut study) => return trials.run(&mut study),
            None => &mut open_study(arguments, &template)?,
        };
        return trials.run(study);
    }
    if let Some(study) = &study {
        study.note_earlier_runs();
    }
    print_advice(json, &run_dir, &answered, opening, &rows, advice_blocks(&answered, &rows))
}

/// Prints the answer of a run and the advice: as JSON, or as text from `blocks`.
fn print_advice(
    json: bool,
    run_dir: &str,
    run: &AnsweredSummary,
    opening: String,
    rows: &[AdviceRow],
    blocks: Vec<Block>,
) -> anyhow::Result<Exit> {
    if json {
        let output = AdviseOutput {
            run_dir,
            workload: &run.summary.workload,
            fed: run.answer.fed,
            au_percent: run.answer.au_percent,
            verdict: run.answer.verdict,
            says: opening,
            advice: rows.iter().map(AdviceOutput::new).collect(),
        };
        messages::print_json(Schema::Advise, &output)?;
    } else {
        let results = Block::Sentence(format!("Results: {run_dir}"));
        let blocks = [vec![Block::Sentence(opening)], blocks, vec![results]].concat();
        messages::print_document(&Document::from(blocks), true)?;
    }
    Ok(Exit::Fine)
}

/// Replaces a folder of several runs by its newest run.
fn with_newest_run(data: Request) -> Request {
    // A bundled workload takes precedence over a folder of the same name.
    let is_bundled = !resolve::is_file(&data.workload) && bundled::find(&data.workload).is_some();
    if is_bundled {
        return data;
    }
    let workload = resolve::run_folder(Path::new(&data.workload), &TERMINAL).display().to_string();
    Request { workload, ..data }
}

/// The records of other complete runs of the same plan in the folder that the user named. Predictions use them too.
fn replicates(request: &Request, chosen: &Request, record: &Record) -> Vec<Record> {
    if request.workload == chosen.workload {
        return Vec::new();
    }
    let others = resolve::runs_below(Path::new(&request.workload)).into_iter();
    let others = others.filter(|run| run.as_path() != Path::new(&chosen.workload));
    let records = others.filter_map(|run| load_run(&run).ok());
    let is_replicate = |other: &Record| other.complete && other.plan == record.plan;
    let replicates: Vec<Record> = records.filter(is_replicate).collect();
    if !replicates.is_empty() {
        let others = units::counted(replicates.len() as u64, "other run");
        messages::note(format!("predictions also use {others} of the same plan in the folder"));
    }
    replicates
}

/// Prints the answer for a loop that `feedrate.watch` recorded. No rule of advice applies to it, and it has no workload to run again.
fn print_watched(data: &Request, json: bool, record: &Record) -> anyhow::Result<Exit> {
    let answered = AnsweredSummary::new(record);
    let opening = words::opening(&answered.answer, &Derived::new(record));
    let why = unpredicted::why(&NotPredictable::OnlyWatched);
    let hint = unpredicted::needed_run(&NotPredictable::OnlyWatched);
    let evidence = answered.summary.verdict.evidence.clone();
    let blocks = [evidence, format!("Nothing is advised: {why}; {hint}.")].map(Block::Sentence);
    print_advice(json, &data.workload, &answered, opening, &[], blocks.into())
}

/// Splits the changes of `--also` into overrides. Refuses changes for which no plan can be made.
fn changes_to_try(template: &RunTemplate, also: &[String]) -> anyhow::Result<Vec<Vec<String>>> {
    let changes = also.iter().map(|text| {
        let overrides: Vec<String> = text.split_whitespace().map(str::to_string).collect();
        if overrides.is_empty() {
            return refuse("`--also` is empty", "write `--also KEY=VALUE`");
        }
        chosen::refuse_secrets(overrides.iter().map(String::as_str))?;
        template.resolve(&overrides)?;
        Ok(overrides)
    });
    changes.collect()
}

/// Opens the study that stores the runs of the trials.
fn open_study(arguments: &AdviseArguments, template: &RunTemplate) -> anyhow::Result<ChosenStudy> {
    let goal = arguments.goal.map(|goal| format!("goal {}", name_of(goal)));
    let details =
        goal.into_iter().chain(arguments.also.iter().map(|change| format!("also {change}")));
    let identity =
        StudyIdentity::new("advise", &template.unchanged, &template.request, details.collect());
    let root = template.unchanged.results_root(arguments.results.as_deref())?;
    ChosenStudy::open(&identity, &root, &template.request, arguments.again, runner_host())
}

/// Runs the unchanged workload; returns the folder of the run and its record.
fn run_baseline(
    study: &mut ChosenStudy,
    template: &RunTemplate,
) -> anyhow::Result<(String, Record)> {
    template.refuse_processes()?;
    let row = chosen::row(&template.request, template.unchanged.plan.accelerators)?;
    let mut chooser =
        Trials::new(row, Vec::new(), UTILISATION, f64::INFINITY, |_| Default::default());
    let end = study.run(&mut chooser, observe)?;
    let trial = chooser.trial(&end.history, BASELINE);
    match (trial.runs.first(), trial.skip_reason) {
        _ if end.report.is_stopped => Err(interrupted(study)),
        (Some(run), _) => {
            let folder = relative_to_working_folder(&run.run_dir);
            Ok((folder, load_run(&run.run_dir)?))
        }
        (None, why) => anyhow::bail!("the unchanged workload failed: {}", why.unwrap_or_default()),
    }
}

/// Returns the advice for a run, with the command that applies each change.
fn advice_rows(template: &RunTemplate, case: &Case) -> Vec<AdviceRow> {
    let plan_of = |overrides: &[String]| template.plan(overrides);
    let found = advice::advise(case, &plan_of).into_iter();
    let is_foreign = template.unchanged.workload.dataset_foreign;
    let rows = found.map(|advice| {
        let Proposal { overrides, cost, .. } = &advice.proposal;
        let is_fixed = is_foreign && *cost == Cost::Dataset;
        let command = (!overrides.is_empty() && !is_fixed).then(|| template.command(overrides));
        AdviceRow { advice, command }
    });
    rows.collect()
}

/// Output of `advise --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct AdviseOutput<'a> {
    /// The folder of the run.
    run_dir: &'a str,
    /// The run's workload.
    workload: &'a str,
    /// Whether the accelerators were fed; `null` if unknown.
    fed: Option<bool>,
    /// The utilisation that `fed` is based on.
    au_percent: Option<f64>,
    /// The bound on the run's speed.
    verdict: Bound,
    /// The answer in one sentence.
    says: String,
    /// Each rule that applies, best first, with its change, evidence and prediction.
    advice: Vec<AdviceOutput<'a>>,
}

/// A piece of advice.
#[derive(Serialize, JsonSchema)]
struct AdviceOutput<'a> {
    #[serde(flatten)]
    proposal: &'a Proposal,
    /// The change in words.
    change: String,
    /// Predicted utilisation with the change; `null` if it cannot be predicted.
    predicted_percent: Option<f64>,
    /// Lower and upper bound of the prediction.
    interval: Option<[f64; 2]>,
    /// The reason in words.
    why: String,
    /// Paper, program or measurement that the rule is based on.
    source: Option<&'static str>,
    /// The command that runs the changed workload; `null` if the advice does not change the workload.
    command: Option<&'a str>,
    /// Utilisation of the runs with the change; always `null` without `--try`.
    tried: Option<()>,
    /// Outcome of the trial; always `not_tried` without `--try`.
    outcome: Outcome,
    /// Reason that the change was not tried; always `null` without `--try`.
    reason: Option<()>,
}

impl<'a> AdviceOutput<'a> {
    fn new(row: &'a AdviceRow) -> Self {
        let Advice { proposal, prediction } = &row.advice;
        let rule = RULES.iter().find(|rule| rule.name == proposal.rule);
        AdviceOutput {
            proposal,
            change: words::change(proposal),
            predicted_percent: prediction.map(|prediction| prediction.au_percent),
            interval: prediction.map(|prediction| prediction.interval),
            why: words::why(proposal),
            source: rule.map(|rule| rule.source),
            command: row.command.as_deref(),
            tried: None,
            outcome: Outcome::NotTried,
            reason: None,
        }
    }
}

fn advice_blocks(run: &AnsweredSummary, rows: &[AdviceRow]) -> Vec<Block> {
    if rows.is_empty() {
        let says = match run.answer.fed {
            Some(true) => "Nothing is advised: the accelerators were fed.",
            _ if run.answer.kind == AnswerKind::Rate => {
                return vec![Block::Sentence(format!("{}.", words::NO_COMPUTE))];
            }
            _ if run.summary.verdict.name == Bound::ClientBound => {
                "No known change would help: the time is spent in the job's own code, which faster storage does not speed up. Measure it by `feedrate calibrate SCRIPT.py:make_dataset`."
            }
            _ if run.answer.noise.is_some() => {
                return vec![Block::Sentence(format!(
                    "{}. Repeat the run on an idle machine, with more epochs or steps.",
                    words::TOO_NOISY
                ))];
            }
            _ => return vec![Block::Sentence(format!("{}.", words::NOTHING_HELPS))],
        };
        return vec![Block::Sentence(says.into())];
    }
    let cells = rows.iter().zip(1..).map(|(row, number)| {
        let Advice { proposal, prediction } = &row.advice;
        let predicted = text::known(*prediction, |prediction| {
            let [low, high] = prediction.interval;
            let span =
                if high - low < 0.1 { String::new() } else { format!(" [{low:.0}, {high:.0}]") };
            format!("{:.0} %{span}", prediction.au_percent)
        });
        let lost = text::known(proposal.lost_s, units::seconds);
        [format!("{number}."), words::change(proposal), predicted, lost]
    });
    let table = ReportTable::from_text("", ["", "Change", "Predicted AU", "Waited"], cells);
    let items = rows.iter().map(|row| {
        let proposal = &row.advice.proposal;
        let commands = row.command.iter().cloned();
        Item {
            says: format!("{} ({})", words::why(proposal), words::cost(proposal)),
            details: commands.map(|text| Detail { text, ..Detail::default() }).collect(),
            ..Item::default()
        }
    });
    vec![Block::Table(table), Block::List { first: Some(1), items: items.collect() }]
}
