//! Streams one member of an archive: local header, decompression, checksum. Errors in a
//! compressed array state the offset that the array would have without compression.

use super::super::deflate::Inflate;
use super::directory::{ArrayEntry, u16_at};
use super::{ArrayStream, ByteCollector, DEFLATED, FormatError, PayloadSink, STORED};

const LOCAL_HEADER_BYTES: usize = 30;

/// Reads a member and passes its bytes to an array.
pub(super) struct MemberStream {
    entry: ArrayEntry,
    header: ByteCollector,
    /// Bytes of the name and the extra field that are still missing.
    bytes_to_skip: usize,
    packed_bytes_left: u64,
    /// `None` if checksums are not verified.
    crc: Option<crc32fast::Hasher>,
    /// Created for the first compressed member.
    inflate: Option<Inflate>,
}

impl MemberStream {
    pub(super) fn new(check_crc: bool) -> Self {
        MemberStream {
            entry: ArrayEntry::default(),
            header: ByteCollector::default(),
            bytes_to_skip: 0,
            packed_bytes_left: 0,
            crc: check_crc.then(crc32fast::Hasher::new),
            inflate: None,
        }
    }

    /// Starts reading a member.
    ///
    /// # Errors
    /// The lengths in `entry` contradict each other.
    pub(super) fn begin(&mut self, entry: ArrayEntry) -> Result<(), FormatError> {
        let ArrayEntry { offset, bytes, packed_bytes, method, .. } = entry;
        if method == STORED && packed_bytes != bytes {
            let message =
                format!("member `x.npy` is stored, yet {bytes} bytes take up {packed_bytes}");
            return Err(FormatError::new(offset, message));
        }
        if method == DEFLATED {
            self.inflate.get_or_insert_with(Inflate::new).reset();
        }
        self.entry = entry;
        self.header.begin(LOCAL_HEADER_BYTES);
        self.bytes_to_skip = 0;
        self.packed_bytes_left = packed_bytes;
        self.crc.iter_mut().for_each(crc32fast::Hasher::reset);
        Ok(())
    }

    /// Number of bytes that are still missing. An upper estimate before the local header has been read.
    pub(super) fn remaining(&self, offset: u64) -> u64 {
        if self.header.missing_bytes() == 0 {
            return self.bytes_to_skip as u64 + self.packed_bytes_left;
        }
        // Name and zip64 field have 25 bytes in archives of numpy.
        let estimate = self.header.missing_bytes() as u64 + 32 + self.packed_bytes_left;
        estimate.min(self.entry.limit.saturating_sub(offset)).max(1)
    }

    /// Whether all bytes of the member have been read.
    pub(super) fn is_done(&self) -> bool {
        self.header.missing_bytes() == 0 && self.bytes_to_skip == 0 && self.packed_bytes_left == 0
    }

    /// Takes the next bytes of the file, which begin at `offset`. Bytes after the member are ignored.
    ///
    /// # Errors
    /// The member is invalid.
    pub(super) fn feed(
        &mut self,
        offset: u64,
        bytes: &[u8],
        array: &mut ArrayStream,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut rest = bytes;
        if self.header.missing_bytes() > 0 {
            rest = &rest[self.header.take(rest)..];
            if self.header.missing_bytes() > 0 {
                return Ok(());
            }
            self.read_header()?;
        }
        let (skipped, data) = rest.split_at(rest.len().min(self.bytes_to_skip));
        self.bytes_to_skip -= skipped.len();
        if self.bytes_to_skip > 0 {
            return Ok(());
        }
        let packed = &data[..(data.len() as u64).min(self.packed_bytes_left) as usize];
        let start = offset + (bytes.len() - data.len()) as u64;
        if self.packed_bytes_left == self.entry.packed_bytes {
            array.set_origin(start);
        }
        if self.entry.method == STORED {
            feed_array(&self.entry, &mut self.crc, packed, array, sink)?;
        } else {
            self.inflate(packed, start, array, sink)?;
        }
        self.packed_bytes_left -= packed.len() as u64;
        if self.packed_bytes_left == 0 {
            self.finish(start + packed.len() as u64, array)
        } else {
            Ok(())
        }
    }

    fn read_header(&mut self) -> Result<(), FormatError> {
        let header = &self.header.bytes;
        if !header.starts_with(b"PK\x03\x04") {
            let message = "no zip header where the directory says `x.npy` begins";
            return Err(FormatError::new(self.entry.offset, message));
        }
        let lengths = [26, 28].map(|field| u16_at(header, field).map_or(0, usize::from));
        self.bytes_to_skip = lengths.iter().sum();
        Ok(())
    }

    fn inflate(
        &mut self,
        packed: &[u8],
        start: u64,
        array: &mut ArrayStream,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some(inflate) = &mut self.inflate else { return Ok(()) };
        let (used, is_end) = inflate.decompress(packed, start, &mut |_, bytes| {
            feed_array(&self.entry, &mut self.crc, bytes, array, sink)
        })?;
        if is_end && used as u64 != self.packed_bytes_left {
            let message = "the deflate stream ends before its member";
            return Err(FormatError::new(start + used as u64, message));
        }
        Ok(())
    }

    fn finish(&self, end: u64, array: &ArrayStream) -> Result<(), FormatError> {
        if !array.is_done() {
            let message = format!(
                "member `x.npy` ends, but {} more bytes were expected",
                array.missing_bytes()
            );
            return Err(FormatError::new(end, message));
        }
        let stated = self.entry.crc;
        let crc = self.crc.clone().map(crc32fast::Hasher::finalize);
        match crc.filter(|&crc| crc != stated) {
            Some(crc) => {
                let message =
                    format!("CRC-32 of `x.npy` is {crc:08x}, the archive says {stated:08x}");
                Err(FormatError::new(self.entry.offset, message))
            }
            None => Ok(()),
        }
    }
}

/// Passes on uncompressed bytes, and checks that the array has the length of its member.
fn feed_array(
    entry: &ArrayEntry,
    crc: &mut Option<crc32fast::Hasher>,
    bytes: &[u8],
    array: &mut ArrayStream,
    sink: &mut dyn PayloadSink,
) -> Result<(), FormatError> {
    if let Some(crc) = crc {
        crc.update(bytes);
    }
    let used = array.feed(bytes, sink)?;
    match array.bytes() {
        Some(bytes) if bytes != entry.bytes => {
            let member_bytes = entry.bytes;
            let message =
                format!("member `x.npy` holds {member_bytes} bytes, but its array is {bytes} long");
            Err(FormatError::new(entry.offset, message))
        }
        _ if used < bytes.len() => {
            let message = "the array ends, but its member goes on";
            Err(FormatError::new(array.position(), message))
        }
        _ => Ok(()),
    }
}
