//! Renders whether I/O is the problem of a logged job or of a watched loop.

use feedrate_measure::io_problem::IoProblem;
use feedrate_measure::watched_io::{WatchedIo, WatchedIoReason};
use feedrate_results::logs::{IoAnswer, IoUnknown, TimeOf};
use feedrate_spec::units;

/// Share of metadata calls in the time of I/O from which only they are named, and below the rest of which only reads are, in percent.
const MAIN_PERCENT: f64 = 80.0;
/// Largest number of reads in progress that counts as one at a time.
const ONE_AT_A_TIME_MAX: f64 = 1.05;
/// Smallest speed-up that is worth a line.
const SPEEDUP_MIN: f64 = 1.05;
/// Smallest speed-up that is written with one decimal.
const ONE_DECIMAL_MIN: f64 = 1.2;

/// Lines on whether I/O is the problem, how much faster the job would be without it, and what measures the rest.
pub fn lines(answer: &IoAnswer) -> Vec<String> {
    let percent = answer.io_percent.map(range).unwrap_or_default();
    let first = match (answer.kind, answer.time_of) {
        (IoProblem::Yes | IoProblem::Partly, time_of) => {
            let part = if answer.kind == IoProblem::Yes { "" } else { "part of " };
            let spent = match time_of {
                TimeOf::Training => format!("the job waited {percent} % of its time for"),
                TimeOf::Readers => format!("the readers spent {percent} % of their time in"),
                TimeOf::Processes => format!("{percent} % of the time was spent in"),
            };
            format!("I/O is {part}the problem: {spent} {}", calls(answer))
        }
        (IoProblem::No, time_of) => {
            let took = format!("it took {percent} % of {}", owner(time_of));
            let waited = answer.paused_percent.filter(|_| answer.rests_on_waiting());
            let waited = waited.map(|[low, _]| {
                format!("the readers waited {low:.0} % of their time for training")
            });
            format!("I/O is not the problem: {}", waited.unwrap_or(took))
        }
        (IoProblem::Unknown, time_of) => {
            let took = format!("I/O took {percent} % of {}", owner(time_of));
            let because = match answer.unknown_because {
                Some(IoUnknown::NoTimes) | None => "the log lacks times of calls".into(),
                Some(IoUnknown::HiddenReads) => format!("{took}, but the log lacks some reads"),
                Some(IoUnknown::RecordingTime) => {
                    format!("{took}, depending on the time for recording")
                }
                Some(IoUnknown::Overlap) => format!("{took}, but training may not have waited"),
            };
            format!("UNKNOWN whether I/O is the problem: {because}")
        }
    };
    let second = match (answer.kind, answer.speedup_max) {
        (IoProblem::Unknown, _) if matches!(answer.unknown_because, Some(IoUnknown::NoTimes)) => {
            Some("Record it again by `strace -f -ttt -T -y`, or use `feedrate.watch` in the training loop".into())
        }
        (IoProblem::Unknown, _) => {
            Some("`feedrate.watch` in the training loop measures how long it waits".into())
        }
        (_, Some(speedup)) if SPEEDUP_MIN <= speedup && !answer.rests_on_waiting() => {
            let decimals = if speedup < ONE_DECIMAL_MIN { 2 } else { 1 };
            let [who, limit] = match answer.time_of {
                TimeOf::Readers => ["the readers", "; training may limit the job to less"],
                TimeOf::Training | TimeOf::Processes => ["the job", ""],
            };
            Some(format!(
                "Without I/O {who} would be at most {speedup:.decimals$} times as fast{limit}"
            ))
        }
        _ => None,
    };
    let is_elsewhere = answer.kind == IoProblem::No && !answer.rests_on_waiting();
    let rest = is_elsewhere.then(|| {
        let spender = match answer.time_of {
            TimeOf::Readers => "The readers spent the rest in decoding, their own code or waiting",
            TimeOf::Training | TimeOf::Processes => {
                "The rest was decoding, the job's own code and training"
            }
        };
        format!("{spender}: `feedrate diagnose --data DIR --client SCRIPT:FUNCTION` separates them")
    });
    [first].into_iter().chain(second).chain(rest).collect()
}

