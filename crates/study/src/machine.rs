//! Implements the environment of a study's runner on this machine: processes, datasets and the clock.

use crate::bash;
use crate::chooser::Observation;
use crate::launch::{self, Launcher, Scripts};
use crate::own_datasets;
use crate::row_command::{PlannedRow, RowCommand, plan_fingerprint};
use crate::runner::{
    MetricValue, PreparedMachine, RowJob, RowPlan, RunnerEnv, RunnerEvent, RunnerTask, TaskEnd,
};
use crate::settings::AS_IS;
use crate::supervise::{self, Supervised, Supervision, wait_until_alone};
use anyhow::Context;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_data::lock::DatasetLock;
use feedrate_data::manifest::Manifest;
use feedrate_data::removal::{FolderContents, Removal};
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::Metric;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_measure::supply::deciding_metric;
use feedrate_results::files::StudyFiles;
use feedrate_results::load_run;
use feedrate_results::row::Row;
use feedrate_results::state::{ABOUT_FILE, CheckResult, StudySettings};
use feedrate_run::clock::Clock;
use feedrate_run::live::Signals;
use feedrate_run::system::{self, EnvironmentPaths, MachineActivity};
use feedrate_session::request::LIVE_FILE;
use feedrate_session::{hung, result_folder};
use feedrate_spec::catalog::Ability;
use feedrate_spec::escape::{bash_command, bash_word};
use feedrate_spec::listener::{Listener, Silent};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Maximum number of starts of a run. A busy Slurm may fail to launch a step although srun exits with 0.
const STARTS_MAX: u32 = 3;

/// Time for which disk and processors are observed before a run, in seconds.
const OBSERVATION_S: f64 = 0.5;
/// Environment variable that overrides [`OBSERVATION_S`]; 0 skips the observation.
const OBSERVATION_VARIABLE: &str = "FEEDRATE_LOOK_S";

/// Option of `run` that names the folder of Hydra's files, and this folder in submissions to MLPerf Storage.
const HYDRA_FOLDER: &str = "--hydra-folder";
const MLPERF_HYDRA_FOLDER: &str = "dlio_config";

/// Names of the tasks of an attempt. Each task has a folder in the study's state.
pub(crate) const RUN: &str = "run";
const GENERATE: &str = "generate";

/// Shows the progress of a runner.
pub trait RunnerReporter {
    /// Shows an event.
    fn show(&mut self, event: &RunnerEvent);

    /// Shows a message about the work of the runner.
    fn show_message(&self, text: &str);

    /// Shows the progress that a process writes to this file.
    fn follow(&self, live_file: PathBuf);

    /// Receives other messages.
    fn listener(&self) -> &dyn Listener;
}

impl RunnerReporter for Silent {
    fn show(&mut self, _: &RunnerEvent) {}

    fn show_message(&self, _: &str) {}

    fn follow(&self, _: PathBuf) {}

    fn listener(&self) -> &dyn Listener {
        self
    }
}

/// Services that the program provides to a runner.
pub struct RunnerHost {
    /// Shows the progress.
    pub reporter: Box<dyn RunnerReporter>,
    /// Flags that are set when the user stops the program.
    pub signals: Signals,
    /// Reads an environment variable.
    pub variable: fn(&str) -> Option<String>,
}

/// The environment of a runner on this machine.
pub struct ThisMachine {
    /// The files of the study.
    pub files: StudyFiles,
    /// Commands of the study's hooks, by name.
    pub hooks: BTreeMap<String, String>,
    clock: Clock,
    host: RunnerHost,
    /// Extracts the values of a run that choosers need.
    pub observe_record: fn(&Record) -> Observation,
    /// Path of this program, which is started for each run.
    program: PathBuf,
    /// Scripts that cancel queued jobs of the last run, even if an earlier runner started it.
    cleanup_scripts: Vec<String>,
}

impl ThisMachine {
    /// Prepares this machine for the study in `files`.
    pub fn new(files: &StudyFiles, host: RunnerHost) -> anyhow::Result<Self> {
        Ok(ThisMachine {
            hooks: files.hooks()?,
            files: files.clone(),
            clock: Clock::new(),
            host,
            program: std::env::current_exe()
                .context("cannot determine the path of this program")?,
            observe_record: Observation::new,
            cleanup_scripts: Vec::new(),
        })
    }

    /// Receives messages for the user.
    pub fn listener(&self) -> &dyn Listener {
        self.host.reporter.listener()
    }
}

impl RunnerEnv for ThisMachine {
    fn plan(&mut self, row: &Row, settings: &StudySettings) -> Result<RowPlan, String> {
        let plan = self.plan_row(row, settings)?.plan;
        // Problems of the launcher are reported here, before anything runs.
        let job = RowJob { row, plan: &plan, settings, attempt: 0 };
        self.scripts(&job, &["run".into()], &self.files.task_folder(0, "run"))?;
        Ok(plan)
    }

