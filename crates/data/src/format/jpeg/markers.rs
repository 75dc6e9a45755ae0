//! The segments of a JPEG file: what it holds, and whether its end is there. Decoders believe broken files too much.

use super::super::FormatError;
use feedrate_spec::shape::{Dims, Element, FileShape};

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
/// Kind, length and the first fields of a frame's header.
const FRAME_BYTES: usize = 10;

/// Walks from segment to segment, as far as the file has come in.
#[derive(Default)]
pub(super) struct Markers {
    at: usize,
}

impl Markers {
    /// Shape of the picture, once the bytes that state it have come.
    pub(super) fn look(&mut self, file: &[u8]) -> Result<Option<FileShape>, FormatError> {
        if self.at == 0 {
            if file.len() < 2 {
                return Ok(None);
            }
            if file[..2] != [0xff, SOI] {
                return Err(FormatError::new(0, "does not begin as a jpeg does"));
            }
            self.at = 2;
        }
        // Each segment moves on by 2 bytes at least, and fill by one.
        while let Some(&[first, kind, high, low]) =
            file.get(self.at..).and_then(|rest| rest.first_chunk::<4>())
        {
            let at = self.at as u64;
            match (first, kind) {
                (0xff, 0xff) => self.at += 1,
                (0xff, SOS | EOI) => {
                    return Err(FormatError::new(at, "no frame header comes before the pixels"));
                }
                (0xff, 0xc0..=0xcf) if !matches!(kind, 0xc4 | 0xc8 | 0xcc) => {
                    let frame = file[self.at..].first_chunk::<FRAME_BYTES>();
                    return frame
                        .map(|frame| shape(frame).map_err(|why| FormatError::new(at, why)))
                        .transpose();
                }
                (0xff, 0x01 | 0xd0..=0xd7) => self.at += 2,
                (0xff, _) => self.at += 2 + segment_bytes(high, low),
                _ => return Err(FormatError::new(at, format!("`{first:#04x}` is no marker"))),
            }
        }
        Ok(None)
    }

    /// An error if the file's end was cut off. What others append to a picture is no part of it.
    pub(super) fn check_end(&self, file: &[u8]) -> Result<(), FormatError> {
        if file.ends_with(&[0xff, EOI]) || has_end(file, self.at) {
            return Ok(());
        }
        Err(FormatError::new(file.len() as u64, "the file ends before its picture does"))
    }
}

/// Whether a picture that begins its segments at `at` has an end.
fn has_end(file: &[u8], mut at: usize) -> bool {
    while let Some(&[first, kind, high, low]) =
        file.get(at..).and_then(|rest| rest.first_chunk::<4>())
    {
        match (first, kind) {
            (0xff, EOI) => return true,
            // In coded pixels 0xff is followed by 0, and segments lie between scans.
            (0xff, 0 | 0x01 | 0xd0..=0xd7) => at += 2,
            (0xff, 0xff) => at += 1,
            (0xff, _) => at += 2 + segment_bytes(high, low),
            _ => match file[at..].iter().position(|&byte| byte == 0xff) {
                Some(distance) => at += distance,
                None => return false,
            },
        }
    }
    false
}

fn segment_bytes(high: u8, low: u8) -> usize {
    usize::from(u16::from_be_bytes([high, low]))
}

/// The shape that a frame states, or the reason to refuse it.
fn shape(frame: &[u8; FRAME_BYTES]) -> Result<FileShape, String> {
    let &[_, kind, _, _, depth, h_high, h_low, w_high, w_low, colours] = frame;
    if !matches!(kind, 0xc0..=0xc2) {
        return Err(format!("a frame of kind `{kind:#04x}`: lossless or arithmetic coding"));
    }
    if depth != 8 {
        return Err(format!("samples of `{depth}` bits"));
    }
    let height = u64::from(u16::from_be_bytes([h_high, h_low]));
    let width = u64::from(u16::from_be_bytes([w_high, w_low]));
    if width == 0 || height == 0 {
        return Err(format!("a jpeg of `{width}` × `{height}` pixels"));
    }
    let dims = match colours {
        1 => Dims::new(&[height, width]),
        3 => Dims::new(&[height, width, 3]),
        4 => return Err("`4` colours: CMYK is for printing".into()),
        _ => return Err(format!("`{colours}` colours")),
    };
    let dims = dims.unwrap_or_else(|| unreachable!("three dimensions fit"));
    Ok(FileShape { dims, element: Element::Uint8, samples: 1 })
}
