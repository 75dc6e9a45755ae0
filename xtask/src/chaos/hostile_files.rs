//! Corrupt data files, manifests and checkpoints: programs must read or refuse them in limited time and memory.

use super::Class;
use super::case::{Case, workload};
use super::child::STOP_TIMEOUT;
use super::mutate;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) static CLASS: Class = Class {
    name: "hostile_files",
    noun: "corrupt files of data and checkpoints",
    cases: 310,
    short_cases: 17,
    parallel_cases: 2,
    run,
};

/// Formats, with the number of samples in a file.
const FORMATS: [(&str, &str); 13] = [
    ("npz", "3"),
    ("npy", "3"),
    ("raw", "3"),
    ("indexed_binary", "3"),
    ("mmap_indexed_binary", "3"),
    ("tfrecord", "3"),
    ("webdataset", "3"),
    ("hdf5", "3"),
    ("parquet", "3"),
    ("csv", "3"),
    ("json", "3"),
    ("png", "1"),
    ("jpeg", "1"),
];

const CHECKPOINTS: [&str; 3] = ["pt", "safetensors", "raw"];

const FILES_PER_CASE: u32 = 10;

/// Tests one format; the seed selects it.
fn run(case: &mut Case) -> Result<u32> {
    let more = "train:\n  epochs: 1\ncheckpoint:\n  checkpoint_folder: data\n";
    case.write("workload.yaml", workload(4, 900, 2, more))?;
    case.create_user_files("")?;
    case.create_user_files("results")?;
    let member = (case.seed - 1) as usize % (FORMATS.len() + CHECKPOINTS.len());
    if let Some((format, samples)) = FORMATS.get(member) {
        check_dataset(case, format, samples)?;
    } else {
        check_checkpoint(case, CHECKPOINTS[member - FORMATS.len()])?;
    }
    Ok(FILES_PER_CASE)
}

/// Generates a dataset. Then verifies and reads it, with one corrupt file at a time.
fn check_dataset(case: &mut Case, format: &str, samples: &str) -> Result<()> {
    let all_settings = [
        format!("dataset.format={format}"),
        format!("dataset.num_samples_per_file={samples}"),
        format!("dataset.compression={}", case.random.pick(&["none", "gzip"])),
    ];
    let has_compression = ["npz", "hdf5", "parquet", "json"].contains(&format);
    let count = if has_compression { 3 } else { 2 };
    let settings: Vec<&str> = all_settings.iter().map(String::as_str).take(count).collect();
    let generate = [&["generate", "workload.yaml"], &settings[..]].concat();
    case.feedrate(&generate)?.with_code(&[0])?;
    for _ in 0..FILES_PER_CASE {
        let Corruption { path, original, is_changed } = corrupt_a_file(case)?;
        let is_data = !is_manifest(&path);
        let codes: &[i32] = if is_data && is_changed { &[1, 2] } else { &[0, 1, 2] };
        check_end(
            case,
            &[&["generate", "--verify", "workload.yaml"], &settings[..]].concat(),
            codes,
            &path,
        )?;
        let more: &[&str] =
            case.random.pick(&[&[][..], &["--foreign"], &["--verify"], &["storage.engine=mmap"]]);
        // A run may succeed if it does not read the changed bytes.
        let run = [&["run", "workload.yaml"], &settings[..], more].concat();
        check_end(case, &run, &[0, 1, 2], &path)?;
        fs::write(&path, original)?;
    }
    Ok(())
}

/// Writes a checkpoint. Then reads it, with one corrupt file at a time.
fn check_checkpoint(case: &mut Case, format: &str) -> Result<()> {
    let format_setting = format!("checkpoint.format={format}");
    let first = [
        "run",
        "workload.yaml",
        "workflow.train=false",
        "workflow.checkpoint=true",
        "model.model_size=40000",
        &format_setting,
    ];
    let write = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"];
    let read = ["checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1"];
    case.feedrate(&[&first[..], &write].concat())?.with_code(&[0])?;
    for _ in 0..FILES_PER_CASE {
        let Corruption { path, original, is_changed } = corrupt_a_file(case)?;
        let is_data = !is_manifest(&path);
        let codes: &[i32] = if is_data && is_changed { &[1] } else { &[0, 1] };
        check_end(case, &[&first[..], &read].concat(), codes, &path)?;
        fs::write(&path, original)?;
    }
    case.feedrate(&[&first[..], &read].concat())?.with_code(&[0])?;
    Ok(())
}

/// A file that the campaign has changed.
struct Corruption {
    path: PathBuf,
    /// Content before the corruption.
    original: Vec<u8>,
    /// Whether the content differs from the original.
    is_changed: bool,
}

/// Makes one of the files below `data` corrupt.
fn corrupt_a_file(case: &mut Case) -> Result<Corruption> {
    let mut files = case.files("data");
    files.retain(|path| !path.ends_with(".feedrate.lock"));
    let i = case.random.below(files.len());
    let path = files.swap_remove(i);
    let original = fs::read(&path)?;
    let mut content = original.clone();
    if is_manifest(&path) && case.random.chance(70) {
        mutate::mutate_text(&mut content, &mut case.random);
    } else {
        mutate::mutate_bytes(&mut content, &mut case.random);
    }
    fs::write(&path, &content)?;
    let is_changed = content != original;
    Ok(Corruption { path, original, is_changed })
}

/// Whether a file is the manifest of a dataset or of a checkpoint. The name of a checkpoint's manifest contains the name of its folder.
fn is_manifest(path: &Path) -> bool {
    path.to_string_lossy().ends_with("manifest.json")
}

/// Runs `feedrate`, and checks that it ends in time with one of `codes` and reports errors.
fn check_end(case: &Case, arguments: &[&str], codes: &[i32], corrupt_file: &Path) -> Result<()> {
    let result = case.start_feedrate(arguments)?.wait_for(STOP_TIMEOUT);
    let ended = result
        .and_then(|ended| ended.with_code(codes))
        .with_context(|| format!("{} is corrupt", corrupt_file.display()))?;
    let is_silent = ended.code != 0 && !ended.stderr.contains("error: ");
    ensure!(!is_silent, "no error is reported: {}", ended.summary());
    Ok(())
}
