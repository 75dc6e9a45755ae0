//! `dlio_benchmark`'s request: composes the workload as Hydra does, and runs it with the files, the log and the results that DLIO would have.

mod compose;
mod data;
mod lines;

pub use compose::{Composed, DlioRequest, ReadVariable, compose, hides};
pub use lines::log_level;

use crate::agreement::RankArguments;
use crate::dataset::{self, Choice};
use crate::execute::{self, Execution};
use crate::failure::{Interrupted, TooManySteps};
use crate::launch::{self, LaunchOptions, decided, together};
use crate::resolve;
use crate::result_folder::{self, Results, RunFolder};
use compose::warning_lines;
use feedrate_data::lock::DatasetLock;
use feedrate_measure::dlio::{self, EmptyEvaluations, Invocation};
use feedrate_measure::summary::Summary;
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::listener::{Listener, WithoutProgress};
use feedrate_spec::plan::{DatasetPlan, Plan, PlanOptions};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::workload::Workload;
use lines::{LogLines, LogObserver};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// The file name of DLIO's report on a run with this name.
pub fn report_name(name: &str) -> String {
    format!("DLIO_{}_report.txt", result_folder::file_name(name))
}

/// How `dlio_benchmark` was started.
pub struct DlioSession<'a> {
    /// What it is to do.
    pub request: &'a DlioRequest,
    /// How its processes find each other.
    pub launch: &'a LaunchOptions,
    /// Level of `DLIO_LOG_LEVEL`, by [`log_level`].
    pub log_level: u8,
    /// The user's signals.
    pub signals: &'a Signals,
    /// Reads the environment.
    pub variable: ReadVariable,
    /// Receives the lines of the log.
    pub listener: &'a Arc<dyn Listener>,
}

