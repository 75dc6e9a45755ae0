//! Streams one member of an archive: local header, decompression, checksum. Errors in a
//! compressed array state the offset that the array would have without compression.

use super::super::deflate::Inflate;
use super::directory::{ArrayEntry, u16_at};
use super::{ArrayStream, ByteCollector, DEFLATED, FormatError, PayloadSink, STORED};

const LOCAL_HEADER_BYTES: usize = 30;
/// Usual length of a name.
const NAME_BYTES: usize = 64;

/// The destination of a member's bytes.
pub(super) enum MemberOutput<'o> {
    /// One sample of the array.
    Array(&'o mut ArrayStream),
    /// All bytes of the member, after so many bytes of the sample.
    Bytes(&'o mut u64),
}

/// Reads a member and passes its bytes to an array, or on to the sink.
pub(super) struct MemberStream {
    entry: ArrayEntry,
    /// Name of the member, for errors.
    name: String,
    header: ByteCollector,
    /// Bytes of the name and the extra field that are still missing.
    bytes_to_skip: usize,
    packed_bytes_left: u64,
    /// Uncompressed bytes that were passed on.
    passed_bytes: u64,
    /// `None` if checksums are not verified.
    crc: Option<crc32fast::Hasher>,
    /// Created for the first compressed member.
    inflate: Option<Inflate>,
}

impl MemberStream {
    pub(super) fn new(check_crc: bool) -> Self {
        MemberStream {
            entry: ArrayEntry::default(),
            name: String::with_capacity(NAME_BYTES),
            header: ByteCollector::default(),
            bytes_to_skip: 0,
            packed_bytes_left: 0,
            passed_bytes: 0,
            crc: check_crc.then(crc32fast::Hasher::new),
            inflate: None,
        }
    }

    /// Starts reading a member.
    ///
    /// # Errors
    /// The lengths in `entry` contradict each other.
    pub(super) fn begin(&mut self, entry: ArrayEntry, name: &str) -> Result<(), FormatError> {
        self.name.clear();
        self.name.extend(name.chars().filter(|c| !c.is_control()).take(NAME_BYTES));
        let name = &self.name;
        let ArrayEntry { offset, bytes, packed_bytes, method, .. } = entry;
        if method == STORED && packed_bytes != bytes {
            let message =
                format!("member `{name}.npy` is stored, yet {bytes} bytes take up {packed_bytes}");
            return Err(FormatError::new(offset, message));
        }
        if method == DEFLATED {
            self.inflate.get_or_insert_with(Inflate::new).reset();
        }
        self.entry = entry;
        self.header.begin(LOCAL_HEADER_BYTES);
        self.bytes_to_skip = 0;
        self.packed_bytes_left = packed_bytes;
        self.passed_bytes = 0;
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
        output: &mut MemberOutput,
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
        if self.packed_bytes_left == self.entry.packed_bytes
            && let MemberOutput::Array(array) = output
        {
            array.set_origin(start);
            array.set_limit(self.entry.bytes);
        }
        match self.entry.method {
            DEFLATED => self.inflate(packed, start, output, sink)?,
            _ => self.pass_on(packed, output, sink)?,
        }
        self.packed_bytes_left -= packed.len() as u64;
        if self.packed_bytes_left == 0 {
            self.finish(start + packed.len() as u64, output)
        } else {
            Ok(())
        }
    }

    fn read_header(&mut self) -> Result<(), FormatError> {
        let header = &self.header.bytes;
        if !header.starts_with(b"PK\x03\x04") {
            let name = &self.name;
            let message = format!("no zip header where the directory says `{name}.npy` begins");
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
        output: &mut MemberOutput,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some(mut inflate) = self.inflate.take() else { return Ok(()) };
        let inflated =
            inflate.decompress(packed, start, &mut |_, bytes| self.pass_on(bytes, output, sink));
        self.inflate = Some(inflate);
        let (used, is_end) = inflated?;
        if is_end && used as u64 != self.packed_bytes_left {
            let message = "the deflate stream ends before its member";
            return Err(FormatError::new(start + used as u64, message));
        }
        Ok(())
    }

    /// Passes on uncompressed bytes, and checks that they are as many as the directory says.
    fn pass_on(
        &mut self,
        bytes: &[u8],
        output: &mut MemberOutput,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
        self.passed_bytes += bytes.len() as u64;
        let name = &self.name;
        let entry = &self.entry;
        match output {
            MemberOutput::Array(array) => {
                let used = array.feed(bytes, sink)?;
                if let Some(array_bytes) = array.bytes().filter(|bytes| *bytes != entry.bytes) {
                    let member_bytes = entry.bytes;
                    let message = format!(
                        "member `{name}.npy` holds {member_bytes} bytes, but its array is {array_bytes} long"
                    );
                    return Err(FormatError::new(entry.offset, message));
                }
                if used < bytes.len() {
                    let message = "the array ends, but its member goes on";
                    return Err(FormatError::new(array.position(), message));
                }
            }
            MemberOutput::Bytes(_) if entry.bytes < self.passed_bytes && !self.is_packed() => {
                let message = format!("member `{name}.npy` is longer than {} bytes", entry.bytes);
                return Err(FormatError::new(entry.offset, message));
            }
            MemberOutput::Bytes(_) if bytes.is_empty() => {}
            MemberOutput::Bytes(sent_bytes) => {
                sink.payload(**sent_bytes, bytes)?;
                **sent_bytes += bytes.len() as u64;
            }
        }
        Ok(())
    }

    /// Whether the member is passed on compressed.
    fn is_packed(&self) -> bool {
        self.entry.unknown_method().is_some()
    }

    fn finish(&self, end: u64, output: &MemberOutput) -> Result<(), FormatError> {
        let missing_bytes = match output {
            MemberOutput::Array(array) if array.is_done() => 0,
            MemberOutput::Array(array) => array.missing_bytes(),
            MemberOutput::Bytes(_) if self.is_packed() => return Ok(()),
            MemberOutput::Bytes(_) => self.entry.bytes.saturating_sub(self.passed_bytes),
        };
        let name = &self.name;
        if missing_bytes > 0 {
            let message =
                format!("member `{name}.npy` ends, but {missing_bytes} more bytes were expected");
            return Err(FormatError::new(end, message));
        }
        let stated = self.entry.crc;
        let crc = self.crc.clone().map(crc32fast::Hasher::finalize);
        match crc.filter(|&crc| crc != stated) {
            Some(crc) => {
                let message =
                    format!("CRC-32 of `{name}.npy` is {crc:08x}, the archive says {stated:08x}");
                Err(FormatError::new(self.entry.offset, message))
            }
            None => Ok(()),
        }
    }
}
