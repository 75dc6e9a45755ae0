//! Tests that other tools can read traces, and that unfinished ones are removed.

use super::*;
use feedrate_measure::record::{AcceleratorEpoch, CheckpointRecord, RankCheckpoint};
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;

fn begin(file: &Path) -> TraceFile {
    let origin = TraceOrigin {
        wall_ns: 1_000_000_000,
        first_accelerator: 3,
        hostname: "n1".into(),
        real_path: Box::new(|path| Path::new("/data").join(path)),
    };
    TraceFile::begin(NewFile::create(file).unwrap(), origin)
}

/// Returns an epoch of two steps: 2 µs of loading and 3 µs of compute, then a step that is interrupted after 3 µs of loading.
fn epoch() -> EpochRecord {
    let block = Block {
        start_ns: 1_000,
        end_ns: 9_000,
        load_ns: vec![2_000, 3_000],
        compute_ns: vec![3_000],
        ..Block::default()
    };
    let accelerators =
        vec![AcceleratorEpoch { blocks: vec![block], ..AcceleratorEpoch::default() }];
    EpochRecord { number: 1, accelerators, ..EpochRecord::default() }
}

fn ops() -> OpLog {
    let op = |kind, at_ns, bytes| LoggedOp {
        kind,
        part: 7,
        start_ns: at_ns,
        end_ns: at_ns + 1_500,
        offset: 512,
        bytes,
    };
    let ops = vec![
        op(OpKind::Open, 1_100, Some(0)),
        op(OpKind::Read, 2_600, Some(4096)),
        op(OpKind::Read, 4_100, None),
    ];
    OpLog { accelerator: 0, worker: 1, ops, dropped: 2 }
}

/// Returns the readable lines of a trace, and whether the file is complete.
fn lines(file: &Path) -> (Vec<String>, bool) {
    let mut text = Vec::new();
    let read = GzDecoder::new(File::open(file).unwrap()).read_to_end(&mut text);
    let text = String::from_utf8(text).unwrap();
    (text.lines().map(str::to_string).collect(), read.is_ok())
}

#[test]
fn a_trace_contains_steps_operations_and_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pfw.gz");
    let trace = begin(&file);
    trace.write_epoch("epoch.block", &epoch(), &[ops()], &|part| format!("train/{part}"));
    let rank = RankCheckpoint { rank: 3, start_ns: 9_000, end_ns: 12_000, bytes: 99, sync_ns: 0 };
    let checkpoint = CheckpointRecord { ranks: vec![rank], after_step: 1, ..Default::default() };
    let record = EpochRecord { number: 1, checkpoints: vec![checkpoint], ..EpochRecord::default() };
    let record = Record { epochs: vec![record], ..Record::default() };
    assert_eq!(trace.finish(&record).unwrap(), TraceCounts { events: 11, dropped: 2 });
    let (lines, is_complete) = lines(&file);
    assert!(is_complete);
    let hash = hash_of("n1");
    let file_hash = hash_of(Path::new("/data/")).wrapping_add(7);
    let shown: Vec<String> = lines
        .iter()
        .map(|line| {
            let hashes = [(hash, "HOST"), (file_hash, "FILE")];
            hashes.iter().fold(line.clone(), |line, (hash, name)| {
                line.replace(&format!("{hash:016x}"), name)
            })
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
    for line in &lines[1..lines.len() - 1] {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn finished_epochs_can_be_read_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pfw.gz");
    let trace = begin(&file);
    trace.write_epoch("epoch.block", &epoch(), &[ops()], &|_| String::new());
    assert!(!file.exists(), "it is not complete");
    let (lines, is_complete) = lines(&trace.new_file.part);
    assert_eq!((lines.last().unwrap().contains("\"ret\":-1"), is_complete), (true, false));
    let part = trace.new_file.part.clone();
    drop(trace);
    assert!(!part.exists());
}

#[test]
fn existing_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pfw.gz");
    let trace = begin(&file);
    fs::write(&file, "mine").unwrap();
    let refused = trace.finish(&Record::default()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_temporary_file_is_removed_and_other_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pfw.gz");
    // The temporary file of a killed run is kept and does not block another run.
    let leftover = folder.path().join(format!(".t.pfw.gz.{}-0.part", std::process::id()));
    fs::write(&leftover, "leftover").unwrap();
    let new_file = NewFile::create(&file).unwrap();
    fs::write(&file, "mine").unwrap();
    assert_eq!(new_file.persist().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(NewFile::create(&file).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    drop(new_file);
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(names.collect::<HashSet<_>>(), HashSet::from([file.clone(), leftover.clone()]));
    assert_eq!(
        [file, leftover].map(|path| fs::read_to_string(path).unwrap()),
        ["mine", "leftover"]
    );
}
