//! Errors of system calls, injected with strace.

use super::Class;
use super::case::Case;
use super::child::FinishedProgram;
use super::random::Random;
use super::work::Work;
use anyhow::Result;
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

pub(super) static CLASS: Class = Class {
    name: "injected_errors",
    noun: "injected errors",
    cases: 80,
    short_cases: 5,
    parallel_cases: 2,
    run,
};

/// Injections of a case, which share a dataset and a result.
const INJECTIONS: usize = 12;
/// Maximum time for a command. Tracing slows it down, and so does a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Groups of system calls, and the errors that they can have. A question mark allows names that the machine does not have.
const CALLS: &[(&str, &[&str])] = &[
    ("?open,openat", &["ENOSPC", "EIO", "EINTR", "ENOMEM", "EMFILE"]),
    ("read,pread64", &["EIO", "EINTR", "ENOMEM"]),
    ("write,pwrite64,writev", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("fsync,fdatasync", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("?rename,?renameat,renameat2", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("close", &["ENOSPC", "EIO", "EINTR"]),
    ("?mkdir,mkdirat", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("flock", &["EIO", "EINTR", "ENOMEM", "ENOLCK"]),
    ("getdents64", &["EIO", "ENOMEM"]),
    ("?unlink,unlinkat", &["EIO", "ENOMEM"]),
    ("ftruncate,fallocate", &["ENOSPC", "EIO", "EINTR"]),
    ("clone,clone3", &["EAGAIN", "ENOMEM"]),
];

fn run(case: &mut Case) -> Result<u32> {
    let work = Work::start(case)?;
    let mut counts = Vec::new();
    work.check_disturbed(case, 0, "traced", |arguments| {
        let all: Vec<&str> = CALLS.iter().map(|(calls, _)| *calls).collect();
        let ended = traced(case, &["-e", &format!("trace={}", all.join(","))], arguments)?;
        counts = CALLS.iter().map(|(calls, _)| count_calls(case, calls)).collect::<Result<_>>()?;
        ended.with_code(&[0])
    })?;
    let mut injected = 0;
    for number in 1..=INJECTIONS {
        let Some(rule) = rule(&mut case.random, &counts) else { continue };
        // strace does not execute a failing call, so a pipe that ends a run would stay open.
        if work == Work::Study && rule.starts_with("close:") {
            continue;
        }
        work.check_disturbed(case, number, &format!("`{rule}`"), |arguments| {
            let calls = rule.split(':').next().unwrap_or_default();
            let (trace, inject) = (format!("trace={calls}"), format!("inject={rule}"));
            traced(case, &["-e", &trace, "-e", &inject], arguments)
        })?;
        let log = fs::read(case.path(LOG))?;
        injected += u32::from(String::from_utf8_lossy(&log).contains("(INJECTED)"));
    }
    Ok(injected)
}

/// Draws what strace injects: one failing call, or failing calls from one on. `counts` has the number of calls of each group. Returns `None`
/// if the program makes no calls of the drawn group.
fn rule(random: &mut Random, counts: &[usize]) -> Option<String> {
    let group = random.below(CALLS.len());
    let (calls, errors) = CALLS[group];
    let error = random.pick(errors);
    let count = counts.get(group).copied().filter(|count| *count > 0)?;
    let number = 1 + random.below(count);
    // A call that always reports an interrupt is repeated forever.
    let more = if error != "EINTR" && random.chance(20) { "+" } else { "" };
    Some(format!("{calls}:error={error}:when={number}{more}"))
}

fn traced(case: &Case, options: &[&str], arguments: &[&str]) -> Result<FinishedProgram> {
    let program = case.program("feedrate").display().to_string();
    let log = case.path(LOG).display().to_string();
    let strace = [&["-f", "-qq", "-o", &log][..], options, &[&program]].concat();
    case.start("strace", &[&strace[..], arguments].concat())?.wait_for(TIMEOUT)
}

/// Counts the calls of a group in the trace, of the thread that makes most of them: strace counts the calls of each thread.
fn count_calls(case: &Case, group: &str) -> Result<usize> {
    let names: Vec<&str> = group.split(',').map(|name| name.trim_start_matches('?')).collect();
    let log = fs::read(case.path(LOG))?;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let text = String::from_utf8_lossy(&log);
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let name = call.trim_start().split('(').next().unwrap_or_default();
        if names.contains(&name) {
            *counts.entry(thread).or_default() += 1;
        }
    }
    Ok(counts.into_values().max().unwrap_or(0))
}

/// The file to which strace writes the calls.
const LOG: &str = "calls";
