//! The supervisor's own side. Runs in a process that does nothing else: it adopts, signals and reaps whatever lies below it.

use super::processes::{self, MARK};
use super::running::RunningLock;
use super::{ScriptEnd, Supervision, UNKILLABLE, in_own_session, to_end_of};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Between two rounds of telling or killing: some processes fork while they are looked for.
const RING: Duration = Duration::from_millis(50);

/// Rest of the time from the word to stop once that was said again: a run that hangs writes down what it has, and leaves.
const HURRIED_GRACE: Duration = Duration::from_millis(2300);

/// Supervise one run until nothing of it lives. The word to stop is the end of stdin, or a signal that ends processes; another signal
/// is handed on once more.
/// Call it from the first thread of a process without children.
pub fn supervise(order: &Supervision) -> ScriptEnd {
    match supervised(order) {
        Ok(ended) => ended,
        Err(error) => ScriptEnd::Refused(error.to_string()),
    }
}

fn supervised(order: &Supervision) -> io::Result<ScriptEnd> {
    let Some(running) = RunningLock::begin(&order.running)? else { return Ok(ScriptEnd::Busy) };
    if has_no_runner()? {
        running.end()?;
        return Ok(ScriptEnd::Refused("its runner is gone".into()));
    }
    // Whatever loses its parent below becomes a child of this process.
    set_child_subreaper(Some(getpid()))?;
    let watch = SupervisorWatch::new()?;
    let script = match start(order, &order.script, &running) {
        Ok(script) => script,
        Err(error) => {
            running.end()?;
            return Err(error);
        }
    };
    let (ended, was_stopped) = watch.until_nothing_lives(script, order.grace)?;
    // Some launchers that are stopped end as if all were well.
    let is_well = ended == ScriptEnd::Exited(0) && !was_stopped;
    let cleaned = match &order.cleanup {
        Some(cleanup) if !is_well => {
            let (script, mut ended) = (start(order, cleanup, &running)?, None);
            reap(script, &mut ended, WaitOptions::empty())?;
            ended == Some(ScriptEnd::Exited(0))
        }
        _ => true,
    };
    // What could not be cleaned up is left to the next run.
    if cleaned {
        running.end()?;
    }
    Ok(ended)
}

/// Whether whoever started it died before the lock was had: the next runner may have looked at its files already.
fn has_no_runner() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(ready != 0 && has_ended(&stdin))
}

/// Whatever comes through the pipe says nothing; its end does.
fn has_ended(stdin: &io::Stdin) -> bool {
    !matches!(read(stdin, &mut [0; 64]), Ok(1..))
}

/// Bash, which dies with this process. It is waited for with all others.
fn start(order: &Supervision, script: &Path, running: &RunningLock) -> io::Result<Pid> {
    let mut command = Command::new("bash");
    command.arg(script).env(MARK, running.mark()).stdin(Stdio::null());
    command.stdout(to_end_of(&order.stdout)?).stderr(to_end_of(&order.stderr)?);
    in_own_session(&mut command, Some(Signal::KILL));
    Ok(Pid::from_child(&command.spawn()?))
}

