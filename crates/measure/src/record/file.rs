//! Reads and writes `record.json`, and writes result files atomically: a file appears complete and synced, or not at all.

mod folder;
mod new_files;

pub use folder::{FolderEntries, FolderEntry, read_folder, sibling_names};
pub use new_files::NewFiles;

use super::{Block, RECORD_VERSION, Record};
use feedrate_spec::escape;
use feedrate_spec::part::{create_part, final_name};
use feedrate_spec::plan::RECORDED_STEPS_MAX;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Name of the record in a run's folder.
pub const RECORD_FILE: &str = "record.json";
/// File beside the record with the names of the dataset's files, for datasets that feedrate did not generate.
pub const NAMES_FILE: &str = "names.index";

/// Maximum size of a record that is read. A step takes about 80 bytes.
const BYTES_MAX: u64 = 128 * RECORDED_STEPS_MAX;
/// Maximum size of texts written by people: workloads, designs, tables.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Error from reading or writing a record or another result file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum RecordFileError {
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is no record: {source}", path.display())]
    NoRecord { path: PathBuf, source: serde_json::Error },
    #[error("`{}` has record version `{found}`, and this feedrate reads versions up to {RECORD_VERSION}", path.display())]
    Newer { path: PathBuf, found: u32 },
    #[error("`{}` is damaged: {damage}", path.display())]
    Damaged { path: PathBuf, damage: String },
}

impl RecordFileError {
    /// Suggests a remedy.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RecordFileError::Io { action, source, .. } => match source.kind() {
                io::ErrorKind::NotFound if *action != "read" => {
                    Some("give a file in an existing folder")
                }
                io::ErrorKind::NotFound => Some(
                    "give the folder of a run, which contains `record.json`; `feedrate analyze` reads DLIO's",
                ),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "free some space, or choose another file or folder (for runs: `--results`)",
                ),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a file or folder that you may write (for runs: `--results`)")
                }
                _ => None,
            },
            RecordFileError::Newer { .. } => Some("use the feedrate that wrote it, or a newer one"),
            RecordFileError::NoRecord { .. } | RecordFileError::Damaged { .. } => Some(
                "it was truncated, edited, or written by another program or version; run again",
            ),
        }
    }
}

/// Writes `record.json` into a run's folder.
///
/// # Errors
/// The file cannot be written. An earlier file is then kept.
pub fn write(folder: &Path, record: &Record) -> Result<(), RecordFileError> {
    let mut files = NewFiles::new(folder);
    write_to(&mut files, record)?;
    files.publish()
}

/// Adds `record.json` to a set of new files.
///
/// # Errors
/// The file cannot be written.
pub fn write_to(files: &mut NewFiles, record: &Record) -> Result<(), RecordFileError> {
    let bytes = serde_json::to_vec(record).unwrap_or_else(|_| unreachable!("keys are text"));
    files.write(RECORD_FILE, &bytes)
}

/// Reads a record from its file or from the folder of its run.
///
/// # Errors
/// The record is missing, damaged, or of a newer version.
pub fn read(path: &Path) -> Result<Record, RecordFileError> {
    let path = if path.is_dir() { path.join(RECORD_FILE) } else { path.to_path_buf() };
    let stored =
        read_bounded(&path, BYTES_MAX).map_err(|source| io_error("read", &path, source))?;
    let bytes = escape::escape_json_texts(&stored);
    let parsed = serde_json::from_slice::<Record>(&bytes);
    let version = match &parsed {
        Ok(record) => record.version,
        Err(_) => serde_json::from_slice::<VersionOnly>(&bytes).map_or(0, |only| only.version),
    };
    if RECORD_VERSION < version {
        return Err(RecordFileError::Newer { path, found: version });
    }
    match parsed {
        Ok(mut record) => match find_damage(&record) {
            None => {
                record.remove_uncounted_reads();
                Ok(record)
            }
            Some(damage) => Err(RecordFileError::Damaged { path, damage }),
        },
        Err(source) => Err(RecordFileError::NoRecord { path, source }),
    }
}

/// Reads an untrusted file of at most `bytes_max` bytes.
///
/// # Errors
/// The file cannot be read, is larger, or is not a regular file. A pipe is refused because opening it would block.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    check_size(metadata.len(), bytes_max)?;
    let mut bytes = Vec::new();
    // The file may grow in the meantime.
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    check_size(bytes.len() as u64, bytes_max)?;
    Ok(bytes)
}

/// Reads a text that the user named, such as a workload. It may be a pipe.
///
/// # Errors
/// The text cannot be read, is too long, or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)?;
    check_size(text.len() as u64, TEXT_BYTES_MAX)?;
    Ok(text)
}

