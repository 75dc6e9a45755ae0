//! Tests of importing logs of strace and DFTracer.

mod damaged_logs;
mod darshan_logs;
mod dftracer_logs;
mod separate_jobs;
mod several_opens;

use self::darshan_logs::{COUNTERS, SEGMENTS};
use self::dftracer_logs::EVENTS;
use super::job::evaluate;
use super::tally::{Caller, FileCall, ReadCall, Tally};
use super::*;
use feedrate_measure::io_problem::IoProblem;
use feedrate_measure::metric::{CONSECUTIVE, IN_FLIGHT, SEQUENTIAL, counters_of_run};
use feedrate_measure::record::access::ReadPosition;
use proptest::prelude::*;

/// Imports a log from its text.
fn import(name: &str, text: &str) -> Result<ImportedLog, LogError> {
    let kind = detect_kind(name, text).expect("it is a log of a known kind");
    kind.import(vec![part(name, text)])
}

fn part<'a>(name: &str, text: &'a str) -> LogPart<'a> {
    LogPart { name: name.into(), text: Box::new(text.as_bytes()) }
}

fn lost_entries(log: &ImportedLog) -> Vec<(u64, &'static str)> {
    log.lost.iter().map(|lost| (lost.count, lost.why)).collect()
}

/// A process with two workers, 11 and 12, whose calls are interleaved. After worker 11 ends, its process ID is reused by a process that reads
/// `b.npz` again.
const TRAINING: &str = r#"10 100.000000 execve("/usr/bin/python3", ["python3", "t.py"], 0x7f /* 9 vars */) = 0 <0.001000>
10 100.100000 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3 <0.000010>
10 100.100100 read(3, "root", 4096) = 900 <0.000010>
10 100.200000 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
11 100.200100 openat(AT_FDCWD, "/d/b.npz", O_RDONLY|O_CLOEXEC <unfinished ...>
10 100.200200 <... clone resumed>, child_tidptr=0x7f) = 11 <0.000200>
10 100.200300 clone(child_stack=NULL, flags=SIGCHLD) = 12 <0.000100>
11 100.200400 <... openat resumed>) = 4 <0.000300>
12 100.300000 openat(AT_FDCWD, "/d/a.npz", O_RDONLY) = 4 <0.000100>
12 100.300100 newfstatat(4, "", {st_mode=S_IFREG|0644, st_size=3000, ...}, AT_EMPTY_PATH) = 0 <0.000100>
11 101.000000 read(4,  <unfinished ...>
12 101.000000 read(4, "PK\3\4 = 1 <9>", 1000) = 1000 <1.000000>
11 102.000000 <... read resumed>"PK"..., 1000) = 1000 <1.000000>
12 102.000000 pread64(4, "x", 1000, 2000) = 1000 <0.500000>
12 102.500000 lseek(4, 0, SEEK_SET) = 0 <0.000100>
12 102.500100 read(4, "", 500) = 500 <0.499900>
11 103.000000 read(4, "", 4096) = -1 EINTR (Interrupted system call) <0.1>
11 103.000000 openat(AT_FDCWD, "/d/none.npz", O_RDONLY) = -1 ENOENT (No such file or directory) <0.1>
11 103.100000 --- SIGTERM {si_signo=SIGTERM} ---
11 103.200000 +++ killed by SIGTERM +++
10 103.300000 fork() = 11 <0.000100>
11 103.400000 openat(AT_FDCWD, "/d/b.npz", O_RDONLY) = 4 <0.000100>
11 103.500000 read(4, "", 1000) = 1000 <0.500000>
11 104.000000 io_uring_enter(5, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1 <0.000100>
"#;

#[test]
fn descriptors_are_resolved_in_forked_processes() {
    let log = import("t.strace", TRAINING).unwrap();
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes), (3, 5, 4500));
    assert_eq!((io.access.following, io.access.sequential, io.access.consecutive), (2, 1, 0));
    assert_eq!(io.read_ns, 3_499_900_000);
    let figures = feedrate_measure::summary::Figures::from_reads_only(&log.record);
    assert_eq!((figures.value(&SEQUENTIAL), figures.value(&CONSECUTIVE)), (Some(0.5), Some(0.0)));
    // 3.4999 s of reads in the 3.7999 s from the first open to the end of the last read.
    assert!((figures.value(&IN_FLIGHT).unwrap() - 3.4999 / 3.7999).abs() < 1e-9);
    let files = log.record.epochs[0].files_read.as_ref().unwrap();
    assert_eq!((files.unique_bytes, files.overlap_bytes), (3000, 0));
    let job = &log.job;
    assert_eq!((job.extension.as_str(), job.folder.as_str(), job.files), ("npz", "/d", 2));
    assert_eq!((job.file_bytes, job.file_bytes_stdev), (2000.0, 1000.0));
    // The process with the reused ID does not count as a third reader.
    assert_eq!((job.ranks, job.readers, job.trains_and_reads), (1, Some(2), Some(false)));
    assert_eq!((job.batch, job.compute_ns, job.is_shuffled), (None, None, None));
    let running = "still running when the log ends: the job may be larger";
    assert_eq!(
        lost_entries(&log),
        [(1, "of io_uring or libaio, whose reads are not in the log"), (3, running)]
    );
    // From the execution to the first open of a file that is data.
    assert_eq!((log.before_ns, log.unreadable_percent), (Some(200_100_000), None));
}

