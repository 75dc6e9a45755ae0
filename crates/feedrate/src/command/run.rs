//! `feedrate run`: generates missing files, runs the workload, and reports whether the storage kept up.

use super::calibrate;
use super::mlperf::PlannedCommand;
use super::plan;
use crate::cli::{
    CacheArguments, DataArguments, LaunchArguments, OUTPUT, StepArguments, WORKLOAD, parse_count,
};
use crate::exit::Exit;
use crate::export::{self, ExportArguments, MetricSet, TestCase, TestSuite};
use crate::gate::{self, GateArguments};
use crate::summary::{self, OutputMode, PrintedRun};
use crate::{interrupt, messages};
use clap::Args;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::metric::DURATION_S;
use feedrate_measure::record::Record;
use feedrate_measure::summary::EpochSummary;
use feedrate_report::run_page;
use feedrate_session::execute::RunObserver;
use feedrate_session::folder;
use feedrate_session::launch;
use feedrate_session::request::Request;
use feedrate_session::resolve::Resolved;
use feedrate_session::run::{RunOutcome, RunRequest, RunSession};
use feedrate_spec::escape::{bash_command, path_text};
use feedrate_spec::listener::{Listener, Silent};
use feedrate_spec::plan::{ClientProfile, Expectations};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::workload::override_without_secret;
use std::path::PathBuf;
use std::sync::Arc;

/// How to run with the user's client in several processes.
pub(super) const SEPARATE_CALIBRATION: &str = "write its costs into the workload by `feedrate calibrate SCRIPT.py:FUNCTION -o FILE`, and run that without `--client`";

/// `feedrate run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate run unet3d_h100 -n 4 --data /mnt/fs         feeds 4 accelerators?
  feedrate run --data DIR --batch 64 --compute 50ms    your own files")]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) data: DataArguments,
    #[command(flatten)]
    pub(super) step: StepArguments,
    /// Measure your own loader's cost, and include it.
    #[arg(long, value_name = "SCRIPT:FUNCTION", help_heading = WORKLOAD, conflicts_with_all = ["rehearse", "study"])]
    pub(super) client: Option<String>,
    /// Python for `--client`.
    #[arg(long, value_name = "PROGRAM", default_value = "python3", help_heading = WORKLOAD, requires = "client")]
    pub(super) python: PathBuf,
    /// Overrides with the measured client.
    #[arg(skip)]
    measured_client: Vec<String>,
    /// Compare every byte that is read with the generated content.
    #[arg(long, help_heading = WORKLOAD, hide_short_help = true)]
    pub(super) verify: bool,
    #[command(flatten)]
    pub(super) cache: CacheArguments,
    /// Folder of all results [default: `output.folder`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(super) results: Option<PathBuf>,
    /// Folder of this run's results, new or empty [default: in `--results`, named by the time].
    #[arg(long, value_name = "DIR", conflicts_with = "results", help_heading = OUTPUT, hide_short_help = true)]
    pub(super) run_dir: Option<PathBuf>,
    /// Write DLIO's two files per accelerator even for more than 1,024 accelerators.
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub(super) rank_files: bool,
    /// Print all measurements (`show --details`).
    #[arg(long, help_heading = OUTPUT)]
    pub(super) details: bool,
    /// Print the plan and run nothing.
    #[arg(long, help_heading = WORKLOAD, conflicts_with = "write_yaml")]
    pub(super) dry_run: bool,
    /// Make N runs and report their means.
    ///
    /// The gates judge the means. From ten runs on, outliers are named.
    #[arg(long, value_name = "N", value_parser = parse_count::<u16>, help_heading = WORKLOAD, conflicts_with_all = ["run_dir", "write_yaml", "trace", "rank_files", "details", "study", "rehearse", "accelerators_per_rank"])]
    pub(super) repeat: Option<u16>,
    /// Make N runs first that do not count.
    #[arg(long, value_name = "N", value_parser = parse_count::<u16>, help_heading = WORKLOAD, requires = "repeat")]
    pub(super) warmup: Option<u16>,
    /// Make and judge an MLPerf submission's runs.
    #[arg(long, help_heading = WORKLOAD, conflicts_with_all = ["run_dir", "verify", "write_yaml", "trace", "rank_files", "details", "fail_below_au", "fail_on", "junit", "openmetrics", "study", "accelerators_per_rank"])]
    pub(super) rehearse: bool,
    /// Repeat the runs of an earlier rehearsal; their results are moved aside.
    #[arg(long, help_heading = WORKLOAD, requires = "rehearse", hide_short_help = true)]
    pub(super) again: bool,
    /// Write the workload with all overrides.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) write_yaml: Option<PathBuf>,
    /// Write a trace of every I/O operation and step, `NAME.pfw.gz`, for Perfetto or dfanalyzer; one file per rank.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    pub(super) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(super) gates: GateArguments,
    #[command(flatten)]
    pub(super) exports: ExportArguments,
    #[command(flatten)]
    pub(super) launch: LaunchArguments,
    /// Hydra's flag for several runs. It is refused; the hint shows the equivalent study.
    #[arg(short, long, hide = true)]
    pub(super) multirun: bool,
    /// JSON file that describes the run's row in its study. It is copied into the record.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) study: Option<PathBuf>,
    /// Folder of Hydra's files in the run's results.
    #[arg(long, value_name = "NAME", default_value = ".hydra", hide = true)]
    pub(super) hydra_folder: String,
}