/// Take leave of the dead; without `NOHANG` of all that live too. Returns whether any process is left, and keeps how `script` ended.
fn reap(script: Pid, ended: &mut Option<ScriptEnd>, options: WaitOptions) -> io::Result<bool> {
    loop {
        match wait(options) {
            Ok(Some((child, status))) if child == script => *ended = Some(ended_by(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(true),
            Err(Errno::CHILD) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn ended_by(status: WaitStatus) -> ScriptEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ScriptEnd::Exited(code),
        (None, Some(signal)) => ScriptEnd::Signalled(signal),
        (None, None) => ScriptEnd::Lost,
    }
}

/// Events to wait for beside the end of stdin.
struct SupervisorWatch {
    children: UnixStream,
    signals: UnixStream,
    timer: OwnedFd,
}

/// How far the end has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndStage {
    Going,
    Told {
        /// Rings of the timer since then.
        rings: u64,
    },
}

/// Events since the last look.
struct Happened {
    wants_stop: bool,
    rings: u64,
}

impl SupervisorWatch {
    fn new() -> io::Result<Self> {
        let children = of_signals(&[SIGCHLD])?;
        let signals = of_signals(&[SIGTERM, SIGINT, SIGHUP])?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(SupervisorWatch { children, signals, timer })
    }

    /// Returns how `script` ended, when it and all that it left behind are gone or beyond reach, and whether it was told to.
    fn until_nothing_lives(&self, script: Pid, grace: Duration) -> io::Result<(ScriptEnd, bool)> {
        let (mut stage, mut ended, mut was_stopped) = (EndStage::Going, None, false);
        let (mut told, mut hurries) = (HashSet::new(), false);
        while reap(script, &mut ended, WaitOptions::NOHANG)? {
            // What a script leaves behind has no more to do.
            if ended.is_some() && stage == EndStage::Going {
                stage = self.told(&mut told)?;
            }
            let happened = self.wait(stage)?;
            was_stopped |= happened.wants_stop;
            stage = match stage {
                EndStage::Going if happened.wants_stop => self.told(&mut told)?,
                EndStage::Going => stage,
                EndStage::Told { rings } => {
                    let mut rings = rings + happened.rings;
                    if happened.wants_stop && !std::mem::replace(&mut hurries, true) {
                        let left_out = grace.saturating_sub(HURRIED_GRACE).as_millis();
                        rings = rings.max((left_out / RING.as_millis()) as u64);
                    }
                    EndStage::Told { rings }
                }
            };
            // What comes too soon may be taken for the first word.
            if hurries {
                told.clear();
            }
            match stage {
                EndStage::Told { .. } if happened.rings == 0 => {}
                EndStage::Told { rings } if grace + UNKILLABLE <= duration_of(rings) => break,
                EndStage::Told { rings } if grace <= duration_of(rings) => {
                    processes::kill_descendants();
                }
                // A shell may have started one more by the time it heard.
                EndStage::Told { .. } => processes::tell_descendants(&mut told),
                EndStage::Going => {}
            }
        }
        Ok((ended.unwrap_or(ScriptEnd::Lost), was_stopped))
    }

    fn told(&self, told: &mut HashSet<i32>) -> io::Result<EndStage> {
        processes::tell_descendants(told);
        let time = Timespec { tv_sec: 0, tv_nsec: RING.subsec_nanos().into() };
        let times = Itimerspec { it_interval: time, it_value: time };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(EndStage::Told { rings: 0 })
    }

    fn wait(&self, stage: EndStage) -> io::Result<Happened> {
        let stdin = io::stdin();
        let mut fds = [
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        // A pipe that has ended would be ready for ever.
        let watched = if stage == EndStage::Going { fds.len() } else { 3 };
        match poll(&mut fds[..watched], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [children, timer, signals, pipe] = fds.map(|fd| !fd.revents().is_empty());
        if children {
            drain(&self.children);
        }
        if signals {
            drain(&self.signals);
        }
        let rings = if timer { rings_of(&self.timer) } else { 0 };
        Ok(Happened { wants_stop: signals || pipe && has_ended(&stdin), rings })
    }
}

/// How often a timer has rung since it was asked last (timerfd_create(2)).
fn rings_of(timer: &OwnedFd) -> u64 {
    let mut rings = [0; 8];
    // Nothing can be read of a timer that has not rung.
    read(timer, &mut rings).map_or(0, |_| u64::from_ne_bytes(rings))
}

fn duration_of(rings: u64) -> Duration {
    RING.saturating_mul(u32::try_from(rings).unwrap_or(u32::MAX))
}

/// Has something to read once one of these signals has come, which then does nothing else.
fn of_signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, theirs.try_clone()?)?;
    }
    Ok(ours)
}

fn drain(fd: impl AsFd) {
    while let Ok(1..) = read(&fd, &mut [0; 64]) {}
}
