//! Maps file numbers to the names and lengths of a foreign dataset's files. They stay in an index file, so memory use does not
//! depend on their number. [`NamedFiles`] is a storage that accepts the plan's names and opens the files in the index.
//!
//! Layout of the index: an entry for each file, which is its length (8 bytes), the length of its name (2 bytes) and the name; the offset of
//! each entry, training files first; the number of files in each split; a magic number.

use crate::format::{self, Part};
use crate::storage::{EntryKind, Handle, ReadStorage, Storage, StorageError, WriteFile};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::transfers::TransferCounts;
use std::fs::File;
use std::io::{self, BufWriter, Error, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"FRNAMES2");
/// Length of the file counts of both splits and the magic number.
const TAIL_BYTES: u64 = 24;
/// The longest path that the operating system accepts. Longer paths are not listed.
pub(crate) const PATH_BYTES_MAX: usize = 4095;
/// Length of an entry without its name.
const HEAD_BYTES: usize = 10;
/// Length of the first read of an entry: most names fit in it.
const FIRST_READ_BYTES: usize = 256;

/// Writes an index.
pub(crate) struct NameWriter {
    file: BufWriter<File>,
    offset: u64,
}

impl NameWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(NameWriter { file: BufWriter::with_capacity(1 << 20, File::create(path)?), offset: 0 })
    }

    /// Appends a file of `bytes` bytes with the path of a name in a folder, at most [`PATH_BYTES_MAX`] bytes. Returns the offset of its entry.
    pub(crate) fn push(&mut self, folder: &str, name: &str, bytes: u64) -> io::Result<u64> {
        let start = self.offset;
        let slash = if folder.is_empty() { "" } else { "/" };
        let len = folder.len() + slash.len() + name.len();
        self.file.write_all(&bytes.to_le_bytes())?;
        self.file.write_all(&(len as u16).to_le_bytes())?;
        for part in [folder, slash, name] {
            self.file.write_all(part.as_bytes())?;
        }
        self.offset += (HEAD_BYTES + len) as u64;
        Ok(start)
    }

    /// Writes the offsets of the selected names, training files first. A later call replaces the selection.
    pub(crate) fn write_selection(
        &mut self,
        offsets: impl Iterator<Item = u64>,
        [train, eval]: [u64; 2],
    ) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.offset))?;
        self.file.get_ref().set_len(self.offset)?;
        for number in offsets.chain([train, eval, MAGIC]) {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.flush()
    }
}

/// An open index.
#[derive(Debug)]
pub struct FileIndex {
    file: File,
    /// Start of the table of name offsets.
    table: u64,
    /// Numbers of training and evaluation files.
    files: [u64; 2],
}

impl FileIndex {
    /// Opens the index at `path`.
    ///
    /// # Errors
    /// The file cannot be read or is not an index.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        Self::read(path).map_err(|error| StorageError::new("read", path, error))
    }

    fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut tail = [0; TAIL_BYTES as usize];
        let invalid = || Error::new(ErrorKind::InvalidData, "not an index of file names");
        let tail_offset = len.checked_sub(TAIL_BYTES).ok_or_else(invalid)?;
        file.read_exact_at(&mut tail, tail_offset)?;
        let numbers: [u64; 3] = std::array::from_fn(|i| {
            tail[8 * i..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        });
        let [train, eval, magic] = numbers;
        let files = train.checked_add(eval).and_then(|files| files.checked_mul(8));
        let table = files.and_then(|bytes| tail_offset.checked_sub(bytes));
        match table {
            Some(table) if magic == MAGIC => Ok(FileIndex { file, table, files: [train, eval] }),
            _ => Err(invalid()),
        }
    }

    fn number_at(&self, offset: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Length of file number `file`.
    fn length(&self, file: u64) -> io::Result<u64> {
        self.number_at(self.number_at(self.table + file * 8)?)
    }

    /// Calls `act` with the path of a part of file number `file`. Does not allocate.
    fn with_path<T>(
        &self,
        file: u64,
        PartSuffix { text: suffix, replaces_extension }: PartSuffix<'_>,
        act: impl FnOnce(&str) -> Result<T, StorageError>,
    ) -> io::Result<Result<T, StorageError>> {
        let entry = self.number_at(self.table + file * 8)?;
        let mut bytes = [0; HEAD_BYTES + PATH_BYTES_MAX + SUFFIX_BYTES_MAX];
        let invalid = |_| Error::new(ErrorKind::InvalidData, "invalid name in the index");
        let first = FIRST_READ_BYTES.min(self.table.saturating_sub(entry) as usize);
        self.file.read_exact_at(&mut bytes[..first], entry)?;
        let mut end = HEAD_BYTES + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let bad = || Error::new(ErrorKind::InvalidData, "invalid name in the index");
        if end > HEAD_BYTES + PATH_BYTES_MAX || suffix.len() > SUFFIX_BYTES_MAX {
            return Err(bad());
        }
        if end > first {
            self.file.read_exact_at(&mut bytes[first..end], entry + first as u64)?;
        }
        if replaces_extension {
            let path = std::str::from_utf8(&bytes[HEAD_BYTES..end]).map_err(invalid)?;
            end = HEAD_BYTES + Part::stem_bytes(path);
        }
        bytes[end..end + suffix.len()].copy_from_slice(suffix.as_bytes());
        let path = &bytes[HEAD_BYTES..end + suffix.len()];
        Ok(act(std::str::from_utf8(path).map_err(invalid)?))
    }
}

