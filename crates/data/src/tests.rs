//! Tests of complete datasets on every writable storage: generation, interruption, continuation, damage, verification.
//!
//! Long because all tests use the same datasets.

use crate::error::DatasetError;
use crate::foreign::Probe;
use crate::format::{self, FORMATS, Format};
use crate::generate::{GenerationSummary, count_files, generate, probe_foreign};
use crate::manifest::{FILE_NAME, Manifest, State};
use crate::storage::{self, STORAGES, Storage, StorageKind};
use crate::verify::{VerificationResult, verify};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::{Compression, Element, Encoding, FileShape, Redundancy};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

mod safety;

const THREADS: usize = 3;

fn plan(format: &str) -> DatasetPlan {
    DatasetPlan {
        format: format.to_string(),
        extension: format::find(format).unwrap().entry.extension.to_string(),
        files_train: 12,
        files_eval: 2,
        named_train: None,
        named_eval: None,
        samples_per_file: 1,
        file_samples: Vec::new(),
        subfolders_train: 3,
        subfolders_eval: 0,
        prefix: "img".into(),
        record_bytes: 300_000.0,
        stored_sample_bytes: None,
        record_stdev_bytes: 0.0,
        record_dims: vec![],
        element: Element::Uint8,
        encoding: Encoding::default(),
        content_seed: 10,
        redundancy: Redundancy::default(),
        members: vec![],
    }
}

/// Returns the plan, or if the format does not support it, a plan with one sample of bytes per file.
fn fit_to_format(plan: DatasetPlan, format: &Format) -> DatasetPlan {
    let shape = Layout::new(&plan).shape(0);
    match (format.entry.unsupported_setting)(&shape, &plan.encoding) {
        None => plan,
        Some(_) => DatasetPlan { samples_per_file: 1, element: Element::Uint8, ..plan },
    }
}

fn generate_dataset(
    plan: &DatasetPlan,
    storage: &dyn Storage,
) -> Result<GenerationSummary, DatasetError> {
    generate(plan, &Layout::new(plan), storage, THREADS, &|_, _| {}, &AtomicBool::new(false))
}

fn verify_dataset(plan: &DatasetPlan, storage: &dyn Storage) -> VerificationResult {
    verify(plan, &Layout::new(plan), storage, THREADS, &|_, _| {}, &AtomicBool::new(false)).unwrap()
}

fn file_path(plan: &DatasetPlan, file: u64) -> String {
    let mut path = String::new();
    Layout::new(plan).write_path(file, &mut path);
    path
}

/// Whether files of the format can be generated.
fn is_generated(format: &Format) -> bool {
    !format.member().has(Ability::NoFiles) && !format.member().has(Ability::ReadOnly)
}

/// Calls `check` with every generated format, on every storage that keeps them.
fn for_each_format(check: impl Fn(DatasetPlan, &Format, &dyn Storage)) {
    let is_local = |kind: &&StorageKind| !kind.member.has(Ability::Remote);
    let writable = STORAGES.iter().filter(|kind| kind.member.has(Ability::Writable));
    for kind in writable.filter(is_local) {
        for format in FORMATS.iter().filter(|format| is_generated(format)) {
            let folder = tempfile::tempdir().unwrap();
            let storage = storage::open(kind.member.name, &folder.path().join("data")).unwrap();
            check(plan(format.member().name), format, &*storage);
        }
    }
}

/// Changes a file.
fn change(storage: &dyn Storage, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let file = storage.open(path).unwrap();
    let mut bytes = vec![0; storage.len(&file).unwrap() as usize];
    storage.read_at(&file, 0, &mut bytes).unwrap();
    storage.close(file);
    change(&mut bytes);
    let mut file = storage.create(path).unwrap();
    file.write(&bytes).unwrap();
    file.commit().unwrap();
}