    fn scale_min(&self, row: &Row, settings: &StudySettings) -> Option<f64> {
        self.command(row, settings).ok()?.scale_min()
    }

    fn has_complete_dataset(&mut self, row: &Row, settings: &StudySettings) -> bool {
        self.plan_row(row, settings).is_ok_and(|planned| planned.is_complete)
    }

    fn dataset_writer(&self, folder: &Path) -> Option<String> {
        DatasetLock::writer(folder)
    }

    fn free_bytes(&self, folder: &Path) -> Option<u64> {
        system::free_bytes(folder)
    }

    fn own_datasets(
        &mut self,
        roots: &BTreeSet<PathBuf>,
        study_id: &str,
    ) -> BTreeMap<PathBuf, u64> {
        own_datasets::claimed_by(roots, study_id)
    }

    fn delete_dataset(&mut self, folder: &Path) -> io::Result<bool> {
        let removal = own_datasets::delete(folder)?;
        if let Removal::Removed(FolderContents { foreign_files, .. }) = &removal
            && !foreign_files.is_empty()
        {
            let foreign_files = foreign_files.join("`, `");
            let folder = folder.display();
            self.host.reporter.show_message(&format!(
                "{folder} is kept, as it contains other files: `{foreign_files}`"
            ));
        }
        Ok(!matches!(removal, Removal::InUse { .. }))
    }

    fn prepare(&mut self, job: &RowJob) -> Result<PreparedMachine, TaskEnd> {
        let command = self.command(job.row, job.settings).map_err(TaskEnd::Failed)?;
        let launch = self.launcher(job.settings).map_err(TaskEnd::Failed)?;
        if launch.member.has(Ability::Elsewhere) {
            // The job runs on another machine and runs the hooks itself.
            return Ok(PreparedMachine::default());
        }
        for (name, level) in &command.hooks {
            let folder = self.task_folder(job.attempt, &format!("hook-{name}"))?;
            let run = bash::script("", &[], &self.hook_line(name, level));
            self.supervise(&folder, &Scripts { run, cleanup: None, files: Vec::new() })?;
        }
        let doubts = self.observe_activity(job).and_then(|activity| activity.doubt());
        let environment = system::environment(&EnvironmentPaths {
            program: concat!("feedrate ", env!("CARGO_PKG_VERSION")),
            data: job.plan.dataset.as_ref().map(|dataset| dataset.folder.as_path()),
            results: Some(&job.settings.results),
            study: &self.files.csv,
        });
        let environment = serde_json::to_value(environment).map_err(task_failed)?;
        if self.is_stopped() {
            return Err(TaskEnd::Stopped);
        }
        Ok(PreparedMachine { environment, doubts: Vec::from_iter(doubts) })
    }

    fn execute(&mut self, job: &RowJob, task: RunnerTask) -> Result<(), TaskEnd> {
        let command = self.command(job.row, job.settings).map_err(TaskEnd::Failed)?;
        let mut arguments = command.request.data_arguments();
        arguments.push("--quiet".into());
        let subcommand = match task {
            RunnerTask::Generate => GENERATE,
            RunnerTask::Run(run_dir) => {
                arguments.extend(["--run-dir".into(), run_dir.display().to_string()]);
                arguments
                    .extend(["--study".into(), run_dir.join(ABOUT_FILE).display().to_string()]);
                arguments.extend((command.cache != AS_IS).then(|| format!("--{}", command.cache)));
                if job.settings.mlperf_folder.is_some() {
                    arguments.extend([HYDRA_FOLDER, MLPERF_HYDRA_FOLDER].map(str::to_string));
                }
                RUN
            }
        };
        arguments.insert(0, subcommand.into());
        self.listener().detail(|| format!("starting: feedrate {}", bash_command(&arguments)));
        let folder = self.task_folder(job.attempt, subcommand)?;
        let live_file = folder.join("live");
        arguments.extend([LIVE_FILE.into(), live_file.display().to_string()]);
        self.host.reporter.follow(live_file);
        if let (RunnerTask::Generate, Some(dataset)) = (task, &job.plan.dataset) {
            own_datasets::claim(&dataset.folder, &job.settings.id).map_err(task_failed)?;
        }
        let scripts = self.scripts(job, &arguments, &folder).map_err(TaskEnd::Failed)?;
        for _ in 0..STARTS_MAX {
            self.supervise(&folder, &scripts)?;
            if let RunnerTask::Run(run_dir) = task
                && !run_dir.join(RECORD_FILE).exists()
            {
                continue;
            }
            return Ok(());
        }
        let problem = "its launcher succeeded without starting a run";
        Err(TaskEnd::Failed(supervise::reason(&folder.join("stderr"), problem)))
    }

