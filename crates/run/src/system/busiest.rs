//! The process that used most processor time beside this one. Processes that may not be looked at are left out.

use crate::clock::thread_cpu_ns;
use feedrate_measure::record::OtherProcess;
use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Looking at all processes takes milliseconds. It begins this long after the start, so that short work is not held up by it.
const DELAY: Duration = Duration::from_millis(200);
/// The lowest priority: the first look takes no time from the work that is measured.
const NICE: i32 = 19;
/// Share of all processors from which on a busy machine may be disturbed.
const BUSY_SHARE_MIN: f64 = 0.5;

/// Watches the other processes on a thread of its own until [`BusiestWatch::finish`].
pub(super) struct BusiestWatch {
    /// Hanging up ends the delay.
    running: mpsc::Sender<()>,
    /// Ends with the first look, unless it was over before.
    first: JoinHandle<FirstLook>,
}

struct FirstLook {
    /// `None` after less than the delay.
    times: Option<ProcessTimes>,
    /// Processor time of the thread that looked.
    cpu_ns: u64,
}

/// Result of a watch.
#[derive(Default)]
pub(super) struct Watched {
    /// The process that used most processor time since the first look. `None` where none used any, after less than the delay, and where
    /// the processors were busy for less than half the time.
    pub(super) busiest: Option<OtherProcess>,
    /// Processor time that the first look took from this process.
    pub(super) cpu_ns: u64,
}

impl BusiestWatch {
    /// `None` where no thread could be started.
    pub(super) fn start() -> Option<Self> {
        let (running, over) = mpsc::channel();
        let look = move || {
            // On Linux it is this thread's alone. The kernel may refuse: the look goes on.
            let _ = rustix::process::setpriority_process(None, NICE);
            let is_over = over.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout);
            let times = (!is_over).then(ProcessTimes::now);
            FirstLook { times, cpu_ns: thread_cpu_ns() }
        };
        let first = Builder::new().name("processes".into()).spawn(look).ok()?;
        Some(BusiestWatch { running, first })
    }

    /// Ends the watch of work in which the processors were busy for `cpu_busy_share` of the time.
    pub(super) fn finish(self, cpu_busy_share: Option<f64>) -> Watched {
        drop(self.running);
        let Ok(FirstLook { times, cpu_ns }) = self.first.join() else { return Watched::default() };
        let is_disturbed = cpu_busy_share.is_none_or(|share| BUSY_SHARE_MIN <= share);
        let first = times.filter(|_| is_disturbed);
        let busiest = first.and_then(|first| ProcessTimes::now().busiest_since(&first));
        Watched { busiest, cpu_ns }
    }
}

/// Processor time of each process, in ticks of the kernel, and its name.
struct ProcessTimes(BTreeMap<u32, (String, u64)>);

impl ProcessTimes {
    /// Look at all but this process.
    fn now() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let others = ids.filter(|id| *id != std::process::id());
        let times = others.filter_map(|id| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            Some((id, parse(&stat)?))
        });
        ProcessTimes(times.collect())
    }

    /// The one that used most since `before`; `None` where none used any.
    fn busiest_since(&self, before: &ProcessTimes) -> Option<OtherProcess> {
        let used = self.0.iter().map(|(id, (name, ticks))| {
            // A number that was given to another process since has used less.
            let ticks_before = before.0.get(id).map_or(0, |(_, ticks)| *ticks);
            (ticks.checked_sub(ticks_before).unwrap_or(*ticks), id, name)
        });
        let (ticks, id, name) = used.max().filter(|(ticks, ..)| *ticks > 0)?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Some(OtherProcess { id: *id, name: name.clone(), cpu_ns: ticks * tick_ns })
    }
}

/// Name and times of a line of `/proc/PID/stat`; the name may hold anything, parentheses too.
fn parse(stat: &str) -> Option<(String, u64)> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    // Fields 14 and 15 of all, user and system; the third follows the name.
    let mut fields = after.split_whitespace().skip(11);
    let [user, system]: [u64; 2] = [fields.next()?.parse().ok()?, fields.next()?.parse().ok()?];
    Some((name.into(), user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_name_and_two_times() {
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
        // The third is another process with an old number.
        let busiest = times([(1, 1010), (2, 90), (3, 20)]).busiest_since(&before).unwrap();
        assert_eq!((busiest.id, busiest.name.as_str()), (2, "p2"));
        assert!(0 < busiest.cpu_ns);
        assert_eq!(before.busiest_since(&before), None);
    }

    #[test]
    fn a_short_watch_looks_at_nothing() {
        let watch = BusiestWatch::start().unwrap();
        assert_eq!(watch.finish(None).busiest, None);
    }

    #[test]
    fn the_cost_of_a_look_is_known() {
        let watch = BusiestWatch::start().unwrap();
        std::thread::sleep(2 * DELAY);
        assert!(100_000 < watch.finish(Some(0.0)).cpu_ns, "it reads a file of each process");
    }
}
