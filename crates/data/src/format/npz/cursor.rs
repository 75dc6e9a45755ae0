//! Reads `x.npy` of one archive after another: the length of the file, the directory at its end, then the member piece by
//! piece.

use super::directory::DirectoryReader;
use super::member::MemberStream;
use super::{
    ArrayStream, Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, decode_length,
    piece_len, truncated,
};

/// The cursor of the format. Created once per worker.
pub(super) struct NpzCursor {
    piece_bytes: usize,
    phase: NpzPhase,
    directory: DirectoryReader,
    member: MemberStream,
    array: ArrayStream,
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
}

impl NpzCursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        NpzCursor {
            piece_bytes: options.piece_bytes,
            phase: NpzPhase::Length,
            directory: DirectoryReader::new(options.piece_bytes),
            member: MemberStream::new(options.check_crc),
            array: ArrayStream::new(options.wants_payload),
            offset: 0,
            requested: 0,
            is_foreign: false,
        }
    }

    /// Reads bytes of the directory. If they also contain the start of the member, that start is not read again.
    fn feed_directory(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some((entry, start)) = self.directory.feed(bytes)? else {
            return Ok(());
        };
        self.member.begin(entry)?;
        self.phase = NpzPhase::Member;
        self.offset = entry.offset;
        let member = entry.offset.checked_sub(start).and_then(|skip| bytes.get(skip as usize..));
        match member.filter(|member| !member.is_empty()) {
            Some(member) => self.feed_member(member, sink),
            None => Ok(()),
        }
    }

    fn feed_member(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.member.feed(self.offset, bytes, &mut self.array, sink)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

impl Cursor for NpzCursor {
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        self.phase = NpzPhase::Length;
        self.is_foreign = expected.is_none();
        self.array.begin(sample, expected);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        match self.phase {
            NpzPhase::Length => Ok(Need::Length { part: 0 }),
            NpzPhase::Directory => {
                let (offset, len) = self.directory.need()?;
                Ok(Need::Bytes { part: 0, offset, len })
            }
            NpzPhase::Member if self.member.is_done() => Ok(Need::Done),
            NpzPhase::Member => {
                self.requested =
                    piece_len(self.piece_bytes, self.offset, self.member.remaining(self.offset));
                Ok(Need::Bytes { part: 0, offset: self.offset, len: self.requested })
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
                self.feed_member(bytes, sink)?;
                if bytes.len() < self.requested && !self.member.is_done() {
                    return Err(truncated(self.offset, self.member.remaining(self.offset)));
                }
                Ok(())
            }
        }
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.array.shape()
    }
}
