//! Tests of workloads from logs.

use super::*;
use feedrate_measure::record::NamedMember;
use feedrate_results::logs::{LogBatch, LogPart, detect_kind};

/// Emulates a log in which each of 40 files is read by the training thread, in reads of these sizes and one at its end.
fn emulate(extension: &str, sizes: fn(u64) -> Vec<u64>) -> Emulation {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    for file in 0..40 {
        let second = 10 + file;
        text += &format!(
            "5 {second}.0 openat(AT_FDCWD, \"/d/{file}.{extension}\", O_RDONLY) = 3 <0.1>\n"
        );
        for bytes in sizes(file).into_iter().chain([0]) {
            text += &format!("5 {second}.5 read(3, \"\", 9) = {bytes} <0.1>\n");
        }
    }
    let kind = detect_kind("t.strace", &text).unwrap();
    let part = LogPart { name: "t.strace".into(), text: Box::new(text.as_bytes()) };
    Emulation::new("t", &kind.import(vec![part]).unwrap(), None).unwrap()
}

#[test]
fn requests_are_those_of_the_library_if_the_job_made_as_many() {
    let check = |sizes: fn(u64) -> Vec<u64>, setting: &str, is_assumed: bool| {
        let emulation = emulate("jpg", sizes);
        assert!(emulation.yaml.contains(setting), "{setting}: {}", emulation.yaml);
        let about_requests = |text: &String| text.starts_with("large requests");
        assert_eq!(emulation.assumed.iter().any(about_requests), is_assumed, "{emulation:?}");
    };
    check(|file| vec![4096, 50_000 + file], LIBRARY_REQUESTS, false);
    check(|file| vec![54_096 + file], LARGE_REQUESTS, false);
    check(|file| (0..8).map(|part| 7000 + 100 * file + part).collect(), LARGE_REQUESTS, true);
}

#[test]
fn a_typical_read_does_not_hide_the_requests_of_the_library() {
    let npz = |sizes| emulate("npz", sizes).yaml;
    // As `numpy.load` reads a file of one array: most bytes are in one read.
    let numpy = npz(|_| vec![4096, 22, 42, 106, 4096, 4096, 135_168, 3296]);
    assert!(numpy.contains(LIBRARY_REQUESTS), "{numpy}");
    assert!(!numpy.contains("transfer_size"), "{numpy}");
    let pieces = npz(|_| vec![50_000; 3]);
    assert!(pieces.contains("  transfer_size: 50000\n"), "{pieces}");
    assert!(!pieces.contains(LIBRARY_REQUESTS), "{pieces}");
}

#[test]
fn members_that_are_not_read_are_an_assumption() {
    let member = |name: &str, is_read| NamedMember {
        name: name.into(),
        bytes: 9,
        is_read,
        is_elsewhere: false,
    };
    let found = |members, unlisted| {
        let all =
            FileMembers { members, unlisted, alike: None, file_bytes: 99, sampled_files: None };
        unread_members(&all)
    };
    assert_eq!(
        found(vec![member("x", true), member("y", false)], 0).as_deref(),
        Some("the job read only `x` of each file, not `y` (`members`)")
    );
    assert_eq!(
        found(vec![member("x", true), member("y", false)], 3).as_deref(),
        Some("the job read only `x` of each file, not 4 others (`members`)")
    );
    assert_eq!(found(vec![member("x", true)], 0), None);
}

#[test]
fn pictures_of_unknown_dimensions_are_an_assumption() {
    let is_assumed = |extension| {
        let emulation = emulate(extension, |file| vec![54_096 + file]);
        emulation.assumed.iter().any(|text| text.starts_with("pictures of the job's file size"))
    };
    assert_eq!([is_assumed("jpg"), is_assumed("npz")], [true, false]);
}

#[test]
fn several_readers_read_ahead_as_pytorch_does() {
    let mut job = LogJob { files: 40, file_bytes: 1e5, ..LogJob::default() };
    let prefetch = |job: &LogJob| {
        let mut log = log_of_one_file();
        log.job = job.clone();
        let format = "npz";
        let samples = LogSamples { format, files: 40, per_file: 1, batch: 4, read_bytes: None };
        let yaml = workload_text("t", &log, "dataset:\n", &samples, true, &mut Vec::new());
        let line = yaml.lines().find(|line| line.contains("prefetch_size"));
        line.map(|line| line.trim().to_string())
    };
    job.readers = Some(3);
    assert_eq!(prefetch(&job).as_deref(), Some("prefetch_size: 6"));
    job.readers = Some(1);
    assert_eq!(prefetch(&job), None, "2 is the default");
}

fn log_of_one_file() -> ImportedLog {
    let text: &[u8] = b"5 1.0 openat(AT_FDCWD, \"/d/a.npz\", O_RDONLY) = 3 <0.1>\n\
        5 2.0 read(3, \"\", 9) = 9 <0.1>\n";
    let part = LogPart { name: "t.strace".into(), text: Box::new(text) };
    let kind = detect_kind("t.strace", &String::from_utf8_lossy(text)).unwrap();
    kind.import(vec![part]).unwrap()
}

#[test]
fn comments_keep_quotes_and_escape_line_ends() {
    assert_eq!(
        comment_text("the loader's `a\n\"b\"`\u{2028}"),
        "the loader's `a\\n\"b\"`\\u{2028}"
    );
}

#[test]
fn reads_of_different_sizes_determine_only_batches() {
    let mut job = LogJob { files: 4, file_bytes: 10e9, ..LogJob::default() };
    job.batch = Some(LogBatch { files: None, bytes: 100_000_000 });
    let numbers = |job: &LogJob| {
        let found = choose_samples(job, job.file_bytes, "hdf5", false, &mut Vec::new());
        (found.per_file, found.batch)
    };
    assert_eq!(numbers(&job), (100, 1));
    job.read_bytes = Some(10_000_000);
    assert_eq!(numbers(&job), (1000, 10));
}