#[test]
fn a_typical_size_of_reads_delivers_many_bytes() {
    let read_bytes = |rest: fn(u64) -> u64| {
        let mut text = "5 1.000000 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
        for index in 0..20 {
            text += &format!(
                "5 {}.0 openat(AT_FDCWD, \"/d/{index}.jpg\", O_RDONLY) = 3 <0.1>\n",
                10 + index
            );
            for bytes in [4096, rest(index)] {
                text += &format!("5 {}.5 read(3, \"\", {bytes}) = {bytes} <0.1>\n", 10 + index);
            }
        }
        import("t.strace", &text).unwrap().job.read_bytes
    };
    assert_eq!(
        read_bytes(|index| 20_000 + index),
        None,
        "the remainders of files have different lengths"
    );
    assert_eq!(read_bytes(|index| 5_000 + index), Some(4096));
    assert_eq!(read_bytes(|_| 20_000), Some(20_000));
}

#[test]
fn sums_of_long_calls_saturate() {
    let calls_of_process = |pid: u32| {
        let read = format!("{pid} 2.0 read(3, \"\", 10) = 10 <8589934591.0>\n");
        let start = "execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>";
        let open = "openat(AT_FDCWD, \"/d/a.npz\", O_RDONLY) = 3 <8589934591.0>";
        format!("{pid} 1.0 {start}\n{pid} 1.5 {open}\n{}", read.repeat(3))
    };
    let log = import("t.strace", &[5, 6, 7].map(calls_of_process).concat()).unwrap();
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes), (3, 9, 90));
}

#[test]
fn one_file_per_process_is_read_as_one_log() {
    let lines_of_process = |pid: &str| {
        let lines = TRAINING.lines().filter_map(|line| line.strip_prefix(pid));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let texts = ["10 ", "11 ", "12 "].map(lines_of_process);
    let names = ["log.10", "log.11", "log.12"];
    let parts = names.iter().zip(&texts).map(|(name, text)| part(name, text)).collect();
    let single = import("t", TRAINING).unwrap();
    let several = strace::KIND.import(parts).unwrap();
    assert_eq!(several.record, single.record);
    assert_eq!(several.job, single.job);
}

#[test]
fn paths_of_descriptors_identify_files_opened_before_the_log() {
    let text = "7 1.0 pread64(9</d/x.h5>, \"\", 28672, 4096) = 28672 <0.1>\n\
                7 2.0 read(9</d/x.h5>, \"\", 10) = 10 <0.1>\n\
                7 3.0 read(8, \"\", 10) = 10 <0.1>\n";
    let log = import("t", text).unwrap();
    assert_eq!((log.job.files, log.job.file_bytes), (1, 32_768.0));
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes), (0, 2, 28_682));
    let figures =
        |log: &ImportedLog| feedrate_measure::summary::Figures::from_reads_only(&log.record);
    assert!(figures(&log).value(&IN_FLIGHT).is_some());
    let untimed = import("t", &text.replace(" <0.1>", "")).unwrap();
    assert_eq!(
        figures(&untimed).value(&IN_FLIGHT),
        None,
        "without -T the time in calls is unknown"
    );
    // The offset of the second read is unknown, and therefore the bytes that it read.
    assert_eq!(log.record.epochs[0].files_read, None);
    assert_eq!(lost_entries(&log), [(1, "of a pipe, or of a file opened before the log began")]);
}