impl DlioSession<'_> {
    /// Generates data or runs, or both. Returns the summary of a run, on rank 0.
    ///
    /// # Errors
    /// What went wrong in any process.
    pub fn run(&self) -> anyhow::Result<Option<Summary>> {
        let arguments = || {
            let hydra = [("hydra", Some(self.request.hydra.join(" ")))];
            let workload =
                compose(self.request, self.variable).map(|composed| Some(composed.workload));
            RankArguments::new(self.launch.accelerators_per_rank, hydra).with_workload(workload)
        };
        together(self.launch, self.signals, self.listener, arguments, |comm| self.run_on(comm))
    }

    fn run_on(&self, comm: &Arc<dyn Comm>) -> anyhow::Result<Option<Summary>> {
        let is_first = comm.rank() == 0;
        let signals = self.signals;
        let listener: &dyn Listener = &WithoutProgress(&**self.listener);
        let mut prepared = None;
        let DlioDecision { generation, run, folder } = decided(&**comm, || {
            let Prepared { decision, invocation, folder, lock } = self.prepare(comm.size())?;
            prepared = Some((invocation, folder, lock));
            Ok(decision)
        })?;
        let (mut invocation, _folder, mut lock) = match prepared {
            Some((invocation, folder, lock)) => (invocation, Some(folder), lock),
            None => (Invocation::default(), None, None),
        };
        let mut lines = LogLines::new(self.log_level, is_first.then_some(listener));
        if let Some((plan, choice)) = &generation {
            let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
            let begun = result_folder::wall_now();
            invocation.generation = Some((begun.clone(), String::new()));
            lines.report(&dlio::generation_log(plan.accelerators, &invocation));
            let made = dataset::ready(plan, Some(choice.clone()), lock, &ranks, signals, listener)?;
            lock = made.and_then(|made| made.lock);
            invocation.generation = Some((begun, result_folder::wall_now()));
            if is_first {
                dlio::write_generation(&folder, plan.accelerators, &invocation)?;
            }
            if run.is_none() {
                lines.report(&dlio::generation_log(plan.accelerators, &invocation));
            }
        }
        let Some((plan, mut choice)) = run else { return Ok(None) };
        if let (Some(choice), Some(_)) = (&mut choice, generation) {
            choice.incomplete = false;
        }
        let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
        let dataset = dataset::ready(&plan, choice, lock, &ranks, signals, listener)?;
        let record = execute::new_record(&plan, dataset.as_ref(), Some(&folder));
        lines.report(&dlio::log(&record, &invocation, None));
        let results = Results { folder, invocation };
        let Results { folder, invocation } = &results;
        let mut execution = Execution {
            ranks: &ranks,
            record,
            results: is_first.then_some(&results),
            observer: &mut LogObserver { lines: &mut lines, invocation },
            listener,
            signals,
            trace: None,
            unsaved: None,
        };
        let outcome = execution.run(&plan, dataset.as_ref());
        outcome.map_err(|error| error.context(execution.kept()))?;
        let Execution { record, unsaved, .. } = execution;
        if let Some(unsaved) = unsaved {
            lines.report(&dlio::log(&record, invocation, None));
            return Err(unsaved.into());
        }
        if !record.complete {
            return Err(Interrupted(folder.display().to_string()).into());
        }
        lines.report(&dlio::log(&record, invocation, Some(folder)));
        Ok(is_first.then(|| Summary::new(&record)))
    }

    /// Reads the workload, plans, finds and locks the data, and makes the folder.
    fn prepare(&self, processes: u32) -> anyhow::Result<Prepared> {
        let listener = &**self.listener;
        let mut lock = None;
        let mut composed = compose(self.request, self.variable)?;
        let root = resolve::data_root(&composed.workload);
        let mut warnings = std::mem::take(&mut composed.warnings);
        let workload = &composed.workload;
        let options = PlanOptions {
            name: composed.name.clone(),
            accelerators: self.accelerators(processes, workload)?,
            processes: Some(processes),
            as_dlio: true,
            ..PlanOptions::default()
        };
        let interrupted = &self.signals.interrupted;
        let generates = workload.workflow_generate_data;
        let goes_on = !generates || workload.workflow_train || writes_alone(workload);
        let mut run = goes_on.then(|| resolve::plan_of(workload, &options)).transpose()?;
        if !generates && let Some((plan, _)) = &mut run {
            data::begin_reading(plan, &root, &mut lock, interrupted, listener, &mut warnings)?;
        }
        let mut generation = None;
        if generates {
            let options = PlanOptions { generate_only: true, ..options.clone() };
            let (plan, noted) = resolve::plan_of(workload, &options)?;
            if run.is_none() {
                warnings.extend(warning_lines(&noted));
            }
            let choice = data::made(&plan, &root, &mut lock, interrupted, listener, &mut warnings)?;
            generation = Some((plan, choice));
        }
        let mut planned_run = None;
        if let Some((mut plan, noted)) = run {
            warnings.extend(warning_lines(&noted));
            refuse_too_many_steps(&plan)?;
            let choice = match &generation {
                _ if plan.is_checkpoint_only() => None,
                Some((_, choice)) => Some(choice.clone()),
                None => {
                    let choice = data::found(&mut plan, &root, listener, &mut warnings)?;
                    if choice.foreign {
                        plan = plan_for_foreign(plan, workload, &options)?;
                    }
                    Some(choice)
                }
            };
            planned_run = Some((plan, choice));
        }
        let run_folder = take_folder(&mut composed, &mut warnings)?;
        let folder = run_folder.path.clone();
        let empty_evaluations =
            planned_run.as_ref().and_then(|(plan, _)| empty_evaluations(plan, &composed.workload));
        let invocation =
            Invocation { empty_evaluations, ..invocation(composed, self.request, warnings)? };
        // After everything that may be refused.
        if let Some((plan, Choice { incomplete: true, .. })) = &generation {
            data::remove_other(plan, &root)?;
        }
        let decision = DlioDecision { generation, run: planned_run, folder };
        Ok(Prepared { decision, invocation, folder: run_folder, lock })
    }

    /// Accelerators are processes, unless each process has several, or the only one is to emulate several.
    fn accelerators(&self, processes: u32, workload: &Workload) -> Result<Option<u32>, Refusal> {
        let per_rank = self.launch.accelerators_per_rank;
        let mut keys = self.request.overrides.iter().map(|text| text.trim_start_matches('+'));
        let is_given =
            per_rank.is_none() && keys.any(|text| text.starts_with("workload.accelerators="));
        let all = if is_given { workload.accelerators } else { None };
        Ok(launch::accelerators(processes, all, per_rank)?.or(Some(processes)))
    }
}

