//! The interface of formats whose files can be read in few large requests, without decoding.

use super::FormatError;
use std::ops::Range;

/// Lists the ranges of one file after another that are read in one request each, without decoding.
pub trait Lister: Send {
    /// Starts a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// A file of this length is invalid.
    fn begin(&mut self, file_bytes: u64) -> Result<(), FormatError>;

    /// The bytes needed next; `None` once the file is listed.
    fn need(&self) -> Option<Range<u64>>;

    /// Takes bytes from the start of [`Lister::need`] on; none at the end of the file.
    ///
    /// # Errors
    /// The file is invalid.
    fn feed(&mut self, bytes: &[u8]) -> Result<(), FormatError>;

    /// The ranges of the file, in the order of their samples.
    fn ranges(&self) -> Vec<FileRange>;
}

/// Samples of a file and the bytes that one request reads for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Number of the first sample in the file.
    pub first_sample: u64,
    /// Number of samples.
    pub samples: u64,
    /// Bytes of the file.
    pub bytes: Range<u64>,
}
