//! Reads files that hold one picture, which is decoded once the whole file is there. Shared by the picture formats.
//!
//! Two buffers are claimed once and reused: the file's bytes and its pixels. What is written is made row by row.

use super::{
    Content, Cursor, CursorOptions, FileSink, FormatError, Need, PayloadSink, SinkError,
    check_sample, compare_shapes, cut_off, in_words, piece_len,
};
use feedrate_spec::catalog::Unfit;
use feedrate_spec::shape::{Element, FileShape};
use std::fmt::Display;
use std::io;

/// Pixels of a foreign picture, at most: memory is claimed for them on the word of a file.
const FOREIGN_PIXEL_BYTES_MAX: u64 = 1 << 30;

/// Decoder of one kind of picture.
pub(super) trait Picture: Send {
    /// The most bytes of pixels that one byte of a file can stand for.
    const PIXEL_BYTES_A_BYTE: u64;

    /// A new file begins.
    fn begin(&mut self);

    /// Shape of the picture, once its first bytes `head` state it; each call gets more of them.
    fn look(&mut self, head: &[u8]) -> Result<Option<FileShape>, FormatError>;

    /// Decode a whole file of which `look` told the shape: `pixels` is as long as its sample.
    fn decode(&mut self, file: &[u8], pixels: &mut [u8]) -> Result<(), FormatError>;
}

/// A file of `pixel_bytes` bytes of pixels is no longer than this: noise does not double, and there may be some
/// words about the picture.
fn file_bytes_max(pixel_bytes: u64) -> u64 {
    pixel_bytes.saturating_mul(2).saturating_add(64 << 10)
}

pub(super) struct ImageCursor<P> {
    picture: P,
    piece_bytes: usize,
    sample: u64,
    expected: Option<FileShape>,
    length: Option<u64>,
    found: Option<FileShape>,
    asked: usize,
    is_done: bool,
    file: Vec<u8>,
    pixels: Vec<u8>,
}

impl<P: Picture> ImageCursor<P> {
    pub(super) fn new(picture: P, options: &CursorOptions) -> Self {
        ImageCursor {
            picture,
            piece_bytes: options.piece_bytes,
            sample: 0,
            expected: None,
            length: None,
            found: None,
            asked: 0,
            is_done: false,
            file: Vec::new(),
            pixels: Vec::new(),
        }
    }

    fn claim_file(&mut self, length: u64) -> Result<(), FormatError> {
        let expected = self.expected.as_ref();
        let pixel_bytes = expected.map_or(FOREIGN_PIXEL_BYTES_MAX, FileShape::sample_bytes);
        let most = file_bytes_max(pixel_bytes);
        if length == 0 {
            return Err(FormatError::new(0, "the file is empty"));
        }
        if length > most {
            return Err(FormatError::new(
                0,
                format!(
                    "the file has {length} bytes; no picture looked for takes more than {most}"
                ),
            ));
        }
        claim(&mut self.file, length)?;
        self.length = Some(length);
        Ok(())
    }

    /// The file said what it holds: is that wanted, and can it be true?
    fn check(&self, found: &FileShape, length: u64) -> Result<(), FormatError> {
        compare_shapes(found, self.expected.as_ref())?;
        check_sample(found, self.sample)?;
        let most = length.saturating_mul(P::PIXEL_BYTES_A_BYTE);
        let why = if found.sample_bytes() > most {
            format!("a file of {length} bytes cannot hold more than {most}")
        } else if self.expected.is_none() && found.sample_bytes() > FOREIGN_PIXEL_BYTES_MAX {
            format!("more than {FOREIGN_PIXEL_BYTES_MAX} bytes are not decoded")
        } else {
            return Ok(());
        };
        Err(FormatError::new(0, format!("says it holds {}; {why}", in_words(found))))
    }

    fn decode(&mut self, found: &FileShape, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let pixel_bytes = found.sample_bytes() as usize;
        if self.pixels.len() < pixel_bytes {
            self.pixels.clear();
            claim(&mut self.pixels, pixel_bytes as u64)?;
            self.pixels.resize(pixel_bytes, 0);
        }
        let pixels = &mut self.pixels[..pixel_bytes];
        self.picture.decode(&self.file, pixels)?;
        self.is_done = true;
        sink.payload(0, pixels)
    }
}

/// Memory for `bytes` bytes in the empty `memory`, or an error.
fn claim(memory: &mut Vec<u8>, bytes: u64) -> Result<(), FormatError> {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    memory
        .try_reserve_exact(len)
        .map_err(|_| FormatError::new(0, format!("there is no memory for its {bytes} bytes")))
}

