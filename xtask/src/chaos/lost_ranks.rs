//! Ranks that are killed or stopped while all train: named within seconds, and all end.

use super::Class;
use super::case::{Case, workload};
use super::child::{LEAVES_WITHIN, descendants};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) static CLASS: Class = Class {
    name: "lost_ranks",
    what: "ranks killed or stopped",
    cases: 36,
    short: 3,
    at_once: 1,
    run,
};

/// Program, and its arguments before the number of ranks.
const LAUNCHERS: [&[&str]; 2] = [
    &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"],
    &["mpiexec.hydra", "-np"],
];

fn run(case: &mut Case) -> Result<u32> {
    case.write(
        "workload.yaml",
        workload(48, 4096, 1, "train:\n  epochs: 1000\n  computation_time: 0.02\n"),
    )?;
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    for folder in ["", "results/tiny"] {
        case.plant(folder)?;
    }
    let launcher = LAUNCHERS[case.seed as usize % 2];
    let count = 2 + case.random.below(3);
    let rank = case.random.below(count);
    let signal = case.random.pick(&[Signal::KILL, Signal::STOP]);
    let count = count.to_string();
    let own = case.program("feedrate").display().to_string();
    let words = [&own, "run", "workload.yaml", "--rank-timeout", "4s", "--run-dir", "out"];
    let mut job = case.start(launcher[0], &[&launcher[1..], &[count.as_str()], &words].concat())?;
    let start = Instant::now();
    while !case.path("out/record.json").exists() {
        ensure!(!job.is_over(), "ended before it trained: {}", job.stderr());
        ensure!(start.elapsed() < Duration::from_secs(60), "does not begin: {}", job.stderr());
        sleep(Duration::from_millis(5));
    }
    case.pass(500);
    let pid = pid_of_rank(job.pid(), rank).with_context(|| format!("rank {rank} is not there"))?;
    kill_process(pid, signal)?;
    if let (0, Signal::STOP, Some(deputy)) = (rank, signal, pid_of_rank(job.pid(), 1)) {
        // It may notice later than other ranks, whose end must not end it before it has told.
        kill_process(deputy, Signal::STOP)?;
        case.pass(3000);
        kill_process(deputy, Signal::CONT)?;
    }
    let ended =
        job.wait_for(LEAVES_WITHIN).with_context(|| format!("rank {rank} got {signal:?}"))?;
    let named = ended.stderr.contains(&format!("rank {rank} "))
        || ended.stderr.contains(&format!("rank {rank}\n"));
    // MPICH's own launcher may be faster in killing all, and tells then.
    let all_said = format!("{}{}", ended.stdout, ended.stderr);
    let by_launcher = signal == Signal::KILL
        && ["KILLED BY SIGNAL", "Killed (signal 9)"].iter().any(|words| all_said.contains(words));
    ensure!(
        ended.code != 0 && (named || by_launcher),
        "rank {rank} got {signal:?} and is not named: {}",
        ended.told()
    );
    Ok(1)
}

/// The process below `parent` that is this rank.
fn pid_of_rank(parent: Pid, rank: usize) -> Option<Pid> {
    let own = [format!("OMPI_COMM_WORLD_RANK={rank}"), format!("PMI_RANK={rank}")];
    descendants(parent).into_iter().map(|(pid, _)| pid).find(|pid| {
        let environment =
            fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|word| own.iter().any(|own| own.as_bytes() == word))
    })
}
