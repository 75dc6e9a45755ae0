//! Data files, manifests and checkpoints that lie: read, refused, or compared, within bounds.

use super::Class;
use super::case::{Case, workload};
use super::child::LEAVES_WITHIN;
use super::mutate;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) static CLASS: Class = Class {
    name: "hostile_files",
    what: "hostile files of data and checkpoints",
    cases: 310,
    short: 17,
    at_once: 2,
    run,
};

/// Format, and samples in a file.
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

const FILES_OF_A_CASE: u32 = 10;

/// Each format in turn, by the seed.
fn run(case: &mut Case) -> Result<u32> {
    let more = "train:\n  epochs: 1\ncheckpoint:\n  checkpoint_folder: data\n";
    case.write("workload.yaml", workload(4, 900, 2, more))?;
    case.plant("")?;
    case.plant("results")?;
    let member = (case.seed - 1) as usize % (FORMATS.len() + CHECKPOINTS.len());
    if let Some((format, samples)) = FORMATS.get(member) {
        datasets(case, format, samples)?;
    } else {
        checkpoints(case, CHECKPOINTS[member - FORMATS.len()])?;
    }
    Ok(FILES_OF_A_CASE)
}

fn datasets(case: &mut Case, format: &str, samples: &str) -> Result<()> {
    let chosen = [
        format!("dataset.format={format}"),
        format!("dataset.num_samples_per_file={samples}"),
        format!("dataset.compression={}", case.random.pick(&["none", "gzip"])),
    ];
    let takes_compression = ["npz", "hdf5", "parquet", "json"].contains(&format);
    let chosen: Vec<&str> =
        chosen.iter().map(String::as_str).take(if takes_compression { 3 } else { 2 }).collect();
    let generate = [&["generate", "workload.yaml"], &chosen[..]].concat();
    case.feedrate(&generate)?.with_code(&[0])?;
    for _ in 0..FILES_OF_A_CASE {
        let (path, whole, lies) = lie(case)?;
        let is_data = !is_manifest(&path);
        let codes: &[i32] = if is_data && lies { &[1, 2] } else { &[0, 1, 2] };
        ends(
            case,
            &[&["generate", "--verify", "workload.yaml"], &chosen[..]].concat(),
            codes,
            &path,
        )?;
        let more: &[&str] =
            case.random.pick(&[&[][..], &["--foreign"], &["--verify"], &["storage.engine=mmap"]]);
        // A run need not read the bytes that lie.
        ends(case, &[&["run", "workload.yaml"], &chosen[..], more].concat(), &[0, 1, 2], &path)?;
        fs::write(&path, whole)?;
    }
    Ok(())
}

fn checkpoints(case: &mut Case, format: &str) -> Result<()> {
    let format = format!("checkpoint.format={format}");
    let first = [
        "run",
        "workload.yaml",
        "workflow.train=false",
        "workflow.checkpoint=true",
        "model.model_size=40000",
        &format,
    ];
    let write = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"];
    let read = ["checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1"];
    case.feedrate(&[&first[..], &write].concat())?.with_code(&[0])?;
    for _ in 0..FILES_OF_A_CASE {
        let (path, whole, lies) = lie(case)?;
        let is_data = !is_manifest(&path);
        let codes: &[i32] = if is_data && lies { &[1] } else { &[0, 1] };
        ends(case, &[&first[..], &read].concat(), codes, &path)?;
        fs::write(&path, whole)?;
    }
    case.feedrate(&[&first[..], &read].concat())?.with_code(&[0])?;
    Ok(())
}

/// Change one of the files under `data`: its path, what it was, and whether it is another now.
fn lie(case: &mut Case) -> Result<(PathBuf, Vec<u8>, bool)> {
    let mut files = case.files("data");
    files.retain(|path| !path.ends_with(".feedrate.lock"));
    let i = case.random.below(files.len());
    let path = files.swap_remove(i);
    let whole = fs::read(&path)?;
    let mut content = whole.clone();
    if is_manifest(&path) && case.random.chance(70) {
        mutate::text(&mut content, &mut case.random);
    } else {
        mutate::bytes(&mut content, &mut case.random);
    }
    fs::write(&path, &content)?;
    let lies = content != whole;
    Ok((path, whole, lies))
}

/// Whether it is one of a dataset, or of a checkpoint, whose name begins with that of its folder.
fn is_manifest(path: &Path) -> bool {
    path.to_string_lossy().ends_with("manifest.json")
}

fn ends(case: &Case, arguments: &[&str], codes: &[i32], lying: &Path) -> Result<()> {
    let ended = case.start_feedrate(arguments)?.wait_for(LEAVES_WITHIN);
    let ended = ended.and_then(|ended| ended.with_code(codes));
    let ended = ended.with_context(|| format!("{} lies", lying.display()))?;
    let hides = ended.code != 0 && !ended.stderr.contains("error: ");
    ensure!(!hides, "no error is told: {}", ended.told());
    Ok(())
}
