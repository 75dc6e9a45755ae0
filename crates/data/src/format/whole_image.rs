//! Shared code of the formats with one image per file. Headers are checked while the file is read, and the image is
//! decoded when the file is complete.
//!
//! Two buffers are allocated once and reused: the bytes of the file and its pixels. Images are written row by row.

use super::ahead::WantedSample;
use super::kept_content::CachedContent;
use super::payload_range::PayloadRange;
use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, PieceSizes,
    SinkError, decode_length, describe_shape,
};
use feedrate_spec::catalog::{FormatEntry, Member, UnsupportedSetting};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::{Dims, Element, Encoding, FileShape};
use std::fmt::Display;
use std::io;

/// The properties and functions of an image format, from which [`format()`] makes a [`Format`].
pub(super) trait ImageFormat: Sync + 'static {
    /// Name, summary, abilities.
    const MEMBER: &'static Member;

    /// Error type of the encoder.
    type WriteError: Display;

    /// The bytes that each file starts with.
    const SIGNATURE: &'static [u8];

    /// Element types of pixels.
    const ELEMENTS: &'static [Element];

    /// Limits on the images that are written.
    const LIMITS: ImageLimits;

    /// Upper limit on the bytes of pixels that one byte of a file can encode.
    const PIXEL_BYTES_PER_BYTE_MAX: u64;

    /// Pillow with this format.
    const LIBRARY: Library;

    /// Estimated length of a file. The exact length depends on the content.
    fn file_bytes(shape: &FileShape) -> u64;

    /// Writes an image. An error of the sink is returned only if the encoder passes it on.
    fn write(
        shape: &FileShape,
        pixels: PixelSource,
        writer: &mut SinkWriter,
    ) -> Result<(), Self::WriteError>;

    /// Decodes a complete file into the memory that [`Pixels::claim`] returns. Of an incomplete file, only the headers
    /// are read, and truncated headers are not an error.
    fn decode(file: &[u8], check_crc: bool, pixels: &mut Pixels) -> Result<(), FormatError>;
}

/// The format of images of type `P`.
pub(super) const fn format<P: ImageFormat>() -> Format {
    let entry = FormatEntry {
        elements: P::ELEMENTS,
        dlio_dims_max: Some(2),
        library: Some(P::LIBRARY),
        unsupported_setting: |shape, _| P::LIMITS.find_unsupported_setting(shape),
        ..FormatEntry::new(P::MEMBER, |shape, _| P::file_bytes(shape))
    };
    Format {
        // Version 2: files are encoded by libraries.
        version: 2,
        is_recognised: |head| head.starts_with(P::SIGNATURE),
        ..Format::new(entry, encode::<P>, cursor::<P>)
    }
}

fn encode<P: ImageFormat>(
    shape: &FileShape,
    _encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut writer = SinkWriter { sink, error: None };
    let pixels = PixelSource { content: CachedContent::new(shape, 0, content), offset: 0 };
    let encoded = P::write(shape, pixels, &mut writer);
    match (writer.error, encoded) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => {
            Err(SinkError::new("encode", "", io::Error::other(error.to_string())))
        }
        (None, Ok(())) => Ok(()),
    }
}

fn cursor<P: ImageFormat>(options: &CursorOptions) -> Box<dyn Cursor> {
    Box::new(ImageCursor {
        decoder: ImageDecoder::new::<P>(options.check_crc),
        name: P::MEMBER.name,
        passes_through: options.decodes_members,
        undecoded: None,
        sizes: options.piece_sizes(),
        range: PayloadRange::default(),
        next_check_bytes: 0,
        file: Vec::new(),
    })
}

/// Upper limit on the bytes of a foreign image's pixels, because memory is allocated for the size stated in the file.
const FOREIGN_PIXEL_BYTES_MAX: u64 = 1 << 30;

/// The expected image, and memory for its pixels.
#[derive(Default)]
pub(super) struct Pixels {
    wanted: WantedSample,
    /// Length of the file, if known.
    length: Option<u64>,
    /// Upper limit on the bytes of pixels per byte of the file.
    pixel_bytes_per_byte_max: u64,
    /// Whether the complete file has been read.
    pub(super) is_complete: bool,
    found: Option<FileShape>,
    memory: Vec<u8>,
}

