//! Tests of workloads from logs.

use super::*;
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
