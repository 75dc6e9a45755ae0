//! Unpacks gzip (RFC 1952), members one after another, as it comes.

use super::{FormatError, cut_off};
use flate2::{Decompress, FlushDecompress, Status};

/// Unpacked at once.
const WINDOW_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

/// Flags of a header.
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The fixed bytes of a header, `.0` of them come.
    Header(usize),
    /// Bytes that have come of the extra field's length.
    ExtraLength(usize),
    Extra(usize),
    Name,
    Comment,
    HeaderCrc(usize),
    Body,
    Trailer(usize),
}

/// The state of one file.
pub(super) struct Gunzip {
    check_crc: bool,
    inflate: Decompress,
    window: Vec<u8>,
    /// Start in the window of the unpacked bytes that were not yet taken.
    from: usize,
    to: usize,
    phase: Phase,
    /// Fixed bytes of the header or the trailer.
    fixed: [u8; HEADER_BYTES],
    crc: crc32fast::Hasher,
    member_bytes: u32,
    /// Offset in the packed file, for errors.
    at: u64,
}

impl Gunzip {
    pub(super) fn new(check_crc: bool) -> Self {
        Gunzip {
            check_crc,
            inflate: Decompress::new(false),
            window: vec![0; WINDOW_BYTES],
            from: 0,
            to: 0,
            phase: Phase::Header(0),
            fixed: [0; HEADER_BYTES],
            crc: crc32fast::Hasher::new(),
            member_bytes: 0,
            at: 0,
        }
    }

    /// Start on a file.
    pub(super) fn begin(&mut self) {
        (self.from, self.to, self.at) = (0, 0, 0);
        self.phase = Phase::Header(0);
    }

    /// Unpacked bytes that were not yet taken.
    pub(super) fn text(&self) -> &[u8] {
        &self.window[self.from..self.to]
    }

    /// Mark so many bytes of [`Gunzip::text`] as used.
    pub(super) fn taken(&mut self, len: usize) {
        self.from += len;
    }

    /// Whether there is text, or may be without more of the file: a full window can hide some.
    pub(super) fn has_more(&self) -> bool {
        self.from < self.to || (self.to == WINDOW_BYTES && self.phase == Phase::Body)
    }

    /// The file is over: was the stream?
    pub(super) fn check_end(&self, at: u64) -> Result<(), FormatError> {
        match self.phase {
            Phase::Header(0) => Ok(()),
            Phase::Trailer(come) => Err(cut_off(at, (TRAILER_BYTES - come) as u64)),
            _ => Err(FormatError::new(at, "the file ends within a gzip stream")),
        }
    }

