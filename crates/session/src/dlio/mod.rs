//! Carries out the request of `dlio_benchmark`: composes the workload as Hydra does, and runs it with DLIO's data files, log and results.

mod compose;
mod show;
mod data;
mod lines;

pub use compose::{Composed, DlioRequest, WORKLOAD_FOLDER, compose, takes_precedence};
pub use lines::log_level;
pub use show::{defaults_list, job_yaml, search_path};

use crate::agreement::RankArguments;
use crate::dataset::{self, Choice};
use crate::execute::{self, Execution};
use crate::failure::{Interrupted, TooManySteps};
use crate::launch::{self, LaunchOptions, decide_on_rank_0, run_together};
use crate::resolve;
use crate::result_folder::{self, Results, RunFolder};
use crate::store;
use crate::surroundings::ProcessSurroundings;
use compose::warning_lines;
use feedrate_data::lock::DatasetLock;
use feedrate_data::storage::object::Access;
use feedrate_measure::dlio::{self, EmptyEvaluations, Invocation};
use feedrate_measure::record::Record;
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

/// Returns the file name of DLIO's report on a model or workload.
pub fn report_name(name: &str) -> String {
    format!("DLIO_{}_report.txt", result_folder::file_name(name))
}

/// An invocation of `dlio_benchmark`.
pub struct DlioSession<'a> {
    /// The request.
    pub request: &'a DlioRequest,
    /// How the processes connect.
    pub launch: &'a LaunchOptions,
    /// Level of the log, from [`log_level`].
    pub log_level: u8,
    /// The user's signals.
    pub signals: &'a Signals,
    /// Receives the lines of the log.
    pub listener: &'a Arc<dyn Listener>,
}

