//! Unpacks gzip (RFC 1952), members one after another, as it comes.

use super::super::deflate::{GZIP_HEADER_BYTES, Inflate, gzip_header_bytes};
use super::{FormatError, cut_off};

const TRAILER_BYTES: usize = 8;
/// The longest header that is read, with its names and extra field.
const HEADER_BYTES_MAX: usize = 128 << 10;
/// Header bytes that are looked at together.
const LOOK_BYTES: usize = 512;

/// Flags of a header that nobody uses.
const RESERVED: u8 = 0xe0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum GzipSection {
    Header,
    Body,
    Trailer,
}

/// The state of one file.
pub(super) struct Gunzip {
    check_crc: bool,
    inflate: Inflate,
    /// Start in the window of the unpacked bytes that were not yet taken.
    from: usize,
    to: usize,
    section: GzipSection,
    /// Bytes of the header or the trailer that have come.
    around: Vec<u8>,
    crc: crc32fast::Hasher,
    member_bytes: u32,
    /// Offset in the packed file, for errors.
    at: u64,
}

impl Gunzip {
    pub(super) fn new(check_crc: bool) -> Self {
        Gunzip {
            check_crc,
            inflate: Inflate::new(),
            from: 0,
            to: 0,
            section: GzipSection::Header,
            around: Vec::with_capacity(LOOK_BYTES),
            crc: crc32fast::Hasher::new(),
            member_bytes: 0,
            at: 0,
        }
    }

    /// Start on a file.
    pub(super) fn begin(&mut self) {
        (self.from, self.to, self.at) = (0, 0, 0);
        self.go_to(GzipSection::Header);
    }

    fn go_to(&mut self, section: GzipSection) {
        self.section = section;
        self.around.clear();
    }

    /// Unpacked bytes that were not yet taken.
    pub(super) fn text(&self) -> &[u8] {
        &self.inflate.window[self.from..self.to]
    }

    /// Mark so many bytes of [`Gunzip::text`] as used.
    pub(super) fn taken(&mut self, len: usize) {
        self.from += len;
    }

    /// Whether there is text, or may be without more of the file: a full window can hide some.
    pub(super) fn has_more(&self) -> bool {
        let is_full = self.to == self.inflate.window.len();
        self.from < self.to || (is_full && self.section == GzipSection::Body)
    }

    /// The file is over: was the stream?
    pub(super) fn check_end(&self, at: u64) -> Result<(), FormatError> {
        match self.section {
            GzipSection::Header if self.around.is_empty() => Ok(()),
            GzipSection::Trailer => Err(cut_off(at, (TRAILER_BYTES - self.around.len()) as u64)),
            _ => Err(FormatError::new(at, "the file ends within a gzip stream")),
        }
    }

    /// Unpack some of `bytes`, once all text was taken: how many were used. Uses some or makes text, if any come.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        (self.from, self.to) = (0, 0);
        let used = match self.section {
            GzipSection::Header => self.header(bytes)?,
            GzipSection::Body => self.body(bytes)?,
            GzipSection::Trailer => self.trailer(bytes)?,
        };
        self.at += used as u64;
        Ok(used)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        let step = self.inflate.step(bytes, self.at)?;
        self.to = step.made;
        let text = &self.inflate.window[..step.made];
        if self.check_crc {
            self.crc.update(text);
        }
        self.member_bytes = self.member_bytes.wrapping_add(text.len() as u32);
        if step.is_end {
            self.go_to(GzipSection::Trailer);
        }
        Ok(step.used)
    }

    fn header(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        let before = self.around.len();
        self.around.extend_from_slice(&bytes[..bytes.len().min(LOOK_BYTES)]);
        let come = self.around.len();
        let is_gzip = [0x1f, 0x8b, 8].iter().zip(&self.around).all(|(a, b)| a == b);
        let is_known = self.around.get(3).is_none_or(|flags| flags & RESERVED == 0);
        let is_whole = come >= GZIP_HEADER_BYTES;
        if (is_whole && !(is_gzip && is_known)) || come > HEADER_BYTES_MAX {
            return Err(self.wrong("no gzip header where one was expected"));
        }
        let Some(len) = gzip_header_bytes(&self.around) else { return Ok(come - before) };
        self.go_to(GzipSection::Body);
        self.inflate.reset();
        self.crc.reset();
        self.member_bytes = 0;
        Ok(len - before)
    }

    fn trailer(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        let used = bytes.len().min(TRAILER_BYTES - self.around.len());
        self.around.extend_from_slice(&bytes[..used]);
        let Some(trailer) = self.around.first_chunk::<TRAILER_BYTES>() else { return Ok(used) };
        let stated = u64::from_le_bytes(*trailer);
        let (stated_crc, stated_bytes) = (stated as u32, (stated >> 32) as u32);
        let crc = self.crc.clone().finalize();
        if self.check_crc && crc != stated_crc {
            let message =
                format!("CRC-32 of the text is {crc:08x}, the file says {stated_crc:08x}");
            return Err(self.wrong(message));
        }
        if stated_bytes != self.member_bytes {
            let made = self.member_bytes;
            let message = format!("{made} bytes were unpacked, the file says {stated_bytes}");
            return Err(self.wrong(message));
        }
        self.go_to(GzipSection::Header);
        Ok(used)
    }

    fn wrong(&self, message: impl Into<String>) -> FormatError {
        FormatError::new(self.at, message)
    }
}
