//! The ways to start the runs of a study, each started for real, under a supervisor.

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
/// Steps for hours: none of it is waited for.
const LONG: &[&str] = &["train.computation_time=0.1", "train.epochs=20000"];

/// A run of two accelerators in the test's folder `run`, by absolute paths.
pub(crate) fn begin(test: &Test, launch: &str, options: &LaunchSettings, more: &[&str]) -> Begun {
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
    let order = Supervision {
        script: write("run.sh", run),
        cleanup,
        stdout,
        stderr,
        running: test.path("running"),
        grace: Duration::from_secs(60),
    };
    let run = Supervised::start(Path::new(FEEDRATE), &order).unwrap();
    Begun { run, order, results: test.path("results") }
}

/// A run that goes on.
pub(crate) struct Begun {
    pub(crate) run: Supervised,
    order: Supervision,
    results: PathBuf,
}

impl Begun {
    /// Wait for its end, after telling it to stop once an epoch is over, if that is wanted.
    #[track_caller]
    pub(crate) fn ended(mut self, stops: bool) -> (ScriptEnd, Value) {
        while stops && !self.told().contains("epoch 1/") {
            assert!(!self.told().contains("error: "), "{}", self.told());
            std::thread::yield_now();
        }
        let never = AtomicBool::new(false);
        let ended = self.run.wait_for_end(&AtomicBool::new(stops), &never).unwrap();
        assert!(wait_until_alone(&self.order.running, &[], &never, &mut || {}).unwrap());
        let mut records = Vec::new();
        crate::cluster::find(&self.results, "record.json", &mut records);
        assert_eq!(records.len(), 1, "{ended:?}: {}", self.told());
        (ended, serde_json::from_slice(&fs::read(&records[0]).unwrap()).unwrap())
    }

    fn told(&self) -> String {
        let text = |file| fs::read_to_string(file).unwrap_or_default();
        text(&self.order.stdout) + &text(&self.order.stderr)
    }
}

fn under_mpirun(program: &str, more: &[&str]) -> LaunchSettings {
    LaunchSettings {
        prologue: vec![format!("export MPIRUN={program}")],
        arguments: more.iter().map(|word| (*word).into()).collect(),
        accelerators_per_rank: None,
        ..LaunchSettings::default()
    }
}

#[test]
fn runs_are_started_here_and_by_either_mpi_and_write_down_what_they_have_when_stopped() {
    let of_open_mpi = under_mpirun("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe"]);
    for (launch, options, processes) in [
        ("local", LaunchSettings::default(), 0),
        ("mpirun", of_open_mpi, 2),
        ("mpirun", under_mpirun("mpiexec.hydra", &[]), 2),
    ] {
        let test = Test::with(TINY);
        let (ended, record) = begin(&test, launch, &options, &[]).ended(false);
        assert_eq!((ended, &record["complete"]), (ScriptEnd::Exited(0), &true.into()));
        let of = record["processes"].as_array().map_or(0, Vec::len);
        assert_eq!((of, &record["plan"]["accelerators"]), (processes, &2.into()), "{launch}");
        let test = Test::with(TINY);
        // Not all launchers say by their code that they were stopped.
        let (_, record) = begin(&test, launch, &options, LONG).ended(true);
        assert_eq!(record["complete"], false);
        assert!(!record["epochs"].as_array().unwrap().is_empty(), "{options:?}");
    }
}
