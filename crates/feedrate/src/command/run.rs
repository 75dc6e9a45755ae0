//! `feedrate run`: generate what is missing, train, say whether the storage kept up.

use crate::cli::RunArguments;
use crate::dataset::{self, Choice, DatasetRequest};
use crate::execute::{self, Execution, Talk};
use crate::exit::{Exit, Interrupted, UsageError};
use crate::interrupt;
use crate::launch::{self, Launch, decided, together};
use crate::messages;
use crate::resolve::{PlanOptions, Resolved, resolve_for, unheeded};
use crate::results::{self, Results};
use crate::summary;
use feedrate_measure::dlio::Invocation;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::record::{Record, StudyRun};
use feedrate_measure::summary::{EpochSummary, Summary};
use feedrate_run::comm::Comm;
use feedrate_run::driver::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::Plan;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Run a workload.
pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<Exit> {
    refuse_contradictions(arguments)?;
    let launch = Launch::try_from(&arguments.launch)?;
    let signals = Signals { interrupted: interrupt::flag(), ..Signals::default() };
    together(&launch, &signals, |comm| run_on(comm, arguments, &signals))
}

/// Decision of rank 0.
#[derive(Serialize, Deserialize)]
struct Decision {
    plan: Plan,
    choice: Option<Choice>,
    run_dir: PathBuf,
    study: Option<StudyRun>,
}

fn run_on(
    comm: &Arc<dyn Comm>,
    arguments: &RunArguments,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let mut invocation = None;
    let decision = decided(&**comm, || {
        let (decision, asked) = decide(comm.size(), arguments)?;
        invocation = Some(asked);
        Ok(decision)
    })?;
    let Decision { plan, choice, run_dir, study } = decision;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let quiet = arguments.data.quiet;
    let ready =
        |choice| dataset::ready(&plan, choice, &ranks, quiet, &signals.interrupted).map(|d| d.0);
    let dataset = choice.map(ready).transpose();
    let dataset = dataset.inspect_err(|_| {
        if ranks.is_first() {
            results::remove_empty(&run_dir);
        }
    })?;
    let results = invocation.map(|invocation| Results { folder: run_dir.clone(), invocation });
    let record = execute::new_record(&plan, dataset.as_ref(), Some(&run_dir));
    let mut execution = Execution {
        ranks: &ranks,
        record: of_study(record, study),
        results: results.as_ref(),
        talk: &mut Told::new(arguments, &plan, ranks.is_first()),
        signals,
    };
    let outcome = execution.run(&plan, dataset.as_ref());
    end(arguments, execution.record, &run_dir, ranks.is_first(), outcome)
}

/// The record of a run that belongs to `study`.
fn of_study(record: Record, study: Option<StudyRun>) -> Record {
    let doubts = study.iter().flat_map(|study| study.doubts.clone()).collect();
    Record { study: study.map(Box::new), doubts, ..record }
}

/// Write what was measured, say what came of it.
fn end(
    arguments: &RunArguments,
    record: Record,
    run_dir: &Path,
    tells: bool,
    outcome: anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let folder = run_dir.display();
    outcome.map_err(|error| {
        error.context(format!("the run failed; what was measured is in `{folder}`"))
    })?;
    let mut code = Exit::Fine;
    if tells {
        let mut summary = Summary::new(&record);
        summary.run_dir = Some(folder.to_string());
        summary::print(&summary, &record, arguments.data.json)?;
        code = exit(arguments, &summary);
    }
    if !record.complete {
        return Err(Interrupted(folder.to_string()).into());
    }
    Ok(code)
}

/// Plan, make the folder of the results, and find the dataset.
fn decide(processes: u32, arguments: &RunArguments) -> anyhow::Result<(Decision, Invocation)> {
    let options = PlanOptions {
        processes: Some(processes),
        cache: arguments.cache(),
        verify: arguments.verify,
        generate_only: false,
    };
    let data = &arguments.data;
    let per_rank = arguments.launch.accelerators_per_rank;
    let accelerators = launch::accelerators(processes, data.accelerators, per_rank)?;
    let resolved = resolve_for(data, accelerators, options)?;
    if !data.quiet {
        for key in unheeded(&resolved.workload) {
            messages::say(format!("note: no effect: {key}"));
        }
    }
    let mut choice = None;
    if !resolved.plan.is_checkpoints_alone() {
        let request =
            DatasetRequest { root: &resolved.data_root, foreign: data.foreign, check_files: false };
        choice = Some(dataset::choose(&resolved.plan, &request)?);
    }
    let study = arguments.study.as_deref().map(results::read_study_run).transpose()?;
    let run_dir = match &arguments.run_dir {
        Some(run_dir) => results::take_run_dir(run_dir)?,
        None => {
            let root = results::root(arguments.results.as_deref(), &resolved.workload);
            results::make_run_dir(&root, &resolved.plan)?
        }
    };
    let invocation = invocation(&resolved, arguments, &run_dir);
    Ok((Decision { plan: resolved.plan, choice, run_dir, study }, invocation))
}

fn refuse_contradictions(arguments: &RunArguments) -> Result<(), UsageError> {
    if arguments.data.foreign && arguments.verify {
        return Err(UsageError::new(
            "`--verify` compares with what feedrate generates, which `--foreign` files are not",
            "leave one of them out",
        ));
    }
    Ok(())
}

fn exit(arguments: &RunArguments, summary: &Summary) -> Exit {
    match arguments.fail_below_au {
        Some(least) if summary.figures.value(&AU_ALL_STEPS).is_none_or(|au| au < least) => {
            messages::say(format!(
                "au_all_steps is below the {least} % that --fail-below-au asks for"
            ));
            Exit::Unmet
        }
        _ => Exit::Fine,
    }
}

/// Tells of epochs and checkpoints, a line each.
struct Told {
    epochs: u32,
    tells_epochs: bool,
    tells: bool,
}

impl Told {
    fn new(arguments: &RunArguments, plan: &Plan, is_first: bool) -> Self {
        let tells = is_first && !arguments.data.quiet && !arguments.data.json;
        let tells_epochs = tells && !std::io::stderr().is_terminal();
        Told { epochs: plan.train.epochs_run(), tells_epochs, tells }
    }
}

impl Talk for Told {
    fn epoch(&mut self, record: &Record) {
        if self.tells_epochs
            && let Some(epoch) = record.epochs.last()
        {
            let epoch = EpochSummary::new(record, epoch);
            messages::say(summary::epoch_line(&epoch, self.epochs));
        }
    }

    fn checkpoint(&mut self, record: &Record) {
        let last = record.epochs.last().and_then(|epoch| epoch.checkpoints.last());
        if self.tells
            && let Some(checkpoint) = last
        {
            messages::say(summary::checkpoint_line(checkpoint));
        }
    }

    fn draws(&self) -> bool {
        self.tells
    }
}

/// Files that Hydra would have written beside the results.
fn invocation(resolved: &Resolved, arguments: &RunArguments, run_dir: &Path) -> Invocation {
    let mut typed = vec![format!("workload={}", resolved.plan.workload)];
    typed.extend(arguments.data.overrides.iter().cloned());
    let (name, workload) = (&resolved.plan.workload, &resolved.workload);
    let hydra = results::hydra_text(&typed, &[], name, workload, run_dir, ".hydra");
    Invocation { subfolder: ".hydra".into(), hydra, ..Invocation::default() }
}