#[test]
fn a_generated_dataset_is_complete() {
    for_each_format(|plan, format, storage| {
        let layout = Layout::new(&plan);
        let bytes =
            layout.sum(layout.files(), |shape| format.file_bytes(shape, &plan.encoding)) as u64;
        let generated = generate_dataset(&plan, storage).unwrap();
        let exact = format.entry.has_exact_size(&plan.encoding);
        let bytes = if exact { bytes } else { generated.bytes_written };
        assert_eq!(
            generated,
            GenerationSummary {
                files_written: 14,
                bytes_written: bytes,
                ..GenerationSummary::default()
            }
        );
        let manifest = Manifest::read(storage).unwrap().unwrap();
        assert_eq!(manifest.state, State::Complete);
        assert_eq!(manifest.total_bytes, bytes);
        assert_eq!(manifest.differences(&plan), [""; 0]);
        assert_eq!(
            verify_dataset(&plan, storage),
            VerificationResult { files: 14, bytes, correct_files: 14, bad_files: 0, bad: vec![] }
        );
        assert_eq!(storage.list("train").unwrap(), ["0", "1", "2"]);
    });
}

#[test]
fn samples_of_many_shapes_are_complete() {
    for_each_format(|plan, format, storage| {
        let plan = DatasetPlan {
            samples_per_file: 3,
            record_bytes: 90_000.0,
            record_stdev_bytes: 60_000.0,
            element: Element::Float32,
            ..plan
        };
        let plan = fit_to_format(plan, format);
        generate_dataset(&plan, storage).unwrap();
        assert_eq!(verify_dataset(&plan, storage).bad_files, 0);
    });
}

