//! Tests with the real libraries: they open files of feedrate, and feedrate reads their files. Needs the Python in `.venv`,
//! which `cargo xtask setup` creates, or the one in `FEEDRATE_PYTHON`; fails without it.
//!
//! Each library has one file and two scripts: `check_*.py` opens the listed files, `write_*.py` writes files and lists them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use feedrate_data::content::Content;
use feedrate_data::format::{self, Cursor, CursorOptions, FormatError, Need, Part, PayloadSink};
use feedrate_data::generate::generate;
use feedrate_data::storage;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::{Dims, Element, Encoding, FileShape, Redundancy};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

mod h5py;
mod images;
#[cfg(feature = "libhdf5")]
mod libhdf5;
mod numpy;
mod redundancy;
mod parquet;
mod members;
mod tfrecord;
mod webdataset;
mod text;
mod tokens;

fn python(script: &str, argument: &Path) -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let default_python = crate_folder.join("../../.venv/bin/python");
    let python = std::env::var_os("FEEDRATE_PYTHON").map_or(default_python, PathBuf::from);
    let install_hint = "run `cargo xtask setup`, or set FEEDRATE_PYTHON to a Python with the packages in xtask/requirements.txt";
    let output = Command::new(&python)
        .arg(crate_folder.join("tests/interop").join(script))
        .arg(argument)
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot start `{}`: {error}\n  hint: {install_hint}", python.display())
        });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("ModuleNotFoundError"), "{errors}\n  hint: {install_hint}");
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// The plan of a dataset with `files` files of `samples` samples each.
fn plan(
    format: &str,
    encoding: &Encoding,
    element: Element,
    (files, samples): (u64, u64),
    dims: &[u64],
) -> DatasetPlan {
    DatasetPlan {
        format: format.to_string(),
        extension: format::find(format).unwrap().entry.extension.to_string(),
        files_train: files,
        files_eval: 0,
        named_train: None,
        named_eval: None,
        samples_per_file: samples,
        file_samples: Vec::new(),
        stored_sample_bytes: None,
        subfolders_train: 0,
        subfolders_eval: 0,
        prefix: "img".into(),
        record_bytes: 0.0,
        record_stdev_bytes: 0.0,
        record_dims: dims.to_vec(),
        element,
        encoding: encoding.clone(),
        content_seed: 3,
        redundancy: Redundancy::default(),
        members: vec![],
    }
}

/// Writes a dataset of two files, and the payload of each sample to a file next to it. Returns one case per file.
fn write_dataset(
    folder: &Path,
    format: &str,
    encoding: &Encoding,
    element: Element,
    samples: u64,
    dims: &[u64],
) -> Vec<Value> {
    let plan = plan(format, encoding, element, (2, samples), dims);
    let layout = Layout::new(&plan);
    let storage = storage::open("file", folder).unwrap();
    generate(&plan, &layout, &*storage, 2, &|_, _| {}, &AtomicBool::new(false)).unwrap();
    let mut content = Content::from_plan(&plan);
    let case = |file| {
        let mut path = String::new();
        layout.write_path(file, &mut path);
        let path = folder.join(path);
        content.select_file(file);
        for sample in 0..samples {
            let mut payload = vec![0; layout.shape(file).sample_bytes() as usize];
            content.fill(sample, 0, element, &mut payload);
            std::fs::write(format!("{}.sample{sample}", path.display()), payload).unwrap();
        }
        json!({"format": format, "path": path, "dtype": element.name(), "samples": samples, "dims": dims,
            "compression": encoding.compression.name()})
    };
    (0..2).map(case).collect()
}

/// Runs a script that checks files of feedrate and prints the number of checked cases.
fn check_written(script: &str, folder: &Path, cases: Vec<Value>) {
    let count = cases.len().to_string();
    let list = folder.join("cases.json");
    std::fs::write(&list, Value::Array(cases).to_string()).unwrap();
    assert_eq!(python(script, &list), count);
}

