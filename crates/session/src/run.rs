//! Carries out the request of `feedrate run`: creates the result folder, plans, prepares the dataset, and executes the run in each process.

use crate::agreement::RankArguments;
use crate::dataset::{self, Choice, Files};
use crate::execute::{self, Execution, RunObserver, Unsaved};
use crate::failure::Interrupted;
use crate::folder::{self, FoundFolder};
use crate::launch::{self, LaunchOptions, decide_on_rank_0, refuse_if_any, run_together};
use crate::output::{refuse_below, refuse_existing, write_output};
use crate::request::Request;
use crate::resolve::{self, Resolved, ineffective_keys_of_user};
use crate::result_folder::{self, Results, RunFolder};
use crate::room;
use crate::store;
use feedrate_measure::dlio::Invocation;
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_measure::record::{DataRequest, Record, StudyRun};
use feedrate_run::comm::Comm;
use feedrate_run::live::Signals;
use feedrate_run::new_file::NewFile;
use feedrate_run::ranks::Ranks;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::resolved_yaml;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Extension by which tools recognise a trace.
const TRACE_EXTENSION: &str = ".pfw.gz";
/// Maximum number of accelerators with which DLIO's files of each rank are written by default. More small files would take longer to write
/// than a short run lasts.
const RANK_FILES_MAX: u32 = 1024;

/// A run, and the destinations of its files.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The workload and its data. The launcher determines the number of processes.
    pub request: Request,
    /// How the processes connect.
    pub launch: LaunchOptions,
    /// Parent folder of all results.
    pub results: Option<PathBuf>,
    /// Folder of this run's results.
    pub run_dir: Option<PathBuf>,
    /// Output file for the workload with its overrides.
    pub write_yaml: Option<PathBuf>,
    /// Output file for the trace.
    pub trace: Option<PathBuf>,
    /// JSON file that describes the run as a part of its study.
    pub study: Option<PathBuf>,
    /// Whether to write DLIO's files of each rank for any number of accelerators.
    pub writes_rank_files: bool,
    /// Folder of Hydra's files in the folder of the results.
    pub hydra_folder: String,
}

/// A run that has ended.
pub struct RunOutcome {
    /// The measurements: of all ranks on rank 0, else of this rank.
    pub record: Record,
    /// Folder of the results; `None` if they could not be written.
    pub folder: Option<PathBuf>,
    /// Content of the folder, for a request without a workload.
    pub found: Option<FoundFolder>,
    unsaved: Option<Unsaved>,
    run_dir: PathBuf,
}

impl RunOutcome {
    /// Fails unless the run is complete and its results are in their folder.
    fn check(self) -> anyhow::Result<()> {
        match self.unsaved {
            Some(unsaved) => Err(unsaved.into()),
            None if self.record.complete => Ok(()),
            None => Err(Interrupted(self.run_dir.display().to_string()).into()),
        }
    }
}

/// Decision of rank 0 for all ranks.
#[derive(Serialize, Deserialize)]
struct Decision {
    plan: Plan,
    choice: Option<Choice>,
    run_dir: PathBuf,
    study: Option<StudyRun>,
    data_request: DataRequest,
}

/// The preparation of a run on rank 0.
struct Prepared {
    decision: Decision,
    invocation: Invocation,
    /// The locked folder of the results.
    folder: RunFolder,
    found: Option<FoundFolder>,
}

/// A run in this process and in the other processes of a launcher.
pub struct RunSession<'a> {
    /// The run.
    pub run: &'a RunRequest,
    /// The user's signals.
    pub signals: &'a Signals,
    /// Receives messages and progress.
    pub listener: &'a Arc<dyn Listener>,
}

