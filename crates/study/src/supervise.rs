//! Runs a script and ends all processes that it started. Independent of studies.
//!
//! The parent of the script is a separate process, the supervisor. A pipe connects it to the runner. When the pipe closes, the runner has stopped the run
//! or died. The supervisor then sends TERM to all its descendants and kills the remaining ones after a grace period. It is a subreaper (prctl(2)): it
//! adopts descendants that lose their parent, so none escapes. If the supervisor itself is killed, its lock file still shows that a run was active, and
//! the next runner kills the processes that carry the mark of the run.

use feedrate_measure::record::file::read_folder;
use feedrate_spec::units;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, Timespec, flock};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setsid, wait,
};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// Interval at which a run or a lock is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum lines of a failed run's messages to show.
const REASON_LINES: usize = 6;
/// Minimum length of a line of dashes around a message.
const RULE_LENGTH: usize = 20;

/// A file system with less free space counts as full. The end of the run may have freed a little.
const FULL_BYTES: u64 = 64 << 10;

/// Time that a stopped run has to write its results; longer than the timeout for a storage that hangs.
pub const GRACE: Duration = Duration::from_millis(12_300);

/// Remaining grace period after a second stop request; enough for a run that hangs to write its results.
const HURRIED_GRACE: Duration = Duration::from_millis(2300);

/// Maximum wait for the end of a killed process. A process that exists longer waits for a storage that does not respond.
const UNKILLABLE: Duration = Duration::from_millis(500);

/// Environment variable that marks all processes of a run. Its value is the path of the run's lock.
const MARK: &str = "FEEDRATE_RUNNING";

/// A script to supervise. Paths must be valid in the working directory of the runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Supervision {
    /// Script to run with bash.
    pub script: PathBuf,
    /// Text of a script that cancels queued jobs of the run, such as Slurm's. It runs unless the run succeeded.
    pub cleanup: Option<String>,
    /// File to which output is appended.
    pub stdout: PathBuf,
    /// File to which messages are appended.
    pub stderr: PathBuf,
    /// File that is locked while any process of the run exists.
    pub running: PathBuf,
    /// Time between TERM and KILL.
    pub grace: Duration,
}

/// The way in which a script ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptEnd {
    /// The script exited with this code.
    Exited(i32),
    /// This signal ended the script.
    Signalled(i32),
    /// Not started: another run is active, or a killed supervisor left one behind.
    Busy,
    /// Not started; contains the reason.
    Refused(String),
    /// Its supervisor was killed; [`wait_until_alone`] ends the remaining processes.
    Lost,
}

impl ScriptEnd {
    /// The reason for a failure and the messages from the last error on; `None` if the script succeeded.
    pub fn failure(&self, messages: &Path) -> Option<String> {
        match self {
            ScriptEnd::Exited(0) => None,
            ScriptEnd::Exited(code) => {
                Some(reason(messages, &format!("it ended with code {code}")))
            }
            ScriptEnd::Signalled(signal) => {
                Some(reason(messages, &format!("signal {signal} ended it")))
            }
            ScriptEnd::Busy => Some("another run is active".into()),
            ScriptEnd::Refused(reason) => Some(reason.clone()),
            ScriptEnd::Lost => Some("its supervisor was killed".into()),
        }
    }
}

/// Returns `problem` and the messages in a file from the last error on.
pub fn reason(messages: &Path, problem: &str) -> String {
    let bytes = fs::read(messages).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let error = lines.iter().rposition(|line| line.starts_with("error"));
    // Messages of mpirun are between lines of dashes.
    let is_rule = |line: &&str| line.len() >= RULE_LENGTH && line.chars().all(|c| c == '-');
    let framed = lines.iter().position(is_rule).map(|rule| rule + 1);
    let first = error.or(framed).unwrap_or(lines.len().saturating_sub(REASON_LINES));
    let shown = lines[first..].iter().take_while(|line| !is_rule(line)).take(REASON_LINES);
    let shown: Vec<&str> = shown.copied().collect();
    if !shown.is_empty() {
        return format!("{problem}: {}", shown.join("\n").trim_start_matches("error: "));
    }
    let folder = messages.parent().unwrap_or(messages);
    let free_bytes =
        rustix::fs::statvfs(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free_bytes {
        // The messages may not have fit on the file system.
        Ok(bytes) if bytes < FULL_BYTES => {
            let free = units::bytes(bytes);
            format!(
                "{problem} without a message, and `{}` has only {free} of free space",
                folder.display()
            )
        }
        _ => problem.into(),
    }
}

/// The runner's handle of a supervised run. Dropping it stops the run without waiting for its end.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    /// Closing the pipe stops the run.
    pipe: Option<ChildStdin>,
}

