//! Tests of copies of a small dataset: reads of the dataset, remaining files, and foreign files.

use super::*;
use crate::format;
use crate::storage::Handle;
use feedrate_spec::shape::Encoding;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

const FILES: u64 = 6;
const FILE_BYTES: usize = 5000;

/// A dataset with files of equal length in `data`, and the folder `stage` for its copy.
struct TestFolders {
    folder: TempDir,
}

/// Counts opens and bytes of each file.
struct CountingStorage {
    inner: Box<dyn Storage>,
    opens: Mutex<BTreeMap<String, u64>>,
    bytes: AtomicU64,
}

impl ReadStorage for CountingStorage {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        *self.opens.lock().unwrap().entry(path.into()).or_default() += 1;
        self.inner.open(path)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        self.inner.len(file)
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        let read = self.inner.read_piece(file, offset, buffer, end)?;
        self.bytes.fetch_add(read as u64, Relaxed);
        Ok(read)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }
}

impl TestFolders {
    fn new() -> Self {
        let folders = TestFolders { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(folders.path("data/train")).unwrap();
        for (i, path) in folders.paths().into_iter().enumerate() {
            fs::write(folders.path("data").join(path), vec![i as u8; FILE_BYTES]).unwrap();
        }
        folders
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plan() -> DatasetPlan {
        DatasetPlan {
            format: "npz".into(),
            extension: "npz".into(),
            files_train: FILES,
            samples_per_file: 1,
            prefix: "img".into(),
            record_bytes: 4096.0,
            encoding: Encoding::default(),
            ..DatasetPlan::default()
        }
    }

    fn paths(&self) -> Vec<String> {
        let layout = Layout::new(&TestFolders::plan());
        let mut path = String::new();
        let paths = (0..FILES).map(|file| {
            layout.write_path(file, &mut path);
            path.clone()
        });
        paths.collect()
    }

    fn dataset(&self) -> CountingStorage {
        let inner = storage::open("file", &self.path("data")).unwrap();
        CountingStorage { inner, opens: Mutex::default(), bytes: AtomicU64::new(0) }
    }

    fn stage(&self, limit_bytes: Option<u64>) -> Stage {
        let (data, stage) = (self.path("data"), self.path("stage"));
        Stage::new(&TestFolders::plan(), &data, &stage, None, limit_bytes).unwrap()
    }

    fn copied_paths(&self, stage: &Stage) -> Vec<String> {
        let mut paths = self.paths();
        paths.retain(|path| stage.storage().stat(path).unwrap() == Some(FILE_BYTES as u64));
        paths
    }
}

fn begin(stage: &Stage) -> Result<DatasetLock, StageError> {
    stage.begin(&stage.survey()?, Some(1 << 30), "this boot", "a test")
}

fn copy(stage: &Stage, dataset: &dyn ReadStorage, share: FileShare) -> CopySummary {
    let never = AtomicBool::new(false);
    stage.copy(dataset, None, share, 3, &Watch::new(&|_, _| {}, &never)).unwrap()
}

#[test]
fn shares_copy_each_file_once_and_only_foreign_files_are_left() {
    assert!(format::find("npz").is_some());
    let folders = TestFolders::new();
    let (stage, dataset) = (folders.stage(None), folders.dataset());
    let lock = begin(&stage).unwrap();
    assert!(matches!(begin(&folders.stage(None)), Err(StageError::Busy { .. })));
    for index in 0..2 {
        let copied = copy(&stage, &dataset, FileShare { index, count: 2 });
        assert_eq!((copied.files, copied.bytes, copied.kept_files), (3, 15_000, 0));
    }
    assert_eq!(folders.copied_paths(&stage), folders.paths());
    assert_eq!(dataset.opens.lock().unwrap().values().collect::<Vec<_>>(), [&1; FILES as usize]);
    assert_eq!(dataset.bytes.load(Relaxed), FILES * FILE_BYTES as u64);
    fs::write(stage.folder().join("train/thesis.txt"), "mine").unwrap();
    let changed = stage.folder().join(&folders.paths()[0]);
    fs::write(&changed, "mine").unwrap();
    let found = stage.remove(lock).unwrap();
    assert_eq!((found.files, found.foreign_files.len()), (5, 2), "{found:?}");
    assert_eq!(fs::read(changed).unwrap(), b"mine");
    assert!(matches!(begin(&stage), Err(StageError::ForeignFiles { .. })));
    assert!(!stage.folder().join(LOCK_FILE).exists());
}

#[test]
fn an_interrupted_copy_is_continued_for_the_same_dataset_and_machine() {
    let folders = TestFolders::new();
    let (stage, dataset) = (folders.stage(None), folders.dataset());
    drop(begin(&stage).unwrap());
    copy(&stage, &dataset, FileShare { index: 0, count: 2 });
    let part = stage.folder().join("train/.img_1_of_6.npz.99-0.part");
    fs::write(&part, "half of it").unwrap();
    drop(begin(&stage).unwrap());
    assert!(!part.exists());
    let copied = copy(&stage, &dataset, FileShare::ALL);
    assert_eq!((copied.files, copied.kept_files), (3, 3));
    assert_eq!(dataset.opens.lock().unwrap().len(), FILES as usize);
    let survey = stage.survey().unwrap();
    let other_boot = |_| stage.begin(&survey, None, "another boot", "a test").unwrap();
    drop(other_boot(()));
    assert_eq!(
        folders.copied_paths(&stage).len(),
        0,
        "files that are not durable may be incomplete"
    );
    copy(&stage, &dataset, FileShare::ALL);
    stage.complete(&survey).unwrap();
    drop(other_boot(()));
    assert_eq!(folders.copied_paths(&stage).len(), FILES as usize);
    let newer =
        fs::File::options().write(true).open(folders.path("data").join(&folders.paths()[0]));
    newer.unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    drop(begin(&stage).unwrap());
    assert_eq!(folders.copied_paths(&stage).len(), 0, "the dataset changed");
}

#[test]
fn missing_space_is_found_before_anything_is_written() {
    let folders = TestFolders::new();
    let bytes = FILES * FILE_BYTES as u64;
    let limited = folders.stage(Some(bytes - 1));
    assert!(matches!(begin(&limited), Err(StageError::Limit { .. })));
    let stage = folders.stage(Some(bytes));
    let survey = stage.survey().unwrap();
    let begin_with_room = |room| stage.begin(&survey, Some(room), "this boot", "a test");
    assert!(matches!(
        begin_with_room(bytes - 1),
        Err(StageError::NoSpace { needed_bytes, .. }) if needed_bytes == bytes
    ));
    assert!(!stage.folder().exists());
    begin_with_room(bytes).unwrap();
}

#[test]
fn readers_are_reported_until_they_end() {
    let folders = TestFolders::new();
    let stage = folders.stage(None);
    let lock = begin(&stage).unwrap();
    assert!(!stage.has_readers());
    let readers =
        [stage.lock_for_reading().unwrap(), folders.stage(None).lock_for_reading().unwrap()];
    assert!(stage.has_readers());
    stage.complete(&stage.survey().unwrap()).unwrap();
    assert!(stage.has_readers(), "the manifest is another file now");
    drop(readers);
    assert!(!stage.has_readers());
    // Earlier versions use the same name.
    fs::remove_file(stage.folder().join(".feedrate.stage")).unwrap();
    assert!(!stage.has_readers());
    let foreign_file = folders.path("thesis.txt");
    fs::write(&foreign_file, "mine").unwrap();
    std::os::unix::fs::symlink(&foreign_file, stage.folder().join(".feedrate.stage")).unwrap();
    assert!(stage.has_readers() && stage.lock_for_reading().is_err(), "a link is not followed");
    assert_eq!(stage.remove(lock).unwrap().foreign_files, [""; 0]);
    assert!(!stage.folder().exists() && foreign_file.exists());
}

#[test]
fn an_incomplete_file_is_not_visible() {
    let folders = TestFolders::new();
    let (stage, dataset) = (folders.stage(None), folders.dataset());
    let _lock = begin(&stage).unwrap();
    fs::write(folders.path("data").join(&folders.paths()[0]), vec![1; 3 * REQUEST_BYTES]).unwrap();
    let stop = AtomicBool::new(false);
    let stop_at_once = |_files: u64, _bytes: u64| stop.store(true, Relaxed);
    let copied = stage.copy(&dataset, None, FileShare::ALL, 1, &Watch::new(&stop_at_once, &stop));
    assert_eq!(copied.unwrap(), CopySummary::default());
    assert_eq!(fs::read_dir(stage.folder().join("train")).unwrap().count(), 0);
    assert_eq!(dataset.bytes.load(Relaxed), REQUEST_BYTES as u64, "it stops after one request");
}

#[test]
fn a_partial_manifest_is_removed_and_a_pipe_is_foreign() {
    let folders = TestFolders::new();
    let stage = folders.stage(None);
    fs::create_dir_all(stage.folder()).unwrap();
    let part = stage.folder().join(".stage.json.99-0.part");
    fs::write(&part, "{").unwrap();
    stage.remove(begin(&stage).unwrap()).unwrap();
    assert!(!stage.folder().exists());
    fs::create_dir_all(stage.folder()).unwrap();
    let pipe = stage.folder().join(MANIFEST_FILE);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(begin(&stage), Err(StageError::ForeignFiles { .. })));
    assert!(pipe.exists());
}

/// The manifest of a dataset with too many different file lengths lists none.
#[test]
fn without_listed_lengths_copies_are_compared_with_the_dataset() {
    let folders = TestFolders::new();
    let stage = folders.stage(None);
    let lock = begin(&stage).unwrap();
    copy(&stage, &folders.dataset(), FileShare::ALL);
    let manifest = stage.folder().join(MANIFEST_FILE);
    let mut manifest_json: serde_json::Value =
        serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    manifest_json["files"] = serde_json::Value::Null;
    fs::write(&manifest, manifest_json.to_string()).unwrap();
    let foreign_file = stage.folder().join(&folders.paths()[0]);
    fs::write(&foreign_file, "a thesis").unwrap();
    let found = stage.remove(lock).unwrap();
    assert_eq!(found.files, FILES - 1);
    assert_eq!(fs::read(&foreign_file).unwrap(), b"a thesis");
}
