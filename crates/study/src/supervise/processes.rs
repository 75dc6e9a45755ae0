//! Processes of this machine, as `/proc` shows them: those below this one, and those that carry a mark. Processes that may not be
//! looked at are not seen.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::collections::{HashMap, HashSet};
use std::fs;

/// A variable in the environment of all that belongs to a run: the path of its lock.
pub(super) const MARK: &str = "FEEDRATE_RUNNING";

/// Kill every process below this one.
pub(super) fn kill_descendants() {
    descendants().into_iter().for_each(|id| send(id, Signal::KILL));
}

/// Tell every process below this one to end that is not among `told`.
pub(super) fn tell_descendants(told: &mut HashSet<i32>) {
    descendants().into_iter().filter(|id| told.insert(*id)).for_each(|id| send(id, Signal::TERM));
}

fn descendants() -> Vec<i32> {
    let parents: HashMap<i32, i32> = ids().filter_map(|id| Some((id, parent_of(id)?))).collect();
    let own = getpid().as_raw_nonzero().get();
    let below = parents.keys().filter(|id| {
        // The table was not read in one moment: a bound ends what may look like a circle.
        let above = std::iter::successors(parents.get(id), |id| parents.get(id));
        above.take(parents.len() + 1).any(|parent| *parent == own)
    });
    below.copied().collect()
}

/// Kill every process that carries `mark`. Returns whether there was any.
pub(super) fn kill_marked(mark: &str) -> bool {
    let own = getpid().as_raw_nonzero().get();
    let wanted = format!("{MARK}={mark}");
    let mut marked: Vec<i32> = ids().filter(|id| *id != own).collect();
    marked.retain(|id| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    });
    marked.iter().for_each(|id| send(*id, Signal::KILL));
    !marked.is_empty()
}

fn ids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The second field after the name, which may hold anything (proc_pid_stat(5)).
fn parent_of(id: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn send(id: i32, signal: Signal) {
    // It may be gone by now.
    let _ = Pid::from_raw(id).map(|id| kill_process(id, signal));
}
