//! `dlio_benchmark`: what DLIO's users, their scripts and MLPerf Storage's wrapper call, in DLIO's place.

mod arguments;
mod compose;
mod data;
mod lines;
mod text;

pub(crate) use compose::hides;

use crate::catalog::catalog;
use crate::dataset::{self, Choice};
use crate::execute::{self, Execution};
use crate::exit::{Exit, Interrupted, TooManySteps, UsageError, code_of};
use crate::launch::{self, Launch, decided, together};
use crate::results::{self, Results};
use crate::{interrupt, messages, resolve, summary};
use arguments::{Arguments, Show};
use compose::{Composed, compose};
use feedrate_measure::dlio::{self, Invocation};
use feedrate_measure::summary::Summary;
use feedrate_run::comm::Comm;
use feedrate_run::driver::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::{Cache, Plan, Request};
use feedrate_spec::workload::{Workload, yaml_at};
use lines::{Level, Lines, Told};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Run `dlio_benchmark` with the arguments of this process.
pub(crate) fn main() -> ExitCode {
    ended(arguments().and_then(|arguments| match arguments.show {
        Some(show) => print(show, &arguments),
        None => start(&arguments),
    }))
}

/// Run `dlio_benchmark_query`: print the value of the key that `workflow.query` names.
pub(crate) fn query() -> ExitCode {
    ended(arguments().and_then(|arguments| {
        let composed = compose(&arguments)?;
        let key = composed.workload.workflow_query.clone().unwrap_or_default();
        let value = yaml_at(&composed.workload, &key);
        messages::print(value.as_deref().unwrap_or("None").trim_end());
        Ok(Exit::Fine)
    }))
}

fn arguments() -> anyhow::Result<Arguments> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    Arguments::parse(words).map_err(|message| usage(message).into())
}

fn usage(message: String) -> UsageError {
    UsageError { message, hint: None }
}

/// DLIO knows success and failure.
fn ended(outcome: anyhow::Result<Exit>) -> ExitCode {
    let code = outcome.unwrap_or_else(|error| {
        messages::print_error(&error);
        code_of(&error)
    });
    match code {
        Exit::Fine | Exit::Unmet => Exit::Fine.into(),
        Exit::Failed | Exit::Usage => Exit::Failed.into(),
        Exit::Interrupted | Exit::TooManySteps => code.into(),
    }
}

fn print(show: Show, arguments: &Arguments) -> anyhow::Result<Exit> {
    match show {
        Show::Help => messages::print(text::HELP),
        Show::HydraHelp => messages::print(text::HYDRA_HELP),
        Show::Version => {
            messages::print(concat!("dlio_benchmark of feedrate ", env!("CARGO_PKG_VERSION")))
        }
        Show::Job | Show::Hydra | Show::All => {
            let Composed { hydra, .. } = compose(arguments)?;
            if show != Show::Hydra {
                messages::print(hydra.config.trim_end());
            }
            if show != Show::Job {
                messages::print(hydra.hydra.trim_end());
            }
        }
    }
    Ok(Exit::Fine)
}

fn start(arguments: &Arguments) -> anyhow::Result<Exit> {
    let level = Level::from_environment().map_err(usage)?;
    let default = Launch::default();
    let launch = Launch {
        library: arguments.mpi_library.clone(),
        timeout: arguments.rank_timeout.unwrap_or(default.timeout),
    };
    let signals = Signals { interrupted: interrupt::flag(), ..Signals::default() };
    together(&launch, &signals, |comm| run_on(comm, arguments, level, &signals))
}

/// Decision of rank 0 for all.
#[derive(Serialize, Deserialize)]
struct Decision {
    /// The data to be made.
    generation: Option<(Plan, Choice)>,
    /// The run that follows and its data; without data, checkpoints alone.
    run: Option<(Plan, Option<Choice>)>,
    /// Where the results go.
    folder: PathBuf,
}

fn run_on(
    comm: &Arc<dyn Comm>,
    arguments: &Arguments,
    level: Level,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let mut invocation = Invocation::default();
    let decision = decided(&**comm, || {
        let (decision, asked) = decide(comm.size(), arguments)?;
        invocation = asked;
        Ok(decision)
    })?;
    let Decision { generation, run, folder } = decision;
    let is_first = comm.rank() == 0;
    let mut lines = Lines::new(level, is_first);
    let mut made = None;
    if let Some((plan, choice)) = generation {
        let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
        invocation.generation = Some((results::wall_now(), String::new()));
        lines.say(&dlio::generation_log(plan.accelerators, &invocation));
        dataset::ready(&plan, choice.clone(), &ranks, true, &signals.interrupted)?;
        if let Some((_, ended)) = &mut invocation.generation {
            *ended = results::wall_now();
        }
        if is_first {
            dlio::write_generation(&folder, plan.accelerators, &invocation)?;
        }
        made = Some((plan.accelerators, Choice { incomplete: false, ..choice }));
    }
    let Some((plan, choice)) = run else {
        if let Some((processes, _)) = made {
            lines.say(&dlio::generation_log(processes, &invocation));
        }
        return Ok(Exit::Fine);
    };
    let choice = choice.map(|choice| made.map_or(choice, |(_, made)| made));
    train(comm, signals, &mut lines, Run { plan, choice, folder, invocation })
}

struct Run {
    plan: Plan,
    choice: Option<Choice>,
    folder: PathBuf,
    invocation: Invocation,
}

