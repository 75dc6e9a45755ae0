//! `record.json`, and how result files get onto the disk: whole and synced, or not at all.

mod new_files;

pub use new_files::NewFiles;

use super::{Block, RECORD_VERSION, Record};
use feedrate_spec::escape;
use feedrate_spec::part::{create_part, final_name};
use feedrate_spec::plan::RECORDED_STEPS_MAX;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The name of the record in a run's folder.
pub const RECORD_FILE: &str = "record.json";
/// Beside it: the names of the dataset's files, where others gave them.
pub const NAMES_FILE: &str = "names.index";

/// The longest record that is read; a step takes some eighty bytes.
const BYTES_MAX: u64 = 128 * RECORDED_STEPS_MAX;
/// The longest text that people write: workloads, designs, tables.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// A record or result file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RecordFileError {
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is no record: {source}", path.display())]
    NoRecord { path: PathBuf, source: serde_json::Error },
    #[error("`{}` has record version `{found}`, and this feedrate reads versions up to {RECORD_VERSION}", path.display())]
    Newer { path: PathBuf, found: u32 },
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}

impl RecordFileError {
    /// A way to mend it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RecordFileError::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Some(
                    "give the folder of a run, one that holds `record.json`; `feedrate analyze` reads DLIO's",
                ),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("free some space, or choose another folder with `--results`")
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a folder that you may write, with `--results`")
                }
                _ => None,
            },
            RecordFileError::Newer { .. } => Some("use the feedrate that wrote it, or a newer one"),
            RecordFileError::NoRecord { .. } | RecordFileError::Damaged { .. } => Some(
                "it was cut short, edited, or written by another program or version; run again",
            ),
        }
    }
}

/// Write `record.json` into a run's folder.
///
/// # Errors
/// It cannot be written; what was there before is still there.
pub fn write(folder: &Path, record: &Record) -> Result<(), RecordFileError> {
    let mut files = NewFiles::new(folder);
    write_to(&mut files, record)?;
    files.publish()
}

/// Write `record.json` among other files.
///
/// # Errors
/// It cannot be written.
pub fn write_to(files: &mut NewFiles, record: &Record) -> Result<(), RecordFileError> {
    let bytes = serde_json::to_vec(record).unwrap_or_else(|_| unreachable!("keys are text"));
    files.write(RECORD_FILE, &bytes)
}

/// Read a record: its file, or the folder of its run.
///
/// # Errors
/// There is none, it is damaged, or a newer feedrate wrote it.
pub fn read(path: &Path) -> Result<Record, RecordFileError> {
    let path = if path.is_dir() { path.join(RECORD_FILE) } else { path.to_path_buf() };
    let bytes = read_bounded(&path, BYTES_MAX).map_err(|source| io_error("read", &path, source))?;
    let bytes = escape::json_texts(&bytes);
    let parsed = serde_json::from_slice::<Record>(&bytes);
    let version = match &parsed {
        Ok(record) => record.version,
        Err(_) => serde_json::from_slice::<Version>(&bytes).map_or(0, |version| version.version),
    };
    if RECORD_VERSION < version {
        return Err(RecordFileError::Newer { path, found: version });
    }
    match parsed {
        Ok(record) => match find_damage(&record) {
            None => Ok(record),
            Some(what) => Err(RecordFileError::Damaged { path, what }),
        },
        Err(source) => Err(RecordFileError::NoRecord { path, source }),
    }
}

/// The bytes of a file that anybody may have written: one of no more than `bytes_max`.
///
/// # Errors
/// It cannot be read, is longer, or is no file: a pipe would be waited for when it is opened.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let about = path.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    refuse_longer(about.len(), bytes_max)?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    refuse_longer(bytes.len() as u64, bytes_max)?;
    Ok(bytes)
}

/// A text that people write, from wherever they name.
///
/// # Errors
/// It cannot be read, is too long, or is no text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)?;
    refuse_longer(text.len() as u64, TEXT_BYTES_MAX)?;
    Ok(text)
}

/// The same of a file in a folder that anybody may have made.
///
/// # Errors
/// As [`read_bounded`], or it is no text.
pub fn read_text_bounded(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(path, TEXT_BYTES_MAX)?).map_err(io::Error::other)
}