/// Creates a log of two threads that take turns reading two open files of 40,000 bytes in buffers of 1,000: first 20 buffers, then 4 and 5 in turn
/// every 20 ms.
fn turn_taking_log() -> String {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n\
        5 1.1 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 6 <0.1>\n\
        5 1.2 clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 7 <0.1>\n"
        .to_string();
    let mut read = 0;
    let mut step = 0_u64;
    let mut left = 20;
    for pair in 0..6 {
        for index in 0..2 {
            text += &format!(
                "{} 2.{:06} openat(AT_FDCWD, \"/d/{}.tfrecord\", O_RDONLY) = {} <0.000010>\n",
                6 + index,
                step * 20_000 + 100 + index,
                pair * 2 + index,
                3 + index
            );
        }
        for index in 0..80 {
            if left == 0 {
                (step, left) = (step + 1, 4 + step % 2);
            }
            text += &format!(
                "{} 2.{:06} pread64({}, \"\", 1000, {}) = 1000 <0.000010>\n",
                6 + (index / 3) % 2,
                step * 20_000 + 200 + (20 - left) * 100,
                3 + index % 2,
                index / 2 * 1000,
            );
            (read, left) = (read + 1, left - 1);
        }
    }
    assert_eq!(read, 480);
    text
}

#[test]
fn threads_that_take_turns_count_as_one_reader_per_file() {
    let job = import("t", &turn_taking_log()).unwrap().job;
    assert_eq!((job.files, job.readers, job.trains_and_reads), (12, Some(2), Some(false)));
    let batch = job.batch.unwrap();
    assert_eq!((batch.files, batch.bytes.abs_diff(4500) < 100), (None, true), "{batch:?}");
    assert!(job.compute_ns.unwrap().abs_diff(20_000_000) < 300_000, "{:?}", job.compute_ns);
}

#[test]
fn programs_started_by_a_rank_are_not_ranks() {
    let helper = "5 9.0 fork() = 6 <0.1>\n\
        6 9.1 execve(\"/bin/cat\", [\"cat\"], NULL) = 0 <0.1>\n\
        6 9.2 openat(AT_FDCWD, \"d/0.npy\", O_RDONLY) = 3 <0.00005>\n\
        6 9.3 read(3, \"\", 1000) = 1000 <0.0002>\n";
    let alone = import("t", &two_epoch_log()).unwrap().job;
    let helped = import("t", &(two_epoch_log() + helper)).unwrap().job;
    assert_eq!((helped.ranks, helped.trains_and_reads), (1, Some(true)));
    assert_eq!((helped.batch, helped.compute_ns), (alone.batch, alone.compute_ns));
}

#[test]
fn logs_with_other_time_formats_are_refused() {
    let import_with_times = |time: fn(u64) -> String| {
        let lines = (0..40_u64).map(|index| {
            let file = index % 8;
            format!("5 {} pread64(3</d/{file}.npy>, \"\", 10, 0) = 10 <0.1>\n", time(index))
        });
        import("t", &lines.collect::<String>()).map(|log| log.job.files).map_err(|e| e.to_string())
    };
    assert_eq!(import_with_times(|index| format!("17000000{index:02}.5")), Ok(8));
    let relative = import_with_times(|index| format!("0.00{}", index * 7 % 10));
    assert!(relative.unwrap_err().contains("strace -r"));
    for clock in [|index| format!("12:00:{index:02}"), |index| format!("12:00:{index:02}.123456")] {
        assert_eq!(
            import_with_times(clock).unwrap_err(),
            "its lines have times of day (`-t`, `-tt`) instead of times since 1970"
        );
    }
    let untimed = import_with_times(|index| format!("<{index}>")).unwrap_err();
    assert_eq!(untimed, "its lines have no times since 1970");
}

