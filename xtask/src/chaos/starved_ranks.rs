//! A rank that is stopped for most of the time, or gets hardly any processor time. It is slow, but not lost.

use super::Class;
use super::case::{Case, json};
use super::lost_ranks::{LAUNCHERS, generate, pid_of_rank, start_training};
use anyhow::{Context, Result, ensure};
use rustix::process::{Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) static CLASS: Class = Class {
    name: "starved_ranks",
    noun: "starved ranks",
    cases: 12,
    short_cases: 1,
    parallel_cases: 1,
    run,
};

/// Time for which a rank is starved; longer than the time after which a stopped rank is lost.
const STARVED: Duration = Duration::from_secs(15);
/// Share of a second for which the rank is stopped.
const STOP: Duration = Duration::from_millis(800);
const CONTINUE: Duration = Duration::from_millis(200);
/// Processes without pause that compete with a rank of the lowest priority.
const COMPETITORS: usize = 8;

fn run(case: &mut Case) -> Result<u32> {
    generate(case, 20)?;
    let launcher = LAUNCHERS[case.seed as usize / 2 % 2];
    let count = 2 + 2 * case.random.below(2);
    let rank = case.random.below(count);
    let feedrate = case.program("feedrate").display().to_string();
    let words = [&feedrate, "run", "workload.yaml", "--run-dir", "out"];
    let mut job = start_training(case, launcher, count, &words)?;
    let pid =
        pid_of_rank(job.pid(), rank).with_context(|| format!("rank {rank} does not exist"))?;
    let start = Instant::now();
    if case.seed.is_multiple_of(2) {
        while start.elapsed() < STARVED && !job.has_ended() {
            let _ = kill_process(pid, Signal::STOP);
            sleep(STOP);
            let _ = kill_process(pid, Signal::CONT);
            sleep(CONTINUE);
        }
    } else {
        let _competitors =
            (0..COMPETITORS).map(|_| Competitor::start()).collect::<Result<Vec<_>>>()?;
        let id = pid.as_raw_nonzero().to_string();
        let lowered =
            Command::new("chrt").args(["--idle", "--all-tasks", "--pid", "0", &id]).status()?;
        ensure!(lowered.success() || job.has_ended(), "`chrt` cannot lower the priority");
        while start.elapsed() < STARVED && !job.has_ended() {
            sleep(CONTINUE);
        }
        let _ = Command::new("chrt").args(["--other", "--all-tasks", "--pid", "0", &id]).status();
    }
    job.wait()?.with_code(&[0]).with_context(|| format!("rank {rank} was starved"))?;
    ensure!(json(&case.path("out/record.json"))?["complete"] == true, "torn: the record");
    Ok(1)
}

/// A process that uses a processor until it is dropped.
struct Competitor(Child);

impl Competitor {
    fn start() -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Ok(Competitor(command.spawn()?))
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