    fn check_results(
        &mut self,
        run_dir: &Path,
        row: &Row,
        plan: &RowPlan,
    ) -> Result<CheckResult, String> {
        let record = load_run(run_dir).map_err(|error| error.to_string())?;
        check_record(&record, row, plan)?;
        let doubts = record.study.as_ref().map_or_else(Vec::new, |study| study.doubts.clone());
        let fingerprint = plan_fingerprint(&record.plan).map_err(|error| error.to_string())?;
        Ok(CheckResult {
            duration_s: duration_s(&record),
            setup_s: None,
            plan: fingerprint,
            doubts,
        })
    }

    fn value(&mut self, run_dir: &Path, response: Option<&'static Metric>) -> Option<MetricValue> {
        let record = load_run(run_dir).ok()?;
        let derived = Derived::new(&record);
        let deciding = deciding_metric(&derived);
        let metric = match response {
            None => deciding?,
            // Without compute, there is no utilisation.
            Some(metric) if metric.is_utilisation() => deciding.map(|_| metric)?,
            Some(metric) => metric,
        };
        let value = derived.value(metric)?;
        let answer = Some(AnsweredSummary::new(&record).answer.kind);
        Some(MetricValue { metric, value, answer })
    }

    fn observe(&mut self, run_dir: &Path) -> Observation {
        load_run(run_dir)
            .map_or_else(|_| Observation::default(), |record| (self.observe_record)(&record))
    }

    fn stamp(&self) -> String {
        result_folder::stamp()
    }

    fn now_s(&self) -> f64 {
        self.clock.now_ns() as f64 / 1e9
    }

    fn is_stopped(&self) -> bool {
        self.host.signals.interrupted.load(Relaxed)
    }

    fn report(&mut self, event: RunnerEvent) {
        self.host.reporter.show(&event);
    }
}

impl ThisMachine {
    /// Waits until no run of an earlier runner is active. Returns false if the user stopped the wait. `settings` are those of the earlier runner.
    pub fn wait_for_earlier_runs(
        &mut self,
        settings: Option<&StudySettings>,
    ) -> anyhow::Result<bool> {
        let attempt = self.files.last_attempt_with_task();
        if let Some(launch) = settings.and_then(|settings| self.launcher(settings).ok()) {
            let name = self.job_name(attempt);
            let folders = [RUN, GENERATE].map(|task| self.files.task_folder(attempt, task));
            let scripts = folders
                .iter()
                .filter_map(|folder| launch.cleanup(&name, folder, &self.host.variable));
            self.cleanup_scripts = scripts.collect();
        }
        self.wait_until_alone()
    }

    fn wait_until_alone(&self) -> anyhow::Result<bool> {
        let running = self.files.running_lock();
        let stop = &self.host.signals.interrupted;
        wait_until_alone(&running, &self.cleanup_scripts, stop, &mut || {
            self.host.reporter.show_message("waiting for a run of an earlier runner to end");
        })
        .context("cannot determine whether a run of an earlier runner is active")
    }

    /// Observes the disk of the dataset and the processors for a moment; `None` if [`OBSERVATION_VARIABLE`] is 0.
    fn observe_activity(&self, job: &RowJob) -> Option<MachineActivity> {
        let given = (self.host.variable)(OBSERVATION_VARIABLE).and_then(|text| text.parse().ok());
        let duration = Duration::try_from_secs_f64(given.unwrap_or(OBSERVATION_S)).ok()?;
        let dataset = job.plan.dataset.as_ref();
        let folder = dataset.map_or(&job.settings.folder, |dataset| &dataset.folder);
        let stop = &self.host.signals.interrupted;
        (!duration.is_zero()).then(|| system::activity(folder, duration, &self.clock, stop))
    }

    fn command(&self, row: &Row, settings: &StudySettings) -> Result<RowCommand, String> {
        let command = RowCommand::new(row, settings, &self.hooks, &self.files.csv);
        command.map_err(|problem| problem.to_string())
    }

    /// Plans a row.
    pub fn plan_row(&self, row: &Row, settings: &StudySettings) -> Result<PlannedRow, String> {
        self.command(row, settings)?.plan()
    }

