//! `dlio_benchmark`: what DLIO's users, their scripts and MLPerf Storage's wrapper call, in DLIO's place.

mod arguments;
mod compose;
mod data;
mod lines;
mod text;
mod postprocessor;

pub(crate) use compose::hides;
pub(crate) use postprocessor::report_name;

use crate::asked::Asked;
use crate::dataset::{self, Choice};
use crate::execute::{self, Execution};
use crate::exit::{Exit, Interrupted, TooManySteps, UsageError, code_of};
use crate::launch::{self, decided, together};
use crate::messages::Verbosity;
use crate::progress::Viewer;
use crate::results::{self, Results, RunFolder};
use crate::{front, messages, resolve, summary};
use arguments::{HydraArguments, Show};
use compose::{Composed, compose};
use feedrate_data::lock::DatasetLock;
use feedrate_measure::dlio::{self, EmptyEvaluations, Invocation};
use feedrate_measure::summary::Summary;
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::{DatasetPlan, Plan, Request};
use feedrate_spec::workload::{Workload, yaml_at};
use lines::{LogLines, LogTalk, level_from_environment};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Run `dlio_benchmark` with the arguments of this process.
pub(crate) fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => return ended(Err(error)).into(),
    };
    match arguments.show {
        Some(show) => ended(print(show, &arguments)).into(),
        None => {
            // The lines are DLIO's, and no others.
            messages::set_verbosity(Verbosity::Quiet);
            front::before(|| ended(start(&arguments)))
        }
    }
}

/// Run `dlio_benchmark_query`: print the value of the key that `workflow.query` names.
pub(crate) fn query() -> ExitCode {
    ended(arguments().and_then(|arguments| {
        if arguments.show == Some(Show::Help) {
            messages::print(text::QUERY_HELP)?;
            return Ok(Exit::Fine);
        }
        if let Some(show) = arguments.show {
            return print(show, &arguments);
        }
        let composed = compose(&arguments)?;
        let key = composed.workload.workflow_query.clone().unwrap_or_default();
        let value = yaml_at(&composed.workload, &key);
        messages::print(value.as_deref().unwrap_or("None").trim_end())?;
        Ok(Exit::Fine)
    }))
    .into()
}

/// Run `dlio_postprocessor`.
pub(crate) fn postprocessor() -> ExitCode {
    ended(postprocessor::postprocess()).into()
}

fn arguments() -> anyhow::Result<HydraArguments> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    Ok(HydraArguments::parse(words).map_err(UsageError::plain)?)
}

/// DLIO knows success and failure.
fn ended(outcome: anyhow::Result<Exit>) -> Exit {
    let code = outcome.unwrap_or_else(|error| {
        messages::print_error(&error);
        code_of(&error)
    });
    match code {
        Exit::Fine | Exit::Unmet | Exit::Undecided => Exit::Fine,
        Exit::Failed | Exit::Usage => Exit::Failed,
        Exit::Interrupted | Exit::TooManySteps => code,
    }
}

fn print(show: Show, arguments: &HydraArguments) -> anyhow::Result<Exit> {
    match show {
        Show::Help => messages::print(text::HELP)?,
        Show::HydraHelp => messages::print(text::HYDRA_HELP)?,
        Show::Version => {
            messages::print(concat!("dlio_benchmark of feedrate ", env!("CARGO_PKG_VERSION")))?
        }
        Show::Job | Show::Hydra | Show::All => {
            let hydra = compose(arguments)?.hydra(arguments);
            if show != Show::Hydra {
                messages::print(hydra.config.trim_end())?;
            }
            if show != Show::Job {
                messages::print(hydra.hydra.trim_end())?;
            }
        }
    }
    Ok(Exit::Fine)
}

fn start(arguments: &HydraArguments) -> anyhow::Result<Exit> {
    let level = level_from_environment().map_err(UsageError::plain)?;
    let asked = || {
        let hydra = [("hydra", Some(arguments.hydra.join(" ")))];
        let workload = compose(arguments).map(|composed| Some(composed.workload));
        Asked::new(&arguments.launch, hydra).workload(workload)
    };
    together(&arguments.launch, asked, |comm, signals| run_on(comm, arguments, level, signals))
}

/// Decision of rank 0 for all.
#[derive(Serialize, Deserialize)]
struct DlioDecision {
    /// The data to be made.
    generation: Option<(Plan, Choice)>,
    /// The run that follows and its data; without data, checkpoints alone.
    run: Option<(Plan, Option<Choice>)>,
    /// Where the results go.
    folder: PathBuf,
}

