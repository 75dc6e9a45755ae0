//! Runs a script with all processes that it starts, and ends them with it. Knows nothing of studies.
//!
//! The parent of the script is a process of its own, the supervisor, to which the runner holds a pipe. When the pipe ends, because
//! the runner stops the run or died, the supervisor sends TERM to all processes below it and kills what is left after a grace. It
//! adopts every process below it that loses its parent (a subreaper, prctl(2)), so that none escapes. If the supervisor itself is
//! killed, its lock file still says that a run had begun, and the next runner kills the processes that carry the mark of the run.

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

/// Time between two looks at a run, or at a lock.
const LOOK: Duration = Duration::from_millis(20);

/// Lines of a failed run's messages that are shown.
const REASON_LINES: usize = 6;

/// A file system with less room is full, but for what was freed as the run ended.
const FULL_BYTES: u64 = 64 << 10;

/// Time that a stopped run has to write what it measured: longer than it takes to leave a storage that hangs.
pub const GRACE: Duration = Duration::from_millis(12_300);

/// Rest of the grace once a stopped run is to hurry: a run that hangs still writes what it has.
const HURRIED_GRACE: Duration = Duration::from_millis(2300);

/// A process that lives this long after it was killed waits for a storage that does not answer.
const UNKILLABLE: Duration = Duration::from_millis(500);

/// Variable in the environment of all processes of a run: the path of its lock.
const MARK: &str = "FEEDRATE_RUNNING";

/// A script to supervise. Paths must be valid in the working directory of the runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Supervision {
    /// Script that bash runs.
    pub script: PathBuf,
    /// Text of a script that ends jobs of the run elsewhere, such as Slurm's, unless the run ended well by itself.
    pub cleanup: Option<String>,
    /// File that output is appended to.
    pub stdout: PathBuf,
    /// File that messages are appended to.
    pub stderr: PathBuf,
    /// File that is locked while any process of the run lives.
    pub running: PathBuf,
    /// Time between TERM and KILL.
    pub grace: Duration,
}

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Not started: another run goes on, or was left by a killed supervisor.
    Busy,
    /// Not started, for this reason.
    Refused(String),
    /// Its supervisor was killed; [`wait_until_alone`] ends what is left of it.
    Lost,
}

impl ScriptEnd {
    /// Reason of a failure, with the end of its messages from the last error on; `None` where the script ended well.
    pub fn failure(&self, messages: &Path) -> Option<String> {
        match self {
            ScriptEnd::Exited(0) => None,
            ScriptEnd::Exited(code) => {
                Some(reason(messages, &format!("it ended with code {code}")))
            }
            ScriptEnd::Signalled(signal) => {
                Some(reason(messages, &format!("signal {signal} ended it")))
            }
            ScriptEnd::Busy => Some("another run goes on".into()),
            ScriptEnd::Refused(why) => Some(why.clone()),
            ScriptEnd::Lost => Some("its supervisor was killed".into()),
        }
    }
}

/// `what`, with the end of the messages in a file, from the last error on.
pub fn reason(messages: &Path, what: &str) -> String {
    let text = fs::read(messages).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let error = lines.iter().rposition(|line| line.starts_with("error"));
    let first = error.unwrap_or(lines.len().saturating_sub(REASON_LINES));
    let shown: Vec<&str> = lines[first..].iter().take(REASON_LINES).copied().collect();
    if !shown.is_empty() {
        return format!("{what}: {}", shown.join("\n").trim_start_matches("error: "));
    }
    let folder = messages.parent().unwrap_or(messages);
    let room = rustix::fs::statvfs(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match room {
        // There may have been no room for its messages.
        Ok(bytes) if bytes < FULL_BYTES => {
            let (folder, bytes) = (folder.display(), units::bytes(bytes));
            format!("{what} without a message, and `{folder}` has room for {bytes} only")
        }
        _ => what.into(),
    }
}

/// A supervised run, seen by its runner. Dropping it stops the run without waiting for its end.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    /// Its end stops the run.
    pipe: Option<ChildStdin>,
}

impl Supervised {
    /// Start a run under a supervisor, which is `program`, a `feedrate`.
    ///
    /// # Errors
    /// The supervisor could not be started.
    pub fn start(program: &Path, order: &Supervision) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("supervise").arg(serde_json::to_string(order)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(append_to(&order.stderr)?);
        // Signals of a terminal reach the runner alone.
        in_own_session(&mut command, None);
        let mut supervisor = command.spawn()?;
        let pipe = supervisor.stdin.take();
        Ok(Supervised { supervisor, pipe })
    }