/// Creates a log of two epochs of 20 batches, with 4 files of 1000 bytes and 30 ms of compute per batch. The training thread reads.
fn two_epoch_log() -> String {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    let mut now_us = 2_000_000_u64;
    for epoch in 0..2_u64 {
        for index in 0..80_u64 {
            let file = (index * 37 + epoch * 11) % 80;
            let (s, us) = (now_us / 1_000_000, now_us % 1_000_000);
            text += &format!(
                "5 {s}.{us:06} openat(AT_FDCWD, \"d/{file}.npy\", O_RDONLY) = 3 <0.000050>\n"
            );
            let (s, us) = ((now_us + 100) / 1_000_000, (now_us + 100) % 1_000_000);
            text += &format!("5 {s}.{us:06} read(3, \"\", 1000) = 1000 <0.000200>\n");
            now_us += if index % 4 == 3 { 31_000 } else { 1_000 };
        }
    }
    text
}

#[test]
fn batches_epochs_and_compute_follow_from_gaps() {
    let job = import("t", &two_epoch_log()).unwrap().job;
    let batch = LogBatch { files: Some(4), bytes: 4000 };
    assert_eq!((job.batch, job.epochs, job.files), (Some(batch), Some(2), 80));
    assert_eq!((job.trains_and_reads, job.is_shuffled), (Some(true), Some(true)));
    assert_eq!((job.compute_ns, job.read_bytes), (Some(30_000_000), Some(1000)));
}

/// Returns the text of a call of process 5, which starts after `us` microseconds and lasts `long_us`.
fn call(us: u64, text: &str, long_us: u64) -> String {
    let time = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    format!("5 {} {text} <{}>\n", time(2_000_000 + us), time(long_us))
}

/// Creates a log of 20 batches of 4 files with 2 reads of 4096 bytes each. The time in opens varies from file to file, up to `open_us`; a read takes
/// `read_us`, decoding a file 4 ms, and a step 30 ms. One pause of 50 ms is within a file.
fn cold_log(open_us: u64, read_us: u64) -> String {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    let mut now_us = 0;
    for index in 0..80_u64 {
        let open = format!("openat(AT_FDCWD, \"d/{}.npz\", O_RDONLY) = 3", index * 37 % 80);
        let long_us = 50 + open_us * (index * index % 7) / 6;
        text += &call(now_us, &open, long_us);
        now_us += long_us + 10;
        for part in 0..2 {
            text += &call(now_us, "read(3, \"\", 4096) = 4096", read_us);
            now_us += read_us + if (index, part) == (41, 0) { 50_000 } else { 10 };
        }
        now_us += if index % 4 == 3 { 34_000 } else { 4_000 };
    }
    text
}

#[test]
fn slow_opens_and_a_pause_within_a_file_do_not_hide_batches() {
    for (open_us, read_us) in [(0, 100), (60_000, 20_000)] {
        let job = import("t", &cold_log(open_us, read_us)).unwrap().job;
        let batch = LogBatch { files: Some(4), bytes: 4 * 8192 };
        assert_eq!(job.batch, Some(batch), "{open_us} µs, {read_us} µs");
        assert_eq!(job.compute_ns, Some(30_000_000), "{open_us} µs, {read_us} µs");
    }
}