/// Train, or write checkpoints alone.
fn train(
    comm: &Arc<dyn Comm>,
    signals: &Signals,
    lines: &mut Lines,
    run: Run,
) -> anyhow::Result<Exit> {
    let Run { plan, choice, folder, invocation } = run;
    let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
    let is_first = ranks.is_first();
    let ready =
        |choice| dataset::ready(&plan, choice, &ranks, true, &signals.interrupted).map(|d| d.0);
    let dataset = choice.map(ready).transpose()?;
    let results = Results { folder: folder.clone(), invocation };
    let record = execute::new_record(&plan, dataset.as_ref(), Some(&folder));
    lines.say(&dlio::log(&record, &results.invocation, None));
    let mut execution = Execution {
        ranks: &ranks,
        record,
        results: is_first.then_some(&results),
        talk: &mut Told { lines, invocation: &results.invocation },
        signals,
    };
    execution.run(&plan, dataset.as_ref())?;
    let record = execution.record;
    if !record.complete {
        return Err(Interrupted(folder.display().to_string()).into());
    }
    lines.say(&dlio::log(&record, &results.invocation, Some(&folder)));
    if is_first {
        let doubts = summary::doubts(&Summary::new(&record));
        if !doubts.is_empty() {
            messages::say(doubts);
        }
    }
    Ok(Exit::Fine)
}

/// Read the workload, plan, find the data, make the folder.
fn decide(processes: u32, arguments: &Arguments) -> anyhow::Result<(Decision, Invocation)> {
    let mut composed = compose(arguments)?;
    let root = resolve::data_root(&composed.workload);
    let mut warnings = std::mem::take(&mut composed.warnings);
    let accelerators = accelerators(processes, arguments, &composed.workload)?;
    let catalog = catalog();
    let plan_of = |workload: &Workload, generate_only| {
        let request = Request {
            name: composed.name.clone(),
            accelerators,
            processes: Some(processes),
            scale: 1.0,
            shrink_records: 1.0,
            cache: Cache::AsIs,
            verify: false,
            generate_only,
        };
        resolve::plan_of(workload, &request, &catalog)
    };
    let workload = &composed.workload;
    let generates = workload.workflow_generate_data;
    // DLIO's workloads of training leave the numbers of checkpoints alone at -1: without training it then writes none.
    let counts =
        [workload.checkpoint_num_checkpoints_write, workload.checkpoint_num_checkpoints_read];
    let writes_alone = workload.workflow_checkpoint
        && counts.iter().any(|count| count.is_some_and(|count| count > 0));
    let goes_on = !generates || workload.workflow_train || writes_alone;
    let mut run = goes_on.then(|| plan_of(workload, false)).transpose()?;
    if let Some((plan, _)) = &mut run
        && !generates
        && data::lacks_evaluation_files(plan, &root)?
    {
        warnings.push(format!(
            "there are no evaluation files in `{}`: nothing is evaluated",
            root.join("valid").display()
        ));
        plan.evaluation = None;
    }
    let mut generation = None;
    if generates {
        let (plan, _) = plan_of(workload, true)?;
        let (choice, replaced) = data::made(&plan, &root, &mut warnings)?;
        generation = Some((plan, choice, replaced));
    }
    let run = match run {
        Some((mut plan, noted)) => {
            warnings.extend(compose::said(&noted));
            refuse_too_many_steps(&plan)?;
            let choice = match (&generation, plan.is_checkpoints_alone()) {
                (_, true) => None,
                (Some((_, choice, _)), false) => Some(choice.clone()),
                (None, false) => Some(data::found(&mut plan, &root, &mut warnings)?),
            };
            Some((plan, choice))
        }
        None => None,
    };
    let folder = match &workload.output_folder {
        Some(folder) => PathBuf::from(folder),
        None => composed.run_dir.clone(),
    };
    std::fs::create_dir_all(&folder)
        .map_err(|source| feedrate_data::storage::StorageError::new("make", &folder, source))?;
    let invocation = invocation(composed, warnings)?;
    // What is refused is refused by now.
    if let Some((plan, _, Some(replaced))) = &generation {
        replaced.remove(plan, &root)?;
    }
    let generation = generation.map(|(plan, choice, _)| (plan, choice));
    Ok((Decision { generation, run, folder }, invocation))
}

/// Accelerators are processes, unless each has several, or the only one is told to have many.
fn accelerators(
    processes: u32,
    arguments: &Arguments,
    workload: &Workload,
) -> Result<Option<u32>, UsageError> {
    let is_asked = arguments.accelerators_per_rank.is_none()
        && arguments
            .overrides
            .iter()
            .any(|text| text.trim_start_matches('+').starts_with("workload.accelerators="));
    let all = if is_asked { workload.accelerators } else { None };
    let accelerators = launch::accelerators(processes, all, arguments.accelerators_per_rank)?;
    Ok(accelerators.or(Some(processes)))
}

fn refuse_too_many_steps(plan: &Plan) -> Result<(), TooManySteps> {
    let train = &plan.train;
    let available = train.steps_per_epoch.saturating_mul(u64::from(train.epochs));
    match train.total_steps {
        Some(wanted) if !plan.is_checkpoints_alone() && wanted > available => {
            Err(TooManySteps { available, wanted })
        }
        _ => Ok(()),
    }
}

fn invocation(composed: Composed, warnings: Vec<String>) -> anyhow::Result<Invocation> {
    let Composed { workload, run_dir, subfolder, hydra, .. } = composed;
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
    Ok(Invocation { subfolder, hydra, doing: doing.collect(), generation: None, warnings })
}