impl RunArguments {
    /// The request for a run of `processes` processes.
    pub(super) fn request(&self, processes: u32) -> Request {
        let mut request = self.data.request();
        // Other overrides replace those of the client.
        request.overrides.splice(0..0, self.measured_client.iter().cloned());
        request.overrides.extend(self.step.clone().take_overrides());
        let cache = self.cache.cache();
        Request { processes: Some(processes), cache, verify: self.verify, ..request }
    }

    /// Measures the client of `--client`. What is known to be wrong is refused first, since measuring runs the user's code for a while.
    pub(super) fn with_measured_client(&self) -> anyhow::Result<Self> {
        let Some(source) = &self.client else { return Ok(self.clone()) };
        launch::refuse_if_several(crate::launched().as_ref(), || {
            Refusal::new(
                "`--client` runs your code, but several processes were started",
                SEPARATE_CALIBRATION,
            )
        })?;
        if folder::resolve(&self.request(1), &Silent).is_err() {
            // The batch size and workers, which are measured, may be what does not fit.
            let smallest = ["reader.batch_size=1", "reader.read_threads=1"].map(String::from);
            let smallest = RunArguments { measured_client: smallest.to_vec(), ..self.clone() };
            folder::resolve(&smallest.request(1), &Silent)?;
        }
        let measured_client = calibrate::client_overrides(source, &self.step, &self.python)?;
        Ok(RunArguments { measured_client, ..self.clone() })
    }

    fn run_request(&self) -> RunRequest {
        RunRequest {
            request: self.request(1),
            launch: self.launch.options(),
            results: self.results.clone(),
            run_dir: self.run_dir.clone(),
            write_yaml: self.write_yaml.clone(),
            trace: self.trace.clone(),
            study: self.study.clone(),
            writes_rank_files: self.rank_files,
            hydra_folder: self.hydra_folder.clone(),
        }
    }

