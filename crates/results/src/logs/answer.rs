//! Decides from the times of a log whether I/O is the problem of its job.

use feedrate_measure::io_problem::{IoProblem, PARTLY_MIN};
use feedrate_measure::record::IoCounters;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// Whose time a share of I/O refers to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum TimeOf {
        /// The threads that train and read: they wait during I/O.
        Training = "training",
        /// Threads or processes that read while others train.
        Readers = "readers",
        /// Processes whose threads the log does not distinguish.
        Processes = "processes",
    }
}

names! {
    /// Reasons why a log does not show whether I/O is the problem.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum IoUnknown {
        /// Calls have no times.
        NoTimes = "no-times",
        /// Data was read by calls that are not in the log, such as page faults of mapped files.
        HiddenReads = "hidden-reads",
        /// Calls are so short that recording them may have taken as long.
        RecordingTime = "recording-time",
        /// Reads may have overlapped with training.
        Overlap = "overlap",
    }
}

/// Whether I/O is the problem of a job, and which I/O.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IoAnswer {
    /// Whether I/O is the problem.
    pub kind: IoProblem,
    /// The reason why `kind` is `unknown`; otherwise `null`.
    pub unknown_because: Option<IoUnknown>,
    /// Whose time the percentages refer to.
    pub time_of: TimeOf,
    /// Limits of the share of time in calls on data files, in percent. They differ by the time that recording may have taken, and for `processes`
    /// by reads at the same time. `null` if calls have no times.
    pub io_percent: Option<[f64; 2]>,
    /// Limits of the share of time for which readers waited for training, in percent; `null` for `training`.
    pub paused_percent: Option<[f64; 2]>,
    /// Share of opens and other calls without data in the time of I/O, in percent.
    pub metadata_percent: Option<f64>,
    /// Mean size of reads that returned data.
    pub read_bytes: Option<f64>,
    /// Bytes read per second of read calls.
    pub read_bytes_per_second: Option<f64>,
    /// Mean number of reads in progress while there is at least one; `null` if the log has no times of single reads.
    pub reads_in_flight: Option<f64>,
    /// Mean time of opens and other calls without data per open, in seconds.
    pub open_seconds: Option<f64>,
    /// Upper limit of the job's speed without I/O, relative to its actual speed; `null` if it is unknown.
    pub speedup_max: Option<f64>,
}

/// Times of a job's readers, from which its answer follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoTimes<'a> {
    pub(super) time_of: TimeOf,
    /// Sum of the times from the first to the last call of each reader.
    pub(super) span_ns: u64,
    /// Time in I/O, and its part that is certain. In nanoseconds.
    pub(super) io_ns: Option<[u64; 2]>,
    /// Time for which readers were blocked in calls that wait for other processes.
    pub(super) blocked_ns: u64,
    /// Share of time in gaps between batches that are longer than other gaps; `None` if batches are unknown.
    pub(super) paused_share: Option<f64>,
    /// Whether calls that may read data are not in the log.
    pub(super) hides_reads: bool,
    /// Counters of all readers.
    pub(super) io: &'a IoCounters,
    /// Number of reads that returned data; `None` if unknown.
    pub(super) data_reads: Option<u64>,
    /// Mean number of reads in progress while there is at least one.
    pub(super) reads_in_flight: Option<f64>,
}

/// Share of time for which readers wait, from which training does not wait for them.
const WAITING_MIN: f64 = 0.2;
/// Share of time in gaps between batches from which the gaps are waits, rather than the work of passing a batch on.
const PAUSED_MIN: f64 = 0.5;

impl IoAnswer {
    /// Whether I/O is no problem because the readers waited for training, although it took much of their time.
    pub fn rests_on_waiting(&self) -> bool {
        let takes_little = |[_, high]: [f64; 2]| high < 100.0 * PARTLY_MIN;
        self.kind == IoProblem::No && !self.io_percent.is_some_and(takes_little)
    }

    pub(super) fn new(times: &IoTimes) -> Self {
        let span_ns = times.span_ns as f64;
        let shares = times.io_ns.filter(|_| 0.0 < span_ns);
        let shares = shares.map(|limits| limits.map(|ns| ns as f64 / span_ns));
        let paused = shares.filter(|_| times.time_of != TimeOf::Training);
        let paused = paused.map(|[io_low, _]| paused_limits(times, io_low));
        let decided = match shares {
            None => Err(IoUnknown::NoTimes),
            Some(shares) => decide(times, shares, paused.unwrap_or_default()),
        };
        let kind = decided.unwrap_or(IoProblem::Unknown);
        let io = times.io;
        let time_ns = (io.open_ns + io.read_ns) as f64;
        let is_timed = shares.is_some() && 0.0 < time_ns;
        let when_timed = |value: f64| is_timed.then_some(value);
        let is_bounded = times.time_of != TimeOf::Processes && !times.hides_reads;
        IoAnswer {
            kind,
            unknown_because: decided.err(),
            time_of: times.time_of,
            io_percent: shares.map(|limits| limits.map(|share| 100.0 * share)),
            paused_percent: paused.map(|limits| limits.map(|share| 100.0 * share)),
            metadata_percent: when_timed(100.0 * io.open_ns as f64 / time_ns),
            read_bytes: times
                .data_reads
                .filter(|&reads| reads > 0)
                .map(|reads| io.read_bytes as f64 / reads as f64),
            read_bytes_per_second: when_timed(io.read_bytes as f64 * 1e9 / io.read_ns as f64)
                .filter(|_| io.read_ns > 0),
            reads_in_flight: times.reads_in_flight,
            open_seconds: when_timed(io.open_ns as f64 / 1e9 / io.opens as f64)
                .filter(|_| io.opens > 0),
            speedup_max: shares
                .map(|[_, high]| high)
                .filter(|&high| is_bounded && high < 1.0)
                .map(|high| 1.0 / (1.0 - high)),
        }
    }
}