impl RunSession<'_> {
    /// Executes the run. Then calls `report` on rank 0, also for an interrupted run, and returns its result.
    ///
    /// # Errors
    /// Fails if the run fails in any process.
    pub fn execute<T>(
        &self,
        observer: &mut dyn RunObserver,
        report: impl FnOnce(&RunOutcome) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let run = self.run;
        if let Some(file) = &run.write_yaml {
            refuse_existing(file, None)?;
        }
        let arguments = || {
            let name = |file: &Option<PathBuf>| Some(file.as_ref()?.display().to_string());
            let options = [
                ("--results", name(&run.results)),
                ("--run-dir", name(&run.run_dir)),
                ("--trace", name(&run.trace)),
            ];
            RankArguments::from_request(&run.request, run.launch.accelerators_per_rank, options)
        };
        run_together(&run.launch, self.signals, self.listener, arguments, |comm| {
            let outcome = self.execute_on_rank(comm, observer)?;
            let reported = (comm.rank() == 0).then(|| report(&outcome));
            outcome.check()?;
            reported.transpose()
        })
    }

    fn execute_on_rank(
        &self,
        comm: &Arc<dyn Comm>,
        observer: &mut dyn RunObserver,
    ) -> anyhow::Result<RunOutcome> {
        let listener = &**self.listener;
        let mut prepared = None;
        let Decision { plan, choice, run_dir, study, data_request } =
            decide_on_rank_0(&**comm, || {
                let Prepared { decision, invocation, folder, found } =
                    self.run.prepare(&**comm, observer, listener)?;
                prepared = Some((invocation, folder, found));
                Ok(decision)
            })?;
        let (invocation, _folder, found) = match prepared {
            Some((invocation, folder, found)) => (Some(invocation), Some(folder), found),
            None => (None, None, None),
        };
        let ranks = Ranks::new(Arc::clone(comm), plan.accelerators);
        let trace = self.run.create_trace(&ranks)?;
        let dataset = dataset::prepare(&plan, choice, None, &ranks, self.signals, listener)?;
        let mut record = execute::new_record(&plan, dataset.as_ref(), Some(&run_dir));
        record.doubts.extend(study.iter().flat_map(|study| study.doubts.clone()));
        record.study = study.map(Box::new);
        record.data_request = Some(data_request);
        let results = invocation.map(|invocation| Results { folder: run_dir.clone(), invocation });
        let mut execution = Execution {
            ranks: &ranks,
            record,
            results: results.as_ref(),
            observer,
            listener,
            signals: self.signals,
            trace,
            unsaved: None,
        };
        let outcome = execution.run(&plan, dataset.as_ref());
        outcome.map_err(|error| error.context(execution.failure_message()))?;
        let Execution { record, unsaved, .. } = execution;
        let folder = match &unsaved {
            Some(unsaved) => unsaved.temporary_folder.clone(),
            None => Some(run_dir.clone()),
        };
        Ok(RunOutcome { record, folder, found, unsaved, run_dir })
    }
}

impl RunRequest {
    /// Returns the trace files of all processes, in the order of their ranks.
    fn traces(&self, processes: u32) -> anyhow::Result<Vec<PathBuf>> {
        let Some(file) = &self.trace else { return Ok(Vec::new()) };
        let Some(name) = file.to_str().and_then(|text| text.strip_suffix(TRACE_EXTENSION)) else {
            return refuse(
                format!("`--trace {}`: a trace is compressed JSON", file.display()),
                format!("give it a name that ends in `{TRACE_EXTENSION}`"),
            );
        };
        if processes == 1 {
            return Ok(vec![file.clone()]);
        }
        Ok((0..processes).map(|rank| format!("{name}.{rank}{TRACE_EXTENSION}").into()).collect())
    }

    /// Creates the trace file of this process, before anything else is written. Fails in all processes if it fails in one.
    fn create_trace(&self, ranks: &Ranks) -> anyhow::Result<Option<NewFile>> {
        let file = self.traces(ranks.comm.size())?.into_iter().nth(ranks.comm.rank() as usize);
        let Some(file) = file else { return Ok(None) };
        let (created, refused) = match create_trace_file(&file) {
            Ok(created) => (Some(created), None),
            Err(refused) => (None, Some(refused.into())),
        };
        refuse_if_any(ranks, refused)?;
        Ok(created)
    }

    /// Refuses output files in the data folder.
    fn refuse_outputs_below(&self, data: &Path) -> anyhow::Result<()> {
        for (option, file) in [("--trace", &self.trace), ("--write-yaml", &self.write_yaml)] {
            file.as_ref().map_or(Ok(()), |file| refuse_below(file, data, option))?;
        }
        Ok(())
    }

    /// Creates the folder of the results, plans, and finds the dataset.
    fn prepare(
        &self,
        comm: &dyn Comm,
        observer: &mut dyn RunObserver,
        listener: &dyn Listener,
    ) -> anyhow::Result<Prepared> {
        let processes = comm.size();
        for file in self.traces(processes)? {
            // Bad paths are refused before folders are examined and data is generated, which is slow.
            drop(create_trace_file(&file)?);
        }
        let per_rank = self.launch.accelerators_per_rank;
        let accelerators = launch::accelerators(processes, self.request.accelerators, per_rank)?;
        let request = &Request {
            accelerators,
            processes: Some(processes),
            host_processes: Some(comm.node().local_size_max),
            ..self.request.clone()
        };
        if request.workload.is_empty() {
            return self.prepare_found(request, observer, listener);
        }
        let resolved = resolve::resolve(request)?;
        resolved.report_warnings(listener);
        let root = result_folder::root(self.results.as_deref(), &resolved.workload)?;
        let mut choice = None;
        if resolved.workload.dataset_foreign {
            self.refuse_outputs_below(&resolved.data_root)?;
            let results = self.run_dir.as_deref().unwrap_or(&root);
            refuse_below(results, &resolved.data_root, "--results")?;
        } else if let Some(generated) = choose(&resolved, Files::Generated, listener)? {
            self.refuse_outputs_below(&generated.folder)?;
            room::refuse_shortage(&resolved.plan, &resolved.data_root, request)?;
            choice = Some(generated);
        }
        let folder = self.take_folder(&root, &resolved.plan.model)?;
        if resolved.workload.dataset_foreign {
            // The index of the files' names is in the run's folder.
            let names = &folder.path.join(NAMES_FILE);
            choice =
                choose(&resolved, Files::Foreign { names, probed: None, members: None }, listener)?;
        }
        self.prepare_in(folder, request, resolved, choice, observer, listener)
    }

