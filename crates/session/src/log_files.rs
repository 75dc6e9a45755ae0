//! Finds the files of an I/O log, and detects its kind.

use feedrate_measure::record::file::read_folder;
use feedrate_results::logs::{LogKind, detect_kind};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Number of bytes at the start of a log that are searched for its kind.
const HEAD_BYTES: u64 = 64 << 10;
/// First bytes of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether a path is a log, rather than a result.
pub fn is_log(path: &Path) -> bool {
    log_files(path).first().and_then(|file| detect_file_kind(file)).is_some()
}

/// Returns the files of a log, sorted by name.
pub(crate) fn log_files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.into()];
    }
    let (parent, prefix) = if path.is_dir() {
        (path, None)
    } else {
        (path.parent().unwrap_or(Path::new("")), path.file_name().and_then(|name| name.to_str()))
    };
    if prefix.is_none() && !path.is_dir() {
        return Vec::new();
    }
    let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let entries = read_folder(folder).into_iter().flatten().flatten();
    let is_part = |name: &str| {
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let is_number =
            !extension.is_empty() && extension.bytes().all(|byte| byte.is_ascii_digit());
        match prefix {
            Some(prefix) => is_number && stem == prefix,
            None => {
                is_number
                    || [".darshan", ".pfw", ".pfw.gz", ".strace", ".strace.gz"]
                        .iter()
                        .any(|end| name.ends_with(end))
            }
        }
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut files: Vec<PathBuf> =
        names.filter(|name| is_part(name)).map(|name| folder.join(name)).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

/// Detects the kind of a log by the beginning of a file.
pub(crate) fn detect_file_kind(file: &Path) -> Option<&'static LogKind> {
    let mut head = Vec::new();
    // The readable start of a damaged file is enough.
    let _ = open_text(file).ok()?.take(HEAD_BYTES).read_to_end(&mut head);
    detect_kind(&file.file_name()?.to_string_lossy(), &String::from_utf8_lossy(&head))
}

/// Opens the text of a file, which may be compressed by gzip.
pub(crate) fn open_text(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut bytes = BufReader::new(File::open(file)?);
    if bytes.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(bytes))));
    }
    Ok(Box::new(bytes))
}