fn run_on(
    comm: &Arc<dyn Comm>,
    arguments: &HydraArguments,
    level: u8,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let (mut invocation, mut held, mut lock) = (Invocation::default(), None, None);
    let DlioDecision { generation, run, folder } = decided(&**comm, || {
        let (decision, asked, folder) = decide(comm.size(), arguments, signals, &mut lock)?;
        (invocation, held) = (asked, Some(folder));
        Ok(decision)
    })?;
    let is_first = comm.rank() == 0;
    let mut lines = LogLines::new(level, is_first);
    if let Some((plan, choice)) = &generation {
        let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
        let begun = results::wall_now();
        invocation.generation = Some((begun.clone(), String::new()));
        lines.say(&dlio::generation_log(plan.accelerators, &invocation));
        let made =
            dataset::ready(plan, Some(choice.clone()), lock, &ranks, Viewer::Nobody, signals)?;
        lock = made.and_then(|made| made.lock);
        invocation.generation = Some((begun, results::wall_now()));
        if is_first {
            dlio::write_generation(&folder, plan.accelerators, &invocation)?;
        }
        if run.is_none() {
            lines.say(&dlio::generation_log(plan.accelerators, &invocation));
        }
    }
    let Some((plan, mut choice)) = run else { return Ok(Exit::Fine) };
    if let (Some(choice), Some(_)) = (&mut choice, generation) {
        choice.incomplete = false;
    }
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let dataset = dataset::ready(&plan, choice, lock, &ranks, Viewer::Nobody, signals)?;
    let record = execute::new_record(&plan, dataset.as_ref(), Some(&folder));
    lines.say(&dlio::log(&record, &invocation, None));
    let results = Results { folder, invocation };
    let Results { folder, invocation } = &results;
    let mut execution = Execution {
        ranks: &ranks,
        record,
        results: is_first.then_some(&results),
        talk: &mut LogTalk { lines: &mut lines, invocation },
        viewer: Viewer::Nobody,
        signals,
        trace: None,
        unsaved: None,
    };
    let outcome = execution.run(&plan, dataset.as_ref());
    outcome.map_err(|error| error.context(execution.kept()))?;
    let Execution { record, unsaved, .. } = execution;
    if let Some(unsaved) = unsaved {
        lines.say(&dlio::log(&record, invocation, None));
        return Err(unsaved.into());
    }
    if !record.complete {
        return Err(Interrupted(folder.display().to_string()).into());
    }
    lines.say(&dlio::log(&record, invocation, Some(folder)));
    let summary = Summary::new(&record);
    if is_first && !summary.doubts.is_empty() {
        messages::say(summary::doubts(&summary));
    }
    drop(held);
    Ok(Exit::Fine)
}

/// Read the workload, plan, find and lock the data, make the folder.
fn decide(
    processes: u32,
    arguments: &HydraArguments,
    signals: &Signals,
    lock: &mut Option<DatasetLock>,
) -> anyhow::Result<(DlioDecision, Invocation, RunFolder)> {
    let mut composed = compose(arguments)?;
    let root = resolve::data_root(&composed.workload);
    let mut warnings = std::mem::take(&mut composed.warnings);
    let workload = &composed.workload;
    let request = Request {
        name: composed.name.clone(),
        accelerators: accelerators(processes, arguments, workload)?,
        processes: Some(processes),
        as_dlio: true,
        ..Request::default()
    };
    let generates = workload.workflow_generate_data;
    let goes_on = !generates || workload.workflow_train || writes_alone(workload);
    let mut run = goes_on.then(|| resolve::plan_of(workload, &request)).transpose()?;
    if !generates && let Some((plan, _)) = &mut run {
        data::begin_reading(plan, &root, lock, &signals.interrupted, &mut warnings)?;
    }
    let mut generation = None;
    if generates {
        let request = Request { generate_only: true, ..request.clone() };
        let (plan, noted) = resolve::plan_of(workload, &request)?;
        if run.is_none() {
            warnings.extend(compose::said(&noted));
        }
        let choice = data::made(&plan, &root, lock, &signals.interrupted, &mut warnings)?;
        generation = Some((plan, choice));
    }
    let mut decided = None;
    if let Some((mut plan, noted)) = run {
        warnings.extend(compose::said(&noted));
        refuse_too_many_steps(&plan)?;
        let choice = match &generation {
            _ if plan.is_checkpoints_alone() => None,
            Some((_, choice)) => Some(choice.clone()),
            None => {
                let choice = data::found(&mut plan, &root, &mut warnings)?;
                if choice.foreign {
                    plan = of_foreign(plan, workload, &request)?;
                }
                Some(choice)
            }
        };
        decided = Some((plan, choice));
    }
    let held = take_folder(&mut composed, &mut warnings)?;
    let folder = held.path.clone();
    let empty_evaluations =
        decided.as_ref().and_then(|(plan, _)| empty_evaluations(plan, &composed.workload));
    let invocation = Invocation { empty_evaluations, ..invocation(composed, arguments, warnings)? };
    // What is refused is refused by now.
    if let Some((plan, Choice { incomplete: true, .. })) = &generation {
        data::remove_other(plan, &root)?;
    }
    Ok((DlioDecision { generation, run: decided, folder }, invocation, held))
}