    /// Unpack some of `bytes`, once all text was taken: how many were used. Uses some or makes text, if any come.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        (self.from, self.to) = (0, 0);
        let used = match self.phase {
            Phase::Body => self.body(bytes)?,
            _ => self.around(bytes)?,
        };
        self.at += used as u64;
        Ok(used)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(bytes, &mut self.window, FlushDecompress::None)
            .map_err(|error| self.wrong(format!("broken deflate stream: {error}")))?;
        let used = (self.inflate.total_in() - before.0) as usize;
        self.to = (self.inflate.total_out() - before.1) as usize;
        if self.check_crc {
            self.crc.update(&self.window[..self.to]);
        }
        self.member_bytes = self.member_bytes.wrapping_add(self.to as u32);
        if status == Status::StreamEnd {
            self.phase = Phase::Trailer(0);
        } else if used == 0 && self.to == 0 && !bytes.is_empty() {
            return Err(self.wrong("broken deflate stream: it does not go on"));
        }
        Ok(used)
    }

    /// Header and trailer, a field or a part of one.
    fn around(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        match self.phase {
            Phase::Header(come) => {
                let used = self.fix(come, HEADER_BYTES, bytes);
                self.phase = Phase::Header(come + used);
                if come + used == HEADER_BYTES {
                    self.header_done()?;
                }
                Ok(used)
            }
            Phase::ExtraLength(come) => {
                let used = self.fix(4 + come, 6, bytes);
                self.phase = Phase::ExtraLength(come + used);
                if come + used == 2 {
                    let len = u16::from_le_bytes([self.fixed[4], self.fixed[5]]);
                    self.phase = Phase::Extra(usize::from(len));
                    self.skip_absent();
                }
                Ok(used)
            }
            Phase::Extra(left) | Phase::HeaderCrc(left) => {
                let used = left.min(bytes.len());
                self.phase = match self.phase {
                    Phase::Extra(_) => Phase::Extra(left - used),
                    _ => Phase::HeaderCrc(left - used),
                };
                self.skip_absent();
                Ok(used)
            }
            Phase::Name | Phase::Comment => {
                let Some(end) = memchr::memchr(0, bytes) else { return Ok(bytes.len()) };
                let is_name = self.phase == Phase::Name;
                self.phase =
                    if is_name { self.comment_or_later() } else { self.header_crc_or_body() };
                self.skip_absent();
                Ok(end + 1)
            }
            Phase::Trailer(come) => {
                let used = self.fix(come, TRAILER_BYTES, bytes);
                self.phase = Phase::Trailer(come + used);
                if come + used == TRAILER_BYTES {
                    self.trailer_done()?;
                }
                Ok(used)
            }
            Phase::Body => Ok(0),
        }
    }

    fn fix(&mut self, from: usize, to: usize, bytes: &[u8]) -> usize {
        let used = (to - from).min(bytes.len());
        self.fixed[from..from + used].copy_from_slice(&bytes[..used]);
        used
    }

    fn header_done(&mut self) -> Result<(), FormatError> {
        if !self.fixed.starts_with(&[0x1f, 0x8b, 8]) || self.flags() & RESERVED != 0 {
            return Err(self.wrong("no gzip header where one was expected"));
        }
        self.phase = match self.flags() & HAS_EXTRA {
            0 => self.name_or_later(),
            _ => Phase::ExtraLength(0),
        };
        self.inflate.reset(false);
        self.crc.reset();
        self.member_bytes = 0;
        Ok(())
    }

    fn flags(&self) -> u8 {
        self.fixed[3]
    }

    fn name_or_later(&self) -> Phase {
        if self.flags() & HAS_NAME != 0 { Phase::Name } else { self.comment_or_later() }
    }

    fn comment_or_later(&self) -> Phase {
        if self.flags() & HAS_COMMENT != 0 { Phase::Comment } else { self.header_crc_or_body() }
    }

    fn header_crc_or_body(&self) -> Phase {
        if self.flags() & HAS_CRC != 0 { Phase::HeaderCrc(2) } else { Phase::Body }
    }

    /// A field of which nothing is left is over.
    fn skip_absent(&mut self) {
        match self.phase {
            Phase::Extra(0) => self.phase = self.name_or_later(),
            Phase::HeaderCrc(0) => self.phase = Phase::Body,
            _ => {}
        }
    }

    fn trailer_done(&mut self) -> Result<(), FormatError> {
        let [stated_crc, stated_bytes] = [0, 4].map(|at| {
            u32::from_le_bytes(self.fixed[at..].first_chunk().copied().unwrap_or_default())
        });
        let crc = self.crc.clone().finalize();
        if self.check_crc && crc != stated_crc {
            let message =
                format!("CRC-32 of the text is {crc:08x}, the file says {stated_crc:08x}");
            return Err(self.wrong(message));
        }
        if stated_bytes != self.member_bytes {
            let (made, stated) = (self.member_bytes, stated_bytes);
            return Err(self.wrong(format!("{made} bytes were unpacked, the file says {stated}")));
        }
        self.phase = Phase::Header(0);
        Ok(())
    }

    fn wrong(&self, message: impl Into<String>) -> FormatError {
        FormatError::new(self.at, message)
    }
}
