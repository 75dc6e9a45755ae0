//! Logs as text, and what comes of them.

use super::*;
use feedrate_measure::metric::{CONSECUTIVE, IN_FLIGHT, SEQUENTIAL, counters_of_run};
use proptest::prelude::*;

/// Import a text.
fn import(name: &str, text: &str) -> Result<ImportedLog, LogError> {
    let kind = kind_of(name, text).expect("it is a log of a known kind");
    kind.import(vec![part(name, text)])
}

fn part<'a>(name: &str, text: &'a str) -> LogPart<'a> {
    LogPart { name: name.into(), text: Box::new(text.as_bytes()) }
}

fn lost(log: &ImportedLog) -> Vec<(u64, &'static str)> {
    log.lost.iter().map(|lost| (lost.count, lost.why)).collect()
}

/// A process with two workers. The first reads `a.npz`, told in halves while the other reads; the second maps what is no data.
/// The number of the first comes again, for a process that reads the same file once more.
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
fn strace_is_followed_through_processes() {
    let log = import("t.strace", TRAINING).unwrap();
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes), (3, 5, 4500));
    assert_eq!((io.access.following, io.access.sequential, io.access.consecutive), (2, 1, 0));
    assert_eq!(io.read_ns, 3_499_900_000);
    let figures = feedrate_measure::summary::Figures::of_reads(&log.record);
    assert_eq!((figures.value(&SEQUENTIAL), figures.value(&CONSECUTIVE)), (Some(0.5), Some(0.0)));
    // 3.4999 s of reads in 3.7999 s, from the first opening to the end of the last read.
    assert!((figures.value(&IN_FLIGHT).unwrap() - 3.4999 / 3.7999).abs() < 1e-9);
    let files = log.record.epochs[0].files_read.as_ref().unwrap();
    assert_eq!((files.unique_bytes, files.overlap_bytes), (3000, 0));
    let job = &log.job;
    assert_eq!((job.extension.as_str(), job.folder.as_str(), job.files), ("npz", "/d", 2));
    assert_eq!((job.file_bytes, job.file_bytes_stdev), (2000.0, 1000.0));
    // The process that came with the same number began after the other had ended.
    assert_eq!((job.ranks, job.readers, job.trains_and_reads), (1, Some(2), Some(false)));
    assert_eq!((job.batch, job.compute_ns, job.is_shuffled), (None, None, None));
    assert_eq!(lost(&log), [(1, "of io_uring or libaio: what they read is not in the log")]);
}

#[test]
fn files_of_each_process_are_one_log() {
    let of = |pid: &str| {
        let lines = TRAINING.lines().filter_map(|line| line.strip_prefix(pid));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let texts = ["10 ", "11 ", "12 "].map(of);
    let names = ["log.10", "log.11", "log.12"];
    let parts = names.iter().zip(&texts).map(|of| part(of.0, of.1)).collect();
    let (one, several) = (import("t", TRAINING).unwrap(), strace::KIND.import(parts).unwrap());
    assert_eq!(several.record, one.record);
    assert_eq!(several.job, one.job);
}

#[test]
fn paths_of_descriptors_tell_what_was_opened_before() {
    let text = "7 1.0 pread64(9</d/x.h5>, \"\", 28672, 4096) = 28672 <0.1>\n\
                7 2.0 read(9</d/x.h5>, \"\", 10) = 10 <0.1>\n\
                7 3.0 read(8, \"\", 10) = 10 <0.1>\n";
    let log = import("t", text).unwrap();
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes), (0, 2, 28_682));
    // Where the second began is not known, and so neither which bytes were read.
    assert_eq!(log.record.epochs[0].files_read, None);
    assert_eq!(lost(&log), [(1, "of a pipe, or of a file whose opening is not in the log")]);
}

/// Two epochs of 20 batches of 4 files of 1000 bytes, 30 ms of compute after each, by the thread that trains.
fn epochs() -> String {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    let mut now_us = 2_000_000_u64;
    for epoch in 0..2_u64 {
        for at in 0..80_u64 {
            let file = (at * 37 + epoch * 11) % 80;
            let (s, us) = (now_us / 1_000_000, now_us % 1_000_000);
            text += &format!(
                "5 {s}.{us:06} openat(AT_FDCWD, \"d/{file}.npy\", O_RDONLY) = 3 <0.000050>\n"
            );
            let (s, us) = ((now_us + 100) / 1_000_000, (now_us + 100) % 1_000_000);
            text += &format!("5 {s}.{us:06} read(3, \"\", 1000) = 1000 <0.000200>\n");
            now_us += if at % 4 == 3 { 31_000 } else { 1_000 };
        }
    }
    text
}

#[test]
fn batches_epochs_and_compute_are_told_by_gaps() {
    let job = import("t", &epochs()).unwrap().job;
    let batch = LogBatch { files: Some(4), bytes: 4000 };
    assert_eq!((job.batch, job.epochs, job.files), (Some(batch), 2, 80));
    assert_eq!((job.trains_and_reads, job.is_shuffled), (Some(true), Some(true)));
    assert_eq!((job.compute_ns, job.read_bytes), (Some(30_000_000), Some(1000)));
}

#[test]
fn what_holds_no_data_is_refused() {
    let error = import(
        "t",
        "1 1.0 openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3 <0.1>\n1 2.0 read(3, \"\", 9) = 9 <0.1>\n",
    );
    assert!(error.unwrap_err().to_string().starts_with("no data is read"));
    for text in ["", "hello\nworld\n", "\0\0\0\0", "{\"a\": 1}", "1 2 read(3) = 4"] {
        assert!(kind_of("t.log", text).is_none(), "{text}");
    }
}

proptest! {
    /// Logs with bytes changed, lines lost, doubled and in another order, and ends cut.
    #[test]
    fn no_log_makes_it_panic(
        edits in prop::collection::vec((0usize..3000, any::<u8>()), 0..40),
        order in prop::collection::vec(0usize..24, 0..60),
        end in 0usize..4000,
    ) {
        let lines: Vec<&str> = TRAINING.lines().collect();
        let text: Vec<&str> = order.iter().map(|&at| lines[at % lines.len()]).collect();
        let mut bytes = text.join("\n").into_bytes();
        let length = bytes.len().max(1);
        for (at, byte) in edits {
            if let Some(place) = bytes.get_mut(at % length) {
                *place = byte;
            }
        }
        bytes.truncate(end);
        for kind in KINDS {
            let text = LogPart { name: "t".into(), text: Box::new(&bytes[..]) };
            let _ = kind.import(vec![text]);
        }
    }
}