fn owner(time_of: TimeOf) -> &'static str {
    match time_of {
        TimeOf::Training => "the job's time",
        TimeOf::Readers => "the readers' time",
        TimeOf::Processes => "the time",
    }
}

/// Limits in percent: `18`, or `9 to 18`.
fn range([low, high]: [f64; 2]) -> String {
    let [low, high] = [low, high].map(|percent| format!("{percent:.0}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Whether the storage is the problem of a watched loop, with the measurements that show it.
pub fn watched_line(io: &WatchedIo) -> String {
    let head = match io.kind {
        IoProblem::Yes => "I/O is the problem",
        IoProblem::Partly => "I/O is part of the problem",
        IoProblem::No => "I/O is not the problem",
        IoProblem::Unknown => "UNKNOWN whether I/O is the problem",
    };
    let waited = format!("the loop waited {:.0} % of its time for batches", io.waited_percent);
    let reads = io.device_reads_in_flight.map(|reads| match 100.0 * reads {
        percent if percent < 100.0 => {
            format!(" with reads in progress for at most {percent:.0} % of the time")
        }
        _ => format!(" with {reads:.1} reads in progress on average"),
    });
    let names_reads = matches!(
        io.reason,
        WatchedIoReason::DeviceIdle | WatchedIoReason::DeviceBusy | WatchedIoReason::LoaderUnknown
    );
    let in_progress = reads.filter(|_| names_reads).unwrap_or_default();
    let rate = io.device_bytes_per_second.map(units::bytes_per_second_rounded);
    let device = match rate {
        Some(rate) => Some(format!("the device delivered {rate}{in_progress}")),
        None if in_progress.is_empty() => None,
        None => Some(format!("the device worked{in_progress}")),
    };
    let busy = io.loader_busy_percent.filter(|_| io.reason != WatchedIoReason::CoresBusy);
    let busy = busy.map(|percent| format!("the loader computed for {percent:.0} % of its time"));
    let because = match io.reason {
        WatchedIoReason::CoresBusy => Some("the cores of the machine were busy"),
        WatchedIoReason::FolderUnknown => {
            Some("the folder of its data is unknown: give `watch(loader, data=FOLDER)`")
        }
        WatchedIoReason::DeviceUnknown => Some("the reads of the data's device are unknown"),
        WatchedIoReason::OtherProcesses => Some("the device read mostly for other processes"),
        WatchedIoReason::LoaderUnknown => Some("it is unknown how much the loader computed"),
        _ => None,
    };
    let facts = device.into_iter().chain(busy).chain(because.map(Into::into));
    let facts: Vec<String> =
        if io.reason == WatchedIoReason::Fed { Vec::new() } else { facts.collect() };
    let facts = match &facts[..] {
        [] => String::new(),
        [only] => format!("; {only}"),
        [first @ .., last] => format!("; {}, and {last}", first.join(", ")),
    };
    format!("{head}: {waited}{facts}")
}

/// The calls that took the time: `reads of 256 KiB on average at 40 MB/s, one at a time`.
fn calls(answer: &IoAnswer) -> String {
    let size = answer.read_bytes.map(|bytes| units::bytes_binary(bytes.round() as u64));
    let size = size.map_or_else(String::new, |size| format!(" of {size} on average"));
    let rate = answer.read_bytes_per_second.map(units::bytes_per_second_rounded);
    let rate = rate.map_or_else(String::new, |rate| format!(" at {rate}"));
    let in_flight = match answer.reads_in_flight {
        None => String::new(),
        Some(count) if count <= ONE_AT_A_TIME_MAX => ", one at a time".into(),
        Some(count) => format!(" each, {count:.1} at a time"),
    };
    let reads = format!("reads{size}{rate}{in_flight}");
    let opens = answer.open_seconds.map(|time| format!(" of {} each", units::seconds(time)));
    let opens = format!("opens{}", opens.unwrap_or_default());
    match answer.metadata_percent {
        Some(percent) if MAIN_PERCENT <= percent => opens,
        Some(percent) if 100.0 - MAIN_PERCENT < percent => {
            let rest = 100.0 - percent;
            format!("{reads} ({rest:.0} % of it), and {opens} ({percent:.0} %)")
        }
        _ => reads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: IoProblem, time_of: TimeOf, io_percent: [f64; 2]) -> IoAnswer {
        IoAnswer {
            kind,
            unknown_because: None,
            time_of,
            io_percent: Some(io_percent),
            paused_percent: None,
            metadata_percent: Some(5.0),
            read_bytes: Some(262_144.0),
            read_bytes_per_second: Some(40e6),
            reads_in_flight: Some(1.0),
            open_seconds: Some(0.003),
            speedup_max: Some(100.0 / (100.0 - io_percent[1])),
        }
    }

    #[test]
    fn watched_loops_name_what_rules_the_storage_in_or_out() {
        let io = WatchedIo {
            kind: IoProblem::Yes,
            reason: WatchedIoReason::DeviceBusy,
            waited_percent: 61.2,
            loader_busy_percent: Some(8.0),
            device_bytes_per_second: Some(480e6),
            device_reads_in_flight: Some(0.98),
        };
        let answers = [
            io,
            WatchedIo { kind: IoProblem::Partly, device_reads_in_flight: Some(3.25), ..io },
            WatchedIo {
                kind: IoProblem::No,
                reason: WatchedIoReason::LoaderBusy,
                loader_busy_percent: Some(94.0),
                device_bytes_per_second: Some(3e6),
                ..io
            },
            WatchedIo { kind: IoProblem::No, reason: WatchedIoReason::CoresBusy, ..io },
            WatchedIo { kind: IoProblem::No, reason: WatchedIoReason::Fed, ..io },
            WatchedIo {
                kind: IoProblem::Unknown,
                reason: WatchedIoReason::DeviceUnknown,
                device_bytes_per_second: None,
                ..io
            },
            WatchedIo {
                kind: IoProblem::Unknown,
                reason: WatchedIoReason::FolderUnknown,
                device_bytes_per_second: None,
                ..io
            },
            WatchedIo { kind: IoProblem::Unknown, reason: WatchedIoReason::OtherProcesses, ..io },
            WatchedIo {
                kind: IoProblem::Unknown,
                reason: WatchedIoReason::LoaderUnknown,
                loader_busy_percent: None,
                ..io
            },
        ];
        let lines: Vec<String> = answers.iter().map(watched_line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        I/O is the problem: the loop waited 61 % of its time for batches; the device delivered 480 MB/s with reads in progress for at most 98 % of the time, and the loader computed for 8 % of its time
        I/O is part of the problem: the loop waited 61 % of its time for batches; the device delivered 480 MB/s with 3.2 reads in progress on average, and the loader computed for 8 % of its time
        I/O is not the problem: the loop waited 61 % of its time for batches; the device delivered 3 MB/s, and the loader computed for 94 % of its time
        I/O is not the problem: the loop waited 61 % of its time for batches; the device delivered 480 MB/s, and the cores of the machine were busy
        I/O is not the problem: the loop waited 61 % of its time for batches
        UNKNOWN whether I/O is the problem: the loop waited 61 % of its time for batches; the loader computed for 8 % of its time, and the reads of the data's device are unknown
        UNKNOWN whether I/O is the problem: the loop waited 61 % of its time for batches; the loader computed for 8 % of its time, and the folder of its data is unknown: give `watch(loader, data=FOLDER)`
        UNKNOWN whether I/O is the problem: the loop waited 61 % of its time for batches; the device delivered 480 MB/s, the loader computed for 8 % of its time, and the device read mostly for other processes
        UNKNOWN whether I/O is the problem: the loop waited 61 % of its time for batches; the device delivered 480 MB/s with reads in progress for at most 98 % of the time, and it is unknown how much the loader computed
        ");
    }

    #[test]
    fn answers_name_the_calls_that_took_the_time() {
        let training = |kind, io_percent| answer(kind, TimeOf::Training, io_percent);
        let readers = |kind, io_percent| answer(kind, TimeOf::Readers, io_percent);
        let unknown = |because, answer| IoAnswer {
            unknown_because: Some(because),
            kind: IoProblem::Unknown,
            ..answer
        };
        let no = IoProblem::No;
        let answers = [
            training(IoProblem::Yes, [61.0, 61.0]),
            IoAnswer { metadata_percent: Some(30.0), ..training(IoProblem::Partly, [22.0, 31.0]) },
            training(no, [18.0, 18.0]),
            IoAnswer {
                metadata_percent: Some(90.0),
                reads_in_flight: None,
                ..readers(IoProblem::Yes, [85.0, 85.0])
            },
            IoAnswer { reads_in_flight: Some(3.9), ..readers(IoProblem::Yes, [85.0, 85.0]) },
            IoAnswer { paused_percent: Some([62.0, 62.0]), ..readers(no, [30.0, 30.0]) },
            IoAnswer { paused_percent: Some([0.0, 93.0]), ..readers(no, [7.0, 7.0]) },
            unknown(IoUnknown::Overlap, readers(no, [55.0, 55.0])),
            unknown(IoUnknown::RecordingTime, training(no, [5.0, 25.0])),
            unknown(IoUnknown::HiddenReads, training(no, [5.0, 5.0])),
            IoAnswer { io_percent: None, ..unknown(IoUnknown::NoTimes, training(no, [0.0, 0.0])) },
        ];
        let text: Vec<String> = answers.iter().map(|answer| lines(answer).join("\n")).collect();
        insta::assert_snapshot!(text.join("\n\n"), @r"
        I/O is the problem: the job waited 61 % of its time for reads of 256 KiB on average at 40 MB/s, one at a time
        Without I/O the job would be at most 2.6 times as fast

        I/O is part of the problem: the job waited 22 to 31 % of its time for reads of 256 KiB on average at 40 MB/s, one at a time (70 % of it), and opens of 3 ms each (30 %)
        Without I/O the job would be at most 1.4 times as fast

        I/O is not the problem: it took 18 % of the job's time
        Without I/O the job would be at most 1.2 times as fast
        The rest was decoding, the job's own code and training: `feedrate diagnose --data DIR --client SCRIPT:FUNCTION` separates them

        I/O is the problem: the readers spent 85 % of their time in opens of 3 ms each
        Without I/O the readers would be at most 6.7 times as fast; training may limit the job to less

        I/O is the problem: the readers spent 85 % of their time in reads of 256 KiB on average at 40 MB/s each, 3.9 at a time
        Without I/O the readers would be at most 6.7 times as fast; training may limit the job to less

        I/O is not the problem: the readers waited 62 % of their time for training

        I/O is not the problem: it took 7 % of the readers' time
        Without I/O the readers would be at most 1.08 times as fast; training may limit the job to less
        The readers spent the rest in decoding, their own code or waiting: `feedrate diagnose --data DIR --client SCRIPT:FUNCTION` separates them

        UNKNOWN whether I/O is the problem: I/O took 55 % of the readers' time, but training may not have waited
        `feedrate.watch` in the training loop measures how long it waits

        UNKNOWN whether I/O is the problem: I/O took 5 to 25 % of the job's time, depending on the time for recording
        `feedrate.watch` in the training loop measures how long it waits

        UNKNOWN whether I/O is the problem: I/O took 5 % of the job's time, but the log lacks some reads
        `feedrate.watch` in the training loop measures how long it waits

        UNKNOWN whether I/O is the problem: the log lacks times of calls
        Record it again by `strace -f -ttt -T -y`, or use `feedrate.watch` in the training loop
        ");
    }
}
