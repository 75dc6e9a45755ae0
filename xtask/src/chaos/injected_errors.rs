//! Errors of system calls, injected with strace, and errors of closing files, injected with a library.

use super::Class;
use super::case::Case;
use super::child::RunningProgram;
use super::random::Random;
use super::work::Work;
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
/// Maximum time that an error may add to the time of the command without errors.
const DELAY_MAX: Duration = Duration::from_secs(15);

/// Closing a file. strace does not execute a call that it lets fail, so the file would stay open, although Linux closes it even if it
/// reports an error. A process that starts another one, and keeps its own write end of their pipe in this way, waits forever for the end of
/// the pipe.
const CLOSE: &str = "close";
/// Source of the library whose calls close the file and then fail.
const CLOSE_SOURCE: &str = include_str!("failing_close.c");
/// The compiled library.
const CLOSE_LIBRARY: &str = "failing_close.so";

/// Groups of system calls, and the errors that they can have. A question mark allows names that the machine does not have.
const CALLS: &[(&str, &[&str])] = &[
    ("?open,openat", &["ENOSPC", "EIO", "EINTR", "ENOMEM", "EMFILE"]),
    ("read,pread64", &["EIO", "EINTR", "ENOMEM"]),
    ("write,pwrite64,writev", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("fsync,fdatasync", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("?rename,?renameat,renameat2", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    (CLOSE, &["ENOSPC", "EIO", "EINTR"]),
    ("?mkdir,mkdirat", &["ENOSPC", "EIO", "EINTR", "ENOMEM"]),
    ("flock", &["EIO", "EINTR", "ENOMEM", "ENOLCK"]),
    ("getdents64", &["EIO", "ENOMEM"]),
    ("?unlink,unlinkat", &["EIO", "ENOMEM"]),
    ("ftruncate,fallocate", &["ENOSPC", "EIO", "EINTR"]),
    ("clone,clone3", &["EAGAIN", "ENOMEM"]),
];

/// Failing calls: one, or all from one on.
struct Rule {
    calls: &'static str,
    error: &'static str,
    /// Number of the first failing call.
    first: usize,
    is_repeated: bool,
}

fn run(case: &mut Case) -> Result<u32> {
    let work = Work::start(case)?;
    compile_close_library(case)?;
    let mut counts = Vec::new();
    let mut undisturbed = Duration::ZERO;
    work.check_disturbed(case, 0, "traced", |arguments| {
        let all: Vec<&str> = CALLS.iter().map(|(calls, _)| *calls).collect();
        let start = Instant::now();
        let trace = format!("trace={}", all.join(","));
        let ended = traced(case, &["-e", &trace], arguments)?.wait()?;
        undisturbed = start.elapsed();
        counts = CALLS.iter().map(|(calls, _)| count_calls(case, calls)).collect::<Result<_>>()?;
        ended.with_code(&[0])
    })?;
    let mut injected = 0;
    for number in 1..=INJECTIONS {
        let Some(rule) = Rule::draw(&mut case.random, &counts) else { continue };
        case.write(LOG, "")?;
        work.check_disturbed(case, number, &format!("`{}`", rule.injection()), |arguments| {
            let started = if rule.calls == CLOSE {
                with_failing_close(case, &rule, arguments)?
            } else {
                let (trace, inject) =
                    (format!("trace={}", rule.calls), format!("inject={}", rule.injection()));
                traced(case, &["-e", &trace, "-e", &inject], arguments)?
            };
            started.wait_for(undisturbed + DELAY_MAX)
        })?;
        let log = fs::read(case.path(LOG))?;
        injected += u32::from(String::from_utf8_lossy(&log).contains("(INJECTED)"));
    }
    Ok(injected)
}

impl Rule {
    /// Draws a rule. `counts` has the number of calls of each group. Returns `None` if the program makes no calls of the drawn group.
    fn draw(random: &mut Random, counts: &[usize]) -> Option<Self> {
        let group = random.below(CALLS.len());
        let (calls, errors) = CALLS[group];
        let error = random.pick(errors);
        let count = counts.get(group).copied().filter(|count| *count > 0)?;
        let first = 1 + random.below(count);
        // A call that always reports an interrupt is repeated forever.
        let is_repeated = error != "EINTR" && random.chance(20);
        Some(Rule { calls, error, first, is_repeated })
    }

    /// The rule as strace's option `inject` expects it.
    fn injection(&self) -> String {
        let Rule { calls, error, first, is_repeated } = self;
        let more = if *is_repeated { "+" } else { "" };
        format!("{calls}:error={error}:when={first}{more}")
    }
}

fn traced(case: &Case, options: &[&str], arguments: &[&str]) -> Result<RunningProgram> {
    let program = case.program("feedrate").display().to_string();
    let log = case.path(LOG).display().to_string();
    let strace = [&["-f", "-qq", "-o", &log][..], options, &[&program]].concat();
    case.start("strace", &[&strace[..], arguments].concat())
}

fn with_failing_close(case: &Case, rule: &Rule, arguments: &[&str]) -> Result<RunningProgram> {
    let last = if rule.is_repeated { usize::MAX >> 1 } else { rule.first };
    let words = [
        format!("LD_PRELOAD={}", case.path(CLOSE_LIBRARY).display()),
        format!("CLOSE_FIRST={}", rule.first),
        format!("CLOSE_LAST={last}"),
        format!("CLOSE_ERROR={}", rule.error),
        format!("CLOSE_LOG={}", case.path(LOG).display()),
        case.program("feedrate").display().to_string(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    case.start("env", &[&words[..], arguments].concat())
}

fn compile_close_library(case: &Case) -> Result<()> {
    let mut compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-x", "c", "-", "-ldl", "-o"])
        .arg(case.path(CLOSE_LIBRARY))
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start the C compiler")?;
    let mut source = compiler.stdin.take().context("the compiler has no input")?;
    source.write_all(CLOSE_SOURCE.as_bytes())?;
    drop(source);
    ensure!(compiler.wait()?.success(), "cannot compile the library whose `close` fails");
    Ok(())
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
