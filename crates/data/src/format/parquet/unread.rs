//! Passes column chunks whose values are not needed: decompresses their pages, as the readers of other programs do, or finds the content of
//! pages that feedrate wrote.

use super::page::{PageHeader, PageKind};
use super::schema::Column;
use super::thrift::ThriftError;
use super::unpack::{Codec, Unpacker};
use super::{PAGE_BYTES_MAX, PLAIN};

/// Upper limit on the length of what precedes the values of a page.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// An incomplete head is parsed again after this number of further bytes.
const HEAD_STEP_BYTES: usize = 4096;

/// Decompresses the pages of a chunk and drops them. Pages that are broken are left compressed.
#[derive(Default)]
pub(super) struct PageUnpacker {
    codec: Codec,
    state: UnpackerState,
    /// Start of an incomplete header or page.
    partial: Vec<u8>,
    page: Vec<u8>,
    unpacker: Unpacker,
}

#[derive(Clone, Copy, Default)]
enum UnpackerState {
    /// A page header follows.
    Header,
    Page(PageHeader),
    /// The rest of the chunk is not decompressed.
    #[default]
    Ignored,
}

impl PageUnpacker {
    /// Starts a chunk. Its pages are decompressed if `codec` is given.
    pub(super) fn start(&mut self, codec: Option<Codec>) {
        self.codec = codec.unwrap_or_default();
        self.partial.clear();
        let is_packed = self.codec != Codec::Uncompressed;
        self.state = if is_packed { UnpackerState::Header } else { UnpackerState::Ignored };
    }

    /// Takes the next bytes of the chunk.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !matches!(self.state, UnpackerState::Ignored) {
            let partial_bytes = self.partial.len();
            let missing = match self.state {
                UnpackerState::Page(header) => header.packed_bytes as usize - partial_bytes,
                _ => rest.len(),
            };
            let piece = &rest[..missing.min(rest.len())];
            let used = if partial_bytes == 0 {
                let used = self.step(piece);
                if used.is_none() {
                    self.partial.extend_from_slice(piece);
                }
                used
            } else {
                self.partial.extend_from_slice(piece);
                let partial = std::mem::take(&mut self.partial);
                let used = self.step(&partial);
                self.partial = partial;
                if used.is_some() {
                    self.partial.clear();
                }
                used.map(|used| used - partial_bytes)
            };
            rest = &rest[used.unwrap_or(piece.len())..];
        }
    }

    /// Reads the header or the page at the start of `bytes`, and returns its length. `None` if it is incomplete.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        let UnpackerState::Page(header) = self.state else {
            return match PageHeader::read(bytes) {
                Ok((header, len)) => {
                    let is_short = header.packed_bytes.max(header.bytes) <= PAGE_BYTES_MAX;
                    self.state = match header.packed_bytes {
                        0 => UnpackerState::Header,
                        _ if is_short => UnpackerState::Page(header),
                        _ => UnpackerState::Ignored,
                    };
                    Some(len)
                }
                Err(ThriftError::Ends) if bytes.len() <= HEAD_BYTES_MAX => None,
                Err(_) => {
                    self.state = UnpackerState::Ignored;
                    Some(bytes.len())
                }
            };
        };
        let packed = bytes.get(..header.packed_bytes as usize)?;
        self.state = match self.unpack(&header, packed) {
            Ok(()) => UnpackerState::Header,
            Err(_) => UnpackerState::Ignored,
        };
        Some(packed.len())
    }

    fn unpack(&mut self, header: &PageHeader, packed: &[u8]) -> Result<(), String> {
        // Levels of pages of version 2 are not compressed.
        let level_bytes = header.level_bytes + header.repetition_bytes;
        let values = packed.get(level_bytes as usize..).unwrap_or_default();
        let value_bytes = header.bytes.saturating_sub(level_bytes);
        if header.kind == PageKind::Other || header.is_uncompressed || value_bytes == 0 {
            return Ok(());
        }
        self.page.clear();
        self.unpacker.unpack(self.codec, values, value_bytes, &mut self.page)
    }
}