#[test]
fn whether_io_is_the_problem_follows_from_the_times_of_calls() {
    let answer = |open_us, read_us| import("t", &cold_log(open_us, read_us)).unwrap().answer;
    let warm = answer(0, 100);
    assert_eq!((warm.kind, warm.time_of), (IoProblem::No, TimeOf::Training));
    let cold = answer(0, 20_000);
    // 160 reads of 20 ms and 80 opens of 50 µs, until the end of the last read: 20 steps of 46 ms less the last one of 34 ms, the pause of 50 ms, and
    // 10 µs after each of 238 calls.
    let io_s = 160.0 * 0.02 + 80.0 * 0.00005;
    let span_s = io_s + 20.0 * 0.046 - 0.034 + 0.05 + 238.0 * 0.00001;
    let [low, high] = cold.io_percent.unwrap();
    assert!((high - 100.0 * io_s / span_s).abs() < 0.01, "{high}");
    assert!((low - 100.0 * (io_s - 240.0 * 0.00004) / span_s).abs() < 0.01, "{low}");
    assert_eq!(
        (cold.kind, cold.reads_in_flight, cold.read_bytes),
        (IoProblem::Yes, Some(1.0), Some(4096.0))
    );
    assert!((cold.read_bytes_per_second.unwrap() - 4096.0 / 0.02).abs() < 1e-6);
    let untimed: String = cold_log(0, 20_000)
        .lines()
        .map(|line| format!("{}\n", line.rsplit_once(" <").unwrap().0))
        .collect();
    let untimed = import("t", &untimed).unwrap().answer;
    assert_eq!(
        (untimed.kind, untimed.unknown_because),
        (IoProblem::Unknown, Some(IoUnknown::NoTimes))
    );
    let hidden = cold_log(0, 100) + &call(9_000_000, "io_uring_enter(5, 1, 1, 0, NULL, 8) = 1", 9);
    let hidden = import("t", &hidden).unwrap().answer;
    assert_eq!(hidden.unknown_because, Some(IoUnknown::HiddenReads));
}

/// Creates a log of a worker that receives each batch of 4 files through a pipe. Reads of a file take `read_us`, and are followed by `decode_us`.
/// `wait_us` is the time until the next message.
fn worker_log(read_us: u64, decode_us: u64, wait_us: u64) -> String {
    let mut text = "4 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n\
        4 1.1 clone(flags=SIGCHLD) = 5 <0.1>\n"
        .to_string();
    let mut now_us = 0;
    for batch in 0..10 {
        text += &call(now_us, "read(9<pipe:[77]>, \"\", 4) = 4", wait_us);
        now_us += wait_us;
        for file in 0..4 {
            let name = format!("\"/d/{}.npz\"", batch * 4 + file);
            text += &call(now_us, &format!("openat(AT_FDCWD, {name}, O_RDONLY) = 3"), 50);
            text += &call(now_us + 50, "read(3, \"\", 9000) = 9000", read_us);
            now_us += 50 + read_us + decode_us;
        }
    }
    text
}

#[test]
fn messages_divide_the_reads_of_workers_into_batches() {
    let check = |read_us, decode_us, wait_us, kind: IoProblem| {
        let log = import("t", &worker_log(read_us, decode_us, wait_us)).unwrap();
        assert_eq!(log.job.batch, Some(LogBatch { files: Some(4), bytes: 36_000 }));
        assert_eq!(
            (log.answer.kind, log.answer.time_of),
            (kind, TimeOf::Readers),
            "{:?}",
            log.answer
        );
        log.job
    };
    let busy = check(20_000, 1_000, 100, IoProblem::Yes);
    // The reader never waits, so the compute time has only an upper limit: the time of a batch.
    assert_eq!((busy.compute_ns, busy.compute_max_ns), (None, Some(84_300_000)));
    check(2_000, 500, 40_000, IoProblem::No);
    check(100, 20_000, 100, IoProblem::No);
}

