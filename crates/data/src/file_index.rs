//! Names of a dataset's files in a file: of any number of them, in little memory. [`NamedFiles`] is a storage whose files are
//! asked for by the names that the plan gives them, and opened by those in the index.
//!
//! The names come first, each behind its length; then the place of each, training files first; at the end how many there are.

use crate::storage::{Handle, NameKind, ReadStorage, Storage, StorageError, WriteFile};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::DatasetPlan;
use std::fs::File;
use std::io::{self, BufWriter, Error, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"FRNAMES1");
/// Counts of both splits, and the magic number.
const TAIL_BYTES: u64 = 24;
/// The longest path that the system opens; longer ones are not listed.
pub(crate) const PATH_BYTES_MAX: usize = 4095;
/// Most names are read at once.
const FIRST_READ_BYTES: usize = 256;

/// Names written one after another.
pub(crate) struct NameWriter {
    file: BufWriter<File>,
    at: u64,
}

impl NameWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(NameWriter { file: BufWriter::with_capacity(1 << 20, File::create(path)?), at: 0 })
    }

    /// Append the path of a name in a folder, at most [`PATH_BYTES_MAX`] bytes: its place.
    pub(crate) fn push(&mut self, folder: &str, name: &str) -> io::Result<u64> {
        let place = self.at;
        let slash = if folder.is_empty() { "" } else { "/" };
        let len = folder.len() + slash.len() + name.len();
        self.file.write_all(&(len as u16).to_le_bytes())?;
        for part in [folder, slash, name] {
            self.file.write_all(part.as_bytes())?;
        }
        self.at += 2 + len as u64;
        Ok(place)
    }

    /// Use the names at these places, those to train on first, and no others. The last call counts.
    pub(crate) fn choose(
        &mut self,
        places: impl Iterator<Item = u64>,
        [train, eval]: [u64; 2],
    ) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.get_ref().set_len(self.at)?;
        for number in places.chain([train, eval, MAGIC]) {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.flush()
    }
}

/// Names to be looked up.
#[derive(Debug)]
pub struct FileIndex {
    file: File,
    table: u64,
    /// Training and evaluation.
    files: [u64; 2],
}

impl FileIndex {
    /// # Errors
    /// It cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        Self::read(path).map_err(|error| StorageError::new("read", path, error))
    }

    fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut tail = [0; TAIL_BYTES as usize];
        let none = || Error::new(ErrorKind::InvalidData, "no list of names");
        let tail_at = len.checked_sub(TAIL_BYTES).ok_or_else(none)?;
        file.read_exact_at(&mut tail, tail_at)?;
        let [train, eval, magic] =
            [0, 8, 16].map(|at| tail[at..].first_chunk().map_or(0, |of| u64::from_le_bytes(*of)));
        let files = train.checked_add(eval).and_then(|files| files.checked_mul(8));
        let table = files.and_then(|bytes| tail_at.checked_sub(bytes));
        match table {
            Some(table) if magic == MAGIC => Ok(FileIndex { file, table, files: [train, eval] }),
            _ => Err(none()),
        }
    }

    /// Hand the path of file `file` with `suffix` behind it to `act`. Does not allocate.
    fn with_path<T>(
        &self,
        file: u64,
        suffix: &str,
        act: impl FnOnce(&str) -> Result<T, StorageError>,
    ) -> io::Result<Result<T, StorageError>> {
        let mut place = [0; 8];
        self.file.read_exact_at(&mut place, self.table + file * 8)?;
        let at = u64::from_le_bytes(place);
        let mut bytes = [0; 2 + PATH_BYTES_MAX + SUFFIX_BYTES_MAX];
        let first = FIRST_READ_BYTES.min(self.table.saturating_sub(at) as usize);
        self.file.read_exact_at(&mut bytes[..first], at)?;
        let end = 2 + usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let bad = || Error::new(ErrorKind::InvalidData, "a name that is none");
        if end > 2 + PATH_BYTES_MAX || suffix.len() > SUFFIX_BYTES_MAX {
            return Err(bad());
        }
        if end > first {
            self.file.read_exact_at(&mut bytes[first..end], at + first as u64)?;
        }
        bytes[end..end + suffix.len()].copy_from_slice(suffix.as_bytes());
        let path = std::str::from_utf8(&bytes[2..end + suffix.len()]).map_err(|_| bad())?;
        Ok(act(path))
    }
}

/// Names that were looked up begin so, and those of the plan never.
const LOOKED_UP: char = '/';
/// The longest [`crate::format::Part::suffix`].
const SUFFIX_BYTES_MAX: usize = 16;

/// A storage whose files have names of their own. They are only read.
pub struct NamedFiles {
    inner: Box<dyn Storage>,
    index: FileIndex,
    /// Beginning of the plan's names, without their folder.
    start: String,
    /// The ending of the plan's names: `.npz`.
    end: String,
}

impl NamedFiles {
    /// The files of `index` in `inner`, as `plan` names them.
    pub fn new(inner: Box<dyn Storage>, index: FileIndex, plan: &DatasetPlan) -> Self {
        let (start, end) = (format!("{}_", plan.prefix), format!(".{}", plan.extension));
        NamedFiles { inner, index, start, end }
    }

