//! `feedrate run`: generate what is missing, train, say whether the storage kept up.

use crate::cli::RunArguments;
use crate::dataset::{self, Dataset, Want};
use crate::exit::{Exit, Interrupted, UsageError};
use crate::interrupt;
use crate::messages;
use crate::progress::TrainingLine;
use crate::resolve::{Resolved, Wish, resolve, unheeded};
use crate::results;
use crate::summary;
use anyhow::Context;
use feedrate_measure::dlio::{self, HydraText};
use feedrate_measure::plot_data;
use feedrate_measure::record::{RECORD_VERSION, Record, file};
use feedrate_measure::summary::{EpochSummary, Summary};
use feedrate_run::alone::Alone;
use feedrate_run::clock::Clock;
use feedrate_run::comm::Solo;
use feedrate_run::drive::{Driver, Job, Progress, RealDriver, Signals};
use feedrate_run::session::{self, Drivers, Session};
use feedrate_run::system::TimelineSampler;
use feedrate_run::{system, wrap};
use feedrate_spec::plan::{self, Plan};
use feedrate_spec::workload::resolved_yaml;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// The results are rewritten while the run goes, but not more often than this.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Run a workload.
pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    let wish = Wish { cold: arguments.cold, verify: arguments.verify, generate_only: false };
    refuse_contradictions(arguments)?;
    let resolved = resolve(&arguments.data, wish)?;
    system::raise_open_files();
    if !arguments.data.quiet {
        for key in unheeded(&resolved.workload) {
            messages::say(format!("note: no effect: {key}"));
        }
    }
    let interrupted = interrupt::flag();
    let run_dir = results::make_run_dir(&results_root(arguments, &resolved), &resolved.plan)?;
    let dataset = match resolved.plan.is_checkpoints_alone() {
        true => None,
        false => Some(
            dataset(arguments, &resolved, &interrupted)
                .inspect_err(|_| results::remove_empty(&run_dir))?,
        ),
    };
    let mut run = Run {
        arguments,
        record: new_record(&resolved, &data_folder(&resolved, dataset.as_ref()), &run_dir),
        hydra: hydra(&resolved, arguments, &run_dir),
        run_dir,
    };
    let signals = Signals { interrupted, ..Signals::default() };
    let outcome = run.save().and_then(|()| match &dataset {
        Some(dataset) => run.train(&resolved, dataset, &signals),
        None => run.write_checkpoints(&resolved.plan, &signals),
    });
    run.end(outcome)
}

/// The dataset of the plan, generated where it is missing.
fn dataset(
    arguments: &RunArguments,
    resolved: &Resolved,
    interrupted: &AtomicBool,
) -> anyhow::Result<Dataset> {
    let want = Want {
        root: &resolved.data_root,
        foreign: arguments.data.foreign,
        check_files: false,
        quiet: arguments.data.quiet,
        interrupted,
    };
    let estimate = plan::estimate(&resolved.plan, &resolved.catalog);
    Ok(dataset::ready(&resolved.plan, &want, estimate.file_bytes)?.0)
}

/// What is under test: the dataset, or the checkpoints where there is none.
fn data_folder(resolved: &Resolved, dataset: Option<&Dataset>) -> PathBuf {
    match (dataset, &resolved.plan.checkpoint) {
        (Some(dataset), _) => dataset.folder.clone(),
        (None, Some(checkpoint)) => PathBuf::from(&checkpoint.folder),
        (None, None) => resolved.data_root.clone(),
    }
}

fn refuse_contradictions(arguments: &RunArguments) -> Result<(), UsageError> {
    if arguments.data.foreign && arguments.verify {
        return Err(UsageError {
            message:
                "`--verify` compares with what feedrate generates, which `--foreign` files are not"
                    .into(),
            hint: Some("leave one of them out".into()),
        });
    }
    Ok(())
}

/// A run on its way to its results.
struct Run<'a> {
    arguments: &'a RunArguments,
    record: Record,
    hydra: HydraText,
    run_dir: PathBuf,
}

