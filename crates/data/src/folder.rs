//! Lists folders. `std::fs::read_dir` is not used, because it panics if the file system reports an error when a folder is closed.

use rustix::fs::{Dir, Mode, OFlags, open};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The names in a folder, in any order. After an error there are no more.
///
/// # Errors
/// The folder cannot be opened.
pub(crate) fn entries(
    folder: &Path,
) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = Dir::new(open(folder, flags, Mode::empty())?)?;
    let names = std::iter::from_fn(move || dir.read())
        .map(|entry| Ok(OsString::from_vec(entry?.file_name().to_bytes().to_vec())));
    Ok(names.filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
}