/// Runs a script that writes at least `cases_min` files, and reads all samples of each file.
///
/// For each file, `cases.json` contains `path`, `format`, `samples` and, if it must be refused, the reason `refused`. The
/// bytes of a sample are in `<path>.sample<i>`; with `decodes` they are the decoded bytes. Optional keys: `plan` for files
/// without a description of their samples, `dims` if the file contains them, `members` with the names that the user chose, `tolerance` for lossy pixels, and `picked`
/// with the samples to read of a long file.
fn read_written(script: &str, cases_min: usize) {
    let folder = tempfile::tempdir().unwrap();
    python(script, folder.path());
    let list = std::fs::read_to_string(folder.path().join("cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert!(cases.len() >= cases_min, "{} cases", cases.len());
    for case in cases {
        read_case(&case);
    }
}

fn read_case(case: &Value) {
    let path = case["path"].as_str().unwrap();
    let format = format::find(case["format"].as_str().unwrap()).unwrap();
    let parts: Vec<Vec<u8>> = format.parts.iter().map(|part| part_bytes(part, path)).collect();
    let plan = planned_shape(case);
    for piece_bytes in [4096, 256 << 10, 16 << 20] {
        let options = CursorOptions {
            piece_bytes,
            library: None,
            check_crc: true,
            wants_payload: true,
            is_payload_only: false,
            decodes_members: case["decodes"].as_bool().unwrap_or_default(),
            members: names_of_members(case),
            examines_members: false,
        };
        let mut cursor = format.reader(&options);
        if let Some(reason) = case["refused"].as_str() {
            let error = read(&mut *cursor, &parts, 0, plan.as_ref()).unwrap_err();
            assert!(error.message.contains(reason), "{path}: {error}");
            continue;
        }
        let picked = case["picked"].as_array();
        let is_picked = |sample: &u64| picked.is_none_or(|all| all.contains(&json!(sample)));
        for sample in (0..case["samples"].as_u64().unwrap()).filter(is_picked) {
            let expected = std::fs::read(format!("{path}.sample{sample}")).unwrap();
            let payload = read(&mut *cursor, &parts, sample, plan.as_ref());
            let payload =
                payload.unwrap_or_else(|error| panic!("{path} in {piece_bytes}: {error}"));
            assert!(
                payload == expected || images::are_close(case, &payload, &expected),
                "{path}, sample {sample}, pieces of {piece_bytes}"
            );
            assert_eq!(cursor.undecoded_type(), case["undecoded"].as_str(), "{path}");
            if let Some(dims) = case["dims"].as_array() {
                let dims: Vec<u64> = dims.iter().map(|dim| dim.as_u64().unwrap()).collect();
                let found = cursor.file_shape().map(|shape| shape.dims.as_slice().to_vec());
                // The number of samples in a container is known only at the last one, and the shape with it.
                assert!(
                    found == Some(dims) || (found.is_none() && options.decodes_members),
                    "{path}"
                );
            }
        }
    }
}

fn names_of_members(case: &Value) -> Arc<[String]> {
    let names = case["members"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_string()).collect()
}

fn planned_shape(case: &Value) -> Option<FileShape> {
    let plan = case.get("plan")?;
    let element = Element::ALL.into_iter().find(|element| plan["dtype"] == element.name()).unwrap();
    let dims = plan["dims"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap());
    let dims = Dims::new(&dims.collect::<Vec<u64>>()).unwrap();
    Some(FileShape { dims, element, samples: case["samples"].as_u64().unwrap() })
}

/// Bytes of a part; empty if the library does not write it.
fn part_bytes(part: &Part, data: &str) -> Vec<u8> {
    let mut path = String::new();
    part.write_path(data, &mut path);
    std::fs::read(path).unwrap_or_default()
}

struct CollectingSink(Vec<u8>);

impl PayloadSink for CollectingSink {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        assert_eq!(offset, self.0.len() as u64);
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn read(
    cursor: &mut dyn Cursor,
    parts: &[Vec<u8>],
    sample: u64,
    plan: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    let mut collect = CollectingSink(Vec::new());
    cursor.begin(0, sample, plan);
    loop {
        match cursor.need()? {
            Need::Done => return Ok(collect.0),
            Need::Buffered => cursor.feed(&[], &mut collect)?,
            Need::Length { part } => {
                cursor.feed(&(parts[part].len() as u64).to_le_bytes(), &mut collect)?;
            }
            Need::Bytes { part, offset, len, .. } | Need::Again { part, offset, len } => {
                let file = &parts[part];
                let start = (offset as usize).min(file.len());
                cursor.feed(&file[start..file.len().min(start + len)], &mut collect)?;
            }
        }
    }
}