    /// Prints the result of a run, and checks its gates.
    fn report(&self, outcome: &RunOutcome) -> anyhow::Result<Exit> {
        let RunOutcome { record, folder, found, .. } = outcome;
        // A study judges its runs itself.
        let expect = if self.study.is_some() {
            Expectations::default()
        } else {
            record.plan.metric.expect.clone()
        };
        let target_percent = self.gates.target_percent(&expect);
        let mut summary = AnsweredSummary::with_target(record, target_percent);
        summary.summary.run_dir = folder.as_ref().map(|folder| path_text(folder));
        let output_mode = match (self.data.json, self.details) {
            (true, _) => OutputMode::Json,
            (false, true) => OutputMode::Details,
            (false, false) => OutputMode::Answer,
        };
        let next = follow_up_command(self, record);
        let gates = self.gates.judge(&expect, std::slice::from_ref(&summary));
        let output = PrintedRun { found: found.as_ref(), gates: &gates, next: next.as_deref() };
        let printed = summary::print(&summary, record, output_mode, &output);
        let exit = gate::exit(&gates);
        let duration_s = summary.summary.figures.value(&DURATION_S);
        let workload = &record.plan.workload;
        let mut cases = vec![TestCase::for_run(record, duration_s)];
        cases.extend(gates.iter().map(|gate| TestCase::for_gate(workload, gate)));
        let suite = TestSuite { name: format!("feedrate run {workload}"), cases };
        let metrics = MetricSet::for_runs(export::labels(record), &[summary], &gates);
        self.exports.write(&suite, &[metrics])?;
        printed.map(|()| exit)
    }
}

/// Runs a workload.
pub(super) fn run(given: &RunArguments) -> anyhow::Result<Exit> {
    if given.dry_run {
        if given.client.is_some() {
            messages::note("`--client` is not measured in a dry run: the plan is without it");
        }
        return plan::dry_run(&given.request(1), PlannedCommand::Run, given.data.json);
    }
    let arguments = &given.with_measured_client()?;
    let run = &arguments.run_request();
    let signals = &interrupt::signals();
    let listener = &(Arc::new(arguments.data.listener()) as Arc<dyn Listener>);
    let mut observer =
        EpochLines { is_shown: !arguments.data.json, listener: Arc::clone(listener) };
    let session = RunSession { run, signals, listener };
    let exit = session.execute(&mut observer, |outcome| arguments.report(outcome))?;
    Ok(exit.unwrap_or(Exit::Fine))
}

/// Suggests the next command after a run on the user's own files. Such a run measures only the storage; the next includes the user's code.
fn follow_up_command(arguments: &RunArguments, record: &Record) -> Option<String> {
    let plan = &record.plan;
    let is_foreign = record.data_request.as_ref().is_some_and(|request| request.foreign);
    if !is_foreign || plan.loader.client.is_some() {
        return None;
    }
    let mut request = arguments.request(1);
    if let Some(file) = &arguments.write_yaml {
        let Request { accelerators, cache, .. } = request;
        let workload = file.display().to_string();
        request = Request { workload, accelerators, cache, ..Request::default() };
    }
    let (code, command) = match ClientProfile::find_for(plan) {
        Some(profile) => {
            request.overrides.push(format!("client={}", profile.name));
            let overrides = request.overrides.iter_mut();
            overrides.for_each(|text| *text = override_without_secret(text));
            let words = request.run_arguments().into_iter();
            let words =
                ["feedrate".into()].into_iter().chain(words.filter(|word| !word.is_empty()));
            ("the costs of plain PyTorch code", bash_command(&words.collect::<Vec<_>>()))
        }
        None => ("the costs of your own code", calibrate::command(&plan.loader, &request.workload)),
    };
    Some(format!("To include {code}:\n  {command}"))
}

/// Prints a line per epoch and checkpoint.
struct EpochLines {
    is_shown: bool,
    listener: Arc<dyn Listener>,
}

impl RunObserver for EpochLines {
    fn after_planning(&mut self, resolved: &Resolved, request: &Request) {
        messages::detail(|| plan::page(resolved, request));
    }

    fn after_epoch(&mut self, record: &Record) {
        if self.is_shown
            && !self.listener.redraws_progress()
            && let Some(epoch) = record.epochs.last()
        {
            let computes = record.plan.train.compute.mean_s() > 0.0;
            let epoch = EpochSummary::new(record, epoch);
            let epochs = record.plan.train.epochs_run();
            self.listener.note(run_page::epoch_line(&epoch, epochs, computes));
        }
    }

    fn after_checkpoint(&mut self, record: &Record) {
        let last = record.epochs.last().and_then(|epoch| epoch.checkpoints.last());
        if self.is_shown
            && let Some(checkpoint) = last
        {
            self.listener.note(run_page::checkpoint_line(checkpoint));
        }
    }
}
