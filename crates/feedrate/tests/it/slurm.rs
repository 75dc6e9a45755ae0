//! The text of batch scripts. The tests of `cluster` run such scripts.

use crate::harness::{TINY, Test};
use std::io::Write;
use std::process::{Command, Stdio};

fn script(test: &Test, more: &[&str]) -> String {
    let answer = test.feedrate(&[&["slurm"], more].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    check_bash(&answer.stdout);
    answer.stdout
}

/// Checks a script by shellcheck.
#[track_caller]
fn check_bash(script: &str) {
    let mut check = Command::new("shellcheck")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("cannot start `shellcheck`: {error}\n  hint: run `cargo xtask setup`")
        });
    check.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_script_of_a_job_on_several_nodes() {
    let test = Test::with_workload(TINY);
    let text = script(
        &test,
        &[
            "workload.yaml",
            "train.computation_time=0.5",
            "++reader.batch_size=1",
            "--nodes=2",
            "--tasks-per-node=2",
            "--cpus-per-task=8",
            "--partition=main",
            "--account=science",
            "--module=gcc",
            "--module=openmpi/4.1 hdf5/1.14",
            "--array=5",
            "--data=/scratch/my data",
            "--cold",
        ],
    );
    insta::assert_snapshot!(text, @r##"
    #!/usr/bin/env bash
    # Runs the workload workload with 4 accelerators in 4 processes. Written by feedrate 0.1.0; submit it by `sbatch THIS_FILE`.
    # Estimated time: generation 73.5 µs, training 2 s, at a storage rate of 500 MB/s. The limit is twice that plus 10 min.
    #SBATCH --job-name=feedrate-workload
    #SBATCH --partition=main
    #SBATCH --account=science
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=2
    #SBATCH --cpus-per-task=8
    #SBATCH --time=0-00:11:00
    # One after another, since parallel jobs would compete for the storage.
    #SBATCH --array=1-5%1
    # A requeued job appends to its output file, reuses generated files, and writes its results next to the earlier ones.
    #SBATCH --requeue
    #SBATCH --open-mode=append
    # One minute before the time limit, a signal makes the run stop and save its results.
    #SBATCH --signal=TERM@60

    set -euo pipefail
    # Modules may use variables that are not set.
    set +u
    module load gcc
    module load openmpi/4.1 hdf5/1.14
    set -u

    launch() {
        srun --mpi=pmix --cpus-per-task=8 "$@"
    }

    job=$SLURM_JOB_ID
    if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
        job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    fi
    results=results/job-$job
    mkdir -p "$results"
    results=$results/start-$((${SLURM_RESTART_COUNT:-0} + 1))
    mkdir "$results"

    feedrate=${FEEDRATE:-feedrate}
    # Files from an earlier start of the job are kept.
    launch "$feedrate" generate workload.yaml train.computation_time=0.5 ++reader.batch_size=1 --data '/scratch/my data'
    launch "$feedrate" run workload.yaml train.computation_time=0.5 ++reader.batch_size=1 --data '/scratch/my data' --results "$results" --cold
    "##);
}

#[test]
fn the_script_of_a_dlio_job_under_mpirun() {
    let test = Test::with_workload(TINY);
    let more =
        ["workload.yaml", "--dlio", "--launcher=mpirun", "--tasks-per-node=4", "--time=1:00:00"];
    let text = script(
        &test,
        &[&more[..], &["++train.epochs=3", "reader.batch_size=2", "output.folder=there"]].concat(),
    );
    insta::assert_snapshot!(text, @r##"
    #!/usr/bin/env bash
    # Runs the workload workload with 4 accelerators in 4 processes. Written by feedrate 0.1.0; submit it by `sbatch THIS_FILE`.
    # The time limit was given by `--time`.
    #SBATCH --job-name=feedrate-workload
    #SBATCH --nodes=1
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=1:00:00
    # A requeued job appends to its output file, reuses generated files, and writes its results next to the earlier ones.
    #SBATCH --requeue
    #SBATCH --open-mode=append
    # One minute before the time limit, a signal makes the run stop and save its results.
    #SBATCH --signal=B:TERM@60

    set -euo pipefail

    # Processes of mpirun are not steps of the job, so the script receives the signal and forwards it.
    launch() {
        mpirun -n 4 "$@" &
        local pid=$! code=0
        trap 'kill -TERM "$pid"' TERM
        wait "$pid" || code=$?
        while kill -0 "$pid" 2>/dev/null; do
            code=0
            wait "$pid" || code=$?
        done
        trap - TERM
        return "$code"
    }

    job=$SLURM_JOB_ID
    if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
        job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    fi
    results=there/job-$job
    mkdir -p "$results"
    results=$results/start-$((${SLURM_RESTART_COUNT:-0} + 1))
    mkdir "$results"

    dlio_benchmark=${DLIO_BENCHMARK:-dlio_benchmark}
    # DLIO looks for user workloads in a folder named `workload`.
    mkdir -p "$results/config/workload"
    cp workload.yaml "$results"/config/workload/workload.yaml
    # Files from an earlier start of the job are kept.
    launch "$dlio_benchmark" --config-dir "$results/config" workload=workload ++workload.train.epochs=3 ++workload.reader.batch_size=2 ++workload.output.folder=there ++hydra.run.dir="$results/generate" ++workload.output.folder="$results/generate" ++workload.workflow.generate_data=True ++workload.workflow.train=False ++workload.workflow.checkpoint=False
    launch "$dlio_benchmark" --config-dir "$results/config" workload=workload ++workload.train.epochs=3 ++workload.reader.batch_size=2 ++workload.output.folder=there ++hydra.run.dir="$results/run" ++workload.output.folder="$results/run" ++workload.workflow.generate_data=False
    "##);
}

#[test]
fn cache_options_are_passed_on() {
    let test = Test::with_workload(TINY);
    let text = script(&test, &["workload.yaml", "--warm"]);
    assert!(text.ends_with("--results \"$results\" --warm\n"), "{text}");
    let both = test.feedrate(&["slurm", "workload.yaml", "--warm", "--cold"]);
    both.refuses(2, &["--warm", "cannot be used with"]);
    test.feedrate(&["slurm", "workload.yaml", "--warm", "--dlio"]).refuses(2, &["no `--warm`"]);
}

#[test]
fn the_script_has_no_generation_if_the_run_needs_no_generated_files() {
    let test = Test::with_workload(TINY);
    for more in [
        &["workload.yaml", "storage.storage_type=memory"][..],
        &["workload.yaml", "--foreign"],
        &["llama3_8b"],
    ] {
        let text = script(&test, more);
        assert!(!text.contains("\" generate"), "{more:?}: {text}");
        assert!(text.contains("\" run"), "{more:?}: {text}");
    }
}

#[test]
fn the_time_limit_is_computed_from_the_plan() {
    let test = Test::with_workload(TINY);
    let check = |overrides: &[&str], expected: &str| {
        let text = script(&test, &[&["workload.yaml", "--storage-rate=1MB/s"], overrides].concat());
        assert!(text.contains(&format!("#SBATCH --time={expected}\n")), "{overrides:?}: {text}");
    };
    // Two epochs of two steps of 15 minutes are 60 minutes; the limit is twice that plus ten.
    check(&["train.computation_time=900"], "0-02:11:00");
    // Reading 32 kB at 1 kB/s takes 33 s per epoch, longer than computing.
    check(&["train.computation_time=1", "storage.throttle.bytes_per_second=1000"], "0-00:13:00");
    check(&["train.computation_time=86400"], "8-00:11:00");
}

#[test]
fn options_that_no_script_can_have_are_refused() {
    let test = Test::with_workload(TINY);
    test.write("unet3d_h100.yaml", TINY);
    let check = |more: &[&str], words: &[&str]| {
        test.feedrate(&[&["slurm"], more].concat()).refuses(2, words);
    };
    check(&["workload.yaml", "--partition=a b"], &["'a b' for '--partition", "word"]);
    check(&["workload.yaml", "--time=soon"], &["--time soon", "HH:MM:SS"]);
    check(&["workload.yaml", "--storage-rate=fast"], &["'fast' for '--storage-rate", "500MB/s"]);
    check(&["workload.yaml", "--nodes=0"], &["--nodes"]);
    check(&["workload.yaml", "--dlio", "--scale=0.5"], &["--scale", "leave"]);
    check(&["./unet3d_h100.yaml", "--dlio"], &["its own workload", "rename the file"]);
    check(&["workload.yaml", "reader.batch_size=0"], &["batch_size"]);
    check(&["workload.yaml", "--client=train.py:f"], &["each start", "feedrate calibrate"]);
    check(&["workload.yaml", "--retry"], &["`--retry` is only for the job of a study"]);
}

pub(crate) const STUDY: &str = "\
model,epochs,processes,overrides,run
workload.yaml,2,2,reader.batch_size=1,N
workload.yaml,2,2,reader.batch_size=2,N
workload.yaml,2,1,,N
";

#[test]
fn the_script_of_a_study() {
    let test = Test::with_workload(TINY);
    test.write("my study.csv", STUDY);
    let study = |more: &[&str]| {
        let answer = test.feedrate(&[&["slurm", "my study.csv"], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        check_bash(&answer.stdout);
        answer.stdout
    };
    let more = ["--time=2:00:00", "--tasks-per-node=2", "--cpus-per-task=4", "--module=openmpi"];
    let settings = ["--cache=cold", "--prologue=export A=1", "--launcher-argument=--exclusive"];
    insta::assert_snapshot!(study(&[&more[..], &settings].concat()), @r##"
    #!/usr/bin/env bash
    # Runs the study my study.csv. Written by feedrate 0.1.0; submit it by `sbatch THIS_FILE`.
    # No run starts that would exceed the time limit; submit again for the remaining ones.
    #SBATCH --job-name=feedrate-mystudy
    #SBATCH --nodes=1
    #SBATCH --ntasks-per-node=2
    #SBATCH --cpus-per-task=4
    #SBATCH --time=2:00:00
    # A requeued job appends to its output file, and continues with the pending runs.
    #SBATCH --requeue
    #SBATCH --open-mode=append
    # One minute before the time limit, a signal makes the run stop and save its results.
    #SBATCH --signal=B:TERM@60

    set -euo pipefail
    # Modules may use variables that are not set.
    set +u
    module load openmpi
    set -u

    export SLURM_MPI_TYPE=pmix
    # Steps do not inherit this option from the job.
    export SRUN_CPUS_PER_TASK=4
    exec "${FEEDRATE:-feedrate}" study run 'my study.csv' --launch srun --cache=cold --prologue='export A=1' --launcher-argument=--exclusive --time-budget 7080s
    "##);
    let text = study(&["--time=10", "--launch=local", "--array=3", "--retry", "--chdir=/scratch"]);
    assert!(text.contains("#SBATCH --array=1-3%1\n"), "{text}");
    let absolute = test.path("my study.csv").canonicalize().unwrap();
    let words = format!(
        "run '{}' --launch local --retry --limit 1 --time-budget 480s\n",
        absolute.display()
    );
    assert!(text.ends_with(&words), "{text}");
    assert!(!text.contains("MPI"), "{text}");
    for (more, words) in [
        (&["--time=soon"][..], &["--time soon", "HH:MM:SS"][..]),
        (&["--time=2"], &["`--time 2`", "too short for any run", "more than 2 min"]),
        (&["--time=0"], &["`--time 0`", "too short for any run"]),
        (&["--time=10"], &["needs 2 processes", "--tasks-per-node"]),
        (&["--time=10", "--launch=rsh"], &["'rsh' for '--launch", "srun"]),
        (&[], &["needs `--time`", "`feedrate study run 'my study.csv' --dry-run`"]),
        (&["--time=10", "--dlio"], &["`--dlio` cannot be used"]),
        (&["--time=10", "-n=2"], &["`--accelerators` cannot be used"]),
        (&["--time=10", "train.epochs=2"], &["`train.epochs=2` cannot be used"]),
    ] {
        let answer = test.feedrate(&[&["slurm", "my study.csv"], more].concat());
        answer.refuses(2, words);
    }
}

#[test]
fn files_of_batch_jobs_have_no_colours() {
    let test = Test::with_workload(TINY);
    let has_colours = |job: Option<&str>| {
        let mut command = test.command(&["run", "workload.yaml"]);
        command.env_remove("NO_COLOR").env_remove("SLURM_JOB_ID").env("CLICOLOR_FORCE", "1");
        command.envs(job.map(|job| ("SLURM_JOB_ID", job)));
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(has_colours(None) && !has_colours(Some("7")));
}

#[test]
fn a_job_with_more_tasks_than_a_study_needs_is_warned_of() {
    let test = Test::with_workload(TINY);
    test.write("study.csv", "model,processes,run\nworkload.yaml,1,N\n");
    let script = |tasks: &str| {
        test.feedrate(&["slurm", "study.csv", "--time", "1:00:00", "--tasks-per-node", tasks])
    };
    script("2").warns(&["the job has 2 tasks, but no row of the study needs more than 1"]);
    assert!(!script("1").stderr.contains("tasks"));
}