/// Finds the content in a chunk of a file in which feedrate spread samples over the columns: the values of its pages.
#[derive(Default)]
pub(super) struct ContentFinder {
    /// Start of an incomplete page, up to its values.
    partial: Vec<u8>,
    /// Bytes of values that follow.
    pub(super) content_left: u64,
    /// Bytes after the values, or of a dictionary.
    tail_left: u64,
}

impl ContentFinder {
    pub(super) fn start(&mut self) {
        self.partial.clear();
        self.content_left = 0;
        self.tail_left = 0;
    }

    /// Number of bytes that were taken for an incomplete head of a page.
    pub(super) fn partial_bytes(&self) -> u64 {
        self.partial.len() as u64
    }

    /// Passes bytes up to the next content, and returns how many bytes of the chunk it passed; 0 if the head of a page is
    /// incomplete, whose bytes are then kept.
    pub(super) fn skip(&mut self, bytes: &[u8], column: &Column) -> Result<u64, &'static str> {
        let skipped = self.tail_left.min(bytes.len() as u64);
        if skipped > 0 {
            self.tail_left -= skipped;
            return Ok(skipped);
        }
        let head = if self.partial.is_empty() {
            PageHead::read(bytes, column)
        } else {
            self.partial.extend_from_slice(&bytes[..bytes.len().min(HEAD_STEP_BYTES)]);
            PageHead::read(&self.partial, column)
        };
        match head {
            Ok(head) => {
                self.partial.clear();
                self.content_left = head.content_bytes;
                self.tail_left = head.tail_bytes;
                Ok(head.bytes)
            }
            Err(ThriftError::Ends) if self.partial.len() <= HEAD_BYTES_MAX => {
                if self.partial.is_empty() {
                    self.partial.extend_from_slice(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
                }
                Ok(0)
            }
            Err(_) => Err("no page of feedrate where one is due"),
        }
    }
}

/// What precedes the values of a page, and the lengths of what follows.
struct PageHead {
    bytes: u64,
    content_bytes: u64,
    tail_bytes: u64,
}

impl PageHead {
    fn read(bytes: &[u8], column: &Column) -> Result<Self, ThriftError> {
        let (header, header_bytes) = PageHeader::read(bytes)?;
        if header.kind != PageKind::Data {
            let tail_bytes = header.packed_bytes;
            return Ok(PageHead { bytes: header_bytes as u64, content_bytes: 0, tail_bytes });
        }
        let page = &bytes[header_bytes..];
        let mut len = 0;
        for _ in 0..u32::from(column.lists > 0) + u32::from(column.level > 0) {
            let prefix = page.get(len..).and_then(<[u8]>::first_chunk).ok_or(ThriftError::Ends)?;
            let level_bytes = usize::try_from(u32::from_le_bytes(*prefix));
            len = level_bytes
                .ok()
                .and_then(|bytes| bytes.checked_add(len + 4))
                .ok_or(ThriftError::Broken)?;
        }
        let mut content_bytes = header.packed_bytes.checked_sub(len as u64);
        if header.encoding != Some(PLAIN) {
            // The width of an index, and the number of groups of eight indexes.
            let prefix = page.get(len..).ok_or(ThriftError::Ends)?;
            let varint = prefix.iter().skip(1).position(|byte| *byte < 128);
            len += varint.ok_or(ThriftError::Ends)? + 2;
            content_bytes = Some(header.values);
        }
        let content_bytes = content_bytes.ok_or(ThriftError::Broken)?;
        let used = (len as u64).checked_add(content_bytes);
        let tail_bytes = used.and_then(|used| header.packed_bytes.checked_sub(used));
        Ok(PageHead {
            bytes: (header_bytes + len) as u64,
            content_bytes,
            tail_bytes: tail_bytes.ok_or(ThriftError::Broken)?,
        })
    }
}