    /// Wait until no process of the run lives. It is stopped once `stop` is set, and hurried once `leave` is.
    ///
    /// # Errors
    /// The supervisor cannot be waited for.
    pub fn wait_for_end(&mut self, stop: &AtomicBool, leave: &AtomicBool) -> io::Result<ScriptEnd> {
        let supervisor = Pid::from_child(&self.supervisor);
        let mut is_hurried = false;
        while self.supervisor.try_wait()?.is_none() {
            if stop.load(Relaxed) {
                self.pipe = None;
            }
            if leave.load(Relaxed) && !std::mem::replace(&mut is_hurried, true) {
                let _ = kill_process(supervisor, Signal::TERM);
            }
            sleep(LOOK);
        }
        let mut ended = String::new();
        if let Some(pipe) = &mut self.supervisor.stdout {
            pipe.read_to_string(&mut ended)?;
        }
        Ok(serde_json::from_str(&ended).unwrap_or(ScriptEnd::Lost))
    }
}

/// Wait until nothing of an earlier run lives. Processes that lost their supervisor are killed, and `cleanup_scripts` (texts for bash)
/// end its jobs elsewhere. `on_wait` is called once if a supervised run goes on. Returns false if `stop` is set meanwhile.
///
/// # Errors
/// The lock cannot be opened, or a clean-up failed: something else may be measuring.
pub fn wait_until_alone(
    running: &Path,
    cleanup_scripts: &[String],
    stop: &AtomicBool,
    on_wait: &mut dyn FnMut(),
) -> io::Result<bool> {
    let mut has_waited = false;
    loop {
        if let Some(lock) = RunningLock::take(running)? {
            if lock.is_left()? {
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
        sleep(LOOK);
    }
}

/// Supervise one run until nothing of it lives; the supervisor's own side. The end of stdin or a signal that ends processes stops the
/// run, another signal hurries it. `now_ns` is a monotonic clock. Call it from the first thread of a process without children.
pub fn supervise(order: &Supervision, now_ns: &dyn Fn() -> u64) -> ScriptEnd {
    supervise_script(order, now_ns).unwrap_or_else(|error| ScriptEnd::Refused(error.to_string()))
}

fn supervise_script(order: &Supervision, now_ns: &dyn Fn() -> u64) -> io::Result<ScriptEnd> {
    let lock = RunningLock::take(&order.running)?;
    let Some(lock) = lock.filter(|lock| !lock.is_left().unwrap_or(true)) else {
        return Ok(ScriptEnd::Busy);
    };
    // The next runner may have looked at the files of this run already.
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
    let script = match start_script(order, &lock.mark) {
        Ok(script) => script,
        Err(error) => {
            lock.file.set_len(0)?;
            return Err(error);
        }
    };
    let (ended, was_stopped) = wait_until_nothing_lives(script, order.grace, &signalled, now_ns)?;
    // Some launchers that are stopped end as if all were well.
    let is_well = ended == ScriptEnd::Exited(0) && !was_stopped;
    let mut cleanup = order.cleanup.iter().filter(|_| !is_well);
    // A failed clean-up is left to the next runner, which reports it.
    if cleanup.all(|script| clean_up(script).is_ok()) {
        lock.file.set_len(0)?;
    }
    Ok(ended)
}

/// Start bash, which dies with this process.
fn start_script(order: &Supervision, mark: &str) -> io::Result<Pid> {
    let mut bash = Command::new("bash");
    bash.arg(&order.script).env(MARK, mark).stdin(Stdio::null());
    bash.stdout(append_to(&order.stdout)?).stderr(append_to(&order.stderr)?);
    in_own_session(&mut bash, Some(Signal::KILL));
    Ok(Pid::from_child(&bash.spawn()?))
}

/// Returns how `script` ended, and whether it was stopped, once it and all that it started are gone or cannot be killed.
fn wait_until_nothing_lives(
    script: Pid,
    grace: Duration,
    signalled: &AtomicBool,
    now_ns: &dyn Fn() -> u64,
) -> io::Result<(ScriptEnd, bool)> {
    let nanoseconds = |time: Duration| time.as_nanos() as u64;
    let (mut ended, mut was_stopped, mut is_hurried) = (None, false, false);
    let (mut kill_at_ns, mut killed_at_ns) = (None, None);
    let mut terminated = HashSet::new();
    while reap(script, &mut ended)? {
        let is_signalled = signalled.swap(false, Relaxed);
        let Some(at_ns) = kill_at_ns else {
            was_stopped = is_signalled || is_runner_gone(LOOK);
            // The processes that a script leaves behind have no more to do.
            if was_stopped || ended.is_some() {
                kill_at_ns = Some(now_ns() + nanoseconds(grace));
            }
            continue;
        };
        if is_signalled && !std::mem::replace(&mut is_hurried, true) {
            kill_at_ns = Some(at_ns.min(now_ns() + nanoseconds(HURRIED_GRACE)));
        }
        was_stopped |= is_signalled;
        let time_ns = now_ns();
        if killed_at_ns.is_some_and(|killed_ns| killed_ns + nanoseconds(UNKILLABLE) <= time_ns) {
            break;
        }
        if at_ns <= time_ns {
            killed_at_ns.get_or_insert(time_ns);
        }
        for id in descendants() {
            if killed_at_ns.is_some() {
                send(id, Signal::KILL);
            } else if terminated.insert(id) || is_hurried {
                send(id, Signal::TERM);
            }
        }
        sleep(LOOK);
    }
    Ok((ended.unwrap_or(ScriptEnd::Lost), was_stopped))
}

/// Reap all that ended. Returns whether any process is left, and keeps how `script` ended.
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

/// Whether the other end of stdin was closed, or is within `limit`.
fn is_runner_gone(limit: Duration) -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
    poll(&mut fds, Some(&limit)).is_ok() && !fds[0].revents().is_empty()
}

/// The lock of a run, held by its supervisor. The file is not empty while a run goes on, and stays so if the supervisor is killed. It
/// may come from others, so that only its length is read.
struct RunningLock {
    file: File,
    mark: String,
}

impl RunningLock {
    /// `None` where another process holds it.
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
    fn is_left(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > 0)
    }

    /// Kill all processes that carry the mark, until none is left that can be killed.
    fn kill_marked(&self) {
        let mark = format!("{MARK}={}", self.mark);
        let is_marked = |id: &i32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            *id != own_id()
                && environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        for _ in 0..UNKILLABLE.as_millis() / LOOK.as_millis() {
            let marked: Vec<i32> = process_ids().filter(is_marked).collect();
            if marked.is_empty() {
                return;
            }
            marked.into_iter().for_each(|id| send(id, Signal::KILL));
            sleep(LOOK);
        }
    }
}