impl Supervised {
    /// Starts a run under a supervisor: `program supervise`, where `program` is a `feedrate` binary.
    ///
    /// # Errors
    /// The supervisor could not be started.
    pub fn start(program: &Path, supervision: &Supervision) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("supervise").arg(serde_json::to_string(supervision)?);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(append_to(&supervision.stderr)?);
        // Signals of a terminal must reach only the runner.
        start_in_new_session(&mut command, None);
        let mut supervisor = command.spawn()?;
        let pipe = supervisor.stdin.take();
        Ok(Supervised { supervisor, pipe })
    }

    /// Waits until no process of the run exists. Stops the run once `stop` is set, and shortens its grace period once `abandon` is set.
    ///
    /// # Errors
    /// The supervisor cannot be waited for.
    pub fn wait_for_end(
        &mut self,
        stop: &AtomicBool,
        abandon: &AtomicBool,
    ) -> io::Result<ScriptEnd> {
        let supervisor = Pid::from_child(&self.supervisor);
        let mut is_hurried = false;
        while self.supervisor.try_wait()?.is_none() {
            if stop.load(Relaxed) {
                self.pipe = None;
            }
            if abandon.load(Relaxed) && !std::mem::replace(&mut is_hurried, true) {
                let _ = kill_process(supervisor, Signal::TERM);
            }
            sleep(POLL_INTERVAL);
        }
        let mut output = String::new();
        if let Some(pipe) = &mut self.supervisor.stdout {
            pipe.read_to_string(&mut output)?;
        }
        Ok(serde_json::from_str(&output).unwrap_or(ScriptEnd::Lost))
    }
}

/// Waits until no process of an earlier run exists. Kills processes whose supervisor was killed, and cancels their queued jobs with `cleanup_scripts`
/// (texts for bash). Calls `on_wait` once if a supervised run is still active. Returns false if `stop` is set while waiting.
///
/// # Errors
/// The lock cannot be opened, or a clean-up failed and another run may still be active.
pub fn wait_until_alone(
    running: &Path,
    cleanup_scripts: &[String],
    stop: &AtomicBool,
    on_wait: &mut dyn FnMut(),
) -> io::Result<bool> {
    let mut has_waited = false;
    loop {
        if let Some(lock) = RunningLock::take(running)? {
            if lock.is_abandoned()? {
                lock.kill_marked();
                cleanup_scripts.iter().try_for_each(|script| clean_up(script))?;
                lock.file.set_len(0)?;
            }
            return Ok(true);
        }
        if !std::mem::replace(&mut has_waited, true) {
            on_wait();
        }
        if stop.load(Relaxed) {
            return Ok(false);
        }
        sleep(POLL_INTERVAL);
    }
}

/// Supervises one run until none of its processes exists. This is the main function of the supervisor: call it from the first thread of a process
/// without children. The run is stopped when stdin closes or on a signal; a further signal shortens the grace period. `now_ns` is a monotonic clock.
pub fn supervise(supervision: &Supervision, now_ns: &dyn Fn() -> u64) -> ScriptEnd {
    supervise_script(supervision, now_ns)
        .unwrap_or_else(|error| ScriptEnd::Refused(error.to_string()))
}