impl<P: Picture> Cursor for ImageCursor<P> {
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        self.sample = sample;
        self.expected = expected.copied();
        self.length = None;
        self.found = None;
        self.is_done = false;
        self.file.clear();
        self.picture.begin();
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let offset = self.file.len() as u64;
        Ok(match self.length {
            _ if self.is_done => Need::Done,
            None => Need::Length { part: 0 },
            Some(length) => {
                self.asked = piece_len(self.piece_bytes, offset, length - offset);
                Need::Bytes { part: 0, offset, len: self.asked }
            }
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let Some(length) = self.length else {
            let bytes = bytes.try_into().map_err(|_| FormatError::new(0, "has no length"))?;
            return self.claim_file(u64::from_le_bytes(bytes));
        };
        self.file.extend_from_slice(bytes);
        let at = self.file.len() as u64;
        if bytes.len() < self.asked {
            return Err(cut_off(at, length - at));
        }
        if self.found.is_none() {
            let found = self.picture.look(&self.file)?;
            if let Some(found) = &found {
                self.check(found, length)?;
            }
            self.found = found;
        }
        match self.found {
            _ if at < length => Ok(()),
            Some(found) => self.decode(&found, sink),
            None => Err(FormatError::new(at, "the file ends before its picture begins")),
        }
    }

    fn found(&self) -> Option<FileShape> {
        self.found
    }
}

/// Bytes made together, in whole blocks of content: a row of its own would make the block around it again.
const MADE_BYTES: u64 = 64 << 10;

/// Makes the content of the one sample, in order.
pub(super) struct Drawn<'c> {
    content: &'c mut Content,
    element: Element,
    /// Where in the sample the bytes after `made` begin, and where the sample ends.
    at: u64,
    end: u64,
    made: Vec<u8>,
    given: usize,
}

impl<'c> Drawn<'c> {
    pub(super) fn new(end: u64, element: Element, content: &'c mut Content) -> Self {
        let made = Vec::with_capacity(end.min(MADE_BYTES) as usize);
        Drawn { content, element, at: 0, end, made, given: 0 }
    }

    /// The next bytes of the sample; after the last `row` stays as it is.
    pub(super) fn next(&mut self, row: &mut [u8]) {
        let mut rest = row;
        while !rest.is_empty() {
            if self.given == self.made.len() {
                if self.at == self.end {
                    return;
                }
                self.made.resize((self.end - self.at).min(MADE_BYTES) as usize, 0);
                self.content.fill(0, self.at, self.element, &mut self.made);
                self.at += self.made.len() as u64;
                self.given = 0;
            }
            let made = &self.made[self.given..];
            let (now, later) = rest.split_at_mut(made.len().min(rest.len()));
            now.copy_from_slice(&made[..now.len()]);
            self.given += now.len();
            rest = later;
        }
    }
}

/// Part 0 of a sink as libraries write to it.
pub(super) struct SinkWriter<'s> {
    sink: &'s mut dyn FileSink,
    refused: Option<SinkError>,
}

impl<'s> SinkWriter<'s> {
    pub(super) fn new(sink: &'s mut dyn FileSink) -> Self {
        SinkWriter { sink, refused: None }
    }

    /// The sink's own word, where it refused some of what a library wrote.
    pub(super) fn finish(self, encoded: Result<(), impl Display>) -> Result<(), SinkError> {
        match (self.refused, encoded) {
            (Some(refused), _) => Err(refused),
            (None, Err(error)) => {
                Err(SinkError::new("encode", "", io::Error::other(error.to_string())))
            }
            (None, Ok(())) => Ok(()),
        }
    }
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
    pub(super) elements: &'static [Element],
    /// Numbers of colours that are allowed beside one, which is stated by two dimensions.
    pub(super) channels: &'static [u64],
    pub(super) side_max: u64,
}

impl Fits {
    /// Reason that a file of this shape cannot be written, if it cannot.
    pub(super) fn unfit(&self, shape: &FileShape) -> Option<Unfit> {
        if shape.samples != 1 {
            return Some(Unfit {
                key: "dataset.num_samples_per_file",
                message: format!("`{}` samples in a picture", shape.samples),
                hint: "a file is one picture: use 1, and more files".to_string(),
            });
        }
        if !self.elements.contains(&shape.element) {
            let names: Vec<&str> = self.elements.iter().map(|element| element.name()).collect();
            return Some(Unfit {
                key: "dataset.record_element_type",
                message: format!("pixels of `{}`", shape.element.name()),
                hint: format!("use {}", names.join(" or ")),
            });
        }
        let dims = shape.dims.as_slice();
        let fits = match dims {
            [_, _] => true,
            [_, _, channels] => self.channels.contains(channels),
            _ => false,
        };
        if !fits {
            let channels: Vec<String> = self.channels.iter().map(u64::to_string).collect();
            return Some(Unfit {
                key: "dataset.record_dims",
                message: format!("`{dims:?}` are no dimensions of a picture"),
                hint: format!("give height and width, and for colours {}", channels.join(" or ")),
            });
        }
        let side = dims[0].max(dims[1]);
        if side > self.side_max || dims.contains(&0) {
            return Some(Unfit {
                key: "dataset.record_dims",
                message: format!("a picture of `{}` × `{}` pixels", dims[0], dims[1]),
                hint: format!("a side has 1 to {} pixels", self.side_max),
            });
        }
        None
    }
}
