//! One run of a study under a supervisor: a process of its own that outlives whoever started it, ends all that belongs to the
//! run, and holds a lock until it has. Knows nothing of studies.
//!
//! The runner holds a pipe to the supervisor. When the pipe ends, because the runner said so or died, the supervisor tells all
//! processes of the run to stop, kills what is left after a grace, and cleans up what lies elsewhere, such as jobs of Slurm.
//! It adopts every process that the run leaves alone (a subreaper, prctl(2)), so that none escapes. If the supervisor itself is
//! killed, the lock's file still says that a run had begun, and the next runner cleans up after it.

mod processes;
mod running;
mod supervisor;

pub use running::wait_until_alone;
pub use supervisor::supervise;

use feedrate_spec::units;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal, setsid,
};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Between two looks at a run, or at a lock.
const LOOK: Duration = Duration::from_millis(20);

/// Lines of a failed run's messages that are told.
const REASON_LINES: usize = 6;

/// A file system with less room is full, but for what was freed as the run ended.
const FULL_BYTES: u64 = 64 << 10;

/// A run has this long to write down what it measured, where nothing else is said: somewhat longer than it takes itself to leave a
/// storage that hangs, and to say so.
pub const GRACE: Duration = Duration::from_millis(12_300);

/// Whoever lives so long after it was killed waits for a storage that does not answer. It does nothing more.
const UNKILLABLE: Duration = Duration::from_millis(500);

/// An order to supervise a run. Paths must be good in the working directory of the runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Supervision {
    /// Script that bash runs.
    pub script: PathBuf,
    /// Another script that ends what of the run is no process below it, unless the run ended well by itself.
    pub cleanup: Option<PathBuf>,
    /// Output is added here.
    pub stdout: PathBuf,
    /// Messages are added here, those of clean-up and supervisor too.
    pub stderr: PathBuf,
    /// Locked while anything of the run lives.
    pub running: PathBuf,
    /// From the word to stop until what is left is killed.
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
    /// It was never begun: another run goes on, or was left by a killed supervisor.
    Busy,
    /// It was never begun, for this reason.
    Refused(String),
    /// Its supervisor was killed; [`wait_until_alone`] ends what is left of it.
    Lost,
}

impl ScriptEnd {
    /// The reason of a failure, with the end of its messages from the last error on; `None` where it ended well.
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
    let said = std::fs::read(messages).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.iter().rposition(|line| line.starts_with("error"));
    let from = from.unwrap_or(lines.len().saturating_sub(REASON_LINES));
    let told: Vec<&str> = lines[from..].iter().take(REASON_LINES).copied().collect();
    if !told.is_empty() {
        return format!("{what}: {}", told.join("\n").trim_start_matches("error: "));
    }
    let folder = messages.parent().unwrap_or(messages);
    let room = rustix::fs::statvfs(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match room {
        // What it said may have found none.
        Ok(bytes) if bytes < FULL_BYTES => {
            let (folder, bytes) = (folder.display(), units::bytes(bytes));
            format!("{what} without a message, and `{folder}` has room for {bytes} only")
        }
        _ => what.into(),
    }
}

/// A run that goes on. Dropping it stops the run, and waits for nothing.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    /// Its end is the word to stop.
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
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(to_end_of(&order.stderr)?);
        // What a terminal sends to its foreground is the runner's to decide on.
        in_own_session(&mut command, None);
        let mut supervisor = command.spawn()?;
        let pipe = supervisor.stdin.take();
        Ok(Supervised { supervisor, pipe })
    }

    /// Tell it to stop; [`Supervised::wait`] then waits until it has.
    pub fn stop(&mut self) {
        self.pipe = None;
    }

    /// Wait until nothing of the run lives; it is told to stop once `stop` is set.
    ///
    /// # Errors
    /// The supervisor cannot be waited for.
    pub fn wait(&mut self, stop: &AtomicBool) -> io::Result<ScriptEnd> {
        self.wait_for_end(stop, &AtomicBool::new(false))
    }

    /// The same; it is told so once more when `leave` is set, for those that listen to the second word only.
    ///
    /// # Errors
    /// The supervisor cannot be waited for.
    pub fn wait_for_end(&mut self, stop: &AtomicBool, leave: &AtomicBool) -> io::Result<ScriptEnd> {
        let supervisor = Pid::from_child(&self.supervisor);
        let mut has_hurried = false;
        while self.supervisor.try_wait()?.is_none() {
            if stop.load(Relaxed) {
                self.stop();
            }
            if leave.load(Relaxed) && !std::mem::replace(&mut has_hurried, true) {
                // It is this process's to reap, so its number is its own.
                let _ = kill_process(supervisor, Signal::TERM);
            }
            std::thread::sleep(LOOK);
        }
        let mut told = String::new();
        if let Some(pipe) = &mut self.supervisor.stdout {
            pipe.read_to_string(&mut told)?;
        }
        Ok(serde_json::from_str(&told).unwrap_or(ScriptEnd::Lost))
    }
}

fn to_end_of(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(file)
}

/// Start `command` in a session of its own; where `on_parents_death` is given, that signal is sent to it when the thread that
/// starts it ends.
fn in_own_session(command: &mut Command, on_parents_death: Option<Signal>) {
    let parent = getpid();
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            set_parent_process_death_signal(on_parents_death)?;
            // The parent may have died before it was asked for.
            if on_parents_death.is_some() && getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        })
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_could_not_say_why_it_failed_had_no_room_to() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("stderr");
        let told = |messages: &Path| ScriptEnd::Exited(1).failure(messages).unwrap();
        assert_eq!(told(&messages), "it ended with code 1");
        // A file system on which there is never room.
        let full = "it ended with code 1 without a message, and `/proc` has room for 0 B only";
        assert_eq!(told(Path::new("/proc/stderr")), full);
        std::fs::write(&messages, "a\nerror: b\n  hint: c\n").unwrap();
        assert_eq!(told(&messages), "it ended with code 1: b\n  hint: c");
    }
}
