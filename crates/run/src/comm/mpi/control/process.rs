//! Identities of processes, and the observation of processes of the same machine that do not answer.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// Consecutive observations, at least a second apart, after which an unchanged stop counts.
const STOPPED_OBSERVATIONS: u32 = 3;

/// A process of any machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    scope: PidScope,
    pid: u32,
    /// Clock ticks from boot to the start of the process; distinguishes it from a later process with the same PID.
    start_ticks: u64,
}

/// The scope of PIDs. Processes of the same scope see each other under the same PIDs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PidScope {
    /// Distinguishes machines. The initial PID namespaces of all machines have the same name.
    boot_id: String,
    /// PID namespace; distinguishes containers.
    namespace: String,
}

impl ProcessIdentity {
    /// Identifies this process; `None` if `/proc` cannot be read.
    pub(super) fn current() -> Option<Self> {
        Self::from_pid(std::process::id())
    }

    /// Identifies a process of this machine.
    pub(super) fn from_pid(pid: u32) -> Option<Self> {
        Some(Self {
            scope: PidScope::current()?,
            pid,
            start_ticks: ProcessStat::read(pid).ok()?.start_ticks,
        })
    }
}

/// The observation of a process of this machine that does not answer. A process may be silent because it gets no processor time or waits
/// for storage; it is lost only if it has ended or stays stopped.
pub(super) struct ProcessWatch {
    process: ProcessIdentity,
    /// Context switches of the process when it was last observed, if it was stopped then.
    stopped_at_switches: Option<u64>,
    /// Consecutive observations of the same stop.
    stopped_observations: u32,
}

impl ProcessWatch {
    /// Watches a process; `None` if it cannot be observed, because it is on another machine or in another container.
    pub(super) fn new(process: &ProcessIdentity) -> Option<Self> {
        let is_visible = PidScope::current().as_ref() == Some(&process.scope);
        is_visible.then(|| ProcessWatch {
            process: process.clone(),
            stopped_at_switches: None,
            stopped_observations: 0,
        })
    }

    /// Observes the process. Returns whether it has ended, or is in the same stop for the last [`STOPPED_OBSERVATIONS`] observations.
    pub(super) fn is_lost(&mut self) -> bool {
        let pid = self.process.pid;
        let state = match ProcessStat::read(pid) {
            Ok(stat) if stat.start_ticks == self.process.start_ticks => stat.state,
            // Missing descriptors or memory say nothing about the process.
            Err(error) if !is_missing(&error) => return false,
            _ => return true,
        };
        // Zombie or dead.
        if "ZXx".contains(state) {
            return true;
        }
        // Stopped by a signal or a debugger. A process that was continued and stopped again has switched contexts in between.
        let switches = "Tt".contains(state).then(|| context_switches(pid)).flatten();
        if switches != self.stopped_at_switches {
            self.stopped_observations = 0;
        }
        self.stopped_at_switches = switches;
        self.stopped_observations += u32::from(switches.is_some());
        self.stopped_observations >= STOPPED_OBSERVATIONS
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::SRCH)
}

/// Number of context switches of the main thread of a process (proc_pid_status(5)).
fn context_switches(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let lines = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
    lines.map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

impl PidScope {
    fn current() -> Option<Self> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(Self { boot_id, namespace: namespace.to_str()?.into() })
    }
}

/// Fields of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, PartialEq)]
struct ProcessStat {
    state: char,
    start_ticks: u64,
}

impl ProcessStat {
    fn read(pid: u32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses the file. The second field is the name in parentheses and may itself contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, after_name) = text.rsplit_once(')')?;
        let mut fields = after_name.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Self { state, start_ticks: fields.nth(18)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::{Child, Command};

    fn sleeping_child() -> (Child, ProcessWatch) {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let watch = ProcessWatch::new(&ProcessIdentity::from_pid(child.id()).unwrap()).unwrap();
        (child, watch)
    }

    /// Sends a signal and waits until the process has one of `states`.
    fn send(child: &Child, signal: Signal, states: &str) {
        kill_process(Pid::from_child(child), signal).unwrap();
        while !states.contains(ProcessStat::read(child.id()).unwrap().state) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn state_and_start_are_parsed_after_a_name_with_parentheses() {
        let text = "7 (a) T (b) D 1 7 7 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 1 0 421 0 0";
        let stat = ProcessStat { state: 'D', start_ticks: 421 };
        assert_eq!(ProcessStat::parse(text), Some(stat));
        assert_eq!(ProcessStat::parse("7 (a"), None);
    }

    #[test]
    fn a_process_is_lost_when_it_ends_and_is_not_identified_by_its_pid_alone() {
        let (mut child, mut watch) = sleeping_child();
        assert!((0..10).all(|_| !watch.is_lost()));
        let process = watch.process.clone();
        let reused = ProcessIdentity { start_ticks: process.start_ticks + 1, ..process.clone() };
        assert!(ProcessWatch::new(&reused).unwrap().is_lost());
        let mut on_other_machine = process;
        on_other_machine.scope.boot_id.clear();
        assert!(ProcessWatch::new(&on_other_machine).is_none());
        send(&child, Signal::KILL, "ZXx");
        assert!(watch.is_lost(), "a zombie");
        child.wait().unwrap();
        assert!(watch.is_lost());
    }

    #[test]
    fn a_process_is_lost_when_it_stays_stopped_but_not_when_it_is_often_stopped() {
        let (mut child, mut watch) = sleeping_child();
        for _ in 0..3 * STOPPED_OBSERVATIONS {
            send(&child, Signal::STOP, "T");
            assert!(!watch.is_lost(), "it has run since the last observation");
            send(&child, Signal::CONT, "RSD");
        }
        send(&child, Signal::STOP, "T");
        let observations: Vec<bool> = (0..STOPPED_OBSERVATIONS).map(|_| watch.is_lost()).collect();
        assert_eq!(observations, [false, false, true]);
        send(&child, Signal::CONT, "RSD");
        assert!(!watch.is_lost());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
