//! Starts runs of a study by each launch method, under a supervisor.

use crate::harness::{TINY, Test};
use feedrate_results::state::LaunchSettings;
use feedrate_study::launch::{LaunchJob, Scripts, find};
use feedrate_study::supervise::{ScriptEnd, Supervised, Supervision, wait_until_alone};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const FEEDRATE: &str = env!("CARGO_BIN_EXE_feedrate");
/// Steps for hours, so that a test can stop the run.
const LONG: &[&str] = &["train.computation_time=0.1", "train.epochs=20000"];

/// Starts a run of two accelerators in the test's folder `run`, with absolute paths.
pub(crate) fn start_run(
    test: &Test,
    launch: &str,
    options: &LaunchSettings,
    more: &[&str],
) -> StartedRun {
    let folder = test.path("run");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(test.path("data")).unwrap();
    let file = |name: &str| test.path(name).display().to_string();
    let mut arguments = vec!["run".into(), file("workload.yaml"), "reader.batch_size=1".into()];
    arguments.extend(more.iter().map(|word| (*word).to_string()));
    arguments.extend(["--data".into(), file("data"), "--results".into(), file("results")]);
    let (stdout, stderr) = (folder.join("stdout.log"), folder.join("stderr.log"));
    let Scripts { run, cleanup, files } = (find(launch).unwrap().scripts)(&LaunchJob {
        program: Path::new(FEEDRATE),
        arguments: &arguments,
        accelerators: 2,
        name: "study-1",
        folder: &folder,
        stdout: &stdout,
        stderr: &stderr,
        options,
        variable: &|name| (name == "SLURM_JOB_ID").then(|| "7".into()),
    })
    .unwrap();
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    files.into_iter().for_each(|(name, text)| drop(write(name, text)));
    let supervision = Supervision {
        script: write("run.sh", run),
        cleanup,
        stdout,
        stderr,
        running: test.path("running"),
        grace: Duration::from_secs(60),
    };
    let run = Supervised::start(Path::new(FEEDRATE), &supervision).unwrap();
    StartedRun { run, supervision, results: test.path("results") }
}

/// A run in progress.
pub(crate) struct StartedRun {
    pub(crate) run: Supervised,
    supervision: Supervision,
    results: PathBuf,
}

impl StartedRun {
    /// Waits for the end of the run, and returns its end and record. With `stops`, the run is stopped after the first epoch.
    #[track_caller]
    pub(crate) fn wait_for_end(mut self, stops: bool) -> (ScriptEnd, Value) {
        while stops && !self.output().contains("epoch 1/") {
            assert!(!self.output().contains("error: "), "{}", self.output());
            std::thread::yield_now();
        }
        let never = AtomicBool::new(false);
        let end = self.run.wait_for_end(&AtomicBool::new(stops), &never).unwrap();
        assert!(wait_until_alone(&self.supervision.running, &[], &never, &mut || {}).unwrap());
        let mut records = Vec::new();
        crate::cluster::find_files(&self.results, "record.json", &mut records);
        assert_eq!(records.len(), 1, "{end:?}: {}", self.output());
        (end, serde_json::from_slice(&fs::read(&records[0]).unwrap()).unwrap())
    }

    fn output(&self) -> String {
        let text = |file| fs::read_to_string(file).unwrap_or_default();
        text(&self.supervision.stdout) + &text(&self.supervision.stderr)
    }
}

fn mpirun_options(program: &str, more: &[&str]) -> LaunchSettings {
    LaunchSettings {
        prologue: vec![format!("export MPIRUN={program}")],
        arguments: more.iter().map(|word| (*word).into()).collect(),
        accelerators_per_rank: None,
        ..LaunchSettings::default()
    }
}

#[test]
fn runs_start_locally_and_by_both_mpis_and_save_a_record_when_stopped() {
    let open_mpi = mpirun_options("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe"]);
    for (launch, options, processes) in [
        ("local", LaunchSettings::default(), 0),
        ("mpirun", open_mpi, 2),
        ("mpirun", mpirun_options("mpiexec.hydra", &[]), 2),
    ] {
        let test = Test::with_workload(TINY);
        let (ended, record) = start_run(&test, launch, &options, &[]).wait_for_end(false);
        assert_eq!((ended, &record["complete"]), (ScriptEnd::Exited(0), &true.into()));
        let count = record["processes"].as_array().map_or(0, Vec::len);
        assert_eq!((count, &record["plan"]["accelerators"]), (processes, &2.into()), "{launch}");
        let test = Test::with_workload(TINY);
        // The exit code of some launchers does not show that the run was stopped.
        let (_, record) = start_run(&test, launch, &options, LONG).wait_for_end(true);
        assert_eq!(record["complete"], false);
        assert!(!record["epochs"].as_array().unwrap().is_empty(), "{options:?}");
    }
}