impl Run<'_> {
    fn save(&self) -> anyhow::Result<()> {
        save(&self.run_dir, &self.record, &self.hydra)
    }

    /// Write what was measured, say what came of it.
    fn end(mut self, outcome: anyhow::Result<()>) -> anyhow::Result<Exit> {
        self.record.ended = results::wall(SystemTime::now());
        if let Err(error) = &outcome {
            self.record.stopped_because = Some(format!("{error:#}"));
        }
        let saved = self.save();
        if let Err(error) = outcome {
            if let Err(unsaved) = saved {
                messages::say(format!("warning: {unsaved:#}"));
            }
            return Err(error.context(format!(
                "the run failed; what was measured is in `{}`",
                self.run_dir.display()
            )));
        }
        saved?;
        let mut summary = Summary::of(&self.record);
        summary.run_dir = Some(self.run_dir.display().to_string());
        summary::print(&summary, &self.record, self.arguments.data.json)?;
        if !self.record.complete {
            return Err(Interrupted(self.run_dir.display().to_string()).into());
        }
        Ok(exit(self.arguments, &summary))
    }
}

/// The record and what DLIO would have written beside it.
fn save(run_dir: &Path, record: &Record, hydra: &HydraText) -> anyhow::Result<()> {
    file::write(run_dir, record)
        .and_then(|()| dlio::write(run_dir, record, hydra, plot_data::files(record)))
        .context("cannot write the results")
}

fn exit(arguments: &RunArguments, summary: &Summary) -> Exit {
    match arguments.fail_below_au {
        Some(least) if summary.au.all_steps_percent.is_none_or(|au| au < least) => {
            messages::say(format!(
                "au_all_steps is below the {least} % that --fail-below-au asks for"
            ));
            Exit::Unmet
        }
        _ => Exit::Fine,
    }
}

fn results_root(arguments: &RunArguments, resolved: &Resolved) -> PathBuf {
    match (&arguments.results, &resolved.workload.output_folder) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => PathBuf::from(folder),
        (None, None) => PathBuf::from("results"),
    }
}

impl Run<'_> {
    fn train(
        &mut self,
        resolved: &Resolved,
        dataset: &Dataset,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let clock = Clock::new();
        let plan = &resolved.plan;
        let inner = Arc::clone(&dataset.storage);
        let storage = wrap::wrapped(&plan.storage, inner, clock, &signals.stop);
        let evaluations = Job::of_evaluations(plan, Arc::clone(&storage), dataset.trusts_plan)?;
        let job = Job::new(plan, storage, dataset.trusts_plan)?;
        let spins = session::may_spin(&job, system::idle_cores());
        self.record.compute_spins = spins;
        let driver = |job| RealDriver::new(job, clock, Arc::new(Solo), signals.clone(), spins);
        let mut evaluation = evaluations.map(driver).transpose()?;
        let mut training = driver(job)?;
        let silent = self.arguments.data.quiet || self.arguments.data.json;
        let line = TrainingLine::start(Arc::clone(&signals.live), plan.train.epochs_run(), silent);
        let device = self.record.system.data_mount.as_ref().map(|mount| mount.device.clone());
        let work = [Some(&training), evaluation.as_ref()].into_iter().flatten();
        let work: Vec<_> = work.map(RealDriver::progress).collect();
        let timeline = timeline(plan, clock, device.as_deref(), work)?;
        let mut keeper = Keeper::new(&self.run_dir, &self.hydra, plan, silent);
        let mut session = Session {
            plan,
            layout: &dataset.layout,
            storage: &*dataset.storage,
            clock,
            device: device.as_deref(),
            timeline: timeline.as_ref(),
            wall: &results::wall,
            interrupted: &|| signals.interrupted.load(Relaxed),
            on_epoch: &mut |record| keeper.epoch(record),
        };
        let drivers = Drivers {
            training: &mut training,
            evaluation: evaluation.as_mut().map(|driver| driver as &mut dyn Driver),
        };
        let outcome = session.run(drivers, &mut self.record);
        drop((line, timeline));
        let left_behind =
            training.left_behind() + evaluation.as_ref().map_or(0, RealDriver::left_behind);
        if left_behind > 0 {
            messages::say(format!(
                "warning: {left_behind} of the workers hang in a read that does not come back"
            ));
        }
        Ok(outcome?)
    }
}

/// What samples the run, unless the plan wants none.
fn timeline(
    plan: &Plan,
    clock: Clock,
    device: Option<&str>,
    work: Vec<Progress>,
) -> anyhow::Result<Option<TimelineSampler>> {
    plan.timeline
        .then(|| TimelineSampler::start(clock, device, work, system::nvml_gpus))
        .transpose()
        .context("cannot start the thread that samples the timeline")
}