/// End of a part's name.
#[derive(Clone, Copy)]
struct PartSuffix<'p> {
    text: &'p str,
    /// As in [`Part::replaces_extension`].
    replaces_extension: bool,
}

/// First character of the names that [`ReadStorage::look_up`] returns. No name in a plan begins with it.
const REAL_PATH_PREFIX: char = '/';
/// The longest [`crate::format::Part::suffix`].
const SUFFIX_BYTES_MAX: usize = 16;

/// A read-only storage of files whose names differ from the names in the plan.
pub struct NamedFiles {
    inner: Box<dyn Storage>,
    index: FileIndex,
    /// Prefix of the plan's names, without the folder.
    prefix: String,
    /// Extension of the plan's names, with the dot: `.npz`.
    extension: String,
    /// Extensions of parts that replace it.
    part_extensions: Vec<&'static str>,
}

impl NamedFiles {
    /// The files of `inner` that `index` lists, under the names in `plan`.
    pub fn new(inner: Box<dyn Storage>, index: FileIndex, plan: &DatasetPlan) -> Self {
        let prefix = format!("{}_", plan.prefix);
        let extension = format!(".{}", plan.extension);
        let parts = format::find(&plan.format).map_or(&[][..], |format| format.parts);
        let replacing = parts.iter().filter(|part| part.replaces_extension);
        let part_extensions = replacing.map(|part| part.suffix).collect();
        NamedFiles { inner, index, prefix, extension, part_extensions }
    }

    /// The number of the file with this name in the plan, such as `train/img_3_of_8.npz`, and the suffix of its part.
    fn find<'p>(&self, path: &'p str) -> Option<(u64, PartSuffix<'p>)> {
        let (folder, name) = path.rsplit_once('/')?;
        let (number, rest) = name.strip_prefix(&*self.prefix)?.split_once("_of_")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let end = &rest[digits..];
        let replaces_extension = self.part_extensions.contains(&end);
        let suffix = if replaces_extension { end } else { end.strip_prefix(&*self.extension)? };
        let file: u64 = number.parse().ok()?;
        let [train, eval] = self.index.files;
        let (first, files) = match folder.split('/').next() {
            Some("train") => (0, train),
            Some("valid") => (train, eval),
            _ => return None,
        };
        (file < files).then_some((first + file, PartSuffix { text: suffix, replaces_extension }))
    }

    /// Calls `act` with the real path of a file.
    fn with_real_path<T>(
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
        self.with_real_path("open", path, |real| {
            name.clear();
            name.push(REAL_PATH_PREFIX);
            name.push_str(real);
            Ok(true)
        })
    }

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        match path.strip_prefix(REAL_PATH_PREFIX) {
            Some(real) => self.inner.open(real),
            None => self.with_real_path("open", path, |path| self.inner.open(path)),
        }
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
        self.inner.read_piece(file, offset, buffer, end)
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        self.inner.read_over(file, offset, len, buffer)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }

    fn transfers(&self) -> Option<TransferCounts> {
        self.inner.transfers()
    }
}

