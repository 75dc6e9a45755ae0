//! Runs of several processes under the launchers of real MPI libraries. The tests need Debian's Open MPI and MPICH, which
//! `cargo xtask setup` installs.

use crate::dlio_benchmark::with_workloads;
use crate::harness::{Answer, Test, wait_until};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A launcher: program and arguments; the number of ranks is appended.
pub(crate) type Launcher = (&'static str, &'static [&'static str]);

pub(crate) const OPEN_MPI: Launcher =
    ("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe", "-np"]);
pub(crate) const MPICH: Launcher = ("mpiexec.hydra", &["-np"]);
pub(crate) const LAUNCHERS: [Launcher; 2] = [OPEN_MPI, MPICH];

const GENERATE: &str = "++workload.workflow.generate_data=True";

fn launch(test: &Test, (program, first): Launcher, ranks: u32, arguments: &[&str]) -> Answer {
    let ranks = ranks.to_string();
    let program_path = env!("CARGO_BIN_EXE_dlio_benchmark");
    let before = [first, &[&ranks, program_path, "--config-dir", "conf", "workload=tiny"]].concat();
    let mut command = test.program(program, &before);
    let output = command.args(arguments).output();
    Answer::from_output(&output.unwrap_or_else(|error| {
        panic!("cannot start `{program}`: {error}\n  hint: run `cargo xtask setup`")
    }))
}

fn json(test: &Test, name: &str) -> Value {
    serde_json::from_slice(&fs::read(test.path(name)).unwrap()).unwrap()
}

#[test]
fn ranks_generate_and_train_together() {
    for launcher in LAUNCHERS {
        let test = with_workloads();
        let more = [
            GENERATE,
            "++hydra.run.dir=out",
            "++workload.reader.batch_size=1",
            "++workload.workflow.evaluation=True",
            "++workload.dataset.num_files_eval=8",
            "++workload.workflow.checkpoint=True",
            "++workload.model.model_size=10000",
            "++workload.checkpoint.type=all_ranks",
        ];
        let answer = launch(&test, launcher, 4, &more);
        answer.warns(&["with 4 process(es)", "[METRIC] Number of Simulated Accelerators: 4 "]);
        assert_eq!(answer.stderr.matches("Running DLIO").count(), 1, "only rank 0 prints");
        let record = json(&test, "out/record.json");
        assert_eq!(record["complete"], true);
        assert_eq!(record["processes"].as_array().unwrap().len(), 4);
        for epoch in record["epochs"].as_array().unwrap() {
            let accelerators = epoch["accelerators"].as_array().unwrap();
            assert_eq!(accelerators.len(), 4);
            let samples = |accelerator: &Value| accelerator["io"]["samples"].as_u64().unwrap();
            assert_eq!(accelerators.iter().map(samples).sum::<u64>(), 8, "each sample once");
            let ranks = epoch["checkpoints"][0]["ranks"].as_array().unwrap();
            assert_eq!(ranks.len(), 4, "all ranks write");
        }
        let summary = json(&test, "out/summary.json");
        assert_eq!((&summary["num_accelerators"], &summary["num_hosts"]), (&4.into(), &1.into()));
        assert!((0..4).all(|rank| test.path(&format!("out/{rank}_output.json")).exists()));
        assert_eq!(record["evaluations"][0]["accelerators"].as_array().unwrap().len(), 4);
    }
}

/// `mpirun` ends all ranks as soon as one has ended.
#[test]
fn a_slow_rank_0_reports_a_refusal() {
    let test = Test::new();
    let (program, first) = OPEN_MPI;
    let rank_0 = ["1", "sh", "-c", "until test -e begun; do :; done; exec \"$@\"", "sh"];
    let rank_1 = [":", "-np", "1", "sh", "-c", ": > begun; exec \"$@\"", "sh"];
    let run = [env!("CARGO_BIN_EXE_feedrate"), "run", "quickstart", "--data", "missing"];
    let words = [first, &rank_0, &run, &rank_1, &run].concat();
    let answer = Answer::from_output(&test.program(program, &words).output().unwrap());
    answer.refuses(2, &["`--data missing` does not exist", "hint: is the storage mounted?"]);
}

/// `mpirun` connects the stdout of a rank to a pseudo-terminal.
#[test]
fn files_that_mpirun_writes_have_no_colours() {
    let test = with_workloads();
    for job in [&[][..], &["SLURM_JOB_ID=7"]] {
        let (program, first) = OPEN_MPI;
        let is_terminal = "test -t 1 && \"$@\"";
        let words = ["env", "TERM=xterm-256color"];
        let rank = ["sh", "-c", is_terminal, "sh", env!("CARGO_BIN_EXE_feedrate")];
        let run = ["run", "conf/workload/tiny.yaml"];
        let mut command =
            test.program(program, &[first, &["1"], &words, job, &rank, &run].concat());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "CI"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        let answer = Answer::from_output(&output);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(answer.stdout.contains("AU"), "{}", answer.stdout);
        assert!(![output.stdout, output.stderr].concat().contains(&0x1b), "{}", answer.stdout);
    }
}

/// The files that all processes read are combined, so the result does not depend on the distribution of accelerators.
#[test]
fn read_files_and_bytes_are_combined_over_ranks() {
    let test = with_workloads();
    let files_read = |ranks: u32, each: &str, folder: &str| {
        let run_dir = format!("++hydra.run.dir={folder}");
        let settings = [
            "++workload.reader.batch_size=1",
            "++workload.reader.file_shuffle=seed",
            "++workload.train.epochs=3",
        ];
        let more = [&[GENERATE, "--accelerators-per-rank", each, &run_dir], &settings[..]].concat();
        launch(&test, MPICH, ranks, &more).warns(&["with 4 process(es)"]);
        let record = json(&test, &format!("{folder}/record.json"));
        let epochs = record["epochs"].as_array().unwrap().iter();
        epochs.map(|epoch| epoch["files_read"].clone()).collect::<Vec<_>>()
    };
    let alone = files_read(1, "4", "alone");
    assert!(alone[2]["overlap_bytes"].as_u64() > Some(0), "{alone:?}");
    assert_eq!(files_read(2, "2", "two"), alone);
    assert_eq!(files_read(4, "1", "four"), alone);
}

#[test]
fn a_rank_may_have_several_accelerators() {
    let test = with_workloads();
    let more = [
        GENERATE,
        "--accelerators-per-rank",
        "2",
        "++workload.reader.batch_size=1",
        "++hydra.run.dir=out",
    ];
    launch(&test, MPICH, 2, &more).warns(&["with 4 process(es)"]);
    let record = json(&test, "out/record.json");
    let each: Vec<_> =
        record["processes"].as_array().unwrap().iter().map(|p| &p["accelerators"]).collect();
    assert_eq!(each, [2, 2]);
}

#[test]
fn an_error_of_one_rank_is_printed_once_and_ends_all_ranks() {
    for launcher in LAUNCHERS {
        let test = with_workloads();
        let generation = [GENERATE, "++workload.workflow.train=False", "++hydra.run.dir=made"];
        assert_eq!(launch(&test, launcher, 2, &generation).code, 0);
        test.write("data/train/img_7_of_8.npz", "cut off");
        let answer =
            launch(&test, launcher, 4, &["++hydra.run.dir=out", "++workload.reader.batch_size=1"]);
        assert_ne!(answer.code, 0);
        let count = |words: &str| answer.stderr.matches(words).count();
        assert_eq!(count("img_7_of_8.npz"), 1, "{}", answer.stderr);
        assert_eq!(count("error: rank 3 on "), 1, "{}", answer.stderr);
        let record = json(&test, "out/record.json");
        assert_eq!(record["complete"], false);
        assert!(record["stopped_because"].as_str().unwrap().contains("img_7_of_8.npz"));
    }
}

/// All ranks have the same bad arguments, but only one prints the error.
#[test]
fn bad_arguments_are_reported_once() {
    let test = with_workloads();
    let answer = launch(&test, OPEN_MPI, 3, &["++workload.reader.batch_size=x"]);
    answer.refuses(1, &[]);
    assert_eq!(answer.stderr.matches("expected a whole number").count(), 1, "{}", answer.stderr);
}

#[test]
fn an_error_in_rank_0s_plan_ends_all_ranks_with_its_exit_code() {
    for launcher in LAUNCHERS {
        let test = with_workloads();
        let more = [
            GENERATE,
            "++workload.reader.batch_size=1",
            "++workload.train.total_training_steps=1000",
        ];
        let answer = launch(&test, launcher, 3, &more);
        answer.refuses(255, &["only 2 steps an epoch"]);
        assert_eq!(answer.stderr.matches("only 2 steps an epoch").count(), 1, "{}", answer.stderr);
        assert!(!answer.stderr.contains("MPI_ABORT"), "{}", answer.stderr);
    }
}

/// One rank is interrupted while all generate a huge dataset.
#[test]
fn interrupting_one_rank_ends_the_generation_on_all() {
    for (program, first) in LAUNCHERS {
        let test = with_workloads();
        let rank = "[ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 1 ] && echo $$ > pid; exec \"$@\"";
        let program_path = env!("CARGO_BIN_EXE_dlio_benchmark");
        let before =
            [first, &["3", "sh", "-c", rank, "sh", program_path, "--config-dir", "conf"]].concat();
        let mut command = test.program(program, &before);
        command.args(["workload=tiny", "++workload.dataset.num_files_train=200000", GENERATE]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        // Process R generates files R, R + 3 and so on. A process that still waits in MPI could only be aborted.
        let first_files = [0, 1, 2].map(|file| format!("img_{file:06}_of_200000.npz"));
        wait_until("a file of each process", || {
            assert_eq!(running.try_wait().unwrap(), None, "the generation ended too early");
            first_files.iter().all(|name| !test.files_below("data/train", name).is_empty())
        });
        let pid = fs::read_to_string(test.path("pid")).unwrap();
        assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
        let answer = Answer::from_output(&running.wait_with_output().unwrap());
        answer.refuses(130, &["cannot generate the dataset", "interrupted"]);
        assert!(!answer.stderr.contains("gave up"), "{}", answer.stderr);
        assert!(!answer.stderr.contains("MPI_ABORT"), "{}", answer.stderr);
    }
}

/// The shared memory of a container is full. Only Open MPI starts in this case.
#[test]
fn ranks_without_shared_memory_synchronise_by_mpi_and_report_a_doubt() {
    let test = with_workloads();
    let full =
        "mount -t tmpfs -o size=64k full /dev/shm && ! cat /dev/zero > /dev/shm/all && exec \"$@\"";
    let (program, first) = OPEN_MPI;
    let program_path = env!("CARGO_BIN_EXE_feedrate");
    let run = ["2", program_path, "run", "conf/workload/tiny.yaml", "--run-dir", "out", "--json"];
    let before = [&["-m", "sh", "-c", full, "sh", program], first, &run].concat();
    let answer = Answer::from_output(&test.program("unshare", &before).output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let record = json(&test, "out/record.json");
    let doubts = record["doubts"].as_array().unwrap();
    let doubt = doubts.iter().find(|doubt| doubt["name"] == "ranks_share_no_memory").unwrap();
    assert!(doubt["evidence"].as_str().unwrap().contains("No space left on device"), "{doubt}");
}

#[test]
fn a_stopped_rank_is_named_and_ends_all_ranks() {
    for ((program, first), stopped) in [(OPEN_MPI, 0), (MPICH, 1)] {
        let test = with_workloads();
        let rank = "echo $$ > pid${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec \"$@\"";
        let program_path = env!("CARGO_BIN_EXE_feedrate");
        let before = [first, &["3", "sh", "-c", rank, "sh", program_path, "run"]].concat();
        let mut command = test.program(program, &before);
        command.args(["conf/workload/tiny.yaml", "train.epochs=100000", "--run-dir", "out"]);
        command.args(["reader.batch_size=1", "--quiet"]);
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a record", || {
            assert_eq!(running.try_wait().unwrap(), None, "the run ended too early");
            test.path("out/record.json").exists()
        });
        let send = |signal: &str, rank: u32| {
            let pid = fs::read_to_string(test.path(&format!("pid{rank}"))).unwrap();
            assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
        };
        send("-STOP", stopped);
        if stopped == 0 {
            // Rank 1, which reports instead of rank 0, notices later than rank 2. It must still print its message after rank 2 has ended.
            send("-STOP", 1);
            std::thread::sleep(Duration::from_secs(3));
            send("-CONT", 1);
        }
        let answer = Answer::from_output(&running.wait_with_output().unwrap());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let message = format!("error: rank {stopped} on {} does not answer", host.trim());
        // MPICH's launcher kills the stopped rank, and may take that for the end of all.
        let is_killed = program == MPICH.0 && answer.code == 9;
        answer.refuses(if is_killed { 9 } else { 1 }, &[&message]);
        assert_eq!(json(&test, "out/record.json")["complete"], false);
    }
}

#[test]
fn ranks_with_different_arguments_are_refused_and_named() {
    let test = with_workloads();
    let program_path = env!("CARGO_BIN_EXE_feedrate");
    for (program, first) in LAUNCHERS {
        let run = [program_path, "run", "conf/workload/tiny.yaml", "--run-dir", "out"];
        let others = [&[":", "-np", "2"], &run[..], &["train.epochs=7", "--cold"]].concat();
        let answer = test.program(program, &[first, &["1"], &run, &others].concat()).output();
        let answer = Answer::from_output(&answer.unwrap());
        let differences = "`--cold` is `false` on rank 0 and `true` on ranks 1, 2; `train.epochs` is `2` on rank 0 and `7` on ranks 1, 2";
        answer.refuses(2, &["the ranks have different arguments", differences]);
        assert!(!test.path("out").exists());
    }
}

#[test]
fn many_more_ranks_than_cores_can_train() {
    let test = with_workloads();
    let more = [
        GENERATE,
        "++workload.dataset.num_files_train=64",
        "++workload.reader.batch_size=1",
        "++workload.reader.read_threads=1",
        "++hydra.run.dir=out",
    ];
    launch(&test, OPEN_MPI, 64, &more).warns(&["with 64 process(es)"]);
    assert_eq!(json(&test, "out/record.json")["complete"], true);
}