fn clean_up(script: &str) -> io::Result<()> {
    let output = Command::new("bash").args(["-c", script]).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let messages = messages.trim();
    Err(io::Error::other(format!(
        "could not end what an earlier run left in the queue: {messages}"
    )))
}

/// Processes below this one.
fn descendants() -> Vec<i32> {
    let parents: HashMap<i32, i32> =
        process_ids().filter_map(|id| Some((id, parent_of(id)?))).collect();
    let is_below = |id: &&i32| {
        // The table was not read in one moment: a bound ends what looks like a circle.
        let ancestors = std::iter::successors(parents.get(id), |id| parents.get(id));
        ancestors.take(parents.len() + 1).any(|parent| *parent == own_id())
    };
    parents.keys().filter(is_below).copied().collect()
}

fn process_ids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The second field after the name, which may hold anything (proc_pid_stat(5)).
fn parent_of(id: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn own_id() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn send(id: i32, signal: Signal) {
    // It may be gone by now.
    let _ = Pid::from_raw(id).map(|id| kill_process(id, signal));
}

fn append_to(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(file)
}

/// Start `command` in a session of its own; it gets the signal `on_parents_death` when the thread that starts it ends.
fn in_own_session(command: &mut Command, on_parents_death: Option<Signal>) {
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

    /// Reading /proc may take longer than the time that is left.
    #[test]
    fn processes_are_killed_however_late_it_is() {
        let sleeper = Pid::from_child(&Command::new("sleep").arg("600").spawn().unwrap());
        let is_first = std::cell::Cell::new(true);
        let now_ns = || if is_first.replace(false) { 0 } else { 60_000_000_000 };
        let signalled = AtomicBool::new(true);
        let (ended, was_stopped) =
            wait_until_nothing_lives(sleeper, Duration::from_secs(1), &signalled, &now_ns).unwrap();
        assert_eq!((ended, was_stopped), (ScriptEnd::Signalled(9), true));
    }

    #[test]
    fn a_run_that_could_not_say_why_it_failed_had_no_room_to() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("stderr");
        let failure = |messages: &Path| ScriptEnd::Exited(1).failure(messages).unwrap();
        assert_eq!(failure(&messages), "it ended with code 1");
        // A file system on which there is never room.
        let full = "it ended with code 1 without a message, and `/proc` has room for 0 B only";
        assert_eq!(failure(Path::new("/proc/stderr")), full);
        std::fs::write(&messages, "a\nerror: b\n  hint: c\n").unwrap();
        assert_eq!(failure(&messages), "it ended with code 1: b\n  hint: c");
    }
}