#[test]
fn any_number_of_threads_generates_the_same_bytes() {
    let plan = plan("npz");
    let layout = Layout::new(&plan);
    let never = AtomicBool::new(false);
    let bytes_with = |threads: usize| {
        let storage = storage::open("memory", Path::new("")).unwrap();
        generate(&plan, &layout, &*storage, threads, &|_, _| {}, &never).unwrap();
        let file = storage.open(&file_path(&plan, 7)).unwrap();
        let mut bytes = vec![0; storage.len(&file).unwrap() as usize];
        storage.read_at(&file, 0, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(bytes_with(1), bytes_with(8));
}

#[test]
fn an_interrupted_generation_is_continued() {
    for_each_format(|plan, _, storage| {
        let cancel = AtomicBool::new(false);
        let stop_midway = |files: u64, _bytes: u64| {
            cancel.fetch_or(files >= 5, Relaxed);
        };
        let layout = Layout::new(&plan);
        let broken = generate(&plan, &layout, storage, THREADS, &stop_midway, &cancel);
        let Err(DatasetError::Cancelled { files, files_total: 14, share: None }) = broken else {
            panic!("{broken:?}")
        };
        assert!((5..14).contains(&files));
        assert_eq!(Manifest::read(storage).unwrap().unwrap().state, State::Generating);
        assert!(verify_dataset(&plan, storage).bad_files > 0);
        let continued = generate_dataset(&plan, storage).unwrap();
        assert!(continued.files_kept >= files && continued.files_written > 0, "{continued:?}");
        assert_eq!(continued.files_kept + continued.files_written, 14);
        assert_eq!(verify_dataset(&plan, storage).bad_files, 0);
        let again = generate_dataset(&plan, storage).unwrap();
        assert_eq!((again.files_written, again.files_kept), (0, 14));
        assert_eq!(
            (again.bytes_written, again.bytes_kept),
            (0, continued.bytes_kept + continued.bytes_written)
        );
    });
}

#[test]
fn a_half_written_file_is_not_kept() {
    for_each_format(|plan, _, storage| {
        generate_dataset(&plan, storage).unwrap();
        change(storage, &file_path(&plan, 1), |bytes| bytes.truncate(bytes.len() / 2));
        change(storage, &file_path(&plan, 2), |bytes| bytes.fill(0));
        change(storage, &file_path(&plan, 3), |bytes| bytes.push(0));
        let tail = |bytes: &mut Vec<u8>| {
            let start = bytes.len() - 4096;
            bytes[start..].fill(0);
        };
        change(storage, &file_path(&plan, 4), tail);
        storage.remove(&file_path(&plan, 5)).unwrap();
        let name = file_path(&plan, 0).split_once("/0/").unwrap().1.to_string();
        let part = format!("train/0/.{name}.4711-3.part");
        let foreign_paths = [format!("train/0/.{name}.part"), "train/0/.mydownload.part".into()];
        drop(storage.create("train/0/x").map(|mut file| file.write(b"x")));
        write_partial_file(storage, &part);
        foreign_paths.iter().for_each(|path| write_partial_file(storage, path));
        let whole = Manifest::read(storage).unwrap().unwrap();
        Manifest { state: State::Generating, ..whole }.write(storage).unwrap();
        let repaired = generate_dataset(&plan, storage).unwrap();
        assert_eq!((repaired.files_written, repaired.files_kept), (5, 9));
        assert_eq!(repaired.files_mended, 4, "the fifth file was missing");
        assert_eq!(verify_dataset(&plan, storage).bad_files, 0);
        assert_eq!(storage.stat(&part).unwrap(), None);
        foreign_paths.iter().for_each(|path| assert_eq!(storage.stat(path).unwrap(), Some(4)));
    });
}

/// Writes an incomplete file, as a killed process leaves it.
fn write_partial_file(storage: &dyn Storage, path: &str) {
    let mut file = storage.create(path).unwrap();
    file.write(b"half").unwrap();
    file.commit().unwrap();
}

#[test]
fn verification_reports_the_first_bad_byte() {
    for_each_format(|plan, format, storage| {
        generate_dataset(&plan, storage).unwrap();
        let last = storage.stat(&file_path(&plan, 4)).unwrap().unwrap() - 200;
        let bad: Vec<(u64, u64)> = vec![(0, 0), (3, 1000), (4, last), (13, last / 2)];
        for &(file, offset) in &bad {
            change(storage, &file_path(&plan, file), |bytes| bytes[offset as usize] ^= 0x80);
        }
        storage.remove(&file_path(&plan, 8)).unwrap();
        let report = verify_dataset(&plan, storage);
        let found: Vec<(u64, u64)> =
            report.bad.iter().filter_map(|bad| Some((bad.file, bad.offset?))).collect();
        assert_eq!(found, bad);
        assert_eq!(report.bad_files, 5);
        assert_eq!(report.bad[3].difference, "is missing");
        assert_eq!(report.bad[3].path, file_path(&plan, 8));
        for part in &format.parts[1..] {
            let mut path = String::new();
            part.write_path(&file_path(&plan, 9), &mut path);
            change(storage, &path, |bytes| bytes[3] ^= 1);
            let report = verify_dataset(&plan, storage);
            assert!(report.bad.iter().any(|bad| bad.path == path && bad.offset == Some(3)));
            change(storage, &path, |bytes| bytes[3] ^= 1);
        }
    });
}

/// A checksum in a local header is compared after the data that follows it.
#[test]
fn verification_finds_a_wrong_checksum() {
    let plan = plan("npz");
    let storage = storage::open("memory", Path::new("")).unwrap();
    generate_dataset(&plan, &*storage).unwrap();
    change(&*storage, &file_path(&plan, 2), |bytes| bytes[16] ^= 1);
    assert_eq!(verify_dataset(&plan, &*storage).bad[0].offset, Some(16));
}

#[test]
fn verification_reports_ten_bad_files_and_counts_all() {
    for_each_format(|plan, _, storage| {
        generate_dataset(&plan, storage).unwrap();
        change(storage, &file_path(&plan, 0), |bytes| bytes[0] ^= 1);
        (2..14).for_each(|file| storage.remove(&file_path(&plan, file)).unwrap());
        let report = verify_dataset(&plan, storage);
        assert_eq!((report.correct_files, report.bad_files, report.bad.len()), (1, 13, 10));
        assert!(report.bad.is_sorted_by_key(|bad| bad.file));
    });
}

#[test]
fn another_dataset_is_not_overwritten() {
    for_each_format(|plan, _, storage| {
        generate_dataset(&plan, storage).unwrap();
        let other = DatasetPlan { content_seed: 11, record_bytes: 1000.5, ..plan.clone() };
        let Err(DatasetError::OtherDataset { differences }) = generate_dataset(&other, storage)
        else {
            panic!()
        };
        assert_eq!(
            differences,
            [
                "content_seed: dataset has 10, the plan has 11",
                "record_bytes: dataset has 300000.0, the plan has 1000.5",
            ]
        );
        assert_eq!(verify_dataset(&plan, storage).bad_files, 0);
    });
}

#[test]
fn foreign_files_are_not_overwritten() {
    for_each_format(|plan, _, storage| {
        storage.make_dir("train/1").unwrap();
        let path = file_path(&plan, 1);
        write_partial_file(storage, &path);
        let error = generate_dataset(&plan, storage).unwrap_err();
        assert!(matches!(error, DatasetError::ForeignFiles { path: found } if found == path));
        assert_eq!(storage.stat(&path).unwrap(), Some(4));
    });
}

#[test]
fn a_broken_manifest_is_an_error() {
    let cases = [
        ("{", "EOF"),
        (r#"{"feedrate_dataset": 99}"#, "it has version 99"),
        (r#"{"feedrate_dataset": 1}"#, "missing field"),
    ];
    for (text, expected) in cases {
        let storage = storage::open("memory", Path::new("")).unwrap();
        let mut file = storage.create(FILE_NAME).unwrap();
        file.write(text.as_bytes()).unwrap();
        file.commit().unwrap();
        let error = Manifest::read(&*storage).unwrap_err();
        assert!(matches!(&error, DatasetError::BrokenManifest { .. }));
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Datasets are found by their fingerprint, so it must not change.
#[test]
fn fingerprints_are_stable_and_distinct() {
    assert_eq!(Manifest::fingerprint_of(&plan("npz")), "94906e769d809d2f16061a809952d7f0");
    let other = DatasetPlan { samples_per_file: 2, ..plan("npz") };
    assert_ne!(Manifest::fingerprint_of(&other), Manifest::fingerprint_of(&plan("npz")));
    let hexes: HashSet<String> = redundancies()
        .map(|redundancy| Manifest::fingerprint_of(&DatasetPlan { redundancy, ..plan("npz") }))
        .into();
    assert_eq!(hexes.len(), 3);
}

fn redundancies() -> [Redundancy; 3] {
    [(0, 0), (60, 0), (0, 60)].map(|(compressible_percent, duplicate_percent)| Redundancy {
        compressible_percent,
        duplicate_percent,
    })
}

/// Older manifests do not contain the setting `redundancy`.
#[test]
fn an_older_manifest_has_no_redundancy() {
    let storage = storage::open("memory", Path::new("")).unwrap();
    let plan = plan("raw");
    generate_dataset(&plan, &*storage).unwrap();
    let mut manifest = serde_json::to_value(Manifest::read(&*storage).unwrap().unwrap()).unwrap();
    manifest["settings"].as_object_mut().unwrap().remove("redundancy").unwrap();
    change(&*storage, FILE_NAME, |text| *text = manifest.to_string().into_bytes());
    let older = Manifest::read(&*storage).unwrap().unwrap();
    assert_eq!(older.differences(&plan), Vec::<String>::new());
    let other = DatasetPlan { redundancy: redundancies()[1], ..plan };
    assert_eq!(
        older.differences(&other),
        ["redundancy.compressible_percent: dataset has 0, the plan has 60"]
    );
}

#[test]
fn redundant_datasets_are_kept_and_verified() {
    for (redundancy, format) in redundancies()
        .into_iter()
        .flat_map(|redundancy| FORMATS.iter().map(move |format| (redundancy, format)))
    {
        if !is_generated(format) {
            continue;
        }
        let storage = storage::open("memory", Path::new("")).unwrap();
        let plan = DatasetPlan { redundancy, files_train: 3, ..plan(format.member().name) };
        let plan = fit_to_format(plan, format);
        generate_dataset(&plan, &*storage).unwrap();
        assert_eq!(generate_dataset(&plan, &*storage).unwrap().files_kept, 5, "{}", plan.format);
        assert_eq!(verify_dataset(&plan, &*storage).bad_files, 0, "{}", plan.format);
    }
}

/// Patched sizes must not count as differences.
#[test]
fn compressed_datasets_are_kept_and_verified() {
    for format in FORMATS {
        for &compression in format.entry.compressions {
            for compression_level in [0, 1, 4] {
                let encoding = Encoding { compression, compression_level, ..Encoding::default() };
                let name = format.member().name;
                let plan = DatasetPlan { encoding, files_train: 2, files_eval: 0, ..plan(name) };
                let plan = DatasetPlan { record_bytes: 100_000.0, ..fit_to_format(plan, format) };
                let storage = storage::open("memory", Path::new("")).unwrap();
                generate_dataset(&plan, &*storage).unwrap();
                let context = format!("{name}, {compression:?}, level {compression_level}");
                assert_eq!(generate_dataset(&plan, &*storage).unwrap().files_kept, 2, "{context}");
                assert_eq!(verify_dataset(&plan, &*storage).bad, Vec::new(), "{context}");
            }
        }
    }
}

/// Compression saves the configured share, and the plan knows the size in advance.
#[test]
fn a_deflated_dataset_has_the_configured_size() {
    let [plain, compressible, _] = redundancies();
    for (redundancy, share) in [(plain, 1.0), (compressible, 0.4)] {
        let storage = storage::open("memory", Path::new("")).unwrap();
        let encoding = Encoding { compression: Compression::Zip, ..Encoding::default() };
        let plan = DatasetPlan { redundancy, encoding, ..plan("npz") };
        let layout = Layout::new(&plan);
        let format = format::find("npz").unwrap();
        let estimate = Manifest::new(&plan, &layout, format).total_bytes as f64;
        let found = generate_dataset(&plan, &*storage).unwrap().bytes_written as f64;
        let payload = layout.sum(layout.files(), |shape| shape.payload_bytes()) as f64;
        assert!((found / payload - share).abs() < 0.02, "{found} of {payload}");
        assert!((estimate / found - 1.0).abs() < 0.05, "{found} instead of {estimate}");
    }
}

#[test]
fn a_dataset_beyond_any_device_is_refused_at_once() {
    for_each_format(|plan, _, storage| {
        let huge =
            DatasetPlan { files_train: 1_000_000_000_000_000_000, subfolders_train: 0, ..plan };
        let error = generate_dataset(&huge, storage).unwrap_err();
        assert!(matches!(error, DatasetError::NoSpace { .. }), "{error}");
        assert!(storage.list("").unwrap().is_empty());
    });
}

#[test]
fn progress_ends_at_the_total() {
    let plan = plan("npy");
    let storage = storage::open("memory", Path::new("")).unwrap();
    let layout = Layout::new(&plan);
    let last = std::sync::Mutex::new((0, 0));
    let show = |files: u64, bytes: u64| {
        let mut last = last.lock().unwrap();
        *last = (last.0.max(files), last.1.max(bytes));
    };
    let never = AtomicBool::new(false);
    let first = generate(&plan, &layout, &*storage, THREADS, &show, &never).unwrap();
    assert_eq!(*last.lock().unwrap(), (14, first.bytes_written));
    *last.lock().unwrap() = (0, 0);
    generate(&plan, &layout, &*storage, THREADS, &show, &never).unwrap();
    assert_eq!(*last.lock().unwrap(), (14, first.bytes_written), "kept files count too");
}

fn probe(storage: &dyn Storage, plan: &DatasetPlan) -> Result<Probe, DatasetError> {
    let layout = Layout::new(plan);
    probe_foreign(storage, plan, &layout, count_files(storage, plan, &layout)?)
}

#[test]
fn a_foreign_dataset_is_probed() {
    for_each_format(|plan, format, storage| {
        generate_dataset(&plan, storage).unwrap();
        let probed = probe(storage, &plan).unwrap();
        assert_eq!(probed.notes, [""; 0]);
        assert_eq!((probed.files.len(), probed.other_sample_bytes), (14, None));
        let has_shape = !format.member().has(Ability::Undescribed);
        let is_single_sample =
            |shape: Option<FileShape>| shape.map_or(!has_shape, |shape| shape.samples == 1);
        assert!(probed.files.iter().all(|file| is_single_sample(file.shape)));

        let more_samples = DatasetPlan { samples_per_file: 5, ..plan.clone() };
        if format.member().has(Ability::NeedsPlan) {
            let error = probe(storage, &more_samples);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("but the plan says"), "{error}");
            return;
        }
        let error = probe(storage, &more_samples).unwrap_err();
        assert!(error.to_string().contains("no sample 4"), "{error}");

        let smaller = DatasetPlan { record_bytes: 100_000.0, ..plan.clone() };
        let Probe { notes, other_sample_bytes, .. } = probe(storage, &smaller).unwrap();
        let has_size_note = notes.iter().any(|note| note.contains("on average"));
        let has_exact_size = format.entry.has_exact_size(&plan.encoding);
        assert_eq!(has_size_note, has_exact_size, "{notes:?}");
        assert_eq!(other_sample_bytes.is_some(), has_shape || has_exact_size);

        change(storage, &file_path(&plan, 0), |bytes| bytes.truncate(90));
        let broken = probe(storage, &plan);
        // An index does not contain the end of the data, which is checked when the sample is read.
        let required_parts = format.parts.iter().filter(|part| !part.optional).count();
        let is_refused = matches!(broken, Err(DatasetError::Format { .. }));
        // Images that cannot be decoded are read undecoded.
        let may_be_refused = !format.member().has(Ability::EncodesSamples);
        assert!(!has_shape || is_refused == (required_parts == 1 && may_be_refused));

        storage.remove(&file_path(&plan, 3)).unwrap();
        let error = probe(storage, &plan).unwrap_err();
        assert!(matches!(error, DatasetError::TooFew { wanted: 12, found: 11, .. }), "{error}");
    });
}

/// The kernel counts the reads of this thread.
#[test]
fn a_probe_skips_the_samples_of_archives() {
    let read_bytes = || {
        let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        text.lines().next().unwrap().strip_prefix("rchar: ").unwrap().parse::<u64>().unwrap()
    };
    for format in ["webdataset", "tfrecord"] {
        let folder = tempfile::tempdir().unwrap();
        let storage = storage::open("file", folder.path()).unwrap();
        let plan = DatasetPlan { samples_per_file: 20, record_bytes: 50_000.0, ..plan(format) };
        generate_dataset(&plan, &*storage).unwrap();
        let before = read_bytes();
        probe(&*storage, &plan).unwrap();
        let read = read_bytes() - before;
        assert!(0 < read && read < 14 * 20 * 50_000 / 10, "{format}: {read} bytes");
    }
}

#[test]
fn the_null_format_generates_nothing() {
    let storage = storage::open("memory", Path::new("")).unwrap();
    assert_eq!(generate_dataset(&plan("null"), &*storage).unwrap(), GenerationSummary::default());
    assert!(storage.list("").unwrap().is_empty());
}