/// What rank 0 prepares before the run.
struct Prepared {
    decision: DlioDecision,
    invocation: Invocation,
    /// Keeps other runs out of the folder.
    folder: RunFolder,
    /// Lock of the dataset.
    lock: Option<DatasetLock>,
}

/// Decision of rank 0 for all ranks.
#[derive(Serialize, Deserialize)]
struct DlioDecision {
    /// The data to be made.
    generation: Option<(Plan, Choice)>,
    /// The run that follows and its data; without data, checkpoints alone.
    run: Option<(Plan, Option<Choice>)>,
    /// Where the results go.
    folder: PathBuf,
}

/// Takes the folder for this run; files of other runs in it are put aside.
fn take_folder(composed: &mut Composed, warnings: &mut Vec<String>) -> anyhow::Result<RunFolder> {
    if composed.is_stamped {
        composed.run_dir = result_folder::make_new(&composed.run_dir)?;
    }
    let output_folder = composed.workload.output_folder.as_ref().map(PathBuf::from);
    let named_by = if output_folder.is_some() { "`output.folder`" } else { "`hydra.run.dir`" };
    let path = output_folder.unwrap_or(composed.run_dir.clone());
    let (folder, aside) = RunFolder::take_over(path, named_by, &composed.subfolder)?;
    warnings.extend(aside.map(|aside| {
        let left = folder.path.display();
        format!("what other runs have left in `{left}` is now in `{}`", aside.display())
    }));
    Ok(folder)
}

/// DLIO's workloads of training leave the numbers of checkpoints alone at -1: without training it then writes none.
fn writes_alone(workload: &Workload) -> bool {
    let counts =
        [workload.checkpoint_num_checkpoints_write, workload.checkpoint_num_checkpoints_read];
    workload.workflow_checkpoint && counts.iter().any(|count| count.is_some_and(|count| count > 0))
}

/// Evaluations of the workload for which the plan has no files.
fn empty_evaluations(plan: &Plan, workload: &Workload) -> Option<EmptyEvaluations> {
    let is_empty = plan.evaluation.is_none() && !plan.is_checkpoint_only();
    (workload.workflow_evaluation && is_empty).then(|| EmptyEvaluations {
        after_epoch: workload.evaluation_eval_after_epoch.max(1),
        epochs_between: workload.evaluation_epochs_between_evals.max(1),
    })
}

/// The plan for files that others made, evaluated as far as `plan` is.
fn plan_for_foreign(
    plan: Plan,
    workload: &Workload,
    options: &PlanOptions,
) -> anyhow::Result<Plan> {
    let mut workload = workload.clone();
    workload.dataset_foreign = true;
    let (mut foreign, _) = resolve::plan_of(&workload, options)?;
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
        Some(wanted) if !plan.is_checkpoint_only() && wanted > available => {
            Err(TooManySteps { available, wanted })
        }
        _ => Ok(()),
    }
}

fn invocation(
    composed: Composed,
    request: &DlioRequest,
    warnings: Vec<String>,
) -> anyhow::Result<Invocation> {
    let hydra = composed.hydra_text(request);
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
    Ok(Invocation { subfolder, hydra, workflow: doing, warnings, ..Invocation::default() })
}
