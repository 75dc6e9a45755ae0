//! A supervised program. It must end in time, without a panic, and within a memory limit.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, kill_process_group, prlimit};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum time for a program to end after a signal to stop.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time for any other work. It is long enough for a busy machine.
pub(super) const WORK_TIMEOUT: Duration = Duration::from_secs(120);
/// Memory limit of a process. A process that exceeds it aborts.
const MEMORY_BYTES: u64 = 1 << 30;

/// The message of a program that got no memory.
const ALLOCATION: &str = "memory allocation of";

/// A running program. It is killed with its process group when dropped.
pub(super) struct RunningProgram {
    child: Child,
    command_line: String,
    output: PathBuf,
    is_finished: bool,
}

/// A program that ended.
pub(super) struct FinishedProgram {
    pub(super) command_line: String,
    /// Exit code, or 128 plus the number of the signal that ended it.
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl RunningProgram {
    /// Starts `command`. Its output goes to the files `output` with the extensions `stdout` and `stderr`.
    pub(super) fn start(mut command: Command, output: PathBuf) -> Result<Self> {
        use std::os::unix::process::CommandExt;
        let command_line = command_text(&command);
        let file = |ending| File::create(output.with_extension(ending));
        command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?);
        let spawned = command.process_group(0).spawn();
        let child = spawned.with_context(|| format!("cannot start `{command_line}`"))?;
        let running = RunningProgram { child, command_line, output, is_finished: false };
        let limit = Rlimit { current: Some(MEMORY_BYTES), maximum: Some(MEMORY_BYTES) };
        // This fails if the program has already ended.
        let _ = prlimit(Some(running.pid()), Resource::Data, limit);
        Ok(running)
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal, unless the program has ended.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Whether the program, or a process that it started, has opened this pipe or waits for another process to open it.
    pub(super) fn has_reached_pipe(&self, pipe: &Path) -> bool {
        let started = descendants(self.pid()).into_iter().map(|(pid, _)| pid);
        started.chain([self.pid()]).any(|pid| {
            let fd_folder = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
            let mut fds = fd_folder.into_iter().flatten().flatten();
            wait_channels(pid).contains("wait_for_partner")
                || fds.any(|fd| fs::read_link(fd.path()).is_ok_and(|file| file == pipe))
        })
    }

    /// Returns the output on stderr so far.
    pub(super) fn stderr(&self) -> String {
        read_output(&self.output, "stderr")
    }

    /// Waits for the end of the program, up to the time limit for work.
    pub(super) fn wait(self) -> Result<FinishedProgram> {
        self.wait_for(WORK_TIMEOUT)
    }

    /// Waits for the end of the program, and checks that it did not panic or crash.
    pub(super) fn wait_for(self, limit: Duration) -> Result<FinishedProgram> {
        let ended = self.end(limit)?;
        ensure!(!ended.has_crashed(), "panic: {}", ended.summary());
        Ok(ended)
    }

    /// Waits for the end of the program. A crash is the caller's to judge.
    pub(super) fn end(mut self, limit: Duration) -> Result<FinishedProgram> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if limit < start.elapsed() {
                let wait_channels = wait_channels(self.pid());
                bail!("hangs for {} s: `{}`{wait_channels}", limit.as_secs(), self.command_line);
            }
            sleep(Duration::from_millis(2));
        };
        self.is_finished = true;
        Ok(FinishedProgram {
            command_line: std::mem::take(&mut self.command_line),
            code: exit_code(status),
            stdout: read_output(&self.output, "stdout"),
            stderr: read_output(&self.output, "stderr"),
        })
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if !self.is_finished {
            // Some processes have separate groups, and cannot be found once their parent has ended.
            for (pid, _) in descendants(self.pid()) {
                let _ = kill_process(pid, Signal::KILL);
            }
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl FinishedProgram {
    /// Whether it panicked or was ended by a signal of a crash.
    fn has_crashed(&self) -> bool {
        let messages =
            ["panicked at", ALLOCATION, "stack overflow", "Bus error", "Segmentation fault"];
        messages.iter().any(|message| self.stderr.contains(message))
            || [101, 134, 135, 136, 139].contains(&self.code)
    }

    /// Whether it ended because it got no memory.
    pub(super) fn has_aborted_without_memory(&self) -> bool {
        self.code != 0 && self.stderr.contains(ALLOCATION) && !self.stderr.contains("panicked at")
    }

    /// Checks that the program did not crash, except for lack of memory.
    pub(super) fn without_other_crash(self) -> Result<Self> {
        let is_fine = !self.has_crashed() || self.has_aborted_without_memory();
        ensure!(is_fine, "panic: {}", self.summary());
        Ok(self)
    }

    /// Checks that the program ended with one of these codes.
    pub(super) fn with_code(self, codes: &[i32]) -> Result<Self> {
        ensure!(codes.contains(&self.code), "{}, not {codes:?}", self.summary());
        Ok(self)
    }

    /// Returns the command, its exit code, and the last lines of its output.
    pub(super) fn summary(&self) -> String {
        let output = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = output.trim().lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join("\n    ");
        format!("`{}` ended with {}\n    {last}", self.command_line, self.code)
    }
}

/// Returns the processes that `parent` started, with their command lines.
pub(super) fn children(parent: Pid) -> Vec<(Pid, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_pid(*pid) == Some(parent.as_raw_nonzero().get()))
        .filter_map(|pid| Some((Pid::from_raw(pid)?, command_line(pid))))
        .collect()
}

/// Returns all processes that `parent` started directly or indirectly, with their command lines.
pub(super) fn descendants(parent: Pid) -> Vec<(Pid, String)> {
    let mut found = children(parent);
    let mut next = 0;
    while let Some((pid, _)) = found.get(next) {
        let more = children(*pid);
        found.extend(more);
        next += 1;
    }
    found
}

/// Returns descriptions of the processes whose working folder is below `folder`.
pub(super) fn processes_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter(|entry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.map(|pid: i32| format!("{pid} {}", command_line(pid))).collect()
}

/// Whether a process is running. Zombies are not.
pub(super) fn is_alive(pid: Pid) -> bool {
    stat(pid.as_raw_nonzero().get(), 0).is_some_and(|state| !matches!(&*state, "Z" | "X"))
}

fn parent_pid(pid: i32) -> Option<i32> {
    stat(pid, 1)?.parse().ok()
}

/// Returns field number `field` of `/proc/PID/stat`, counted from 0 after the name.
fn stat(pid: i32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field).map(String::from)
}

fn command_line(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Returns the kernel functions in which the threads of a process wait.
fn wait_channels(pid: Pid) -> String {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let tasks = fs::read_dir(folder).into_iter().flatten().flatten();
    let line = |name: PathBuf| fs::read_to_string(name).unwrap_or_default().trim().to_string();
    tasks
        .map(|task| {
            let wait = line(task.path().join("wchan"));
            format!("\n    thread {}: {wait}", line(task.path().join("comm")))
        })
        .collect()
}

fn command_text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

fn read_output(output: &Path, ending: &str) -> String {
    let bytes = fs::read(output.with_extension(ending)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
