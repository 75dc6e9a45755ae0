//! `feedrate study run`: runs the pending rows of a study, one after another.

use super::dry_run::{dry_run, note_page_cache};
use super::gates::{ExperimentGate, JudgedStudy};
use super::precision::parse_until;
use super::run_settings::{StudyLaunch, StudyRunSettings};
use super::{runner_host, silent_host};
use crate::cli::{metric, names_parser, parse_count};
use crate::exit::Exit;
use crate::export::ExportArguments;
use crate::gate;
use crate::messages::{self, StdoutError};
use crate::progress::TERMINAL;
use crate::time::seconds;
use clap::Args;
use feedrate_analysis::precision;
use feedrate_measure::metric::Metric;
use feedrate_report::output::Schema;
use feedrate_results::files::StudyFiles;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_results::state::{RowState, Status, StudySettings, StudyState};
use feedrate_spec::escape::bash_word;
use feedrate_spec::units;
use feedrate_study::chooser::{Chooser, FixedDesign, PrecisionGoal, ReplicateChooser};
use feedrate_study::datasets::Policy;
use feedrate_study::ledger::{Ledger, select_rows};
use feedrate_study::machine::ThisMachine;
use feedrate_study::row_command::note_local_workloads;
use feedrate_study::runner::{Runner, RunnerEnd, RunnerOptions, RunnerReport, due_rows};
use feedrate_study::select::is_selected;
use feedrate_study::settings::{self, lock};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// `feedrate study run`. The study stores the settings of its runs, which are the same for all runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate study run study.csv --data /mnt/fs --cache cold
  feedrate study run study.csv --until ci=2% --time-budget 8h")]
pub(in crate::command) struct StudyRunArguments {
    /// The study's CSV.
    study: PathBuf,
    /// Rows to run: `#6`, a model, an experiment (`4_batch_size_1`) or both (`unet3d/4*`). May be repeated.
    #[arg(long, value_name = "ROWS")]
    only: Vec<String>,
    /// Maximum number of runs.
    #[arg(long, value_name = "N", hide_short_help = true)]
    limit: Option<usize>,
    /// Start no run that would end after this time, such as `8h`.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    time_budget: Option<f64>,
    /// Print which rows would run, their time and the space for datasets; run nothing.
    #[arg(long)]
    pub(in crate::command) dry_run: bool,
    /// Also run rows that failed before.
    #[arg(long)]
    retry: bool,
    /// Add replicates until the metric's 95 % interval is this narrow: `ci=2%` means ± 2 %.
    #[arg(long, value_name = "PRECISION", value_parser = parse_until)]
    until: Option<precision::PrecisionTarget>,
    /// Metric for `--until`.
    #[arg(long, value_name = "NAME", value_parser = metric, default_value = "au_all_steps_percent", requires = "until", hide_short_help = true)]
    response: &'static Metric,
    /// Maximum number of runs of an experiment, with `--until`.
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>, default_value_t = 20, requires = "until", hide_short_help = true)]
    max_replicates: u64,
    /// Keep all datasets that this study generated, or delete some if space is short.
    #[arg(long, value_parser = names_parser(Policy::ALL, Policy::name, Policy::meaning), default_value = Policy::default().name(), hide_short_help = true)]
    datasets: Policy,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: StudyRunSettings,
    #[command(flatten)]
    pub(in crate::command) exports: ExportArguments,
}

/// Runs a study.
pub(super) fn run(arguments: &StudyRunArguments) -> anyhow::Result<Exit> {
    let files = StudyFiles::new(&arguments.study)?;
    let options = options(arguments);
    let table = files.table()?;
    select_rows(&Vec::from_iter(table.rows().cloned()), &options.only)?;
    let note_workloads = |settings: &StudySettings| {
        let models = table.rows().map(|row| &*row.model);
        note_local_workloads(models, &files.csv, settings.config_dir.as_deref(), &TERMINAL);
    };
    if arguments.dry_run {
        StudyState::refuse_copy(&files)?;
        let ledger = Ledger::open(&arguments.study, &arguments.settings.settings(), silent_host())?;
        note_workloads(&ledger.settings);
        return dry_run(ledger, &options, arguments.json);
    }
    let mut machine = ThisMachine::new(&files, runner_host())?;
    let lock = lock(&files)?;
    let state = StudyState::open(&files, &lock)?;
    let settings = settings::resolve(&arguments.settings.settings(), &files.csv, &state)?;
    note_workloads(&settings);
    arguments.settings.launch.refuse_untrusted(&settings.launching, &machine.hooks)?;
    let needs_trust =
        !StudyLaunch::default().stored_commands(&settings.launching, &machine.hooks).is_empty();
    settings::change_to_start_folder(&settings)?;
    if state.settings.is_none() {
        let rows = Vec::from_iter(table.rows().cloned());
        let due = due_rows(&rows, &state, &options);
        note_page_cache(&machine, due.first().map(|&index| &rows[index]), &settings);
    }
    if !machine.wait_for_earlier_runs(state.settings.as_ref())? {
        return Ok(Exit::Interrupted);
    }
    let runner = Runner::new(&files, lock, state, settings, &mut machine, options);
    let RunnerEnd { report, state, .. } = runner.run(&mut *chooser(arguments))?;
    drop(machine);
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    let states = state.row_states(&rows);
    let wants_metrics = arguments.exports.wants_metrics();
    let judged = JudgedStudy::new(&rows, &states, &arguments.only, wants_metrics);
    let printed = print_report(arguments, &rows, &report, &states, &judged, needs_trust);
    let by_gates = gate::exit(&judged.named_gates());
    let suite = judged.test_suite(&rows, &states, &arguments.only);
    arguments.exports.write(&suite, &judged.metrics)?;
    Ok(match printed? {
        Exit::Fine => by_gates,
        other => other,
    })
}

