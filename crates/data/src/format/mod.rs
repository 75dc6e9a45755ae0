//! File formats: one file per format, one row per format in [`FORMATS`].
//!
//! Formats do no I/O. A [`Cursor`] says which bytes a sample needs next and is fed those bytes; an
//! encoder writes to a [`FileSink`]. So each format works with each storage and each driver.
//!
//! To add a format: copy `npy.rs`, fill a [`Format`], add its `mod` line and its row. The catalog,
//! the CLI, the reference pages and the contract suite (`tests.rs`) read the table.

mod decimal;
mod payload_range;
mod deflate;
mod ahead;
mod located;
mod packed;
mod kept_content;
mod npy_header;
mod npy_stream;
mod npz;
mod npy;
mod raw;
mod indexed;
mod indexed_binary;
mod mmap_indexed_binary;
mod tfrecord;
mod webdataset;
mod hdf5;
mod parquet;
mod synthetic;
mod text;
mod csv;
mod json;
mod whole_image;
mod jpeg;
mod png;
mod encoded;
mod null;
#[cfg(test)]
mod tests;

use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::escape;
use feedrate_spec::shape::{DIMS_MAX, Dims, Element, Encoding, FileShape};

/// Source of payload for encoders, and of the bytes that verification expects.
pub use crate::content::Content;

/// Every format.
pub static FORMATS: &[&Format] = &[
    &npz::FORMAT,
    &npy::FORMAT,
    &raw::FORMAT,
    &indexed_binary::FORMAT,
    &mmap_indexed_binary::FORMAT,
    &tfrecord::FORMAT,
    &webdataset::FORMAT,
    &hdf5::FORMAT,
    &parquet::FORMAT,
    &csv::FORMAT,
    &json::FORMAT,
    &png::FORMAT,
    &jpeg::FORMAT,
    &synthetic::FORMAT,
    &null::FORMAT,
];

/// The format called `name`.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.member().name == name)
}

/// The format of files of which nothing is known: each is one sample of plain bytes.
pub fn plain() -> &'static Format {
    &raw::FORMAT
}

/// The table as the planner sees it.
pub fn entries() -> Vec<FormatEntry> {
    FORMATS.iter().map(|format| format.entry).collect()
}

/// A format: how samples lie in a file.
pub struct Format {
    /// Name, summary, abilities, size.
    pub entry: FormatEntry,
    /// The files of one dataset file, the data file first.
    pub parts: &'static [Part],
    /// Raised when the bytes of its files change: datasets of other versions are read, but neither completed nor verified.
    pub version: u32,
    /// Write one file, of a shape and encoding that the row calls fit. The content, which was started on the file,
    /// fills payload; pieces go to the sink in order, and may be patched. Equal input makes equal bytes.
    pub encode: Encode,
    /// A reader of samples, made once per worker and reused.
    pub cursor: fn(&CursorOptions) -> Box<dyn Cursor>,
    /// Whether a file that begins with these bytes, [`HEAD_BYTES`] where it has so many, is of the format; false for all where
    /// files have nothing of their own.
    pub begins: fn(&[u8]) -> bool,
}

/// So many bytes tell of a file's format.
pub const HEAD_BYTES: usize = 512;

/// The format of a file that begins like this, else the one that its name says, and whether the bytes have told.
pub fn recognise(head: &[u8], extension: &str) -> Option<(&'static Format, bool)> {
    let begun = FORMATS.iter().find(|format| (format.begins)(head)).map(|format| (*format, true));
    let is_named = |format: &&&Format| {
        let has_name = format.entry.extension.eq_ignore_ascii_case(extension);
        has_name && format.member().has(Ability::Undescribed)
    };
    begun.or_else(|| FORMATS.iter().find(is_named).map(|format| (*format, false)))
}

type Encode = fn(&FileShape, &Encoding, &mut Content, &mut dyn FileSink) -> Result<(), SinkError>;

impl Format {
    /// A format of one file, in its first version.
    const fn new(
        entry: FormatEntry,
        encode: Encode,
        cursor: fn(&CursorOptions) -> Box<dyn Cursor>,
    ) -> Self {
        Format { entry, parts: &[Part::DATA], version: 1, encode, cursor, begins: |_| false }
    }

    /// Name, summary, abilities.
    pub fn member(&self) -> &'static Member {
        self.entry.member
    }

    /// A reader of samples, which decodes them where that is wanted and they are files of their own.
    pub fn reader(&self, options: &CursorOptions) -> Box<dyn Cursor> {
        let cursor = (self.cursor)(options);
        if options.decodes_members && self.member().has(Ability::HoldsFiles) {
            return Box::new(encoded::DecodingCursor::new(cursor, options));
        }
        cursor
    }

    /// Bytes of all parts of a file of this shape; see [`FormatEntry::file_bytes`].
    pub fn file_bytes(&self, shape: &FileShape, encoding: &Encoding) -> u64 {
        (self.entry.file_bytes)(shape, encoding)
    }
}

