//! Tests of the runner in a simulated environment: results are small files, processes are function calls, and the runner can be killed at any call.
//! Long because each test needs this environment.

mod datasets;
mod replicates;

use super::*;
use crate::chooser::FixedDesign;
use feedrate_measure::example::simple;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric};
use feedrate_measure::record;
use feedrate_results::place::{INCOMPLETE, SUPERSEDED};
use feedrate_results::setting::Setting;
use feedrate_results::state::{LaunchSettings, Status};
use feedrate_spec::problem::Problems;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const STUDY: &str = "\
model,epochs,processes,overrides,run
w,1,1,,N
# Two rows that share a dataset, and a replicate of the first row.
w,1,2,dataset.format=npy,N
w,1,4,dataset.format=npy,N

w,1,1,,N
";

/// An environment that kills the runner once its calls are used up.
struct FakeEnv {
    folder: PathBuf,
    calls_left: Option<u32>,
    generated: Vec<String>,
    events: Vec<RunnerEvent>,
    free_bytes: Option<u64>,
    fails: BTreeSet<String>,
    stops_after: Option<usize>,
    /// An edit of the CSV by the user during the first run.
    edit: Option<(PathBuf, Edit)>,
    runs: usize,
    plan: &'static str,
}

type Edit = fn(&str) -> String;

impl FakeEnv {
    fn new(folder: &Path) -> Self {
        FakeEnv {
            folder: folder.to_path_buf(),
            calls_left: None,
            generated: Vec::new(),
            events: Vec::new(),
            free_bytes: None,
            fails: BTreeSet::new(),
            stops_after: None,
            edit: None,
            runs: 0,
            plan: "",
        }
    }

    /// Counts a call, and kills the runner at the last one.
    fn count_call(&mut self) {
        if let Some(left) = &mut self.calls_left {
            *left = left.checked_sub(1).unwrap_or_else(|| std::panic::resume_unwind(Box::new(())));
        }
    }
}

fn dataset_name(row: &Row) -> String {
    row.settings.iter().map(Setting::text).collect::<Vec<_>>().join(",") + "-data"
}

impl RunnerEnv for FakeEnv {
    fn plan(&mut self, row: &Row, _: &StudySettings) -> Result<RowPlan, String> {
        self.count_call();
        if row.model == "broken" || self.fails.contains("plan") {
            return Err("error: there is no such workload".into());
        }
        let fingerprint = dataset_name(row);
        let folder = self.folder.join("data").join(&fingerprint);
        let dataset = Some(RowDataset { folder, fingerprint, bytes: 100 });
        let run_s = 10.0 * f64::from(row.accelerators);
        Ok(RowPlan {
            workload: row.model.clone(),
            dataset,
            run_s,
            generation_s: 1.0,
            fingerprint: self.plan.into(),
        })
    }

    fn has_complete_dataset(&mut self, row: &Row, _: &StudySettings) -> bool {
        self.count_call();
        self.folder.join("data").join(dataset_name(row)).join("manifest").exists()
    }

    fn free_bytes(&self, _: &Path) -> Option<u64> {
        self.free_bytes
    }

    fn dataset_writer(&self, folder: &Path) -> Option<String> {
        fs::read_to_string(folder.join("maker")).ok()
    }

    fn own_datasets(
        &mut self,
        roots: &BTreeSet<PathBuf>,
        study_id: &str,
    ) -> BTreeMap<PathBuf, u64> {
        self.count_call();
        let folders = roots.iter().flat_map(|root| entries(root));
        let is_own = |folder: &PathBuf| {
            fs::read_to_string(folder.join("made-by")).is_ok_and(|id| id == study_id)
        };
        folders.filter(is_own).map(|folder| (folder, 100)).collect()
    }

    fn delete_dataset(&mut self, folder: &Path) -> io::Result<bool> {
        self.count_call();
        if folder.join("in use").exists() {
            return Ok(false);
        }
        fs::remove_dir_all(folder).map(|()| true)
    }

    fn prepare(&mut self, _: &RowJob) -> Result<PreparedMachine, TaskEnd> {
        self.count_call();
        Ok(PreparedMachine::default())
    }

