//! The beginning of a PNG file: signature, header, and what lies before the pixels.

use super::super::FormatError;
use feedrate_spec::shape::{Dims, Element, FileShape};

pub(super) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Length, kind and checksum around what a chunk holds.
pub(super) const CHUNK_BYTES: u64 = 12;
/// The signature and the header chunk.
pub(super) const HEAD_BYTES: u64 = 33;

/// Colour types by the standard's numbers.
mod colour {
    pub(super) const GREY: u8 = 0;
    pub(super) const RGB: u8 = 2;
    pub(super) const PALETTE: u8 = 3;
    pub(super) const GREY_ALPHA: u8 = 4;
    pub(super) const RGBA: u8 = 6;
}

/// Description of the pixels in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) depth: u8,
    pub(super) colour: u8,
}

impl Head {
    /// Channels of the unfolded pixels.
    fn channels(&self, alpha: Alpha) -> u64 {
        let channels = match self.colour {
            colour::GREY => 1,
            colour::GREY_ALPHA => 2,
            colour::RGB | colour::PALETTE => 3,
            _ => 4,
        };
        channels + u64::from(alpha == Alpha::BesidePixels)
    }

    fn shape(&self, alpha: Alpha) -> FileShape {
        let dims = [u64::from(self.height), u64::from(self.width), self.channels(alpha)];
        let dims = if dims[2] == 1 { &dims[..2] } else { &dims[..] };
        let dims = Dims::new(dims).unwrap_or_else(|| unreachable!("three dimensions fit"));
        let element = if self.depth == 16 { Element::Uint16 } else { Element::Uint8 };
        FileShape { dims, element, samples: 1 }
    }
}

/// Source of transparency.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alpha {
    InPixels,
    BesidePixels,
}

/// Walks over what lies before the pixels, as far as it has come in.
#[derive(Default)]
pub(super) struct Chunks {
    head: Option<Head>,
    is_transparent: bool,
    at: usize,
}

impl Chunks {
    /// Shape of the picture, once its pixels begin in `file`, the part of it that has come in.
    pub(super) fn look(&mut self, file: &[u8]) -> Result<Option<FileShape>, FormatError> {
        let Some(head) = self.head else {
            let Some(bytes) = file.first_chunk::<{ HEAD_BYTES as usize }>() else {
                return Ok(None);
            };
            self.head = Some(header(bytes)?);
            self.at = HEAD_BYTES as usize;
            return self.look(file);
        };
        // Each chunk moves on by 12 bytes at least.
        while let Some([a, b, c, d, kind @ ..]) =
            file.get(self.at..).and_then(|rest| rest.first_chunk::<8>())
        {
            match kind {
                b"IDAT" => {
                    let beside = self.is_transparent
                        && !matches!(head.colour, colour::GREY_ALPHA | colour::RGBA);
                    let alpha = if beside { Alpha::BesidePixels } else { Alpha::InPixels };
                    return Ok(Some(head.shape(alpha)));
                }
                b"tRNS" => self.is_transparent = true,
                _ => {}
            }
            let len = u32::from_be_bytes([*a, *b, *c, *d]);
            self.at = self.at.saturating_add(len as usize).saturating_add(CHUNK_BYTES as usize);
        }
        Ok(None)
    }
}

fn header(bytes: &[u8; HEAD_BYTES as usize]) -> Result<Head, FormatError> {
    let refuse = |at, what: String| Err(FormatError::new(at, what));
    if !bytes.starts_with(&SIGNATURE) {
        return refuse(0, "does not begin as a png does".into());
    }
    if bytes[8..16] != *b"\0\0\0\x0dIHDR" {
        return refuse(8, "its first chunk is not `IHDR`".into());
    }
    let word =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (width, height, depth, colour) = (word(16), word(20), bytes[24], bytes[25]);
    if width == 0 || height == 0 || width > i32::MAX as u32 || height > i32::MAX as u32 {
        return refuse(16, format!("a png of `{width}` × `{height}` pixels"));
    }
    let is_known = match colour {
        colour::GREY => matches!(depth, 1 | 2 | 4 | 8 | 16),
        colour::PALETTE => matches!(depth, 1 | 2 | 4 | 8),
        colour::RGB | colour::GREY_ALPHA | colour::RGBA => matches!(depth, 8 | 16),
        _ => false,
    };
    if !is_known {
        return refuse(24, format!("`{depth}` bits of colour type `{colour}` are no png"));
    }
    Ok(Head { width, height, depth, colour })
}
