//! `feedrate run`: generate what is missing, train, say whether the storage kept up.

use crate::cli::RunArguments;
use crate::dataset::{self, Dataset, Want};
use crate::exit::{Exit, Interrupted};
use crate::interrupt;
use crate::messages;
use crate::progress::TrainingLine;
use crate::resolve::{Resolved, Wish, resolve};
use crate::results;
use crate::summary;
use anyhow::Context;
use feedrate_measure::dlio::{self, HydraText};
use feedrate_measure::record::{RECORD_VERSION, Record, file};
use feedrate_measure::summary::Summary;
use feedrate_run::clock::Clock;
use feedrate_run::comm::Solo;
use feedrate_run::drive::{Job, Live, RealDriver};
use feedrate_run::session::{self, Session};
use feedrate_run::{system, wrap};
use feedrate_spec::plan;
use feedrate_spec::workload::resolved_yaml;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// The record is rewritten while the run goes, but not more often than this.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Run a workload.
pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    let wish = Wish { cold: arguments.cold, verify: arguments.verify, generate_only: false };
    let resolved = resolve(&arguments.data, wish)?;
    let interrupted = interrupt::flag();
    let want = Want {
        root: &resolved.data_root,
        foreign: arguments.data.foreign,
        check_files: false,
        quiet: arguments.data.quiet,
        interrupted: &interrupted,
    };
    let estimate = plan::estimate(&resolved.plan, &resolved.catalog);
    let (dataset, _) = dataset::ready(&resolved.plan, &want, estimate.file_bytes)?;
    let run_dir = results::make_run_dir(&results_root(arguments, &resolved), &resolved.plan)?;
    let hydra = hydra(&resolved, arguments, &run_dir);
    let mut record = new_record(&resolved, &dataset, &run_dir);
    let outcome = train(arguments, &resolved, &dataset, &run_dir, &interrupted, &mut record);
    record.ended = results::wall(SystemTime::now());
    if let Err(error) = &outcome {
        record.stopped_because = Some(format!("{error:#}"));
    }
    file::write(&run_dir, &record).context("cannot write the results")?;
    dlio::write(&run_dir, &record, &hydra).context("cannot write the results")?;
    outcome.with_context(|| {
        format!("the run failed; what was measured is in `{}`", run_dir.display())
    })?;
    if interrupted.load(Relaxed) {
        return Err(Interrupted(run_dir.display().to_string()).into());
    }
    let mut summary = Summary::of(&record);
    summary.run_dir = Some(run_dir.display().to_string());
    summary::print(&summary, &record, arguments.data.json)?;
    Ok(exit(arguments, &summary))
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

fn train(
    arguments: &RunArguments,
    resolved: &Resolved,
    dataset: &Dataset,
    run_dir: &Path,
    interrupted: &Arc<AtomicBool>,
    record: &mut Record,
) -> anyhow::Result<()> {
    let clock = Clock::new();
    let plan = &resolved.plan;
    let storage = wrap::wrapped(&plan.storage, Arc::clone(&dataset.storage), clock);
    let job = Job::new(plan, storage, dataset.trusts_plan)?;
    let spins = session::may_spin(&job, system::idle_cores());
    record.compute_spins = spins;
    let live = Arc::new(Live::default());
    let mut driver = RealDriver::new(
        job,
        clock,
        Arc::new(Solo),
        Arc::clone(interrupted),
        Arc::clone(&live),
        spins,
    )?;
    let line = TrainingLine::start(
        live,
        plan.train.epochs_run(),
        arguments.data.quiet || arguments.data.json,
    );
    let device = record.system.data_mount.as_ref().map(|mount| mount.device.clone());
    let mut saved = Instant::now();
    let plain = !(arguments.data.quiet || arguments.data.json || std::io::stderr().is_terminal());
    let mut on_epoch = |record: &Record| {
        if plain && let Some(epoch) = Summary::of(record).per_epoch.last() {
            messages::say(summary::epoch_line(epoch, plan.train.epochs_run()));
        }
        if saved.elapsed() > SAVE_EVERY {
            if let Err(error) = file::write(run_dir, record) {
                messages::say(format!("warning: {error}"));
            }
            saved = Instant::now();
        }
    };
    let mut session = Session {
        plan,
        layout: &dataset.layout,
        storage: &*dataset.storage,
        clock,
        device: device.as_deref(),
        wall: &results::wall,
        interrupted: &|| interrupted.load(Relaxed),
        on_epoch: &mut on_epoch,
    };
    let outcome = session.run(&mut driver, record);
    drop(line);
    Ok(outcome?)
}

fn new_record(resolved: &Resolved, dataset: &Dataset, run_dir: &Path) -> Record {
    Record {
        version: RECORD_VERSION,
        program: concat!("feedrate ", env!("CARGO_PKG_VERSION")).into(),
        plan: resolved.plan.clone(),
        system: system::system(Some(&dataset.folder), Some(run_dir)),
        started: results::wall(SystemTime::now()),
        ended: String::new(),
        complete: false,
        stopped_because: None,
        compute_spins: false,
        simulated: false,
        epochs: Vec::new(),
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