    fn execute(&mut self, job: &RowJob, task: RunnerTask) -> Result<(), TaskEnd> {
        self.count_call();
        let dataset = job.plan.dataset.as_ref().unwrap();
        match task {
            RunnerTask::Generate => {
                if fs::create_dir_all(dataset.folder.parent().unwrap()).is_ok()
                    && fs::create_dir(&dataset.folder).is_ok()
                {
                    fs::write(dataset.folder.join("made-by"), &job.settings.id).unwrap();
                }
                self.count_call();
                fs::write(dataset.folder.join("manifest"), &dataset.fingerprint).unwrap();
                self.generated.push(dataset.fingerprint.clone());
            }
            RunnerTask::Run(run_dir) => {
                assert!(dataset.folder.join("manifest").exists());
                fs::write(run_dir.join("partial"), "").unwrap();
                self.count_call();
                if self.fails.contains(&job.row.accelerators.to_string()) {
                    return Err(TaskEnd::Failed("no space".into()));
                }
                self.runs += 1;
                if let Some((csv, edit)) = self.edit.take() {
                    fs::write(&csv, edit(&fs::read_to_string(&csv).unwrap())).unwrap();
                }
                if self.is_stopped() {
                    return Err(TaskEnd::Stopped);
                }
                fs::write(run_dir.join("record"), &dataset.fingerprint).unwrap();
                write_record(run_dir);
            }
        }
        self.count_call();
        Ok(())
    }

    fn check_results(
        &mut self,
        run_dir: &Path,
        row: &Row,
        _: &RowPlan,
    ) -> Result<CheckResult, String> {
        self.count_call();
        let read = fs::read_to_string(run_dir.join("record")).map_err(|error| error.to_string())?;
        if read == dataset_name(row) {
            Ok(CheckResult { duration_s: 20.0, plan: self.plan.into(), ..CheckResult::default() })
        } else {
            Err("another dataset".into())
        }
    }

    fn value(&mut self, run_dir: &Path, response: Option<&'static Metric>) -> Option<MetricValue> {
        // Results of 4 processes are noisy.
        let text = run_dir.display().to_string();
        let noise = if text.contains("/4_") { 40.0 } else { 0.1 };
        let number: u32 = text.rsplit('-').next()?.parse().ok()?;
        let value = 80.0 + noise * f64::from(number % 2);
        Some(MetricValue { metric: response?, value, answer: None })
    }

    fn observe(&mut self, run_dir: &Path) -> Observation {
        let response = self.value(run_dir, Some(&AU_ALL_STEPS));
        response.map_or_else(Observation::default, |MetricValue { metric, value, .. }| {
            Observation::with_value(metric, value)
        })
    }

    fn stamp(&self) -> String {
        "2026-11-21-10-00-00".into()
    }

    fn now_s(&self) -> f64 {
        20.0 * self.runs as f64
    }

    fn is_stopped(&self) -> bool {
        self.stops_after.is_some_and(|after| self.runs >= after)
    }

    fn report(&mut self, event: RunnerEvent) {
        self.events.push(event);
        self.count_call();
    }
}

/// Writes a complete record, which marks the folder as complete.
fn write_record(run_dir: &Path) {
    record::file::write(run_dir, &simple(&[(1000, 1000, 0, 1)])).unwrap();
}

/// A study in a temporary folder.
struct Study {
    folder: tempfile::TempDir,
    files: StudyFiles,
}