#[test]
fn ranks_are_processes_whose_workers_read() {
    // Process 4 starts four ranks, 10 to 13, and each starts workers one after another.
    let job = |start_worker: &str| {
        let mut text = "4 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n\
            4 1.1 openat(AT_FDCWD, \"/d/0.npz\", O_RDONLY) = 3 <0.1>\n"
            .to_string();
        let mut file = 0;
        for rank in 10..14 {
            text += &format!("4 {rank}.1 clone(flags=SIGCHLD) = {rank} <0.1>\n");
            for worker in 0..4 {
                let pid = rank * 10 + worker;
                text += &format!("{rank} {rank}.2 clone(flags=SIGCHLD) = {pid} <0.1>\n");
                text += &start_worker.replace("PID", &pid.to_string());
                for read in 0..3 {
                    file += 1;
                    let time = format!("{pid} {}.{}", rank + 1, 5 + read);
                    text += &format!(
                        "{time}0 openat(AT_FDCWD, \"/d/{file}.npz\", O_RDONLY) = 3 <0.01>\n"
                    );
                    text += &format!("{time}1 read(3, \"\", 4000) = 4000 <0.01>\n");
                }
            }
        }
        import("t", &text).unwrap()
    };
    for start_worker in ["", "PID 9.2 execve(\"/bin/w\", [\"w\"], NULL) = 0 <0.1>\n"] {
        let log = job(start_worker);
        let found = (log.job.ranks, log.job.readers, log.job.trains_and_reads);
        assert_eq!(found, (4, Some(4), Some(false)), "{start_worker}");
        assert_eq!((log.job.compute_ns, log.job.compute_max_ns), (None, None));
        let files_read = log.record.epochs[0].files_read.as_ref().unwrap();
        assert_eq!((files_read.unique_bytes, files_read.overlap_bytes), (192_000, 0));
        let io = &log.record.epochs[0].accelerators;
        assert!(io.iter().all(|accelerator| accelerator.io.read_bytes == 48_000));
    }
}

#[test]
fn one_file_per_step_limits_compute() {
    let log = two_epoch_log();
    let job = |log: &str| import("t", log).unwrap().job;
    let every_file = |us: u64| {
        let text = (0..40).map(|index| {
            let open = format!("openat(AT_FDCWD, \"/d/{index}.npy\", O_RDONLY) = 3");
            call(index * us, &open, 50) + &call(index * us + 100, "read(3, \"\", 1000) = 1000", 400)
        });
        let start = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n";
        start.to_string() + &text.collect::<String>()
    };
    let single = job(&every_file(33_500));
    assert_eq!(single.batch, Some(LogBatch { files: Some(1), bytes: 1000 }));
    assert_eq!((single.compute_ns, single.compute_max_ns), (Some(33_050_000), None));
    // Decoding between the reads of a file counts too.
    let decoded = (0..40).map(|index| {
        let read = |us| call(index * 33_500 + us, "read(3, \"\", 1000) = 1000", 400);
        let open = format!("openat(AT_FDCWD, \"/d/{index}.npy\", O_RDONLY) = 3");
        call(index * 33_500, &open, 50) + &read(100) + &read(10_500)
    });
    let start = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    let decoded = job(&(start + &decoded.collect::<String>()));
    assert_eq!(decoded.compute_ns, Some((40 * 10_000_000 + 39 * 22_650_000) / 39));
    assert_eq!(job(&log).batch, Some(LogBatch { files: Some(4), bytes: 4000 }));
}

#[test]
fn logs_without_data_are_refused() {
    let error = import(
        "t",
        "1 1.0 openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3 <0.1>\n1 2.0 read(3, \"\", 9) = 9 <0.1>\n",
    );
    assert!(error.unwrap_err().to_string().starts_with("it contains no reads of data"));
    for text in ["", "hello\nworld\n", "\0\0\0\0", "{\"a\": 1}"] {
        assert!(detect_kind("t.log", text).is_none(), "{text}");
    }
    assert!(import("t", "1 2 read(3) = 4").is_err(), "a call without a time");
}

proptest! {
    /// Imports logs with changed bytes, missing, repeated and reordered lines, and truncated ends.
    #[test]
    fn no_log_causes_a_panic(
        which in 0usize..4,
        edits in prop::collection::vec((0usize..3000, any::<u8>()), 0..40),
        order in prop::collection::vec(0usize..24, 0..60),
        end in 0usize..4000,
    ) {
        let lines: Vec<&str> = [TRAINING, COUNTERS, SEGMENTS, EVENTS][which].lines().collect();
        let text: Vec<&str> = order.iter().map(|&index| lines[index % lines.len()]).collect();
        let mut bytes = text.join("\n").into_bytes();
        let length = bytes.len().max(1);
        for (index, byte) in edits {
            if let Some(target) = bytes.get_mut(index % length) {
                *target = byte;
            }
        }
        bytes.truncate(end);
        for kind in KINDS {
            let text = LogPart { name: "t".into(), text: Box::new(&bytes[..]) };
            let _ = kind.import(vec![text]);
        }
    }
}
