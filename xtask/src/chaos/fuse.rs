//! Commands on a FUSE file system, with and without `/proc/self/io`. The kernel counts no reads there, so no answer may be YES. Then the file
//! system ends in the middle of the command.

use super::Class;
use super::case::{Case, FuseEnd};
use super::child::{RunningProgram, STOP_TIMEOUT};
use super::work::Work;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};

pub(super) static CLASS: Class = Class {
    name: "fuse",
    noun: "commands on FUSE",
    cases: 40,
    short_cases: 5,
    parallel_cases: 2,
    run,
};

/// Ends of the file system in a case.
const ENDS: usize = 4;
/// A run whose target any storage reaches, so that only missing evidence keeps the answer from being YES.
const REACHED: [&str; 5] =
    ["run", "workload.yaml", "train.computation_time=0.01", "metric.au=0.001", "--json"];

/// Whether the kernel offers `/proc/self/io`.
#[derive(Clone, Copy, Debug)]
enum Counters {
    Present,
    Absent,
}

fn run(case: &mut Case) -> Result<u32> {
    case.mount_fuse()?;
    let work = Work::start(case)?;
    let mut undisturbed = Duration::ZERO;
    let mut number = 0;
    for counters in [Counters::Present, Counters::Absent] {
        work.check_disturbed(case, number, &format!("{counters:?}"), |arguments| {
            let start = Instant::now();
            let ended = with_counters(case, counters, arguments)?.wait()?.with_code(&[0])?;
            undisturbed = start.elapsed();
            Ok(ended)
        })?;
        check_answer(case, counters)?;
        number += 1;
    }
    for _ in 0..ENDS {
        let end = case.random.pick(&[FuseEnd::Killed, FuseEnd::Unmounted]);
        let delay =
            Duration::from_micros(case.random.below(undisturbed.as_micros() as usize) as u64);
        work.check_disturbed(case, number, &format!("{end:?} after {delay:?}"), |arguments| {
            let program = case.start_feedrate(arguments)?;
            std::thread::sleep(delay);
            case.end_fuse(end)?;
            let ended = program.wait_for(undisturbed + STOP_TIMEOUT);
            case.start_fuse()?;
            let ended = ended?;
            let is_reported = ended.stderr.contains("error: ") || ended.stderr.contains("failed");
            ensure!(ended.code == 0 || is_reported, "without a reason: {}", ended.summary());
            Ok(ended)
        })?;
        number += 1;
    }
    Ok(number as u32)
}

fn with_counters(case: &Case, counters: Counters, arguments: &[&str]) -> Result<RunningProgram> {
    match counters {
        Counters::Present => case.start_feedrate(arguments),
        Counters::Absent => {
            let program = case.program("feedrate").display().to_string();
            let inject = ["-e", "trace=openat", "-e", "inject=openat:error=ENOENT"];
            let options = ["-f", "-qq", "-o", "/dev/null", "-P", "/proc/self/io"];
            case.start("strace", &[&options[..], &inject, &[&program], arguments].concat())
        }
    }
}

/// Checks that the answer is UNKNOWN, since memory behind FUSE may have served the reads.
fn check_answer(case: &Case, counters: Counters) -> Result<()> {
    let ended = with_counters(case, counters, &REACHED)?.wait()?.with_code(&[0])?;
    let summary: Value = serde_json::from_str(&ended.stdout)?;
    let (kind, device_bytes) = (&summary["answer"]["kind"], &summary["bytes"]["device"]);
    ensure!(
        kind == "unknown" && device_bytes.is_null(),
        "{counters:?} counters: the answer is {kind}, and {device_bytes} bytes came from a device"
    );
    Ok(())
}