impl Pixels {
    /// Memory for an image of `channels` channels; `None` if the file is incomplete.
    ///
    /// # Errors
    /// The image is not the expected one, or cannot have this size.
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
        let limit = length.saturating_mul(self.pixel_bytes_per_byte_max);
        let bytes = found.sample_bytes();
        if bytes > limit || (self.wanted.expected.is_none() && bytes > FOREIGN_PIXEL_BYTES_MAX) {
            let reason = if bytes > limit {
                format!("a file of {length} bytes cannot hold more than {limit}")
            } else {
                format!("more than {FOREIGN_PIXEL_BYTES_MAX} bytes are not decoded")
            };
            let message = format!("says it holds {}; {reason}", describe_shape(&found));
            return Err(FormatError::new(0, message));
        }
        self.found = Some(found);
        if !self.is_complete {
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

/// Reserves `bytes` bytes in the empty vector `memory`.
fn reserve(memory: &mut Vec<u8>, bytes: u64) -> Result<(), FormatError> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    memory
        .try_reserve_exact(len)
        .map_err(|_| FormatError::new(0, format!("there is no memory for its {bytes} bytes")))
}

/// Decodes complete images, which are files or members of containers.
pub(super) struct ImageDecoder {
    decode: fn(&[u8], bool, &mut Pixels) -> Result<(), FormatError>,
    check_crc: bool,
    pixels: Pixels,
}

impl ImageDecoder {
    pub(super) fn new<P: ImageFormat>(check_crc: bool) -> Self {
        let pixels =
            Pixels { pixel_bytes_per_byte_max: P::PIXEL_BYTES_PER_BYTE_MAX, ..Pixels::default() };
        ImageDecoder { decode: P::decode, check_crc, pixels }
    }

    /// Decodes an image, and returns its shape and its pixels.
    pub(super) fn decode(&mut self, file: &[u8]) -> Result<(FileShape, &[u8]), FormatError> {
        self.pixels.length = Some(file.len() as u64);
        self.pixels.found = None;
        self.pixels.is_complete = true;
        self.run_decoder(file)?;
        let found = self.pixels.found.ok_or_else(|| FormatError::new(0, "no image"))?;
        Ok((found, &self.pixels.memory[..found.sample_bytes() as usize]))
    }

    fn run_decoder(&mut self, file: &[u8]) -> Result<(), FormatError> {
        (self.decode)(file, self.check_crc, &mut self.pixels)
    }
}

struct ImageCursor {
    decoder: ImageDecoder,
    /// Name of the format.
    name: &'static str,
    /// Whether foreign files that cannot be decoded are passed through unchanged.
    passes_through: bool,
    /// The name if the foreign file cannot be decoded, so that its bytes are passed through unchanged.
    undecoded: Option<&'static str>,
    sizes: PieceSizes,
    /// Bytes of the file that are still missing.
    range: PayloadRange,
    /// Number of bytes read at which the headers are checked next.
    next_check_bytes: usize,
    file: Vec<u8>,
}

impl ImageCursor {
    /// Reserves memory for a file of this length.
    fn reserve_file(&mut self, length: u64) -> Result<(), FormatError> {
        let expected = self.decoder.pixels.wanted.expected.as_ref();
        let pixel_bytes = expected.map_or(FOREIGN_PIXEL_BYTES_MAX, FileShape::sample_bytes);
        // Encoded noise is less than twice as long as its pixels. The constant allows for metadata.
        let limit = pixel_bytes.saturating_mul(2).saturating_add(64 << 10);
        if length == 0 {
            return Err(FormatError::new(0, "the file is empty"));
        }
        if length > limit {
            let message =
                format!("the file has {length} bytes, but the expected image has at most {limit}");
            return Err(FormatError::new(0, message));
        }
        reserve(&mut self.file, length)
    }