/// One of the files that make up a dataset file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Beside `train/` and `valid/`: the part of `train/3/img_3_of_8.tfrecord` in `index` is
    /// `index/train/img_3_of_8.tfrecord.idx`, whatever the subfolder. Empty: beside the data file.
    pub folder: &'static str,
    /// Appended to the data file's name.
    pub suffix: &'static str,
    /// Made for other readers: no cursor asks for it, and a foreign dataset may lack it. Such parts come last.
    pub optional: bool,
}

impl Part {
    /// The data file itself.
    pub const DATA: Part = Part::beside("");

    /// A file beside the data file.
    pub const fn beside(suffix: &'static str) -> Self {
        Part { folder: "", suffix, optional: false }
    }

    /// Write the path of this part, given that of the data file.
    pub fn write_path(&self, data: &str, path: &mut String) {
        path.clear();
        if self.folder.is_empty() {
            path.push_str(data);
        } else {
            let (split, rest) = data.split_once('/').unwrap_or(("", data));
            let name = rest.rsplit('/').next().unwrap_or(rest);
            for word in [self.folder, "/", split, "/", name] {
                path.push_str(word);
            }
        }
        path.push_str(self.suffix);
    }
}

/// Options of a worker's cursor, decided once.
#[derive(Clone, Debug)]
pub struct CursorOptions {
    /// The most bytes asked for at once where payload is streamed; a multiple of 4096.
    pub piece_bytes: usize,
    /// Check the format's checksums.
    pub check_crc: bool,
    /// The payload is wanted by the sink: gather interleaved samples.
    pub wants_payload: bool,
    /// Only payload is read, as from an engine with the ability `serves_samples`.
    pub samples_alone: bool,
    /// Samples that are files of their own, in containers that others made, are decoded.
    pub decodes_members: bool,
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

    /// Shape that the file states, once that was read since `begin`; `None` where a format does not state it.
    fn found(&self) -> Option<FileShape> {
        None
    }

    /// Bytes of the sample as its file holds it, once they are known; of formats of one picture, those of the pixels.
    fn payload_bytes(&self) -> Option<u64> {
        self.found().map(|shape| shape.sample_bytes())
    }

    /// Shape of the sample alone, where that was encoded and has been decoded.
    fn decoded(&self) -> Option<FileShape> {
        None
    }

    /// Kind of the sample, where that is encoded and could not be decoded.
    fn undecoded(&self) -> Option<&'static str> {
        None
    }
}

/// Next need of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Bytes at `offset` of part `part`.
    Bytes {
        /// Index into [`Format::parts`].
        part: usize,
        /// Offset from the start of that part.
        offset: u64,
        /// At most this many; never 0.
        len: usize,
    },
    /// The length of a part: feed it as 8 little-endian bytes.
    Length {
        /// Index into [`Format::parts`].
        part: usize,
    },
    /// Bytes that were fed for a sample before, and kept: feed an empty slice.
    Kept,
    /// Bytes that were fed for a sample before, out of the last that came for [`Need::Bytes`]. Whoever still has them
    /// reads nothing.
    Again {
        /// Index into [`Format::parts`].
        part: usize,
        /// Offset from the start of that part.
        offset: u64,
        /// Never 0.
        len: usize,
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

    /// The payload that follows is a file of its own, which others made; `extension` ends its name, and is empty where it has
    /// none.
    fn encoded(&mut self, _extension: &[u8]) {}
}

/// Drops the payload.
#[derive(Debug, Default)]
pub struct Discard;

impl PayloadSink for Discard {
    fn payload(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), FormatError> {
        Ok(())
    }
}

/// Takes an encoded file. It owns the memory that payload is made in, so that pieces lie as their bytes will
/// in the file, and are not copied.
pub trait FileSink {
    /// Memory for the next bytes of part `part`, never empty. They count once they are given to
    /// [`FileSink::advance`].
    fn space(&mut self, part: usize) -> &mut [u8];

    /// The first `len` bytes of [`FileSink::space`] are the next of part `part`.
    ///
    /// # Errors
    /// The storage refused.
    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError>;