impl Run<'_> {
    /// A run of checkpoints only.
    fn write_checkpoints(&mut self, plan: &Plan, signals: &Signals) -> anyhow::Result<()> {
        let Some(checkpoint) = &plan.checkpoint else { return Ok(()) };
        let device = self.record.system.data_mount.as_ref().map(|mount| mount.device.clone());
        let silent = self.arguments.data.quiet || self.arguments.data.json;
        let mut keeper = Keeper::new(&self.run_dir, &self.hydra, plan, silent);
        let clock = Clock::new();
        let timeline = timeline(plan, clock, device.as_deref(), Vec::new())?;
        let mut alone = Alone {
            plan: checkpoint,
            cold: plan.train.cold,
            clock,
            timeline: timeline.as_ref(),
            device: device.as_deref(),
            wall: &results::wall,
            interrupted: &|| signals.interrupted.load(Relaxed),
            on_checkpoint: &mut |record| keeper.checkpoint(record),
        };
        Ok(alone.run(&mut self.record)?)
    }
}

/// Tells of epochs and keeps the results of those that were, while the run goes on.
struct Keeper<'a> {
    run_dir: &'a Path,
    hydra: &'a HydraText,
    epochs: u32,
    tells: bool,
    silent: bool,
    next_save: Instant,
}

impl<'a> Keeper<'a> {
    fn new(run_dir: &'a Path, hydra: &'a HydraText, plan: &Plan, silent: bool) -> Self {
        let tells = !silent && !std::io::stderr().is_terminal();
        let next_save = Instant::now() + SAVE_EVERY;
        Keeper { run_dir, hydra, epochs: plan.train.epochs_run(), tells, silent, next_save }
    }

    fn epoch(&mut self, record: &Record) {
        if self.tells
            && let Some(epoch) = record.epochs.last()
        {
            let epoch = EpochSummary::of(record, epoch);
            messages::say(summary::epoch_line(&epoch, self.epochs));
        }
        self.keep(record);
    }

    fn checkpoint(&mut self, record: &Record) {
        let last = record.epochs.last().and_then(|epoch| epoch.checkpoints.last());
        if let Some(checkpoint) = last.filter(|_| !self.silent) {
            messages::say(summary::checkpoint_line(checkpoint));
        }
        self.keep(record);
    }

    fn keep(&mut self, record: &Record) {
        let begun = Instant::now();
        if begun >= self.next_save {
            if let Err(error) = save(self.run_dir, record, self.hydra) {
                messages::say(format!("warning: {error:#}"));
            }
            // Of many accelerators there is much to write: it must stay a small part of the run.
            self.next_save = Instant::now() + SAVE_EVERY.max(20 * begun.elapsed());
        }
    }
}

fn new_record(resolved: &Resolved, data_folder: &Path, run_dir: &Path) -> Record {
    Record {
        version: RECORD_VERSION,
        program: concat!("feedrate ", env!("CARGO_PKG_VERSION")).into(),
        plan: resolved.plan.clone(),
        system: system::system(Some(data_folder), Some(run_dir)),
        started: results::wall(SystemTime::now()),
        ended: String::new(),
        complete: false,
        stopped_because: None,
        compute_spins: false,
        simulated: false,
        epochs: Vec::new(),
        evaluations: Vec::new(),
        timeline: None,
        doubts: Vec::new(),
    }
}

/// What Hydra would have written beside the results.
fn hydra(resolved: &Resolved, arguments: &RunArguments, run_dir: &Path) -> HydraText {
    let mut overrides = format!("- workload={}\n", resolved.plan.workload);
    for text in &arguments.data.overrides {
        let text = serde_json::Value::from(text.as_str());
        overrides.push_str(&format!("- {text}\n"));
    }
    let dir = serde_json::Value::from(run_dir.display().to_string());
    HydraText {
        config: resolved_yaml(&resolved.workload),
        hydra: format!(
            "hydra:\n  run:\n    dir: {dir}\n  output_subdir: .hydra\n  overrides:\n    task:\n{}",
            indented(&overrides)
        ),
        overrides,
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