    fn launcher(&self, settings: &StudySettings) -> Result<&'static Launcher, String> {
        let name = &settings.launching.launch;
        launch::find(name).ok_or_else(|| {
            format!("there is no launcher `{name}`\n  hint: see `feedrate list launches`")
        })
    }

    /// The scripts that run `feedrate` with the arguments `arguments`.
    fn scripts(
        &self,
        job: &RowJob,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Scripts, String> {
        let launch = self.launcher(job.settings)?;
        let mut options = job.settings.launching.clone();
        if launch.member.has(Ability::Elsewhere)
            && arguments.first().is_some_and(|word| word == "run")
        {
            let hooks = self.command(job.row, job.settings)?.hooks;
            let lines = hooks.iter().map(|(name, level)| self.hook_line(name, level));
            options.prologue.extend(lines.map(|line| format!("( {line} )")));
        }
        let launch_job = launch::LaunchJob {
            program: &self.program,
            arguments,
            accelerators: job.row.accelerators,
            name: &self.job_name(job.attempt),
            folder,
            stdout: &folder.join("stdout"),
            stderr: &folder.join("stderr"),
            options: &options,
            variable: &self.host.variable,
        };
        let scripts = (launch.scripts)(&launch_job);
        scripts.map_err(|error| format!("{error}\n  hint: {}", error.hint))
    }

    /// Name of an attempt's jobs in a queue.
    fn job_name(&self, attempt: u64) -> String {
        let study = self.files.csv.file_stem().unwrap_or_default().to_string_lossy();
        format!("feedrate-{study}-{attempt}")
    }

    /// The line of bash that runs a hook, with the level as its first argument.
    fn hook_line(&self, name: &str, level: &str) -> String {
        let command = self.hooks.get(name).map_or("", String::as_str);
        format!("set -- {}; {command}", bash_word(level))
    }

    /// Creates the folder of a task. Fails if it exists: links in it could be followed, and files overwritten.
    fn task_folder(&self, attempt: u64, task: &str) -> Result<PathBuf, TaskEnd> {
        let folder = self.files.task_folder(attempt, task);
        fs::create_dir(&folder)
            .map_err(|error| task_failed(format!("cannot make `{}`: {error}", folder.display())))?;
        Ok(folder)
    }

    /// Runs scripts to their end, or until the user stops the program.
    fn supervise(&mut self, folder: &Path, scripts: &Scripts) -> Result<(), TaskEnd> {
        for (name, text) in &scripts.files {
            write(folder, name, text)?;
        }
        let supervision = Supervision {
            script: write(folder, "run.sh", &scripts.run)?,
            cleanup: scripts.cleanup.clone(),
            stdout: folder.join("stdout"),
            stderr: folder.join("stderr"),
            running: self.files.running_lock(),
            grace: supervise::GRACE,
        };
        let ended = loop {
            let Signals { interrupted, abandon, .. } = &self.host.signals;
            let started = Supervised::start(&self.program, &supervision).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start the run's supervisor: {error}"))
            });
            let waited = started.and_then(|mut run| run.wait_for_end(interrupted, abandon));
            let ended = waited.map_err(task_failed)?;
            // The supervisor of a killed runner may have taken the lock since the last check.
            if ended != supervise::ScriptEnd::Busy
                || !self.wait_until_alone().map_err(task_failed)?
            {
                break ended;
            }
        };
        if ended != supervise::ScriptEnd::Busy {
            self.cleanup_scripts = scripts.cleanup.iter().cloned().collect();
        }
        match ended.failure(&supervision.stderr) {
            _ if self.is_stopped() => {
                hung::repeat_report(&supervision.stderr, self.listener());
                Err(TaskEnd::Stopped)
            }
            Some(reason) => Err(TaskEnd::Failed(reason)),
            None => Ok(()),
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, TaskEnd> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(task_failed)?;
    Ok(path)
}

fn task_failed(error: impl std::fmt::Display) -> TaskEnd {
    TaskEnd::Failed(error.to_string())
}

/// Checks that a record is complete, and belongs to this row and its dataset.
fn check_record(record: &Record, row: &Row, plan: &RowPlan) -> Result<(), String> {
    if !record.complete {
        let reason = record.stopped_because.as_deref().unwrap_or("unknown reason");
        return Err(format!("the run did not finish: {reason}"));
    }
    if record.plan.accelerators != row.accelerators {
        return Err(format!(
            "the run had {} accelerators instead of {}",
            record.plan.accelerators, row.accelerators
        ));
    }
    let fingerprint = Manifest::fingerprint_of(&record.plan.dataset);
    match &plan.dataset {
        Some(dataset) if dataset.fingerprint != fingerprint => Err(format!(
            "the run read dataset {fingerprint}, but its row needs {}",
            dataset.fingerprint
        )),
        _ => Ok(()),
    }
}

/// Duration of a run in seconds: from the start of its clock to the end of its last epoch, evaluation or checkpoint.
fn duration_s(record: &Record) -> f64 {
    let epochs = record.epochs.iter().chain(&record.evaluations);
    let checkpoints = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints);
    let ends =
        epochs.map(|epoch| epoch.end_ns).chain(checkpoints.map(|checkpoint| checkpoint.end_ns));
    ends.max().unwrap_or(0) as f64 / 1e9
}