    /// The number of the file that the plan calls so, as `train/img_3_of_8.npz`, and what follows its ending.
    fn find<'p>(&self, path: &'p str) -> Option<(u64, &'p str)> {
        let (folder, name) = path.rsplit_once('/')?;
        let (number, rest) = name.strip_prefix(&*self.start)?.split_once("_of_")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let suffix = rest[digits..].strip_prefix(&*self.end)?;
        let file: u64 = number.parse().ok()?;
        let [train, eval] = self.index.files;
        let (first, files) = match folder.split('/').next() {
            Some("train") => (0, train),
            Some("valid") => (train, eval),
            _ => return None,
        };
        (file < files).then_some((first + file, suffix))
    }

    fn real<T>(
        &self,
        action: &'static str,
        path: &str,
        act: impl FnOnce(&str) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let found = self.find(path).ok_or_else(|| Error::from(ErrorKind::NotFound));
        found
            .and_then(|(file, suffix)| self.index.with_path(file, suffix, act))
            .map_err(|error| StorageError::new(action, path, error))?
    }
}

impl ReadStorage for NamedFiles {
    fn look_up(&self, path: &str, name: &mut String) -> Result<bool, StorageError> {
        self.real("open", path, |real| {
            name.clear();
            name.push(LOOKED_UP);
            name.push_str(real);
            Ok(true)
        })
    }

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        match path.strip_prefix(LOOKED_UP) {
            Some(real) => self.inner.open(real),
            None => self.real("open", path, |path| self.inner.open(path)),
        }
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        self.inner.len(file)
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        self.inner.read_at(file, offset, buffer)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }
}

impl Storage for NamedFiles {
    fn member(&self) -> &'static Member {
        self.inner.member()
    }

    fn name_of(&self, path: &str) -> String {
        let name = self.real("find", path, |path| Ok(path.to_string()));
        name.unwrap_or_else(|_| path.to_string())
    }

    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        if self.find(path).is_none() {
            return Ok(None);
        }
        self.real("stat", path, |path| self.inner.stat(path))
    }

    fn kind(&self, path: &str) -> Result<Option<NameKind>, StorageError> {
        self.real("stat", path, |path| self.inner.kind(path))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        Err(StorageError::new("create", path, ErrorKind::ReadOnlyFilesystem))
    }

    fn remove(&self, path: &str) -> Result<(), StorageError> {
        Err(StorageError::new("remove", path, ErrorKind::ReadOnlyFilesystem))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
        self.inner.list(path)
    }

    fn evict(&self, path: &str) -> Result<(), StorageError> {
        self.real("evict", path, |path| self.inner.evict(path))
    }

    fn warm(&self, path: &str) -> Result<(), StorageError> {
        self.real("read", path, |path| self.inner.warm(path))
    }

    fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.real("open", path, |path| self.inner.resident_bytes(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage;

    #[test]
    fn files_are_found_by_the_names_of_the_plan_whatever_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let long = "d".repeat(200);
        let names =
            [("", "naïve cat.JPG"), ("a/b", "1_of_2.png"), (long.as_str(), &long), ("v", "x")];
        let index = folder.path().join("names");
        let mut writer = NameWriter::create(&index).unwrap();
        let mut places = Vec::new();
        for (parent, name) in names {
            std::fs::create_dir_all(folder.path().join(parent)).unwrap();
            std::fs::write(folder.path().join(parent).join(name), name).unwrap();
            places.push(writer.push(parent, name).unwrap());
        }
        std::fs::write(folder.path().join("v/x.idx"), "index").unwrap();
        writer.choose(places.iter().copied(), [4, 0]).unwrap();
        writer.choose(places.into_iter(), [3, 1]).unwrap();
        let plan =
            DatasetPlan { prefix: "a_b".into(), extension: "npz".into(), ..DatasetPlan::default() };
        let inner = || storage::open("file", folder.path()).unwrap();
        let files = NamedFiles::new(inner(), FileIndex::open(&index).unwrap(), &plan);
        for (i, (parent, name)) in names.iter().enumerate() {
            let (split, number) = if i < 3 { ("train", i) } else { ("valid/7", 0) };
            let path = format!("{split}/a_b_{number:03}_of_99.npz");
            assert_eq!(files.stat(&path).unwrap(), Some(name.len() as u64), "{path}");
            assert_eq!(files.name_of(&path), format!("{parent}/{name}").trim_start_matches('/'));
            let mut found = String::new();
            assert!(files.look_up(&path, &mut found).unwrap());
            for name_of in [&path, &found] {
                let handle = files.open(name_of).unwrap();
                assert_eq!(files.len(&handle).unwrap(), name.len() as u64);
            }
        }
        assert_eq!(files.stat("valid/a_b_0_of_1.npz.idx").unwrap(), Some(5));
        assert_eq!(files.stat("index/valid/a_b_0_of_1.npz.idx").unwrap(), None);
        for none in ["train/a_b_3_of_9.npz", "valid/a_b_1_of_9.npz", "train/a_b_0_of_9.npy", "x"] {
            assert!(files.open(none).is_err(), "{none}");
        }
        assert!(files.create("train/a_b_0_of_3.npz").is_err() && files.remove("x").is_err());
        std::fs::write(&index, "short").unwrap();
        assert!(FileIndex::open(&index).is_err());
    }
}