impl Study {
    fn new(csv: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("study.csv"), csv).unwrap();
        let files = StudyFiles::new(&folder.path().join("study.csv")).unwrap();
        Study { folder, files }
    }

    fn env(&self) -> FakeEnv {
        FakeEnv::new(self.folder.path())
    }

    fn run(
        &self,
        env: &mut FakeEnv,
        options: RunnerOptions,
    ) -> Result<(RunnerReport, StudyState), RunnerError> {
        let end = self.choose(env, options, &mut FixedDesign)?;
        Ok((end.report, end.state))
    }

    fn choose(
        &self,
        env: &mut FakeEnv,
        options: RunnerOptions,
        chooser: &mut dyn Chooser,
    ) -> Result<RunnerEnd, RunnerError> {
        let lock = self.files.lock()?;
        let state = StudyState::open(&self.files, &lock)?;
        let launching = LaunchSettings {
            launch: "local".into(),
            prologue: Vec::new(),
            arguments: Vec::new(),
            accelerators_per_rank: None,
        };
        let settings = StudySettings {
            csv: self.files.csv.clone(),
            id: "this".into(),
            folder: self.folder.path().into(),
            results: self.folder.path().join("results"),
            mlperf_folder: None,
            data: None,
            config_dir: None,
            scale: 1.0,
            shrink_records: 1.0,
            cache: "as-is".into(),
            now_s: None,
            launching,
        };
        Runner::new(&self.files, lock, state, settings, env, options).run(chooser)
    }

    fn csv(&self) -> String {
        fs::read_to_string(&self.files.csv).unwrap()
    }

    fn edit(&self, change: impl Fn(&str) -> String) {
        fs::write(&self.files.csv, change(&self.csv())).unwrap();
    }

    /// Runs below `results` that are loaded as results: `model/experiment/time`.
    fn runs(&self) -> Vec<String> {
        let results = self.folder.path().join("results");
        let mut found = Vec::new();
        for model in entries(&results) {
            for experiment in entries(&model) {
                for run in entries(&experiment)
                    .into_iter()
                    .filter(|run| !run.ends_with(INCOMPLETE) && !run.ends_with(SUPERSEDED))
                {
                    assert!(run.join("record").exists(), "{} is incomplete", run.display());
                    found.push(run.strip_prefix(&results).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

const ALL: [&str; 4] = [
    "w/1/2026-11-21-10-00-00",
    "w/1/2026-11-21-10-00-00-2",
    "w/2_format_npy/2026-11-21-10-00-00",
    "w/4_format_npy/2026-11-21-10-00-00",
];

#[test]
fn a_study_runs_to_its_end_and_generates_each_dataset_once() {
    let study = Study::new(STUDY);
    let mut env = study.env();
    let (report, _) = study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!(report, RunnerReport { finished: 4, ..RunnerReport::default() });
    assert_eq!(study.csv(), STUDY.replace(",N\n", ",Y\n"));
    assert_eq!(study.runs(), ALL);
    assert_eq!(env.generated, ["-data", "++workload.dataset.format=npy-data"]);
    let left = env.events.iter().filter_map(|event| match event {
        RunnerEvent::RowStarted { place: Some(place), left_s, .. } => {
            Some((place.number, place.count?, *left_s))
        }
        _ => None,
    });
    // Each run takes 20 s. The plans expect 10, 20, 40 and 10 s, and 1 s for each of two datasets.
    assert_eq!(Vec::from_iter(left), [(1, 4, 82.0), (2, 4, 141.0), (3, 4, 100.0), (4, 4, 10.0)]);
    assert_eq!(study.run(&mut study.env(), RunnerOptions::default()).unwrap().0.finished, 0);
}

#[test]
fn a_kill_at_any_moment_loses_duplicates_and_mismarks_nothing() {
    for calls in 0..60 {
        let study = Study::new(STUDY);
        let mut deaths = 0;
        loop {
            let mut env = study.env();
            // Each start allows one more call than the last one, so that the study ends.
            env.calls_left = Some(calls + deaths);
            let start =
                catch_unwind(AssertUnwindSafe(|| study.run(&mut env, RunnerOptions::default())));
            let rows: Vec<Row> = study.files.table().unwrap().rows().cloned().collect();
            let state = StudyState::read(&study.files).unwrap();
            for (row, row_state) in rows.iter().zip(state.row_states(&rows)) {
                let has_result = row_state.result().is_some();
                assert!(!row.done || has_result, "marked without a result after {calls} calls");
            }
            if let Ok(ended) = start {
                ended.unwrap();
                break;
            }
            deaths += 1;
            assert!(deaths < 100);
        }
        assert_eq!(study.csv(), STUDY.replace(",N\n", ",Y\n"));
        let experiments: Vec<String> =
            study.runs().iter().map(|run| run.rsplit_once('/').unwrap().0.to_string()).collect();
        assert_eq!(
            experiments,
            ["w/1", "w/1", "w/2_format_npy", "w/4_format_npy"],
            "{calls} calls"
        );
    }
}

#[test]
fn a_result_that_cannot_be_checked_yet_is_kept() {
    let study = Study::new("model,epochs,processes,overrides,run\nw,1,1,,N\n");
    study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    // The state that a runner leaves if it dies before it marks the row.
    study.edit(|csv| csv.replace(",Y\n", ",N\n"));
    let run_dir = study.folder.path().join("results").join(ALL[0]);
    fs::remove_file(run_dir.join("checked.json")).unwrap();
    let mut env = study.env();
    env.fails.insert("plan".into());
    study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!(study.runs(), ALL[..1]);
    let mut env = study.env();
    study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!((env.runs, study.runs()), (0, vec![ALL[0].to_string()]));
    assert!(study.csv().ends_with(",Y\n"));
}

#[test]
fn a_row_that_is_set_back_runs_again_and_its_older_result_is_not_a_replicate() {
    let study = Study::new(STUDY);
    study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    study.edit(|csv| csv.replacen("w,1,2,dataset.format=npy,Y", "w,1,2,dataset.format=npy,N", 1));
    let (report, state) = study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    assert_eq!(report.finished, 1);
    let is_superseded = |attempt: &&Attempt| attempt.outcome == Outcome::Superseded;
    assert_eq!(state.attempts.iter().filter(is_superseded).count(), 1);
    let experiment = study.folder.path().join("results/w/2_format_npy");
    assert!(experiment.join("superseded/2026-11-21-10-00-00/record").exists());
    assert_eq!(study.runs()[2], "w/2_format_npy/2026-11-21-10-00-00-2");
    assert_eq!(study.runs().len(), 4);
}

#[test]
fn a_failed_row_stays_pending_with_its_reason_and_is_retried_on_request() {
    let study = Study::new(STUDY);
    let mut env = study.env();
    env.fails.insert("2".into());
    let (report, state) = study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!(report.failed, [("w/2_format_npy".into(), "no space".into())]);
    assert_eq!(report.finished, 3);
    assert!(study.csv().contains("w,1,2,dataset.format=npy,N"));
    let rows: Vec<Row> = study.files.table().unwrap().rows().cloned().collect();
    let row_state = state.row_states(&rows)[1];
    assert_eq!((row_state.status, row_state.reason()), (Status::Failed, Some("no space")));
    let (report, _) = study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    assert_eq!(report, RunnerReport::default());
    let retry = RunnerOptions { retry: true, ..RunnerOptions::default() };
    let (report, _) = study.run(&mut study.env(), retry).unwrap();
    assert_eq!(report.finished, 1);
    assert_eq!(study.runs().len(), 4);
}

#[test]
fn results_of_another_plan_are_set_back_if_one_plan_is_required() {
    let study = Study::new("model,processes,run\nw,1,N\nw,2,N\n");
    let mut env = study.env();
    let options = RunnerOptions { same_plan: true, ..RunnerOptions::default() };
    assert_eq!(study.run(&mut env, options.clone()).unwrap().0.finished, 2);
    assert_eq!(study.run(&mut study.env(), options.clone()).unwrap().0.finished, 0);
    env.plan = "another";
    let (report, state) = study.run(&mut env, options).unwrap();
    let is_superseded = |attempt: &&Attempt| attempt.outcome == Outcome::Superseded;
    let superseded = state.attempts.iter().filter(is_superseded);
    assert_eq!((report.finished, superseded.count()), (2, 2));
}

#[test]
fn edits_of_the_csv_during_a_run_are_kept() {
    let check = |edit: Edit, expected: &str| {
        let study = Study::new(STUDY);
        let mut env = FakeEnv { edit: Some((study.files.csv.clone(), edit)), ..study.env() };
        study.run(&mut env, RunnerOptions::default()).unwrap();
        assert_eq!(study.csv(), expected);
        env.events
    };
    let front: Edit = |csv| csv.replacen("w,1,1,,N\n", "v,1,3,,N\nw,1,1,,N\n", 1);
    check(front, &front(STUDY).replace(",N\n", ",Y\n"));
    let other: Edit = |_| "model,processes,run\nv,1,N\n".into();
    let events = check(other, "model,processes,run\nv,1,Y\n");
    assert!(events.iter().any(|events| matches!(events, RunnerEvent::RowRemoved { .. })));
}

#[test]
fn a_run_starts_only_within_the_time_and_the_limit() {
    let study = Study::new(STUDY);
    let mut env = study.env();
    let limited = RunnerOptions { limit: Some(1), ..RunnerOptions::default() };
    assert_eq!(study.run(&mut env, limited).unwrap().0.finished, 1);
    let is_only_run = |event: &RunnerEvent| {
        let only = Some(RowPlace { number: 1, count: Some(1) });
        matches!(event, RunnerEvent::RowStarted { place, .. } if *place == only)
    };
    assert!(env.events.iter().any(is_only_run), "{:?}", env.events);
    // The first run took twice its plan, so the next two are expected to take 40 s and 80 s. The first of them actually takes 20 s.
    let budget = RunnerOptions { time_budget_s: Some(70.0), ..RunnerOptions::default() };
    let mut env = study.env();
    assert_eq!(study.run(&mut env, budget).unwrap().0.finished, 1);
    assert!(matches!(env.events.last(), Some(RunnerEvent::OutOfTime { .. })), "{:?}", env.events);
    let only = RunnerOptions { only: vec!["4_format_npy".into()], ..RunnerOptions::default() };
    assert_eq!(study.run(&mut study.env(), only).unwrap().0.finished, 1);
}

#[test]
fn a_stop_leaves_its_row_pending() {
    let study = Study::new(STUDY);
    let mut env = FakeEnv { stops_after: Some(2), ..study.env() };
    let (report, _) = study.run(&mut env, RunnerOptions::default()).unwrap();
    let expected = RunnerReport {
        finished: 1,
        is_stopped: true,
        is_interrupted: true,
        ..RunnerReport::default()
    };
    assert_eq!(report, expected);
    assert_eq!(env.events.last(), Some(&RunnerEvent::Interrupted));
    assert_eq!(study.runs().len(), 1);
    assert_eq!(study.run(&mut study.env(), RunnerOptions::default()).unwrap().0.finished, 3);
}

#[test]
fn a_row_that_cannot_be_planned_fails_and_the_others_run() {
    let study = Study::new(&format!("{STUDY}broken,1,1,,N\n"));
    let (report, _) = study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    let failed = [("broken/1".to_string(), "there is no such workload".to_string())];
    assert_eq!((report.finished, &report.failed[..]), (4, &failed[..]));
    let (report, _) = study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    assert_eq!(report, RunnerReport::default(), "a failed row runs again only on request");
    let retry = RunnerOptions { retry: true, ..RunnerOptions::default() };
    assert_eq!(study.run(&mut study.env(), retry).unwrap().0.failed, failed);
}

#[test]
fn a_study_without_any_possible_row_is_refused() {
    let study = Study::new("model,epochs,processes,overrides,run\nbroken,1,1,,N\nbroken,1,2,,N\n");
    let error = study.run(&mut study.env(), RunnerOptions::default()).unwrap_err();
    assert!(error.to_string().contains("row 1 and 1 more: there is no such"), "{error}");
    assert_eq!(study.runs(), Vec::<String>::new());
    // Likewise if the study has results.
    let study = Study::new(STUDY);
    study.run(&mut study.env(), RunnerOptions::default()).unwrap();
    study.edit(|csv| format!("{csv}broken,1,1,,N\nbroken,1,2,,N\n"));
    let error = study.run(&mut study.env(), RunnerOptions::default()).unwrap_err();
    assert!(error.to_string().contains("and 1 more: there is no such"), "{error}");
    assert!(study.run(&mut study.env(), RunnerOptions::default()).is_err(), "no row has failed");
}

#[test]
fn a_second_runner_and_an_invalid_csv_are_refused() {
    let study = Study::new(STUDY);
    let lock = study.files.lock().unwrap();
    let error = study.run(&mut study.env(), RunnerOptions::default()).unwrap_err();
    assert!(matches!(error, RunnerError::Files(FilesError::Locked { .. })), "{error}");
    drop(lock);
    study.edit(|csv| csv.replace("w,1,2", "w,1,no"));
    let error = study.run(&mut study.env(), RunnerOptions::default()).unwrap_err();
    let RunnerError::Files(FilesError::Table(Problems(problems))) = error else { panic!() };
    assert_eq!(problems.len(), 1);
}

#[test]
fn a_row_overwritten_during_the_run_is_not_run_again() {
    let study = Study::new(STUDY);
    let mut env =
        FakeEnv { edit: Some((study.files.csv.clone(), |_| STUDY.into())), ..study.env() };
    study.run(&mut env, RunnerOptions { limit: Some(1), ..RunnerOptions::default() }).unwrap();
    // The older CSV is saved over the marked one again.
    study.edit(|_| STUDY.into());
    let mut env =
        FakeEnv { edit: Some((study.files.csv.clone(), |_| STUDY.into())), ..study.env() };
    let (report, state) = study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!((report.finished, state.attempts.len()), (4, 5));
}

#[test]
fn deleted_results_are_not_marked() {
    let study = Study::new(STUDY);
    let first = RunnerOptions { limit: Some(1), ..RunnerOptions::default() };
    study.run(&mut study.env(), first).unwrap();
    study.edit(|_| STUDY.into());
    fs::remove_dir_all(study.folder.path().join("results")).unwrap();
    assert_eq!(study.run(&mut study.env(), RunnerOptions::default()).unwrap().0.finished, 4);
    assert_eq!(study.runs(), ALL);
}

#[test]
fn two_models_with_the_same_name_are_refused() {
    let study = Study::new("model,processes,run\na/w.yaml,1,N\nb/w.yaml,1,N\n");
    let error = study.run(&mut study.env(), RunnerOptions::default()).unwrap_err();
    assert!(error.to_string().contains("both called `w`"), "{error}");
}
