//! Folders of the formats' libraries in which most files are corrupt: `scan` and `run --data` must read or refuse them in limited time
//! and memory.

use super::Class;
use super::case::{Case, copy_tree, files_below};
use super::child::STOP_TIMEOUT;
use super::mutate;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) static CLASS: Class = Class {
    name: "hostile_folders",
    noun: "corrupt files in folders of the formats' libraries",
    cases: GROUPS.len() as u64,
    short_cases: GROUPS.len() as u64,
    parallel_cases: 2,
    run,
};

/// First words of the kinds that `library_files` writes, by case.
const GROUPS: [&[&str]; 9] = [
    &["hdf5"],
    &["npy", "npz", "raw"],
    &["parquet"],
    &["arrow", "megatron", "mds"],
    &["tar", "tfrecord"],
    &["jpeg", "whole"],
    &["png"],
    &["jsonl", "json", "ndjson", "csv", "tsv", "txt"],
    &["mixed"],
];

/// Environment variable with the number of corrupt files of each kind.
const FILES: &str = "FEEDRATE_CHAOS_FILES";
const FILES_DEFAULT: u32 = 10;
/// Environment variable that names another Python than the one in `.venv`.
const PYTHON: &str = "FEEDRATE_PYTHON";
/// Limit of the corrupt files of a kind, so that large kinds fill no disk and take no longer than reading that much does.
const KIND_BYTES_MAX: u64 = 1_000_000_000;
const WRITE_TIMEOUT: Duration = Duration::from_secs(300);
/// Limit of a command. In CI the programs are debug builds, which take up to ten times as long as released ones.
const READ_TIMEOUT: Duration = STOP_TIMEOUT.saturating_mul(4);

/// Tests the kinds of one group; the seed selects it.
fn run(case: &mut Case) -> Result<u32> {
    let files = match std::env::var(FILES) {
        Ok(text) => text.parse().with_context(|| format!("{FILES}={text}"))?,
        Err(_) => FILES_DEFAULT,
    };
    let group = GROUPS[(case.seed - 1) as usize % GROUPS.len()];
    let kinds = case.path("kinds");
    write_kinds(case, &kinds, group)?;
    let mut names: Vec<PathBuf> =
        fs::read_dir(&kinds)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    names.retain(|path| path.is_dir());
    names.sort();
    ensure!(!names.is_empty(), "no kind begins with {group:?}");
    let mut files_checked = 0;
    let mut failures = Vec::new();
    for kind in &names {
        match check_kind(case, kind, files) {
            Ok(count) => files_checked += count,
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(files_checked)
}

/// Reads a folder of sound files of a kind, and of at most `files_max` corrupt ones, and returns the number of the latter.
/// The folder is kept if that fails.
fn check_kind(case: &mut Case, kind: &Path, files_max: u32) -> Result<u32> {
    let name = kind.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = case.path(&name);
    copy_tree(kind, &folder.join("sound"))?;
    let files = write_corrupt_files(case, kind, &folder, files_max)?;
    let start = Instant::now();
    let run = ["run", "--data", &name, "train.epochs=1", "--results", "results"];
    for command in [&["scan", &name][..], &run] {
        check_end(case, command).with_context(|| name.clone())?;
    }
    if std::env::var_os(FILES).is_some() {
        println!("{:6.1} s  {name}, {files} files", start.elapsed().as_secs_f64());
    }
    fs::remove_dir_all(&folder)?;
    Ok(files)
}

/// Writes the kinds whose first word is in `group` with the formats' libraries.
fn write_kinds(case: &Case, kinds: &Path, group: &[&str]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = std::env::var_os(PYTHON).map_or(root.join(".venv/bin/python"), PathBuf::from);
    fs::create_dir_all(kinds)?;
    let script = root.join("crates/feedrate/tests/it/library_files");
    let mut arguments = vec![script.into_os_string(), kinds.into()];
    arguments.extend(group.iter().map(OsString::from));
    let started = case.start(&python, &arguments).with_context(|| {
        format!("cannot start `{}`\n  hint: run `cargo xtask setup`", python.display())
    })?;
    started.wait_for(WRITE_TIMEOUT)?.with_code(&[0])?;
    Ok(())
}

/// Writes at most `files_max` corrupt copies of the files of a kind, and returns their number. Files that refer to each other
/// are copied together.
fn write_corrupt_files(case: &mut Case, kind: &Path, folder: &Path, files_max: u32) -> Result<u32> {
    let mut sources = files_below(kind);
    sources.sort();
    let extensions: BTreeSet<_> = sources.iter().map(|path| path.extension()).collect();
    let refer_to_each_other = extensions.len() > 1;
    let kind_bytes: u64 =
        sources.iter().map(|path| Ok(fs::metadata(path)?.len())).sum::<Result<u64>>()?;
    let copy_bytes =
        if refer_to_each_other { kind_bytes } else { kind_bytes / sources.len() as u64 };
    let files = u64::from(files_max).min(KIND_BYTES_MAX / copy_bytes.max(1)).max(1) as u32;
    for number in 0..files {
        let source = &sources[number as usize % sources.len()];
        let mut content = fs::read(source)?;
        mutate::mutate_bytes(&mut content, &mut case.random);
        let place = folder.join(number.to_string());
        if refer_to_each_other {
            copy_tree(kind, &place)?;
            fs::write(place.join(source.strip_prefix(kind)?), content)?;
        } else {
            let extension = source.extension().unwrap_or_default();
            fs::write(place.with_extension(extension), content)?;
        }
    }
    Ok(files)
}

/// Runs `feedrate`, and checks that it ends in time, and reads the files or reports errors.
fn check_end(case: &Case, arguments: &[&str]) -> Result<()> {
    let ended = case.start_feedrate(arguments)?.wait_for(READ_TIMEOUT)?.with_code(&[0, 1, 2])?;
    let is_silent = ended.code != 0 && !ended.stderr.contains("error: ");
    ensure!(!is_silent, "no error is reported: {}", ended.summary());
    Ok(())
}