/// Limits of the share of time for which the readers waited for training.
fn paused_limits(times: &IoTimes, io_low: f64) -> [f64; 2] {
    let blocked = times.blocked_ns as f64 / times.span_ns as f64;
    let high = times.paused_share.unwrap_or(1.0 - io_low).max(blocked);
    let is_certain = times.paused_share.is_some_and(|share| PAUSED_MIN <= share);
    [if is_certain { high } else { blocked }, high]
}

/// Decides from the limits of the shares of I/O and of pauses.
fn decide(
    times: &IoTimes,
    [low, high]: [f64; 2],
    paused: [f64; 2],
) -> Result<IoProblem, IoUnknown> {
    let [paused_low, paused_high] = paused;
    if WAITING_MIN <= paused_low && !times.hides_reads {
        return Ok(IoProblem::No);
    }
    match IoProblem::from_share(low) {
        IoProblem::No if times.hides_reads => Err(IoUnknown::HiddenReads),
        IoProblem::No if IoProblem::from_share(high) == IoProblem::No => Ok(IoProblem::No),
        IoProblem::No if times.time_of == TimeOf::Processes => Err(IoUnknown::Overlap),
        IoProblem::No => Err(IoUnknown::RecordingTime),
        _ if WAITING_MIN < paused_high => Err(IoUnknown::Overlap),
        certain => Ok(certain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of a reader with 100 ns from its first to its last call.
    fn times(time_of: TimeOf, io_ns: [u64; 2], io: &IoCounters) -> IoTimes<'_> {
        IoTimes {
            time_of,
            span_ns: 100,
            io_ns: Some(io_ns),
            blocked_ns: 0,
            paused_share: None,
            hides_reads: false,
            io,
            data_reads: Some(4),
            reads_in_flight: Some(1.0),
        }
    }

    #[test]
    fn the_kind_follows_from_the_times() {
        let io = IoCounters { read_ns: 60, ..IoCounters::default() };
        let check = |times: IoTimes, kind: IoProblem, because: Option<IoUnknown>| {
            let answer = IoAnswer::new(&times);
            assert_eq!((answer.kind, answer.unknown_because), (kind, because), "{times:?}");
        };
        let training = |low, high| times(TimeOf::Training, [low, high], &io);
        check(training(18, 18), IoProblem::No, None);
        check(training(20, 20), IoProblem::Partly, None);
        check(training(50, 61), IoProblem::Yes, None);
        check(training(30, 61), IoProblem::Partly, None);
        check(training(18, 25), IoProblem::Unknown, Some(IoUnknown::RecordingTime));
        let hidden = IoTimes { hides_reads: true, ..training(18, 18) };
        check(hidden, IoProblem::Unknown, Some(IoUnknown::HiddenReads));
        check(IoTimes { hides_reads: true, ..training(50, 50) }, IoProblem::Yes, None);
        let untimed = IoTimes { io_ns: None, ..training(0, 0) };
        check(untimed, IoProblem::Unknown, Some(IoUnknown::NoTimes));
        check(
            IoTimes { span_ns: 0, ..training(0, 0) },
            IoProblem::Unknown,
            Some(IoUnknown::NoTimes),
        );
        let readers = |low, high| times(TimeOf::Readers, [low, high], &io);
        check(readers(10, 19), IoProblem::No, None);
        check(readers(79, 79), IoProblem::Unknown, Some(IoUnknown::Overlap));
        check(readers(80, 80), IoProblem::Yes, None);
        let paused = |share| IoTimes { paused_share: Some(share), ..readers(40, 40) };
        check(paused(0.1), IoProblem::Partly, None);
        check(paused(0.4), IoProblem::Unknown, Some(IoUnknown::Overlap));
        check(paused(0.5), IoProblem::No, None);
        check(IoTimes { blocked_ns: 30, ..paused(0.3) }, IoProblem::No, None);
        assert!(IoAnswer::new(&paused(0.5)).rests_on_waiting());
        assert!(!IoAnswer::new(&readers(10, 19)).rests_on_waiting());
        let processes = |low, high| times(TimeOf::Processes, [low, high], &io);
        check(processes(0, 19), IoProblem::No, None);
        check(processes(0, 60), IoProblem::Unknown, Some(IoUnknown::Overlap));
        check(processes(90, 100), IoProblem::Yes, None);
    }

    #[test]
    fn figures_without_a_basis_are_unknown() {
        let io = IoCounters::default();
        let untimed =
            IoTimes { io_ns: None, data_reads: None, ..times(TimeOf::Training, [0, 0], &io) };
        let answer = IoAnswer::new(&untimed);
        let rates = [answer.read_bytes_per_second, answer.open_seconds, answer.metadata_percent];
        assert_eq!((answer.io_percent, rates, answer.speedup_max), (None, [None; 3], None));
        assert_eq!(answer.read_bytes, None);
        let io = IoCounters {
            opens: 2,
            open_ns: 20,
            reads: 5,
            read_bytes: 400,
            read_ns: 60,
            ..IoCounters::default()
        };
        let answer = IoAnswer::new(&times(TimeOf::Training, [80, 80], &io));
        assert_eq!((answer.metadata_percent, answer.read_bytes), (Some(25.0), Some(100.0)));
        assert_eq!((answer.open_seconds, answer.io_percent), (Some(1e-8), Some([80.0, 80.0])));
        assert!((answer.speedup_max.unwrap() - 5.0).abs() < 1e-9);
        let processes = IoAnswer::new(&times(TimeOf::Processes, [0, 10], &io));
        assert_eq!(processes.speedup_max, None);
    }
}