fn supervise_script(supervision: &Supervision, now_ns: &dyn Fn() -> u64) -> io::Result<ScriptEnd> {
    let lock = RunningLock::take(&supervision.running)?;
    let Some(lock) = lock.filter(|lock| !lock.is_abandoned().unwrap_or(true)) else {
        return Ok(ScriptEnd::Busy);
    };
    // If the runner died, the next runner may already have checked the files of this run.
    if is_runner_gone(Duration::ZERO) {
        return Ok(ScriptEnd::Refused("its runner is gone".into()));
    }
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&signalled))?;
    }
    set_child_subreaper(Some(getpid()))?;
    (&lock.file).write_all(b"running\n")?;
    lock.file.sync_data()?;
    let script = match start_script(supervision, &lock.mark) {
        Ok(script) => script,
        Err(error) => {
            lock.file.set_len(0)?;
            return Err(error);
        }
    };
    let (ended, was_stopped) = wait_for_all(script, supervision.grace, &signalled, now_ns)?;
    // Some launchers exit with 0 when they are stopped.
    let has_succeeded = ended == ScriptEnd::Exited(0) && !was_stopped;
    let mut cleanup = supervision.cleanup.iter().filter(|_| !has_succeeded);
    // After a failed clean-up, the lock stays abandoned: the next runner tries again and reports the error.
    if cleanup.all(|script| clean_up(script).is_ok()) {
        lock.file.set_len(0)?;
    }
    Ok(ended)
}

/// Starts bash, which is killed when this process ends.
fn start_script(supervision: &Supervision, mark: &str) -> io::Result<Pid> {
    let mut bash = Command::new("bash");
    bash.arg(&supervision.script).env(MARK, mark).stdin(Stdio::null());
    bash.stdout(append_to(&supervision.stdout)?).stderr(append_to(&supervision.stderr)?);
    start_in_new_session(&mut bash, Some(Signal::KILL));
    Ok(Pid::from_child(&bash.spawn()?))
}

/// Waits until `script` and all its descendants are gone or cannot be killed. Returns how the script ended, and whether it was stopped.
fn wait_for_all(
    script: Pid,
    grace: Duration,
    signalled: &AtomicBool,
    now_ns: &dyn Fn() -> u64,
) -> io::Result<(ScriptEnd, bool)> {
    let nanoseconds = |time: Duration| time.as_nanos() as u64;
    let mut ended = None;
    let mut was_stopped = false;
    let mut is_hurried = false;
    let mut kill_at_ns = None;
    let mut killed_at_ns = None;
    let mut terminated = HashSet::new();
    while reap(script, &mut ended)? {
        let is_signalled = signalled.swap(false, Relaxed);
        let Some(deadline_ns) = kill_at_ns else {
            was_stopped = is_signalled || is_runner_gone(POLL_INTERVAL);
            // Processes that outlive the script are also ended.
            if was_stopped || ended.is_some() {
                kill_at_ns = Some(now_ns() + nanoseconds(grace));
            }
            continue;
        };
        if is_signalled && !std::mem::replace(&mut is_hurried, true) {
            kill_at_ns = Some(deadline_ns.min(now_ns() + nanoseconds(HURRIED_GRACE)));
        }
        was_stopped |= is_signalled;
        let time_ns = now_ns();
        if killed_at_ns.is_some_and(|killed_ns| killed_ns + nanoseconds(UNKILLABLE) <= time_ns) {
            break;
        }
        if deadline_ns <= time_ns {
            killed_at_ns.get_or_insert(time_ns);
        }
        let mut ids = descendants();
        // The script comes first, because it may end by itself once its children have ended.
        ids.sort_unstable_by_key(|id| *id != script.as_raw_nonzero().get());
        for id in ids {
            if killed_at_ns.is_some() {
                send(id, Signal::KILL);
            } else if terminated.insert(id) || is_hurried {
                send(id, Signal::TERM);
            }
        }
        sleep(POLL_INTERVAL);
    }
    Ok((ended.unwrap_or(ScriptEnd::Lost), was_stopped))
}

/// Reaps all ended child processes, and stores in `ended` how `script` ended. Returns whether any child is left.
fn reap(script: Pid, ended: &mut Option<ScriptEnd>) -> io::Result<bool> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) if child == script => *ended = Some(script_end(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(true),
            Err(Errno::CHILD) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn script_end(status: WaitStatus) -> ScriptEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ScriptEnd::Exited(code),
        (None, Some(signal)) => ScriptEnd::Signalled(signal),
        (None, None) => ScriptEnd::Lost,
    }
}

/// Whether the other end of stdin is closed, or closes within `limit`.
fn is_runner_gone(limit: Duration) -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
    poll(&mut fds, Some(&limit)).is_ok() && !fds[0].revents().is_empty()
}

/// The lock of a run, held by its supervisor. The file is not empty while a run is active, or after its supervisor was killed. Only its length counts:
/// other users may write its content.
struct RunningLock {
    file: File,
    mark: String,
}