    /// Passes the bytes of a foreign file through unchanged after a failure to decode it, as a measurement needs its reads and not its pixels.
    fn pass_through(
        &mut self,
        error: FormatError,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let wanted = &self.decoder.pixels.wanted;
        if !self.passes_through || wanted.expected.is_some() || wanted.sample != 0 {
            return Err(error);
        }
        self.undecoded = Some(self.name);
        if self.file.is_empty() { Ok(()) } else { sink.payload(0, &self.file) }
    }
}

impl Cursor for ImageCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        let pixels = &mut self.decoder.pixels;
        pixels.wanted = WantedSample::new(file, sample, expected);
        pixels.length = None;
        pixels.found = None;
        self.undecoded = None;
        self.next_check_bytes = 0;
        self.file.clear();
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        Ok(match self.decoder.pixels.length {
            None => Need::Length { part: 0 },
            Some(_) => self.range.need(0, self.sizes),
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.decoder.pixels.length.is_none() {
            let length = decode_length(bytes);
            self.range = PayloadRange::new(0, length);
            self.decoder.pixels.length = Some(length);
            return match self.reserve_file(length) {
                Ok(()) => Ok(()),
                Err(error) => self.pass_through(error, sink),
            };
        }
        if self.undecoded.is_some() {
            return self.range.feed(bytes, sink);
        }
        self.range.feed(bytes, &mut self.file)?;
        if self.range.remaining() == 0 {
            return match self.decoder.decode(&self.file) {
                Ok((_, payload)) => sink.payload(0, payload),
                Err(error) => self.pass_through(error, sink),
            };
        }
        let pixels = &mut self.decoder.pixels;
        pixels.is_complete = false;
        if pixels.found.is_none() && self.file.len() >= self.next_check_bytes {
            self.next_check_bytes = 2 * self.file.len();
            if let Err(error) = self.decoder.run_decoder(&self.file) {
                return self.pass_through(error, sink);
            }
        }
        Ok(())
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.decoder.pixels.found.filter(|_| self.undecoded.is_none())
    }

    fn payload_bytes(&self) -> Option<u64> {
        match self.undecoded {
            Some(_) => self.decoder.pixels.length,
            None => self.file_shape().map(|shape| shape.sample_bytes()),
        }
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.undecoded
    }
}

/// Generates the content of the sample, row by row.
pub(super) struct PixelSource<'c> {
    content: CachedContent<'c>,
    /// Offset of the next row in the sample.
    offset: u64,
}

impl PixelSource<'_> {
    /// Fills `row` with the next bytes of the sample.
    pub(super) fn fill_next_row(&mut self, row: &mut [u8]) {
        self.content.fill(0, self.offset, row);
        self.offset += row.len() as u64;
    }
}

/// A [`io::Write`] for encoders that writes to part 0 of a sink.
pub(super) struct SinkWriter<'s> {
    sink: &'s mut dyn FileSink,
    /// The error of the sink, which encoders may not pass on.
    error: Option<SinkError>,
}

impl io::Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(0, bytes).map_err(|error| {
            self.error = Some(error);
            io::Error::from(io::ErrorKind::Other)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Height and width of an image; 1 for a missing dimension.
pub(super) fn height_and_width(shape: &FileShape) -> [u64; 2] {
    [0, 1].map(|i| shape.dims.as_slice().get(i).copied().unwrap_or(1))
}

/// Limits on the images of a format.
pub(super) struct ImageLimits {
    /// Allowed numbers of colours in images of three dimensions. Images of two dimensions have one colour.
    pub(super) channels: &'static [u64],
    pub(super) side_max: u64,
}

impl ImageLimits {
    /// Reason why a file of this shape cannot be written; `None` if it can.
    pub(super) fn find_unsupported_setting(&self, shape: &FileShape) -> Option<UnsupportedSetting> {
        let dims = shape.dims.as_slice();
        let fits = match dims {
            [_, _] => true,
            [_, _, channels] => self.channels.contains(channels),
            _ => false,
        };
        let [height, width] = height_and_width(shape);
        let (key, message, hint) = if shape.samples != 1 {
            (
                "dataset.num_samples_per_file",
                format!("`{}` samples in an image", shape.samples),
                "a file is one image: use 1, and more files".to_string(),
            )
        } else if !fits {
            let channels: Vec<String> = self.channels.iter().map(u64::to_string).collect();
            (
                "dataset.record_dims",
                format!("an image has height, width and possibly channels, not `{dims:?}`"),
                format!("use two dimensions, or three with {} channels", channels.join(" or ")),
            )
        } else if height.max(width) > self.side_max || dims.contains(&0) {
            (
                "dataset.record_dims",
                format!("an image of `{height}` × `{width}` pixels"),
                format!("a side has 1 to {} pixels", self.side_max),
            )
        } else {
            return None;
        };
        Some(UnsupportedSetting { key, message, hint })
    }
}