impl Storage for NamedFiles {
    fn member(&self) -> &'static Member {
        self.inner.member()
    }

    fn real_path(&self, path: &str) -> String {
        let name = self.with_real_path("find", path, |path| Ok(path.to_string()));
        name.unwrap_or_else(|_| path.to_string())
    }

    /// The length of a file as it was listed, and that of another part from the storage.
    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match self.find(path) {
            None => Ok(None),
            Some((file, PartSuffix { text: "", replaces_extension: false })) => {
                let length = self.index.length(file);
                length.map(Some).map_err(|error| StorageError::new("stat", path, error))
            }
            Some(_) => self.with_real_path("stat", path, |path| self.inner.stat(path)),
        }
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, StorageError> {
        self.with_real_path("stat", path, |path| self.inner.kind(path))
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
        self.with_real_path("evict", path, |path| self.inner.evict(path))
    }

    fn warm(&self, path: &str) -> Result<(), StorageError> {
        self.with_real_path("read", path, |path| self.inner.warm(path))
    }

    fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.with_real_path("open", path, |path| self.inner.resident_bytes(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage;

    #[test]
    fn parts_with_another_extension_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("names");
        let mut writer = NameWriter::create(&index).unwrap();
        let offset = writer.push("a.b", "text.idx", 5).unwrap();
        writer.write_selection([offset].into_iter(), [1, 0]).unwrap();
        std::fs::create_dir(folder.path().join("a.b")).unwrap();
        std::fs::write(folder.path().join("a.b/text.bin"), "tokens").unwrap();
        let plan = DatasetPlan {
            format: "megatron".into(),
            prefix: "img".into(),
            extension: "idx".into(),
            ..DatasetPlan::default()
        };
        let inner = storage::open("file", folder.path()).unwrap();
        let files = NamedFiles::new(inner, FileIndex::open(&index).unwrap(), &plan);
        let mut path = String::new();
        Part::instead(".bin").write_path("train/img_0_of_1.idx", &mut path);
        assert_eq!(path, "train/img_0_of_1.bin");
        assert_eq!(files.real_path(&path), "a.b/text.bin");
        assert_eq!(files.stat(&path).unwrap(), Some(6));
    }

    #[test]
    fn names_in_the_plan_open_the_files_in_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let long = "d".repeat(200);
        let names =
            [("", "naïve cat.JPG"), ("a/b", "1_of_2.png"), (long.as_str(), &long), ("v", "x")];
        let index = folder.path().join("names");
        let mut writer = NameWriter::create(&index).unwrap();
        let mut offsets = Vec::new();
        for (parent, name) in names {
            std::fs::create_dir_all(folder.path().join(parent)).unwrap();
            std::fs::write(folder.path().join(parent).join(name), name).unwrap();
            offsets.push(writer.push(parent, name, name.len() as u64).unwrap());
        }
        std::fs::write(folder.path().join("v/x.idx"), "index").unwrap();
        writer.write_selection(offsets.iter().copied(), [4, 0]).unwrap();
        writer.write_selection(offsets.into_iter(), [3, 1]).unwrap();
        let plan =
            DatasetPlan { prefix: "a_b".into(), extension: "npz".into(), ..DatasetPlan::default() };
        let inner = || storage::open("file", folder.path()).unwrap();
        let files = NamedFiles::new(inner(), FileIndex::open(&index).unwrap(), &plan);
        for (i, (parent, name)) in names.iter().enumerate() {
            let (split, number) = if i < 3 { ("train", i) } else { ("valid/7", 0) };
            let path = format!("{split}/a_b_{number:03}_of_99.npz");
            assert_eq!(files.stat(&path).unwrap(), Some(name.len() as u64), "{path}");
            assert_eq!(files.real_path(&path), format!("{parent}/{name}").trim_start_matches('/'));
            let mut found = String::new();
            assert!(files.look_up(&path, &mut found).unwrap());
            for opened_name in [&path, &found] {
                let handle = files.open(opened_name).unwrap();
                assert_eq!(files.len(&handle).unwrap(), name.len() as u64);
            }
        }
        assert_eq!(files.stat("valid/a_b_0_of_1.npz.idx").unwrap(), Some(5));
        assert_eq!(files.stat("index/valid/a_b_0_of_1.npz.idx").unwrap(), None);
        for unknown in ["train/a_b_3_of_9.npz", "valid/a_b_1_of_9.npz", "train/a_b_0_of_9.npy", "x"]
        {
            assert!(files.open(unknown).is_err(), "{unknown}");
        }
        assert!(files.create("train/a_b_0_of_3.npz").is_err() && files.remove("x").is_err());
        std::fs::write(&index, "short").unwrap();
        assert!(FileIndex::open(&index).is_err());
    }
}