    /// Append to part `part`.
    ///
    /// # Errors
    /// The storage refused.
    fn write(&mut self, part: usize, bytes: &[u8]) -> Result<(), SinkError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let space = self.space(part);
            let (now, later) = rest.split_at(rest.len().min(space.len()));
            space[..now.len()].copy_from_slice(now);
            self.advance(part, now.len())?;
            rest = later;
        }
        Ok(())
    }

    /// Leave `len` bytes of part `part` to a later [`FileSink::patch`].
    ///
    /// # Errors
    /// The storage refused.
    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError>;

    /// Overwrite bytes already written.
    ///
    /// # Errors
    /// The storage refused.
    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// Whether the next `len` bytes need not be made: the sink has moved on past them then. What depends on
    /// them is reserved, and never patched.
    fn skip(&mut self, _part: usize, _len: u64) -> bool {
        false
    }
}

/// Error of a sink's storage.
pub type SinkError = crate::storage::StorageError;

/// A file that is not what its format says. The driver adds the file's name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("at byte {offset}: {}", escape::one_line(.message))]
pub struct FormatError {
    /// Offset in the part.
    pub offset: u64,
    /// A lowercase fragment.
    pub message: String,
    /// Samples of the file, where the one that was wanted is not among them.
    pub samples: Option<u64>,
}

impl FormatError {
    /// An error at `offset`.
    pub fn new(offset: u64, message: impl Into<String>) -> Self {
        FormatError { offset, message: message.into(), samples: None }
    }

    /// The file holds `samples` samples, of which it has the words `holds`, and `wanted` is none of them.
    fn no_sample(offset: u64, samples: u64, holds: impl std::fmt::Display, wanted: u64) -> Self {
        let message = format!("holds {holds}, so there is no sample {wanted}");
        FormatError { offset, message, samples: Some(samples) }
    }
}

/// Bytes to ask for at `offset`, `left` of which are wanted: up to the next multiple of the piece, so that later
/// pieces begin at one.
fn piece_len(piece_bytes: usize, offset: u64, left: u64) -> usize {
    let piece = piece_bytes.max(1) as u64;
    left.min(piece - offset % piece) as usize
}

/// The length that was asked for by [`Need::Length`].
fn length_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// The file ended `missing` bytes before it should have.
fn cut_off(offset: u64, missing: u64) -> FormatError {
    FormatError::new(offset, format!("the file ends, but {missing} more bytes were expected"))
}

/// An error if a file holds something else than the plan says.
fn compare_shapes(found: &FileShape, expected: Option<&FileShape>) -> Result<(), FormatError> {
    match expected {
        Some(expected) if expected != found => Err(FormatError::new(
            0,
            format!("holds {}, but the plan says {}", in_words(found), in_words(expected)),
        )),
        _ => Ok(()),
    }
}

/// An error if a file has no sample of that number.
fn check_sample(found: &FileShape, sample: u64) -> Result<(), FormatError> {
    if sample < found.samples {
        return Ok(());
    }
    Err(FormatError::no_sample(0, found.samples, in_words(found), sample))
}

/// Samples of which only the length is known: bytes stand for elements.
fn shape_of_bytes(bytes: u64, samples: u64) -> FileShape {
    let dims = Dims::new(&[bytes]).unwrap_or_else(|| unreachable!("one dimension fits"));
    FileShape { dims, element: Element::Uint8, samples }
}

/// The shape of an array that is one sample, though its last axis could be one of samples; `None` where it has too many.
pub(crate) fn as_one_sample(array: &FileShape) -> Option<FileShape> {
    let dims = array.dims.as_slice();
    let mut axes = [array.samples; DIMS_MAX + 1];
    axes[..dims.len()].copy_from_slice(dims);
    let dims = Dims::new(&axes[..=dims.len()])?;
    Some(FileShape { dims, element: array.element, samples: 1 })
}

/// `3 samples of 4×5 float32`.
pub(crate) fn in_words(shape: &FileShape) -> String {
    let dims: Vec<String> = shape.dims.as_slice().iter().map(u64::to_string).collect();
    let dims = if dims.is_empty() { "1".to_string() } else { dims.join("×") };
    let plural = if shape.samples == 1 { "" } else { "s" };
    format!("{} sample{plural} of {dims} {}", shape.samples, shape.element.name())
}

/// The decoder of the format jpeg, for members of containers.
fn jpeg_decoder(check_crc: bool) -> whole_image::PictureDecoder {
    whole_image::PictureDecoder::new::<jpeg::Jpeg>(check_crc)
}

/// The decoder of the format png, for members of containers.
fn png_decoder(check_crc: bool) -> whole_image::PictureDecoder {
    whole_image::PictureDecoder::new::<png::Png>(check_crc)
}