/// Take the folder for this run alone; what others have left there is put aside.
fn take_folder(composed: &mut Composed, warnings: &mut Vec<String>) -> anyhow::Result<RunFolder> {
    if composed.is_stamped {
        composed.run_dir = results::make_new(&composed.run_dir)?;
    }
    let own = composed.workload.output_folder.as_ref().map(PathBuf::from);
    let asked = if own.is_some() { "`output.folder`" } else { "`hydra.run.dir`" };
    let (held, aside) =
        RunFolder::take_over(own.unwrap_or(composed.run_dir.clone()), asked, &composed.subfolder)?;
    warnings.extend(aside.map(|aside| {
        let (left, aside) = (held.path.display(), aside.display());
        format!("what other runs have left in `{left}` is now in `{aside}`")
    }));
    Ok(held)
}

/// DLIO's workloads of training leave the numbers of checkpoints alone at -1: without training it then writes none.
fn writes_alone(workload: &Workload) -> bool {
    let counts =
        [workload.checkpoint_num_checkpoints_write, workload.checkpoint_num_checkpoints_read];
    workload.workflow_checkpoint && counts.iter().any(|count| count.is_some_and(|count| count > 0))
}

/// Evaluations that the workload asks for, and `plan` has no files for.
fn empty_evaluations(plan: &Plan, workload: &Workload) -> Option<EmptyEvaluations> {
    let is_empty = plan.evaluation.is_none() && !plan.is_checkpoints_alone();
    (workload.workflow_evaluation && is_empty).then(|| EmptyEvaluations {
        after_epoch: workload.evaluation_eval_after_epoch.max(1),
        epochs_between: workload.evaluation_epochs_between_evals.max(1),
    })
}

/// Accelerators are processes, unless each has several, or the only one is told to have many.
fn accelerators(
    processes: u32,
    arguments: &HydraArguments,
    workload: &Workload,
) -> Result<Option<u32>, UsageError> {
    let per_rank = arguments.launch.accelerators_per_rank;
    let mut keys = arguments.overrides.iter().map(|text| text.trim_start_matches('+'));
    let is_asked =
        per_rank.is_none() && keys.any(|text| text.starts_with("workload.accelerators="));
    let all = if is_asked { workload.accelerators } else { None };
    Ok(launch::accelerators(processes, all, per_rank)?.or(Some(processes)))
}

/// The plan for files that others made, evaluated as far as `plan` is.
fn of_foreign(plan: Plan, workload: &Workload, request: &Request) -> anyhow::Result<Plan> {
    let mut workload = workload.clone();
    workload.dataset_foreign = true;
    let (mut foreign, _) = resolve::plan_of(&workload, request)?;
    let DatasetPlan { files_eval, named_train, named_eval, .. } = plan.dataset;
    foreign.dataset = DatasetPlan { files_eval, named_train, named_eval, ..foreign.dataset };
    let subset = plan.doubts.into_iter().filter(|doubt| doubt.name == data::SUBSET);
    foreign.doubts.extend(subset);
    if plan.evaluation.is_none() {
        foreign.evaluation = None;
    }
    Ok(foreign)
}

fn refuse_too_many_steps(plan: &Plan) -> Result<(), TooManySteps> {
    let train = &plan.train;
    let epochs = u64::from(train.epochs.max(1));
    let (available, wanted) = (train.steps_per_epoch, train.total_steps.map(|all| all / epochs));
    match wanted {
        Some(wanted) if !plan.is_checkpoints_alone() && wanted > available => {
            Err(TooManySteps { available, wanted })
        }
        _ => Ok(()),
    }
}

fn invocation(
    composed: Composed,
    arguments: &HydraArguments,
    warnings: Vec<String>,
) -> anyhow::Result<Invocation> {
    let hydra = composed.hydra(arguments);
    let Composed { workload, run_dir, subfolder, .. } = composed;
    // Hydra's files stay in Hydra's folder where the results go elsewhere.
    let subfolder = match &workload.output_folder {
        Some(_) if !subfolder.is_empty() => {
            std::path::absolute(&run_dir)?.join(subfolder).display().to_string()
        }
        _ => subfolder,
    };
    let doing = [
        (workload.workflow_generate_data, "Generating data"),
        (workload.workflow_train, "Training"),
        (workload.workflow_evaluation, "Evaluation"),
        (workload.workflow_checkpoint, "Checkpointing"),
    ];
    let doing = doing.into_iter().filter(|(does, _)| *does).map(|(_, name)| name.to_string());
    let doing = doing.collect();
    Ok(Invocation { subfolder, hydra, doing, warnings, ..Invocation::default() })
}
