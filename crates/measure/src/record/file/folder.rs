//! Lists folders. `std::fs::read_dir` is not used, because it panics if the file system reports an error when a folder is closed.

use rustix::fs::{Dir, FileType, Mode, OFlags, open};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lists the entries of a folder in any order.
///
/// # Errors
/// The folder cannot be opened.
pub fn read_folder(path: impl AsRef<Path>) -> io::Result<FolderEntries> {
    let path = path.as_ref();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = Dir::new(open(path, flags, Mode::empty())?)?;
    Ok(FolderEntries { dir, folder: path.into() })
}

/// Names of the files and folders beside `path`, which may be missing; none if they cannot be read. Names that begin with `._`, which macOS gives to
/// its metadata, are left out.
pub fn sibling_names(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = read_folder(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with("._")).collect()
}

/// The entries of a folder. After an error there are no more.
pub struct FolderEntries {
    dir: Dir,
    folder: Arc<Path>,
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    folder: Arc<Path>,
    name: OsString,
    kind: FileType,
}

impl Iterator for FolderEntries {
    type Item = io::Result<FolderEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.dir.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(errno.into())),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let name = OsString::from_vec(name.to_vec());
                let folder = Arc::clone(&self.folder);
                return Some(Ok(FolderEntry { folder, name, kind: entry.file_type() }));
            }
        }
    }
}

impl FolderEntry {
    /// The name.
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// The path, which begins with the folder as it was given.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The properties of the entry. Links are not followed.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn metadata(&self) -> io::Result<Metadata> {
        fs::symlink_metadata(self.path())
    }

    /// Whether the entry is a folder. Links are not followed.
    pub fn is_folder(&self) -> bool {
        self.has_kind(FileType::Directory, Metadata::is_dir)
    }

    /// Whether the entry is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.has_kind(FileType::Symlink, Metadata::is_symlink)
    }

    fn has_kind(&self, kind: FileType, has_kind: impl FnOnce(&Metadata) -> bool) -> bool {
        match self.kind {
            FileType::Unknown => self.metadata().is_ok_and(|found| has_kind(&found)),
            known => known == kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_macos_is_no_sibling() {
        let root = tempfile::tempdir().unwrap();
        for name in ["results", "._results", ".hidden"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let mut names = sibling_names(&root.path().join("reslts"));
        names.sort();
        assert_eq!(names, [".hidden", "results"]);
    }

    #[test]
    fn entries_are_listed_and_other_paths_are_refused() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("b"), "text").unwrap();
        std::os::unix::fs::symlink("a", root.path().join("c")).unwrap();
        let entries = read_folder(root.path()).unwrap().map(|entry| {
            let entry = entry.unwrap();
            assert_eq!(entry.path(), root.path().join(entry.file_name()));
            (entry.file_name().into_string().unwrap(), entry.is_folder())
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort();
        let expected = [("a", true), ("b", false), ("c", false)];
        assert_eq!(entries, expected.map(|(name, is_folder)| (name.to_owned(), is_folder)));
        assert!(read_folder(root.path().join("b")).is_err());
        assert!(read_folder(root.path().join("d")).is_err());
    }
}
