//! Formats of one picture a file, whose headers are looked at as they come, and which is decoded once the whole file is there.
//!
//! Two buffers are claimed once and reused: the file's bytes and its pixels. What is written is made row by row.

use super::ahead::WantedSample;
use super::kept_content::KeptContent;
use super::payload_range::PayloadRange;
use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, SinkError,
    in_words, length_of,
};
use feedrate_spec::catalog::{FormatEntry, Member, Unfit};
use feedrate_spec::shape::{Dims, Element, Encoding, FileShape};
use std::fmt::Display;
use std::io;

/// One kind of picture: all that its [`Format`] needs.
pub(super) trait Picture: Sync + 'static {
    /// Name, summary, abilities.
    const MEMBER: &'static Member;

    /// Error of the library that writes.
    type WriteError: Display;

    /// First bytes of its files.
    const BEGINS: &'static [u8];

    /// Types of its pixels.
    const ELEMENTS: &'static [Element];

    /// Limits on the pictures that are written.
    const FITS: Fits;

    /// The most bytes of pixels that one byte of a file can stand for.
    const PIXEL_BYTES_A_BYTE: u64;

    /// About the bytes of a file: how well noise is packed depends on the content.
    fn file_bytes(shape: &FileShape) -> u64;

    /// Write a picture. An error of the sink's comes back as [`SinkWriter`] gave it to the library.
    fn write(
        shape: &FileShape,
        pixels: PixelSource,
        writer: &mut SinkWriter,
    ) -> Result<(), Self::WriteError>;

    /// Decode a whole file into the memory that `pixels` claims for its shape. Of a file that is not whole only the headers are
    /// read, and no error if they are cut off.
    fn decode(file: &[u8], check_crc: bool, pixels: &mut Pixels) -> Result<(), FormatError>;
}

/// The format of such pictures.
pub(super) const fn format<P: Picture>() -> Format {
    let entry = FormatEntry {
        elements: P::ELEMENTS,
        dlio_dims_max: Some(2),
        unfit: |shape, _| P::FITS.unfit(shape),
        ..FormatEntry::new(P::MEMBER, |shape, _| P::file_bytes(shape))
    };
    Format {
        // 2: libraries encode.
        version: 2,
        begins: |head| head.starts_with(P::BEGINS),
        ..Format::new(entry, encode::<P>, cursor::<P>)
    }
}

fn encode<P: Picture>(
    shape: &FileShape,
    _encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut writer = SinkWriter { sink, refused: None };
    let pixels = PixelSource { content: KeptContent::new(shape, 0, content), at: 0 };
    let encoded = P::write(shape, pixels, &mut writer);
    match (writer.refused, encoded) {
        (Some(refused), _) => Err(refused),
        (None, Err(error)) => {
            Err(SinkError::new("encode", "", io::Error::other(error.to_string())))
        }
        (None, Ok(())) => Ok(()),
    }
}

fn cursor<P: Picture>(options: &CursorOptions) -> Box<dyn Cursor> {
    Box::new(ImageCursor {
        decoder: PictureDecoder::new::<P>(options.check_crc),
        piece_bytes: options.piece_bytes,
        range: PayloadRange::default(),
        look_at: 0,
        file: Vec::new(),
    })
}

/// Pixels of a foreign picture, at most: memory is claimed for them on the word of a file.
const FOREIGN_PIXEL_BYTES_MAX: u64 = 1 << 30;

/// The picture that a file should hold, and memory for its pixels.
#[derive(Default)]
pub(super) struct Pixels {
    wanted: WantedSample,
    /// Length of the file, once it is known.
    length: Option<u64>,
    bytes_a_byte: u64,
    /// All of the file is there.
    pub(super) is_whole: bool,
    found: Option<FileShape>,
    memory: Vec<u8>,
}

impl Pixels {
    /// Memory for a picture of `channels` colours, if that is wanted and can be true; none before the file is whole.
    pub(super) fn claim(
        &mut self,
        [height, width, channels]: [u64; 3],
        element: Element,
    ) -> Result<Option<&mut [u8]>, FormatError> {
        let dims = if channels == 1 { &[height, width][..] } else { &[height, width, channels] };
        let dims = Dims::new(dims).unwrap_or_else(|| unreachable!("three dimensions fit"));
        let found = FileShape { dims, element, samples: 1 };
        self.wanted.check(&found)?;
        let length = self.length.unwrap_or_default();
        let most = length.saturating_mul(self.bytes_a_byte);
        let bytes = found.sample_bytes();
        if bytes > most || (self.wanted.expected.is_none() && bytes > FOREIGN_PIXEL_BYTES_MAX) {
            let why = if bytes > most {
                format!("a file of {length} bytes cannot hold more than {most}")
            } else {
                format!("more than {FOREIGN_PIXEL_BYTES_MAX} bytes are not decoded")
            };
            let message = format!("says it holds {}; {why}", in_words(&found));
            return Err(FormatError::new(0, message));
        }
        self.found = Some(found);
        if !self.is_whole {
            return Ok(None);
        }
        let len = bytes as usize;
        if self.memory.len() < len {
            self.memory.clear();
            reserve(&mut self.memory, bytes)?;
            self.memory.resize(len, 0);
        }
        Ok(Some(&mut self.memory[..len]))
    }
}

/// Memory for `bytes` bytes in the empty `memory`, or an error.
fn reserve(memory: &mut Vec<u8>, bytes: u64) -> Result<(), FormatError> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    memory
        .try_reserve_exact(len)
        .map_err(|_| FormatError::new(0, format!("there is no memory for its {bytes} bytes")))
}

