//! File formats: one file per format, one row per format in [`FORMATS`].
//!
//! Formats do no I/O. A [`Cursor`] says which bytes a sample needs next and is fed those bytes; an
//! encoder writes to a [`FileSink`]. So each format works with each storage and each driver.
//!
//! To add a format: copy `npy.rs`, implement [`Format`], add its `mod` line and its row. The catalog,
//! the CLI, the reference pages and the contract suite (`tests.rs`) read the table.

use feedrate_spec::catalog::Member;
use feedrate_spec::shape::FileShape;

/// What an encoder asks for its payload, and what `verify` compares with.
pub use crate::content::Content;

/// A format: how samples lie in a file.
pub trait Format: Sync {
    /// Name, summary, abilities.
    fn member(&self) -> &'static Member;

    /// Suffixes of the files of one dataset file, the data file (`""`) first: `["", ".off.idx", ".sz.idx"]`.
    fn parts(&self) -> &'static [&'static str] {
        &[""]
    }

    /// Exact bytes of all parts of a file of this shape.
    fn file_bytes(&self, shape: &FileShape) -> u64;

    /// Write one file. `content` fills payload; pieces go to `sink` in order, and may be patched.
    ///
    /// # Errors
    /// Whatever the sink refuses.
    fn encode(
        &self,
        shape: &FileShape,
        content: &mut Content,
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError>;

    /// A reader of samples, made once per worker and reused.
    fn cursor(&self, options: &CursorOptions) -> Box<dyn Cursor>;
}

/// What a worker decides once about its cursor.
#[derive(Clone, Debug)]
pub struct CursorOptions {
    /// The most bytes asked for at once where payload is streamed; a multiple of 4096.
    pub piece_bytes: usize,
    /// Check the format's checksums.
    pub check_crc: bool,
    /// The payload is wanted by the sink: gather interleaved samples.
    pub wants_payload: bool,
}

/// Reads one sample after another. No clock, no file, no allocation once warm.
pub trait Cursor: Send {
    /// Start on sample `sample` of dataset file number `file`. `expected` is what the plan says the file
    /// holds; `None` for a foreign dataset.
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>);

    /// The bytes needed next, given all that was fed since `begin`.
    ///
    /// # Errors
    /// The file is not what its format says.
    fn need(&mut self) -> Result<Need, FormatError>;

    /// The bytes last asked for: all of them, or fewer where the file ends before.
    ///
    /// # Errors
    /// The file is not what its format says.
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError>;
}

/// What a cursor needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Bytes at `offset` of part `part`.
    Bytes {
        /// Index into [`Format::parts`].
        part: usize,
        /// From the start of that part.
        offset: u64,
        /// At most this many; never 0.
        len: usize,
    },
    /// The length of a part: feed it as 8 little-endian bytes.
    Length {
        /// Index into [`Format::parts`].
        part: usize,
    },
    /// The sample is whole.
    Done,
}

/// Takes the payload of a sample, in order, in pieces.
pub trait PayloadSink {
    /// `bytes` lie at `offset` of the sample's payload.
    ///
    /// # Errors
    /// A verifying sink refuses bytes that generation did not write.
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError>;
}

/// Drops the payload.
#[derive(Debug, Default)]
pub struct Discard;

impl PayloadSink for Discard {
    fn payload(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), FormatError> {
        Ok(())
    }
}

/// Takes an encoded file.
pub trait FileSink {
    /// Append to part `part`.
    ///
    /// # Errors
    /// The storage refused.
    fn write(&mut self, part: usize, bytes: &[u8]) -> Result<(), SinkError>;

    /// Overwrite bytes already written.
    ///
    /// # Errors
    /// The storage refused.
    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;
}

/// What a sink's storage said.
pub type SinkError = crate::storage::StorageError;

/// A file that is not what its format says. The driver adds the file's name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message} at byte {offset}")]
pub struct FormatError {
    /// Where in the part.
    pub offset: u64,
    /// A lowercase fragment.
    pub message: String,
}

impl FormatError {
    /// An error at `offset`.
    pub fn new(offset: u64, message: impl Into<String>) -> Self {
        FormatError { offset, message: message.into() }
    }
}
