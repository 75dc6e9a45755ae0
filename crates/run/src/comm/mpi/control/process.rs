//! Identities of processes, with which other processes of the same machine check whether they still run.

use serde::{Deserialize, Serialize};
use std::fs;

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
            start_ticks: ProcessStat::read(pid)?.start_ticks,
        })
    }

    /// Whether the process is known to run: it is on this machine and has neither ended nor been stopped. It may still get no processor
    /// time.
    pub(super) fn is_running(&self) -> bool {
        let stat = ProcessStat::read(self.pid).filter(|stat| stat.start_ticks == self.start_ticks);
        PidScope::current().as_ref() == Some(&self.scope)
            && stat.is_some_and(|stat| stat.is_running())
    }
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
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the file. The second field is the name in parentheses and may itself contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, after_name) = text.rsplit_once(')')?;
        let mut fields = after_name.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Self { state, start_ticks: fields.nth(18)?.parse().ok()? })
    }

    /// Whether it is neither a zombie (`Z`), dead (`X`), stopped (`T`) nor stopped by a debugger (`t`).
    fn is_running(&self) -> bool {
        !"ZXxTt".contains(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn state_and_start_are_parsed_after_a_name_with_parentheses() {
        let text = |state: char| {
            format!("7 (a) T (b) {state} 1 7 7 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 1 0 421 0 0")
        };
        for (state, is_running) in
            [('R', true), ('S', true), ('D', true), ('T', false), ('t', false), ('Z', false)]
        {
            let stat = ProcessStat::parse(&text(state)).unwrap();
            assert_eq!((stat.start_ticks, stat.is_running()), (421, is_running), "{state}");
        }
        assert_eq!(ProcessStat::parse("7 (a"), None);
    }

    #[test]
    fn a_process_runs_until_it_ends_and_is_not_identified_by_its_pid_alone() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = ProcessIdentity::from_pid(child.id()).unwrap();
        assert!(process.is_running());
        let reused = ProcessIdentity { start_ticks: process.start_ticks + 1, ..process.clone() };
        assert!(!reused.is_running());
        let mut on_other_machine = process.clone();
        on_other_machine.scope.boot_id.clear();
        assert!(!on_other_machine.is_running());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_running());
    }
}
