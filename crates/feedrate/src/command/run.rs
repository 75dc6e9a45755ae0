//! `feedrate run`: generate what is missing, train, say whether the storage kept up.

use super::{calibrate, plan};
use crate::cli::{CacheArguments, DataArguments, LaunchArguments, OUTPUT, StepArguments, WHAT};
use crate::exit::Exit;
use crate::gate::GateArguments;
use crate::summary::{self, OutputMode};
use crate::{interrupt, messages};
use clap::Args;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::record::Record;
use feedrate_measure::summary::EpochSummary;
use feedrate_report::run_page;
use feedrate_session::execute::RunObserver;
use feedrate_session::request::Request;
use feedrate_session::resolve::Resolved;
use feedrate_session::run::{RunOutcome, RunRequest, RunSession};
use feedrate_spec::escape::{bash_command, shown_path};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::ClientProfile;
use std::path::PathBuf;
use std::sync::Arc;

/// `feedrate run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate run unet3d_h100 -n 4 --data /mnt/fs    does it feed 4 accelerators?
  feedrate run my.yaml reader.read_threads=8 --scale 0.1    a tenth of the data
  feedrate run --data DIR --batch 64 --compute 50ms    your own files")]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) data: DataArguments,
    #[command(flatten)]
    pub(super) step: StepArguments,
    /// Compare every byte that is read with what was generated.
    #[arg(long, help_heading = WHAT)]
    pub(super) verify: bool,
    #[command(flatten)]
    pub(super) cache: CacheArguments,
    /// Folder of all results [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(super) results: Option<PathBuf>,
    /// Folder of this run's results, new or empty [default: one named by the time, in the folder of all results].
    #[arg(long, value_name = "DIR", conflicts_with = "results", help_heading = OUTPUT)]
    pub(super) run_dir: Option<PathBuf>,
    /// Write DLIO's two files of each accelerator even if there are more than 1,024.
    #[arg(long, help_heading = OUTPUT)]
    pub(super) rank_files: bool,
    /// Print all that is known of the run, as `feedrate show` does, not the answer alone.
    #[arg(long, help_heading = OUTPUT)]
    pub(super) details: bool,
    /// Only say what would run, as `feedrate plan` does.
    #[arg(long, help_heading = WHAT)]
    pub(super) dry_run: bool,
    /// Write the workload as it is run, with every override, to this file.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) write_yaml: Option<PathBuf>,
    /// Write each I/O operation and step to a trace, `NAME.pfw.gz`, for Perfetto or dfanalyzer; each of several ranks writes its own.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(super) gates: GateArguments,
    #[command(flatten)]
    pub(super) launch: LaunchArguments,
    /// Hydra's flag for several runs, answered with the study that makes them.
    #[arg(short, long, hide = true)]
    pub(super) multirun: bool,
    /// The run's place in its study, as JSON, for its record.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) study: Option<PathBuf>,
}

impl RunArguments {
    /// The request for a run of `processes` processes.
    pub(super) fn request(&self, processes: u32) -> Request {
        let mut request = self.data.request();
        request.overrides.extend(self.step.clone().take());
        let cache = self.cache.cache();
        Request { processes: Some(processes), cache, verify: self.verify, ..request }
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
        }
    }

    /// Prints what a run measured.
    fn report(&self, outcome: &RunOutcome) -> anyhow::Result<Exit> {
        let RunOutcome { record, folder, found, .. } = outcome;
        let mut summary = AnsweredSummary::new(record);
        summary.summary.run_dir = folder.as_ref().map(|folder| shown_path(folder));
        let output_mode = match (self.data.json, self.details) {
            (true, _) => OutputMode::Json,
            (false, true) => OutputMode::Details,
            (false, false) => OutputMode::Answer,
        };
        let next = follow_up(self, record);
        summary::print(&summary, record, output_mode, found.as_ref(), next.as_deref())?;
        Ok(self.gates.exit(&summary))
    }
}

/// Runs a workload.
pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    if arguments.dry_run {
        return plan::dry_run(&arguments.request(1), arguments.data.json);
    }
    let run = &arguments.run_request();
    let signals = &interrupt::signals();
    let listener = &(Arc::new(arguments.data.listener()) as Arc<dyn Listener>);
    let mut observer = EpochLines { is_shown: !arguments.data.json };
    let session = RunSession { run, signals, listener };
    let exit = session.execute(&mut observer, |outcome| arguments.report(outcome))?;
    Ok(exit.unwrap_or(Exit::Fine))
}

/// The command that measures the job with its own code, for a run of a user's files, which measures the storage only.
fn follow_up(arguments: &RunArguments, record: &Record) -> Option<String> {
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
    let (whose, command) = match ClientProfile::find_for(plan) {
        Some(profile) => {
            request.overrides.push(format!("client={}", profile.name));
            let words = request.run_arguments().into_iter();
            let words =
                ["feedrate".into()].into_iter().chain(words.filter(|word| !word.is_empty()));
            ("plain PyTorch's code", bash_command(&words.collect::<Vec<_>>()))
        }
        None => {
            ("your own code, measured once", calibrate::command(&plan.loader, &request.workload))
        }
    };
    Some(format!("Your job's question, with {whose}:\n  {command}"))
}

/// Prints a line for each epoch and checkpoint.
struct EpochLines {
    is_shown: bool,
}

impl RunObserver for EpochLines {
    fn planned(&mut self, resolved: &Resolved, request: &Request) {
        messages::detail(|| plan::page(resolved, request));
    }

    fn epoch(&mut self, record: &Record) {
        if self.is_shown
            && !messages::is_live()
            && let Some(epoch) = record.epochs.last()
        {
            let computes = record.plan.train.compute.mean_s() > 0.0;
            let epoch = EpochSummary::new(record, epoch);
            messages::note(run_page::epoch_line(&epoch, record.plan.train.epochs_run(), computes));
        }
    }

    fn checkpoint(&mut self, record: &Record) {
        let last = record.epochs.last().and_then(|epoch| epoch.checkpoints.last());
        if self.is_shown
            && let Some(checkpoint) = last
        {
            messages::note(run_page::checkpoint_line(checkpoint));
        }
    }
}