fn refuse_longer(bytes: u64, bytes_max: u64) -> io::Result<()> {
    if bytes_max < bytes {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(())
}

/// Write one file under another name in the same folder, sync it, and give it its name.
///
/// # Errors
/// It cannot be written; what was there before is still there.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut files = NewFiles::new(path.parent().unwrap_or(Path::new("")));
    files.write(&name, bytes)?;
    files.publish()
}

/// Create the file under which `path` is written until it is whole, and which nobody else writes to.
///
/// # Errors
/// The folder refuses.
pub fn create_part_of(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    create_part(&name, std::process::id(), |name| {
        let part = path.with_file_name(name);
        File::create_new(&part).map(|file| (file, part))
    })
}

/// Remove what processes that were killed have left of `path`. Nobody else may be writing it.
pub fn remove_parts_of(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Ok(entries) = fs::read_dir(path.parent().unwrap_or(Path::new("."))) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().and_then(final_name) == Some(&*name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Make names in a folder last. Some file systems cannot sync a folder; the files are whole there all the same.
///
/// # Errors
/// It cannot be opened, or the disk fails.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

/// A folder for result files, unless it is there.
pub(crate) fn make_folder(folder: &Path) -> Result<(), RecordFileError> {
    fs::create_dir_all(folder).map_err(|source| io_error("make", folder, source))
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> RecordFileError {
    RecordFileError::Io { action, path: path.to_path_buf(), source }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Check what metrics rely on: every step and every sample has all its figures.
fn find_damage(record: &Record) -> Option<String> {
    if let Some(beyond) = record.plan.dataset.limit_violation() {
        return Some(beyond);
    }
    if record.timeline.as_ref().is_some_and(|timeline| !timeline.is_even()) {
        return Some("the columns of its timeline differ in length".into());
    }
    record.epochs.iter().chain(&record.evaluations).find_map(|epoch| {
        if epoch.causes.as_ref().is_some_and(|causes| !causes.is_even()) {
            return Some(format!("the causes of epoch {} differ in length", epoch.number));
        }
        let blocks = epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
        let uneven = blocks.into_iter().find(|block| !is_even(block))?;
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

fn is_even(block: &Block) -> bool {
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

    /// Earlier versions could copy each file of a dataset when it was read first.
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
    fn parts_of_a_killed_process_go_and_files_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let others = [".b.json.7-0.part", ".a.json.part", "a.json"];
        for name in others.iter().chain(&[".a.json.7-0.part", ".a.json.8-3.part"]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        remove_parts_of(&folder.path().join("a.json"));
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, [".a.json.part", ".b.json.7-0.part", "a.json"]);
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = simple(&[(10, 5, 1, 100), (20, 5, 0, 100)]);
        record.epochs[0].accelerators[0].io.read_latency.record(12_345);
        record.epochs[0].host.cpu_busy_share = Some(0.1 + 0.2);
        write(folder.path(), &record).unwrap();
        assert_eq!(read(folder.path()).unwrap(), record);
        assert_eq!(read(&folder.path().join(RECORD_FILE)).unwrap(), record);
        assert_eq!(names(folder.path()), [RECORD_FILE]);
    }

    /// Plans once said only whether the page cache was emptied.
    #[test]
    fn records_of_cold_runs_stay_cold() {
        let folder = tempfile::tempdir().unwrap();
        let record = simple(&[(10, 5, 1, 100)]);
        let text = serde_json::to_string(&record).unwrap();
        for (old, cache) in [("\"cold\":true", Cache::Cold), ("\"cold\":false", Cache::AsIs)] {
            let text = text.replace("\"cache\":\"as_is\"", old);
            fs::write(folder.path().join(RECORD_FILE), text).unwrap();
            assert_eq!(read(folder.path()).unwrap().plan.train.cache, cache);
        }
    }

    /// As an early build wrote it: without timeline, processes and order of reads, and with the batches in flight under their old name.
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
    fn what_is_no_record_is_refused() {
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
    fn what_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(
            error.to_string().contains("cannot read `") && error.to_string().contains(RECORD_FILE)
        );
        assert!(error.hint().unwrap().contains("folder of a run"));
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_keeps_what_was_there() {
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
    fn more_files_than_may_be_open() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = NewFiles::new(folder.path());
        (0..600).for_each(|i| files.write(&i.to_string(), &vec![1; i]).unwrap());
        files.publish().unwrap();
        assert_eq!(names(folder.path()).len(), 600);
        assert_eq!(fs::read(folder.path().join("599")).unwrap().len(), 599);
    }
}