    /// Prepares a run on the files in a folder, without a workload.
    fn prepare_found(
        &self,
        request: &Request,
        observer: &mut dyn RunObserver,
        listener: &dyn Listener,
    ) -> anyhow::Result<Prepared> {
        let Some(data) = &request.data else {
            return Err(Refusal::without_hint("which workload?").into());
        };
        let root = self.results.as_deref().unwrap_or(Path::new("results"));
        self.refuse_outputs_below(data)?;
        refuse_below(self.run_dir.as_deref().unwrap_or(root), data, "--results")?;
        let folder = self.take_folder(root, &resolve::stem(data))?;
        let names = &folder.path.join(NAMES_FILE);
        let (found, resolved) = folder::resolve_found(request, data, names, listener)?;
        // With other settings of the dataset, the files are examined again.
        let has_found_settings = !request.overrides.iter().any(|text| text.contains("dataset."));
        let probed = has_found_settings.then_some(found.probed_files);
        let members = found.members.as_ref();
        let files = Files::Foreign { names, probed, members };
        let choice = choose(&resolved, files, listener)?;
        let prepared = self.prepare_in(folder, request, resolved, choice, observer, listener)?;
        Ok(Prepared { found: Some(found), ..prepared })
    }

    /// Creates the run's folder, which is below `root` unless `run_dir` is given.
    fn take_folder(&self, root: &Path, model: &str) -> anyhow::Result<RunFolder> {
        match &self.run_dir {
            Some(run_dir) => RunFolder::take_new(run_dir),
            None => {
                let parent = root.join(result_folder::file_name(model));
                RunFolder::make_in(&parent, "`--results`")
            }
        }
    }

    /// Completes the preparation of a run with `folder` for its results.
    fn prepare_in(
        &self,
        folder: RunFolder,
        request: &Request,
        resolved: Resolved,
        choice: Option<Choice>,
        observer: &mut dyn RunObserver,
        listener: &dyn Listener,
    ) -> anyhow::Result<Prepared> {
        observer.after_planning(&resolved, request);
        for key in ineffective_keys_of_user(&resolved.workload, request) {
            listener.note(format!("note: no effect: {key}"));
        }
        if request.data.as_deref().is_some_and(|data| resolve::ignores(&resolved.workload, data)) {
            let storage = &resolved.workload.storage_storage_type;
            listener.note(format!("note: no effect: `--data` (`{storage}` has no folder)"));
        }
        let run_dir = folder.path.clone();
        let Resolved { plan, workload, data_root, .. } = resolved;
        folder.refuse_existing_log(plan.log_name())?;
        let study = self.study.as_deref().map(result_folder::read_study_run).transpose()?;
        if let Some(file) = &self.write_yaml {
            write_output(file, resolved_yaml(&workload).as_bytes(), None)?;
        }
        // The texts of Hydra's files.
        let mut typed = vec![format!("workload={}", plan.workload)];
        typed.extend(request.overrides.iter().cloned());
        let subfolder = &self.hydra_folder;
        let name = &plan.workload;
        let hydra = result_folder::hydra_text(&typed, &[], name, &workload, &run_dir, subfolder);
        let omits_rank_files = plan.accelerators > RANK_FILES_MAX && !self.writes_rank_files;
        if omits_rank_files {
            listener.note(
                "note: the result files of each rank are left out; `--rank-files` writes them",
            );
        }
        let invocation = Invocation {
            subfolder: subfolder.clone(),
            hydra,
            omits_rank_files,
            ..Invocation::default()
        };
        let absolute_root = match std::path::absolute(&data_root) {
            Ok(absolute) if !store::is_url(&data_root) => absolute,
            _ => data_root,
        };
        let data_request = DataRequest {
            data_root: absolute_root.display().to_string(),
            scale: request.scale,
            shrink_records: request.shrink_records,
            foreign: workload.dataset_foreign,
        };
        let decision = Decision { plan, choice, run_dir, study, data_request };
        Ok(Prepared { decision, invocation, folder, found: None })
    }
}

/// Chooses the dataset, unless the run only writes checkpoints.
fn choose(
    resolved: &Resolved,
    files: Files<'_>,
    listener: &dyn Listener,
) -> anyhow::Result<Option<Choice>> {
    let Resolved { plan, data_root, .. } = resolved;
    let has_data = !plan.is_checkpoint_only();
    has_data.then(|| dataset::choose(plan, data_root, files, listener)).transpose()
}

/// Creates a trace file. It is removed again if the result is dropped before the trace begins.
fn create_trace_file(file: &Path) -> Result<NewFile, Refusal> {
    NewFile::create(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Refusal::new(
            format!("`{}` is there already", file.display()),
            "give `--trace` another name",
        ),
        _ => Refusal::new(
            format!("cannot create `{}`: {error}", file.display()),
            "give `--trace` a file in an existing folder that you may write",
        ),
    })
}