fn options(arguments: &StudyRunArguments) -> RunnerOptions {
    RunnerOptions {
        only: arguments.only.clone(),
        limit: arguments.limit,
        time_budget_s: arguments.time_budget,
        retry: arguments.retry,
        datasets: arguments.datasets,
        ..RunnerOptions::default()
    }
}

fn chooser(arguments: &StudyRunArguments) -> Box<dyn Chooser> {
    let StudyRunArguments { response, max_replicates: replicates_max, .. } = *arguments;
    let Some(target) = arguments.until else { return Box::new(FixedDesign) };
    let wanted = PrecisionGoal { target, response, replicates_max };
    Box::new(ReplicateChooser::new(wanted, arguments.only.clone()))
}

/// Output of `study run --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct StudyRunOutput<'a> {
    /// Number of finished runs.
    finished: usize,
    /// Failed runs with the reasons.
    failed: Vec<FailedRow<'a>>,
    /// Whether the study was interrupted.
    stopped: bool,
    /// All rows with their results.
    rows: Vec<RowResult<'a>>,
    /// The limits of the workloads, judged by the means of each experiment.
    gates: &'a [ExperimentGate],
}

/// A run that failed.
#[derive(Serialize, JsonSchema)]
struct FailedRow<'a> {
    /// The row's name.
    label: &'a str,
    /// The reason.
    reason: &'a str,
}

/// A row and its result.
#[derive(Serialize, JsonSchema)]
struct RowResult<'a> {
    /// The row's name.
    label: String,
    /// State of the row.
    status: Status,
    /// Folder of the row's result; `null` if there is none.
    run_dir: Option<&'a Path>,
}

fn print_report(
    arguments: &StudyRunArguments,
    rows: &[Row],
    report: &RunnerReport,
    places: &[RowState<'_>],
    judged: &JudgedStudy,
    needs_trust: bool,
) -> Result<Exit, StdoutError> {
    let finished = report.finished;
    if arguments.json {
        let results = rows.iter().zip(places).map(|(row, place)| RowResult {
            label: label(row, rows),
            status: place.status,
            run_dir: place.result().map(|attempt| &*attempt.run_dir),
        });
        let failed = report.failed.iter();
        let output = StudyRunOutput {
            finished,
            failed: failed.map(|(label, reason)| FailedRow { label, reason }).collect(),
            stopped: report.is_stopped,
            rows: results.collect(),
            gates: &judged.gates,
        };
        messages::print_json(Schema::StudyRun, &output)?;
    } else {
        let count = |status| places.iter().filter(|place| place.status == status).count();
        let done = count(Status::Done);
        let pending = count(Status::Pending);
        let failed = count(Status::Failed);
        let left = match (pending, failed) {
            (0, 0) => String::new(),
            (_, 0) => format!(", {pending} pending"),
            _ => format!(", {pending} pending, {failed} failed (`--retry` runs them again)"),
        };
        let now = units::counted(finished as u64, "run");
        let csv = bash_word(&arguments.study.display().to_string());
        let next = match (report.is_stopped, pending + failed) {
            (true, _) => {
                let trust = if needs_trust { " --trust" } else { "" };
                format!("\nNext: feedrate study run {csv}{trust}  # continues")
            }
            (false, 0) => format!("\nNext: feedrate report {csv} -o report.html"),
            _ => String::new(),
        };
        let rows = rows.len();
        let stopped = if report.is_interrupted { ", 1 stopped" } else { "" };
        messages::print_page(&format!(
            "{now} finished now{stopped}; {done} of {rows} done{left}{next}"
        ))?;
    }
    let mut failed = (0..rows.len()).filter(|&index| places[index].status == Status::Failed);
    Ok(if report.is_stopped {
        Exit::Interrupted
    } else if !report.failed.is_empty()
        || failed.any(|index| is_selected(&arguments.only, index, &rows[index], rows))
    {
        Exit::Failed
    } else {
        Exit::Fine
    })
}
