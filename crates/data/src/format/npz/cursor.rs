//! Reads arrays of one archive after another: the length of the file, the directory at its end, then each member piece by
//! piece.
//!
//! A single array is read like an npy file. Several arrays are one sample, the bytes of their npy files.

use super::super::npy_header::PICKLED;
use super::directory::{ArchiveMember, DirectoryReader, TAIL_BYTES};
use super::member::{MemberOutput, MemberStream};
use super::{
    ArrayStream, Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, decode_length,
    piece_len, truncated,
};
use crate::format::{FileMember, PieceSizes, StoredSample, check_sample, shape_of_bytes};

/// Reported type of archives without an array that the other files have.
const LACKS_CHOSEN: &str = "npz without a chosen array";

/// The cursor of the format. Created once per worker.
pub(super) struct NpzCursor {
    sizes: PieceSizes,
    phase: NpzPhase,
    directory: DirectoryReader,
    member: MemberStream,
    array: ArrayStream,
    sample: u64,
    /// Number of the member that is read, in the directory.
    current: usize,
    /// Shape of a sample that is all bytes of the members that are read.
    joined: Option<FileShape>,
    /// Bytes of such a sample that were passed on.
    sent_bytes: u64,
    undecoded: Option<&'static str>,
    /// Offset of the next byte of the member in the archive.
    offset: u64,
    requested: usize,
    /// Whether the dataset is foreign, so that the array may have another name.
    is_foreign: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NpzPhase {
    Length,
    Directory,
    Member,
    Done,
}

impl NpzCursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        // A library does not read a whole file to find its directory.
        let directory_piece_bytes =
            options.library.map_or(options.piece_bytes, |_| TAIL_BYTES as usize);
        NpzCursor {
            sizes: options.piece_sizes(),
            phase: NpzPhase::Length,
            directory: DirectoryReader::new(directory_piece_bytes, options.members.clone()),
            member: MemberStream::new(options.check_crc),
            array: ArrayStream::new(options.wants_payload),
            sample: 0,
            current: 0,
            joined: None,
            sent_bytes: 0,
            undecoded: None,
            offset: 0,
            requested: 0,
            is_foreign: false,
        }
    }

    /// Reads bytes of the directory. Members that these bytes also contain, or their starts, are not read again.
    fn feed_directory(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some(start) = self.directory.feed(bytes)? else {
            return Ok(());
        };
        self.choose_output()?;
        self.begin_member(0)?;
        while self.phase == NpzPhase::Member {
            let skipped = self.offset.checked_sub(start);
            let rest = skipped.and_then(|skip| bytes.get(skip as usize..)).unwrap_or_default();
            let len = self.member.remaining(self.offset).min(rest.len() as u64);
            if len == 0 {
                break;
            }
            self.feed_member(&rest[..len as usize], sink)?;
        }
        Ok(())
    }

    /// Decides whether a sample is from an array, or all bytes of the members.
    fn choose_output(&mut self) -> Result<(), FormatError> {
        let members = || self.directory.found.members.iter().filter(|member| member.is_read);
        let lacks_chosen = self.directory.found.lacks_chosen.then_some(LACKS_CHOSEN);
        let unknown_method = members().find_map(|member| member.entry.unknown_method());
        self.undecoded = lacks_chosen.or(unknown_method);
        if members().count() > 1 || unknown_method.is_some() {
            let bytes = members().map(|member| member.entry.bytes).fold(0, u64::saturating_add);
            let shape = shape_of_bytes(bytes, 1);
            check_sample(&shape, self.sample)?;
            self.joined = Some(shape);
        }
        Ok(())
    }

    /// Begins the first member that is read, from number `first` on. The sample is complete if there is none.
    fn begin_member(&mut self, first: usize) -> Result<(), FormatError> {
        let found = &self.directory.found;
        let is_read = |member: &ArchiveMember| member.is_read;
        let next = found.members[first..].iter().position(is_read);
        self.phase = NpzPhase::Done;
        if let Some(i) = next.map(|i| first + i) {
            let member = &found.members[i];
            self.member.begin(member.entry, found.name(member))?;
            self.current = i;
            self.offset = member.entry.offset;
            self.phase = NpzPhase::Member;
        }
        Ok(())
    }

    fn feed_member(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let mut output = match self.joined {
            Some(_) => MemberOutput::Bytes(&mut self.sent_bytes),
            None => MemberOutput::Array(&mut self.array),
        };
        self.member.feed(self.offset, bytes, &mut output, sink)?;
        self.offset += bytes.len() as u64;
        if self.member.is_done() {
            return self.begin_member(self.current + 1);
        }
        Ok(())
    }
}

impl Cursor for NpzCursor {
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        self.phase = NpzPhase::Length;
        self.is_foreign = expected.is_none();
        self.array.begin(sample, expected);
        self.sample = sample;
        self.joined = None;
        self.sent_bytes = 0;
        self.undecoded = None;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        match self.phase {
            NpzPhase::Length => Ok(Need::Length { part: 0 }),
            NpzPhase::Directory => {
                let (offset, len) = self.directory.need()?;
                Ok(Need::Bytes { part: 0, offset, len, end: self.directory.end() })
            }
            NpzPhase::Done => Ok(Need::Done),
            NpzPhase::Member => {
                let remaining = self.member.remaining(self.offset);
                self.requested = piece_len(self.sizes, self.offset, remaining);
                let end = self.offset.saturating_add(remaining);
                Ok(Need::Bytes { part: 0, offset: self.offset, len: self.requested, end })
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            NpzPhase::Length => {
                self.directory.begin(decode_length(bytes), self.is_foreign);
                self.phase = NpzPhase::Directory;
                Ok(())
            }
            NpzPhase::Directory => self.feed_directory(bytes, sink),
            NpzPhase::Member => {
                let current = self.current;
                self.feed_member(bytes, sink)?;
                let is_current = self.phase == NpzPhase::Member && self.current == current;
                if bytes.len() < self.requested && is_current {
                    return Err(truncated(self.offset, self.member.remaining(self.offset)));
                }
                Ok(())
            }
            NpzPhase::Done => Ok(()),
        }
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.joined.or_else(|| self.array.shape())
    }

    fn members(&self) -> Vec<FileMember> {
        let found = &self.directory.found;
        let members = found.members.iter();
        let member = |member: &ArchiveMember| FileMember {
            name: found.name(member).to_string(),
            stored_bytes: member.entry.packed_bytes,
            is_read: member.is_read,
            is_elsewhere: false,
        };
        members.map(member).collect()
    }

    /// Each sample is read with its whole archive.
    fn stored_sample(&self) -> Option<StoredSample> {
        let mut stored = StoredSample::default();
        for member in &self.directory.found.members {
            let bytes = member.entry.packed_bytes as f64;
            stored.file_bytes += bytes;
            stored.bytes += if member.is_read { bytes } else { 0.0 };
        }
        Some(stored)
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.undecoded.or_else(|| self.array.is_pickled().then_some(PICKLED))
    }
}
