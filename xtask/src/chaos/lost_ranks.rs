//! Kills and stops of ranks during training. The error must name the rank within seconds, and all ranks must end.

use super::Class;
use super::case::{Case, workload};
use super::child::{RunningProgram, STOP_TIMEOUT, descendants};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) static CLASS: Class = Class {
    name: "lost_ranks",
    noun: "ranks killed or stopped",
    cases: 36,
    short_cases: 3,
    parallel_cases: 1,
    run,
};

/// Writes `workload.yaml`, which trains for a number of epochs, and generates its files.
pub(super) fn generate(case: &mut Case, epochs: u32) -> Result<()> {
    let train = format!("train:\n  epochs: {epochs}\n  computation_time: 0.02\n");
    case.write("workload.yaml", workload(48, 4096, 1, &train))?;
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    Ok(())
}

/// Launchers: the program and its arguments before the number of ranks.
pub(super) const LAUNCHERS: [&[&str]; 2] = [
    &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"],
    &["mpiexec.hydra", "-np"],
];

fn run(case: &mut Case) -> Result<u32> {
    generate(case, 1000)?;
    for folder in ["", "results/tiny"] {
        case.create_user_files(folder)?;
    }
    let launcher = LAUNCHERS[case.seed as usize % 2];
    let count = 2 + case.random.below(3);
    let rank = case.random.below(count);
    let signal = case.random.pick(&[Signal::KILL, Signal::STOP]);
    let feedrate = case.program("feedrate").display().to_string();
    let words = [&feedrate, "run", "workload.yaml", "--rank-timeout", "4s", "--run-dir", "out"];
    let job = start_training(case, launcher, count, &words)?;
    case.sleep_up_to(500);
    let pid =
        pid_of_rank(job.pid(), rank).with_context(|| format!("rank {rank} does not exist"))?;
    kill_process(pid, signal)?;
    if let (0, Signal::STOP, Some(deputy)) = (rank, signal, pid_of_rank(job.pid(), 1)) {
        // The deputy may notice the lost rank later than the other ranks. Their end must not end the deputy before it reports rank 0.
        kill_process(deputy, Signal::STOP)?;
        case.sleep_up_to(3000);
        kill_process(deputy, Signal::CONT)?;
    }
    let ended =
        job.wait_for(STOP_TIMEOUT).with_context(|| format!("rank {rank} got {signal:?}"))?;
    let is_named = ended.stderr.contains(&format!("rank {rank} "))
        || ended.stderr.contains(&format!("rank {rank}\n"));
    // MPICH's launcher may kill all ranks first, and then reports the killed rank itself.
    let output = format!("{}{}", ended.stdout, ended.stderr);
    let is_named_by_launcher = signal == Signal::KILL
        && ["KILLED BY SIGNAL", "Killed (signal 9)"].iter().any(|words| output.contains(words));
    ensure!(
        ended.code != 0 && (is_named || is_named_by_launcher),
        "rank {rank} got {signal:?} and is not named: {}",
        ended.summary()
    );
    Ok(1)
}

/// Starts ranks, and waits until they train.
pub(super) fn start_training(
    case: &Case,
    launcher: &[&str],
    count: usize,
    command: &[&str],
) -> Result<RunningProgram> {
    let count_text = count.to_string();
    let mut job =
        case.start(launcher[0], &[&launcher[1..], &[count_text.as_str()], command].concat())?;
    let start = Instant::now();
    while !case.path("out/record.json").exists() {
        ensure!(!job.has_ended(), "ended before training: {}", job.stderr());
        ensure!(
            start.elapsed() < Duration::from_secs(60),
            "does not start training: {}",
            job.stderr()
        );
        sleep(Duration::from_millis(5));
    }
    Ok(job)
}

/// Returns the process of a rank among the descendants of `parent`.
pub(super) fn pid_of_rank(parent: Pid, rank: usize) -> Option<Pid> {
    let variables = [format!("OMPI_COMM_WORLD_RANK={rank}"), format!("PMI_RANK={rank}")];
    descendants(parent).into_iter().map(|(pid, _)| pid).find(|pid| {
        let environment =
            fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|word| variables.iter().any(|variable| variable.as_bytes() == word))
    })
}