/// Reads an untrusted text file.
///
/// # Errors
/// As [`read_bounded`], or the file is not UTF-8.
pub fn read_text_bounded(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(path, TEXT_BYTES_MAX)?).map_err(io::Error::other)
}

fn check_size(bytes: u64, bytes_max: u64) -> io::Result<()> {
    if bytes_max < bytes {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(())
}

/// Writes a file under a temporary name in the same folder, syncs it, and renames it.
///
/// # Errors
/// The file cannot be written. An earlier file is then kept.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut files = NewFiles::new(path.parent().unwrap_or(Path::new("")));
    files.write(&name, bytes)?;
    files.publish()
}

/// Creates the temporary file that holds the content of `path` until it is complete. Its name is unique among processes.
///
/// # Errors
/// The file cannot be created.
pub fn create_part_of(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    create_part(&name, std::process::id(), |name| {
        let part = path.with_file_name(name);
        File::create_new(&part).map(|file| (file, part))
    })
}

/// Removes temporary files of `path` that killed processes left behind. The caller must make sure that no other process is writing `path`.
pub fn remove_parts_of(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = read_folder(parent.unwrap_or(Path::new("."))) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().and_then(final_name) == Some(&*name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs a folder to make the names of its files survive a crash. It is no error if the file system does not support this, as the files
/// themselves are synced.
///
/// # Errors
/// The folder cannot be opened, or the disk fails.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

/// Creates a folder for result files if it does not exist.
pub(crate) fn make_folder(folder: &Path) -> Result<(), RecordFileError> {
    fs::create_dir_all(folder).map_err(|source| io_error("make", folder, source))
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> RecordFileError {
    // The folder of a file without a folder in its path.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    RecordFileError::Io { action, path: path.to_path_buf(), source }
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Checks that every step and every sample has all its figures, as metrics rely on this. Returns a description of the first problem.
fn find_damage(record: &Record) -> Option<String> {
    if let Some(violation) = record.plan.limit_violation() {
        return Some(violation);
    }
    if record.timeline.as_ref().is_some_and(|timeline| !timeline.is_rectangular()) {
        return Some("the columns of its timeline differ in length".into());
    }
    record.epochs.iter().chain(&record.evaluations).find_map(|epoch| {
        if epoch.causes.as_ref().is_some_and(|causes| !causes.is_rectangular()) {
            return Some(format!("the causes of epoch {} differ in length", epoch.number));
        }
        let blocks = epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
        let uneven = blocks.into_iter().find(|block| !is_rectangular(block))?;
        Some(format!(
            "a block of epoch {} has {} load, {} compute, {} barrier times and {} byte counts",
            epoch.number,
            uneven.load_ns.len(),
            uneven.compute_ns.len(),
            uneven.barrier_ns.len(),
            uneven.read_bytes.len()
        ))
    })
}

fn is_rectangular(block: &Block) -> bool {
    [block.load_ns.len(), block.compute_ns.len(), block.read_bytes.len()]
        .iter()
        .all(|&len| len == block.barrier_ns.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;
    use crate::facts::Facts;
    use crate::metric::{
        AU_ALL_STEPS, AU_WINDOWED, DELIVERED_WHOLE, DEVICE_BYTES, FILES, LOAD_S, READ_LATENCY,
        SAMPLES_WHOLE, SEQUENTIAL,
    };
    use crate::summary::Summary;
    use feedrate_spec::plan::{Cache, StagePlan};

    /// Earlier versions could copy each file of a dataset at its first read.
    #[test]
    fn a_copy_made_at_the_first_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = simple(&[(500, 500, 0, 1_000)]);
        record.plan.stage = Some(StagePlan::default());
        write(folder.path(), &record).unwrap();
        assert_eq!(read(folder.path()).unwrap(), record);
        let file = folder.path().join(RECORD_FILE);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(r#""when":"start""#, r#""when":"first_read""#)).unwrap();
        let refused = read(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("unknown variant `first_read`"), "{refused}");
    }

    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let others = [".b.json.7-0.part", ".a.json.part", "a.json"];
        for name in others.iter().chain(&[".a.json.7-0.part", ".a.json.8-3.part"]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        remove_parts_of(&folder.path().join("a.json"));
        assert_eq!(names(folder.path()), [".a.json.part", ".b.json.7-0.part", "a.json"]);
    }

    /// Names of the files in a folder, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_written_record_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = simple(&[(10, 5, 1, 100), (20, 5, 0, 100)]);
        record.epochs[0].accelerators[0].io.read_latency.record(12_345);
        record.epochs[0].host.cpu_busy_share = Some(0.1 + 0.2);
        write(folder.path(), &record).unwrap();
        assert_eq!(read(folder.path()).unwrap(), record);
        assert_eq!(read(&folder.path().join(RECORD_FILE)).unwrap(), record);
        assert_eq!(names(folder.path()), [RECORD_FILE]);
    }

    /// Plans of older versions have a boolean for the page cache.
    #[test]
    fn the_cache_setting_of_older_records_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let record = simple(&[(10, 5, 1, 100)]);
        let text = serde_json::to_string(&record).unwrap();
        for (old, cache) in [("\"cold\":true", Cache::Cold), ("\"cold\":false", Cache::AsIs)] {
            let old_text = text.replace("\"cache\":\"as_is\"", old);
            fs::write(folder.path().join(RECORD_FILE), old_text).unwrap();
            assert_eq!(read(folder.path()).unwrap().plan.train.cache, cache);
        }
    }

    /// The file is from an early build: it has no timeline, no processes and no order of reads, and an old name for the batches in flight.
    #[test]
    fn records_of_older_builds_are_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RECORD_FILE), include_str!("older.json")).unwrap();
        let record = read(folder.path()).unwrap();
        assert_eq!(record.plan.loader.batches_in_flight, 2);
        assert_eq!(record.plan.train.cache, Cache::AsIs);
        assert_eq!((record.timeline.as_ref(), record.study.as_ref()), (None, None));
        assert_eq!((record.machines().len(), record.system.all_cpus()), (1, 2));
        let summary = Summary::new(&record);
        for (metric, expected) in [
            (&AU_ALL_STEPS, Some(15.0)),
            (&AU_WINDOWED, Some(20.0)),
            (&SAMPLES_WHOLE, Some(12.0)),
            (&DELIVERED_WHOLE, Some(48e6)),
            (&LOAD_S, Some(0.8)),
            (&DEVICE_BYTES, Some(48e6)),
            (&READ_LATENCY, Some(0.075)),
            (&SEQUENTIAL, None),
            (&FILES, None),
        ] {
            assert_eq!(summary.figures.value(metric), expected, "{}", metric.id.name());
        }
        let doubts: Vec<&str> = summary.doubts.iter().map(|doubt| doubt.name.as_str()).collect();
        let expected = [
            "not_cold",
            "window_shorter_than_stock",
            "too_few_steps",
            "au_disagrees",
            "compute_overshoot",
            "no_step_causes",
            "scaled",
        ];
        assert_eq!(doubts, expected);
        assert_eq!(summary.doubts[0].evidence, "the page cache kept 1 MB");
        assert_eq!(summary.doubts[0].facts, Facts::new());
        write(folder.path(), &record).unwrap();
        assert_eq!(read(folder.path()).unwrap(), record);
    }

    fn check(text: &str, message: &str, hint: &str) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RECORD_FILE), text).unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{error}");
    }

    #[test]
    fn invalid_records_are_refused() {
        let text = serde_json::to_string(&simple(&[(1, 1, 1, 1)])).unwrap();
        check(
            &text.replacen("\"version\":1", "\"version\":7", 1),
            "record version `7`",
            "a newer one",
        );
        check(r#"{"version":7,"unheard_of":1}"#, "record version `7`", "a newer one");
        check(&text[..text.len() / 2], "is no record", "run again");
        check(r#"{"version":1}"#, "missing field", "run again");
        check(
            &text.replacen("\"load_ns\":[1000000]", "\"load_ns\":[]", 1),
            "0 load, 1 compute",
            "run again",
        );
        check(
            &text.replacen("\"skew_ns\":[1000000]", "\"skew_ns\":[]", 1),
            "causes of epoch 1 differ in length",
            "run again",
        );
    }

    #[test]
    fn the_error_names_a_missing_record() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(
            error.to_string().contains("cannot read `") && error.to_string().contains(RECORD_FILE)
        );
        assert!(error.hint().unwrap().contains("folder of a run"));
    }

    #[test]
    fn a_failed_write_leaves_no_files_and_keeps_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let publish = |second: &str| {
            let mut files = NewFiles::new(folder.path());
            files.write("a", b"one")?;
            files.write(second, b"two")?;
            files.publish()
        };
        publish("b").unwrap();
        let error = publish("no/such").unwrap_err();
        assert!(error.to_string().starts_with("cannot write `"), "{error}");
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"one");
    }

    #[test]
    fn more_files_than_can_be_open_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = NewFiles::new(folder.path());
        (0..600).for_each(|i| files.write(&i.to_string(), &vec![1; i]).unwrap());
        files.publish().unwrap();
        assert_eq!(names(folder.path()).len(), 600);
        assert_eq!(fs::read(folder.path().join("599")).unwrap().len(), 599);
    }
}