/// Decodes pictures: files of their own, and those that lie in other files, each of which is there as a whole.
pub(super) struct PictureDecoder {
    decode: fn(&[u8], bool, &mut Pixels) -> Result<(), FormatError>,
    check_crc: bool,
    pixels: Pixels,
}

impl PictureDecoder {
    pub(super) fn new<P: Picture>(check_crc: bool) -> Self {
        let pixels = Pixels { bytes_a_byte: P::PIXEL_BYTES_A_BYTE, ..Pixels::default() };
        PictureDecoder { decode: P::decode, check_crc, pixels }
    }

    /// The shape of a picture, and its pixels.
    pub(super) fn decode(&mut self, file: &[u8]) -> Result<(FileShape, &[u8]), FormatError> {
        self.pixels.length = Some(file.len() as u64);
        (self.pixels.found, self.pixels.is_whole) = (None, true);
        self.look(file)?;
        let found = self.pixels.found.ok_or_else(|| FormatError::new(0, "no picture"))?;
        Ok((found, &self.pixels.memory[..found.sample_bytes() as usize]))
    }

    fn look(&mut self, file: &[u8]) -> Result<(), FormatError> {
        (self.decode)(file, self.check_crc, &mut self.pixels)
    }
}

struct ImageCursor {
    decoder: PictureDecoder,
    piece_bytes: usize,
    /// Bytes of the file that are still to come.
    range: PayloadRange,
    /// Headers are looked at again once so much has come.
    look_at: usize,
    file: Vec<u8>,
}

impl ImageCursor {
    fn claim_file(&mut self, length: u64) -> Result<(), FormatError> {
        let expected = self.decoder.pixels.wanted.expected.as_ref();
        let pixel_bytes = expected.map_or(FOREIGN_PIXEL_BYTES_MAX, FileShape::sample_bytes);
        // Noise does not double, and there may be some words about the picture.
        let most = pixel_bytes.saturating_mul(2).saturating_add(64 << 10);
        if length == 0 {
            return Err(FormatError::new(0, "the file is empty"));
        }
        if length > most {
            let message = format!(
                "the file has {length} bytes; no picture looked for takes more than {most}"
            );
            return Err(FormatError::new(0, message));
        }
        reserve(&mut self.file, length)?;
        self.range = PayloadRange::new(0, length);
        self.decoder.pixels.length = Some(length);
        Ok(())
    }
}

impl Cursor for ImageCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        let pixels = &mut self.decoder.pixels;
        pixels.wanted = WantedSample::new(file, sample, expected);
        (pixels.length, pixels.found) = (None, None);
        self.look_at = 0;
        self.file.clear();
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        Ok(match self.decoder.pixels.length {
            None => Need::Length { part: 0 },
            Some(_) => self.range.need(0, self.piece_bytes),
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.decoder.pixels.length.is_none() {
            return self.claim_file(length_of(bytes));
        }
        self.range.feed(bytes, &mut self.file)?;
        if self.range.left() == 0 {
            return sink.payload(0, self.decoder.decode(&self.file)?.1);
        }
        let pixels = &mut self.decoder.pixels;
        pixels.is_whole = false;
        if pixels.found.is_none() && self.file.len() >= self.look_at {
            self.decoder.look(&self.file)?;
            self.look_at = 2 * self.file.len();
        }
        Ok(())
    }

    fn found(&self) -> Option<FileShape> {
        self.decoder.pixels.found
    }
}

/// Makes the content of the one sample, row by row.
pub(super) struct PixelSource<'c> {
    content: KeptContent<'c>,
    /// Offset in the sample of the next row.
    at: u64,
}

impl PixelSource<'_> {
    /// The next bytes of the sample.
    pub(super) fn next(&mut self, row: &mut [u8]) {
        self.content.fill(0, self.at, row);
        self.at += row.len() as u64;
    }
}

/// Part 0 of a sink as libraries write to it.
pub(super) struct SinkWriter<'s> {
    sink: &'s mut dyn FileSink,
    refused: Option<SinkError>,
}

impl io::Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(0, bytes).map_err(|refused| {
            self.refused = Some(refused);
            io::Error::from(io::ErrorKind::Other)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Height and width of a picture; 1 for a side that is missing.
pub(super) fn sides(shape: &FileShape) -> [u64; 2] {
    [0, 1].map(|i| shape.dims.as_slice().get(i).copied().unwrap_or(1))
}

/// Limits on the pictures of a kind.
pub(super) struct Fits {
    /// Numbers of colours that are allowed beside one, which is stated by two dimensions.
    pub(super) channels: &'static [u64],
    pub(super) side_max: u64,
}

impl Fits {
    /// Reason that a file of this shape cannot be written, if it cannot.
    pub(super) fn unfit(&self, shape: &FileShape) -> Option<Unfit> {
        let dims = shape.dims.as_slice();
        let fits = match dims {
            [_, _] => true,
            [_, _, channels] => self.channels.contains(channels),
            _ => false,
        };
        let [height, width] = sides(shape);
        let (key, message, hint) = if shape.samples != 1 {
            (
                "dataset.num_samples_per_file",
                format!("`{}` samples in a picture", shape.samples),
                "a file is one picture: use 1, and more files".to_string(),
            )
        } else if !fits {
            let channels: Vec<String> = self.channels.iter().map(u64::to_string).collect();
            (
                "dataset.record_dims",
                format!("a picture has 2 dimensions, `{dims:?}` has {}", dims.len()),
                format!("give height and width, and for colours {}", channels.join(" or ")),
            )
        } else if height.max(width) > self.side_max || dims.contains(&0) {
            (
                "dataset.record_dims",
                format!("a picture of `{height}` × `{width}` pixels"),
                format!("a side has 1 to {} pixels", self.side_max),
            )
        } else {
            return None;
        };
        Some(Unfit { key, message, hint })
    }
}