impl RunningLock {
    /// Takes the lock; `None` if another process holds it.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mark = fs::canonicalize(path)?.display().to_string();
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(RunningLock { file, mark })),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a supervisor was killed while it held the lock.
    fn is_abandoned(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > 0)
    }

    /// Kills the processes that carry the mark, until there are none or they cannot be killed.
    fn kill_marked(&self) {
        let mark = format!("{MARK}={}", self.mark);
        let is_marked = |id: &i32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            *id != own_id()
                && environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        for _ in 0..UNKILLABLE.as_millis() / POLL_INTERVAL.as_millis() {
            let marked: Vec<i32> = process_ids().filter(is_marked).collect();
            if marked.is_empty() {
                return;
            }
            marked.into_iter().for_each(|id| send(id, Signal::KILL));
            sleep(POLL_INTERVAL);
        }
    }
}

/// Runs a script that cancels queued jobs.
fn clean_up(script: &str) -> io::Result<()> {
    let output = Command::new("bash").args(["-c", script]).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "cannot cancel the queued jobs of an earlier run: {}",
        messages.trim()
    )))
}

/// Ids of all descendants of this process.
fn descendants() -> Vec<i32> {
    let parents: HashMap<i32, i32> =
        process_ids().filter_map(|id| Some((id, parent_of(id)?))).collect();
    let is_below = |id: &&i32| {
        // The table is no consistent snapshot and may contain cycles, hence the limit.
        let ancestors = std::iter::successors(parents.get(id), |id| parents.get(id));
        ancestors.take(parents.len() + 1).any(|parent| *parent == own_id())
    };
    parents.keys().filter(is_below).copied().collect()
}

fn process_ids() -> impl Iterator<Item = i32> {
    let entries = read_folder("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a process: the second field after the name, which may contain any character (proc_pid_stat(5)).
fn parent_of(id: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn own_id() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn send(id: i32, signal: Signal) {
    // The process may have ended by now.
    let _ = Pid::from_raw(id).map(|id| kill_process(id, signal));
}

fn append_to(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(file)
}

/// Prepares `command` to start in a new session. The kernel sends it the signal `on_parents_death` when the thread that starts it ends.
fn start_in_new_session(command: &mut Command, on_parents_death: Option<Signal>) {
    let parent = getpid();
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            set_parent_process_death_signal(on_parents_death)?;
            // The parent may have died before the signal was set.
            if on_parents_death.is_some() && getppid() != Some(parent) {
                return Err(Errno::SRCH.into());
            }
            Ok(())
        })
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading /proc may take longer than the remaining time.
    #[test]
    fn processes_are_killed_even_if_the_deadline_has_passed() {
        let sleeper = Pid::from_child(&Command::new("sleep").arg("600").spawn().unwrap());
        let is_first = std::cell::Cell::new(true);
        let now_ns = || if is_first.replace(false) { 0 } else { 60_000_000_000 };
        let signalled = AtomicBool::new(true);
        let (ended, was_stopped) =
            wait_for_all(sleeper, Duration::from_secs(1), &signalled, &now_ns).unwrap();
        assert_eq!((ended, was_stopped), (ScriptEnd::Signalled(9), true));
    }

    #[test]
    fn a_failure_without_messages_mentions_a_full_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("stderr");
        let failure = |messages: &Path| ScriptEnd::Exited(1).failure(messages).unwrap();
        assert_eq!(failure(&messages), "it ended with code 1");
        // A file system that never has free space.
        let full = "it ended with code 1 without a message, and `/proc` has only 0 B of free space";
        assert_eq!(failure(Path::new("/proc/stderr")), full);
        std::fs::write(&messages, "a\nerror: b\n  hint: c\n").unwrap();
        assert_eq!(failure(&messages), "it ended with code 1: b\n  hint: c");
        let rule = "-".repeat(74);
        let slots = "There are not enough slots available in the system to satisfy the 4\nslots that were requested";
        let more = "a\nb\nc\nd\ne\nf\ng\nh";
        std::fs::write(
            &messages,
            format!("{rule}\n{slots} by the application:\n\n  feedrate\n\n{more}\n{rule}\n"),
        )
        .unwrap();
        assert!(failure(&messages).starts_with(&format!("it ended with code 1: {slots}")));
    }
}