impl DlioSession<'_> {
    /// Generates data, or runs, or both. Returns the record of a run on rank 0.
    ///
    /// # Errors
    /// Fails if the work fails in any process.
    pub fn run(&self) -> anyhow::Result<Option<Record>> {
        let arguments = || {
            let hydra = [("hydra", Some(self.request.hydra.join(" ")))];
            let composed = compose(self.request, &ProcessSurroundings::at_no_time());
            let workload = composed.map(|composed| Some(composed.workload));
            RankArguments::new(self.launch.accelerators_per_rank, hydra).with_workload(workload)
        };
        run_together(self.launch, self.signals, self.listener, arguments, |comm| {
            self.run_rank(comm)
        })
    }

    fn run_rank(&self, comm: &Arc<dyn Comm>) -> anyhow::Result<Option<Record>> {
        let is_first = comm.rank() == 0;
        let signals = self.signals;
        let listener: &dyn Listener = &WithoutProgress(&**self.listener);
        let mut prepared = None;
        let DlioDecision { generation, run, folder } = decide_on_rank_0(&**comm, || {
            let mut warnings = Vec::new();
            let preparation = self.prepare(&**comm, &mut warnings);
            if preparation.is_err() {
                let lines = warnings.iter().map(|warning| format!("[WARNING] {warning}\n"));
                LogLines::new(self.log_level, Some(listener)).report(&lines.collect::<String>());
            }
            let Prepared { decision, invocation, folder, lock } = preparation?;
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
            let start = result_folder::local_time_now();
            invocation.generation = Some((start.clone(), String::new()));
            lines.report(&dlio::generation_log(plan.accelerators, &invocation));
            let generated =
                dataset::prepare(plan, Some(choice.clone()), lock, &ranks, signals, listener)?;
            lock = generated.and_then(|dataset| dataset.lock);
            invocation.generation = Some((start, result_folder::local_time_now()));
            if is_first {
                dlio::write_generation(&folder, plan, &invocation)?;
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
        let dataset = dataset::prepare(&plan, choice, lock, &ranks, signals, listener)?;
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
        outcome.map_err(|error| error.context(execution.failure_message()))?;
        let Execution { record, unsaved, .. } = execution;
        if let Some(unsaved) = unsaved {
            lines.report(&dlio::log(&record, invocation, None));
            return Err(unsaved.into());
        }
        if !record.complete {
            return Err(Interrupted(folder.display().to_string()).into());
        }
        lines.report(&dlio::log(&record, invocation, Some(folder)));
        Ok(is_first.then_some(record))
    }

    /// Reads the workload, plans, finds and locks the data, and creates the result folder. Unless it fails, `warnings` are part of the result.
    fn prepare(&self, comm: &dyn Comm, warnings: &mut Vec<String>) -> anyhow::Result<Prepared> {
        let processes = comm.size();
        let listener = &**self.listener;
        let mut lock = None;
        let mut composed = compose(self.request, &ProcessSurroundings::now())?;
        let root = resolve::data_root(&composed.workload);
        warnings.append(&mut composed.warnings);
        let workload = &composed.workload;
        let options = PlanOptions {
            name: composed.name.clone(),
            accelerators: self.accelerators(processes, workload)?,
            processes: Some(processes),
            host_processes: Some(comm.node().local_size_max),
            as_dlio: true,
            ..PlanOptions::default()
        };
        let interrupted = &self.signals.interrupted;
        let generates = workload.workflow_generate_data;
        let includes_run = !generates || workload.workflow_train || is_checkpoint_only(workload);
        let mut run =
            includes_run.then(|| resolve::plan_workload(workload, &options)).transpose()?;
        if let Some((plan, problems)) = &mut run {
            problems.0.extend(store::configure(plan, workload, &root));
        }
        store::check(&root, Access::Read)?;
        if !generates && let Some((plan, _)) = &mut run {
            data::lock_for_reading(plan, &root, &mut lock, interrupted, listener, warnings)?;
        }
        let mut generation = None;
        if generates {
            let generate_options = PlanOptions { generate_only: true, ..options.clone() };
            let (mut plan, problems) = resolve::plan_workload(workload, &generate_options)?;
            store::configure(&mut plan, workload, &root);
            if run.is_none() {
                warnings.extend(warning_lines(&problems));
            }
            let choice = data::choose_for_generation(
                &plan,
                &root,
                &mut lock,
                interrupted,
                listener,
                warnings,
            )?;
            generation = Some((plan, choice));
        }
        let mut planned_run = None;
        if let Some((mut plan, problems)) = run {
            warnings.extend(warning_lines(&problems));
            warnings.extend(too_few_cores(&plan, crate::threads()));
            refuse_too_many_steps(&plan)?;
            let choice = match &generation {
                _ if plan.is_checkpoint_only() => None,
                Some((_, choice)) => Some(choice.clone()),
                None => {
                    let choice = data::choose_existing(&mut plan, &root, listener, warnings)?;
                    if choice.foreign {
                        plan = plan_for_foreign(plan, workload, &options)?;
                    }
                    Some(choice)
                }
            };
            planned_run = Some((plan, choice));
        }
        let run_folder = take_folder(&mut composed, warnings)?;
        let folder = run_folder.path.clone();
        let empty_evaluations =
            planned_run.as_ref().and_then(|(plan, _)| empty_evaluations(plan, &composed.workload));
        let warnings = std::mem::take(warnings);
        let invocation =
            Invocation { empty_evaluations, ..invocation(composed, self.request, warnings)? };
        // The dataset is removed only when nothing can be refused any more.
        if let Some((plan, Choice { incomplete: true, .. })) = &generation {
            data::remove_other_dataset(plan, &root)?;
        }
        let decision = DlioDecision { generation, run: planned_run, folder };
        Ok(Prepared { decision, invocation, folder: run_folder, lock })
    }

    /// Returns the number of accelerators: one per process, unless `accelerators_per_rank` or an override of `accelerators` is given.
    fn accelerators(&self, processes: u32, workload: &Workload) -> Result<Option<u32>, Refusal> {
        let per_rank = self.launch.accelerators_per_rank;
        let mut keys = self.request.overrides.iter().map(|text| text.trim_start_matches('+'));
        let is_given =
            per_rank.is_none() && keys.any(|text| text.starts_with("workload.accelerators="));
        let total = if is_given { workload.accelerators } else { None };
        Ok(launch::accelerators(processes, total, per_rank)?.or(Some(processes)))
    }
}

/// The preparation of a run on rank 0.
struct Prepared {
    decision: DlioDecision,
    invocation: Invocation,
    /// The locked folder of the results.
    folder: RunFolder,
    /// Lock of the dataset.
    lock: Option<DatasetLock>,
}

/// Decision of rank 0 for all ranks.
#[derive(Serialize, Deserialize)]
struct DlioDecision {
    /// The dataset to generate.
    generation: Option<(Plan, Choice)>,
    /// The run after the generation, and its dataset; without a dataset, the run only writes checkpoints.
    run: Option<(Plan, Option<Choice>)>,
    /// Folder of the results.
    folder: PathBuf,
}

/// Creates and locks the folder of this run. Moves results of other runs in the folder aside.
fn take_folder(composed: &mut Composed, warnings: &mut Vec<String>) -> anyhow::Result<RunFolder> {
    if composed.is_stamped {
        composed.run_dir = result_folder::make_new(&composed.run_dir)?;
    }
    let output_folder = composed.workload.output_folder.as_ref().map(PathBuf::from);
    let named_by = if output_folder.is_some() { "`output.folder`" } else { "`hydra.run.dir`" };
    let path = output_folder.unwrap_or(composed.run_dir.clone());
    let log = &composed.workload.output_log_file;
    let (folder, aside) = RunFolder::take_over(path, named_by, &composed.subfolder, log)?;
    warnings.extend(aside.map(|aside| {
        let path = folder.path.display();
        format!("earlier files in `{path}` were moved to `{}`", aside.display())
    }));
    Ok(folder)
}

/// Whether a run without training writes or reads checkpoints. DLIO's training workloads leave the numbers of checkpoints at -1, and DLIO then
/// writes none.
fn is_checkpoint_only(workload: &Workload) -> bool {
    let counts =
        [workload.checkpoint_num_checkpoints_write, workload.checkpoint_num_checkpoints_read];
    workload.workflow_checkpoint && counts.iter().any(|count| count.is_some_and(|count| count > 0))
}

/// Returns the evaluations of the workload if the plan has no files for them.
fn empty_evaluations(plan: &Plan, workload: &Workload) -> Option<EmptyEvaluations> {
    let is_empty = plan.evaluation.is_none() && !plan.is_checkpoint_only();
    (workload.workflow_evaluation && is_empty).then(|| EmptyEvaluations {
        after_epoch: workload.evaluation_eval_after_epoch.max(1),
        epochs_between: workload.evaluation_epochs_between_evals.max(1),
    })
}

/// Plans the run for foreign files, with the subset of the dataset and the evaluations of `plan`.
fn plan_for_foreign(
    plan: Plan,
    workload: &Workload,
    options: &PlanOptions,
) -> anyhow::Result<Plan> {
    let mut foreign_workload = workload.clone();
    foreign_workload.dataset_foreign = true;
    let (mut foreign, _) = resolve::plan_workload(&foreign_workload, options)?;
    let DatasetPlan { files_eval, named_train, named_eval, .. } = plan.dataset;
    foreign.dataset = DatasetPlan { files_eval, named_train, named_eval, ..foreign.dataset };
    let subset = plan.doubts.into_iter().filter(|doubt| doubt.name == data::SUBSET);
    foreign.doubts.extend(subset);
    foreign.storage.object = plan.storage.object;
    foreign.checkpoint = plan.checkpoint;
    if plan.evaluation.is_none() {
        foreign.evaluation = None;
    }
    Ok(foreign)
}

/// Returns DLIO's warning of more reading workers than cores.
fn too_few_cores(plan: &Plan, cores: usize) -> Option<String> {
    let workers = plan.loader.workers;
    let is_short = !plan.is_checkpoint_only() && workers > 1 && cores < workers as usize;
    is_short.then(|| {
        format!(
            "Running DLIO with {workers} threads for I/O but core available {cores} are insufficient and can lead to lower performance."
        )
    })
}

fn refuse_too_many_steps(plan: &Plan) -> Result<(), TooManySteps> {
    let train = &plan.train;
    let epochs = u64::from(train.epochs.max(1));
    let available = train.steps_per_epoch;
    match train.total_steps.map(|total| total / epochs) {
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
    // Hydra's files are in Hydra's folder even if the results are in another one.
    let subfolder = match &workload.output_folder {
        Some(_) if !subfolder.is_empty() => {
            std::path::absolute(&run_dir)?.join(subfolder).display().to_string()
        }
        _ => subfolder,
    };
    let workflow = [
        (workload.workflow_generate_data, "Generating data"),
        (workload.workflow_train, "Training"),
        (workload.workflow_evaluation, "Evaluation"),
        (workload.workflow_checkpoint, "Checkpointing"),
    ];
    let active = workflow.into_iter().filter(|(is_active, _)| *is_active);
    let workflow = active.map(|(_, name)| name.to_string()).collect();
    Ok(Invocation { subfolder, hydra, workflow, warnings, ..Invocation::default() })
}
