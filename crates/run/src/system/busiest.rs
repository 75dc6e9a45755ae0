//! Finds the other process that used the most processor time. Processes that may not be inspected are left out.

use crate::clock::thread_cpu_ns;
use feedrate_measure::record::OtherProcess;
use feedrate_measure::record::file::read_folder;
use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Delay of the first snapshot of all processes. A snapshot takes milliseconds and should not disturb short work.
const DELAY: Duration = Duration::from_millis(200);
/// Priority of the snapshot: the lowest, so that it does not slow down measured work.
const NICE: i32 = 19;
/// Minimum busy share of all processors at which another process may have disturbed the work.
const BUSY_SHARE_MIN: f64 = 0.5;

/// Watches the other processes from a separate thread until [`BusiestWatch::finish`].
pub(super) struct BusiestWatch {
    /// Dropped to end the delay.
    running: mpsc::Sender<()>,
    /// Takes the first snapshot after the delay.
    first: JoinHandle<FirstSnapshot>,
}

struct FirstSnapshot {
    /// `None` if the watch ended within the delay.
    times: Option<ProcessTimes>,
    /// Processor time of the thread that took it.
    cpu_ns: u64,
}

/// Result of a watch.
#[derive(Default)]
pub(super) struct WatchResult {
    /// The process that used the most processor time since the first snapshot. `None` if none used any, if the watch ended within the delay,
    /// or if the processors were busy for less than half the time.
    pub(super) busiest: Option<OtherProcess>,
    /// Processor time of the first snapshot.
    pub(super) cpu_ns: u64,
}

impl BusiestWatch {
    /// Starts watching. Returns `None` if no thread could be started.
    pub(super) fn start() -> Option<Self> {
        let (running, ended) = mpsc::channel();
        let take_first = move || {
            // On Linux this sets the priority of this thread only. A failure is harmless.
            let _ = rustix::process::setpriority_process(None, NICE);
            let has_ended = ended.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout);
            let times = (!has_ended).then(ProcessTimes::now);
            FirstSnapshot { times, cpu_ns: thread_cpu_ns() }
        };
        let first = Builder::new().name("processes".into()).spawn(take_first).ok()?;
        Some(BusiestWatch { running, first })
    }

    /// Ends the watch; `cpu_busy_share` is the busy share of all processors meanwhile.
    pub(super) fn finish(self, cpu_busy_share: Option<f64>) -> WatchResult {
        drop(self.running);
        let Ok(first) = self.first.join() else { return WatchResult::default() };
        let may_be_disturbed = cpu_busy_share.is_none_or(|share| BUSY_SHARE_MIN <= share);
        let times = first.times.filter(|_| may_be_disturbed);
        let busiest = times.and_then(|times| ProcessTimes::now().busiest_since(&times));
        WatchResult { busiest, cpu_ns: first.cpu_ns }
    }
}

/// Name and processor time of each process, in ticks of the kernel.
struct ProcessTimes(BTreeMap<u32, (String, u64)>);

impl ProcessTimes {
    /// Takes a snapshot of all processes but this one.
    fn now() -> Self {
        let entries = read_folder("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let others = ids.filter(|id| *id != std::process::id());
        let times = others.filter_map(|id| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            Some((id, parse(&stat)?))
        });
        ProcessTimes(times.collect())
    }

    /// Returns the process that used the most processor time since `before`; `None` if none used any.
    fn busiest_since(&self, before: &ProcessTimes) -> Option<OtherProcess> {
        let used = self.0.iter().map(|(id, (name, ticks))| {
            // If the PID was reused by another process, its time may be less than before.
            let ticks_before = before.0.get(id).map_or(0, |(_, ticks)| *ticks);
            (ticks.checked_sub(ticks_before).unwrap_or(*ticks), id, name)
        });
        let (ticks, id, name) = used.max().filter(|(ticks, ..)| *ticks > 0)?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Some(OtherProcess { id: *id, name: name.clone(), cpu_ns: ticks * tick_ns })
    }
}

/// Parses name and processor time of `/proc/PID/stat`. The name may contain parentheses.
fn parse(stat: &str) -> Option<(String, u64)> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    // Field 3 follows the name; fields 14 and 15 are user and system time.
    let mut fields = after.split_whitespace().skip(11);
    let user_ticks: u64 = fields.next()?.parse().ok()?;
    let system_ticks: u64 = fields.next()?.parse().ok()?;
    Some((name.into(), user_ticks + system_ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_times_are_parsed() {
        let stat = "42 (a (b) c) R 1 42 42 0 -1 4194304 91 0 0 0 250 17 0 0 20 0 1 0 12 34 56";
        assert_eq!(parse(stat), Some(("a (b) c".into(), 267)));
        assert_eq!(parse("42 (cut) R 1"), None);
    }

    #[test]
    fn the_process_that_used_most_is_named() {
        let times = |all: [(u32, u64); 3]| {
            ProcessTimes(all.map(|(id, ticks)| (id, (format!("p{id}"), ticks))).into())
        };
        let before = times([(1, 1000), (2, 50), (3, 500)]);
        // The third is a new process with a reused PID.
        let busiest = times([(1, 1010), (2, 90), (3, 20)]).busiest_since(&before).unwrap();
        assert_eq!((busiest.id, busiest.name.as_str()), (2, "p2"));
        assert!(0 < busiest.cpu_ns);
        assert_eq!(before.busiest_since(&before), None);
    }

    #[test]
    fn a_short_watch_takes_no_snapshot() {
        let watch = BusiestWatch::start().unwrap();
        assert_eq!(watch.finish(None).busiest, None);
    }

    #[test]
    fn the_cost_of_a_snapshot_is_measured() {
        let watch = BusiestWatch::start().unwrap();
        while !watch.first.is_finished() {
            std::thread::yield_now();
        }
        assert!(100_000 < watch.finish(Some(0.0)).cpu_ns, "it reads a file of each process");
    }
}
