//! Reads `x.npy` of one archive after another: the length of the file, the directory at its end, then the member piece by
//! piece.

use super::directory::DirectoryReader;
use super::member::MemberStream;
use super::{
    ArrayStream, Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, cut_off,
    length_of, piece_len,
};

/// The cursor of the format. Created once per worker.
pub(super) struct NpzCursor {
    piece_bytes: usize,
    stage: NpzStage,
    directory: DirectoryReader,
    member: MemberStream,
    array: ArrayStream,
    at: u64,
    requested: usize,
    is_foreign: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NpzStage {
    Length,
    Directory,
    Member,
}

impl NpzCursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        NpzCursor {
            piece_bytes: options.piece_bytes,
            stage: NpzStage::Length,
            directory: DirectoryReader::new(options.piece_bytes),
            member: MemberStream::new(options.check_crc),
            array: ArrayStream::new(options.wants_payload),
            at: 0,
            requested: 0,
            is_foreign: false,
        }
    }

    /// Take bytes of the directory. If they also contain the start of the member, it is not read again.
    fn feed_directory(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some((entry, start)) = self.directory.feed(bytes)? else {
            return Ok(());
        };
        self.member.begin(entry)?;
        self.stage = NpzStage::Member;
        self.at = entry.offset;
        let member = entry.offset.checked_sub(start).and_then(|skip| bytes.get(skip as usize..));
        match member.filter(|member| !member.is_empty()) {
            Some(member) => self.feed_member(member, sink),
            None => Ok(()),
        }
    }

    fn feed_member(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.member.feed(self.at, bytes, &mut self.array, sink)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

impl Cursor for NpzCursor {
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        self.stage = NpzStage::Length;
        self.is_foreign = expected.is_none();
        self.array.begin(sample, expected);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        match self.stage {
            NpzStage::Length => Ok(Need::Length { part: 0 }),
            NpzStage::Directory => {
                let (offset, len) = self.directory.need()?;
                Ok(Need::Bytes { part: 0, offset, len })
            }
            NpzStage::Member if self.member.is_done() => Ok(Need::Done),
            NpzStage::Member => {
                self.requested = piece_len(self.piece_bytes, self.at, self.member.left(self.at));
                Ok(Need::Bytes { part: 0, offset: self.at, len: self.requested })
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.stage {
            NpzStage::Length => {
                self.directory.begin(length_of(bytes), self.is_foreign);
                self.stage = NpzStage::Directory;
                Ok(())
            }
            NpzStage::Directory => self.feed_directory(bytes, sink),
            NpzStage::Member => {
                self.feed_member(bytes, sink)?;
                if bytes.len() < self.requested && !self.member.is_done() {
                    return Err(cut_off(self.at, self.member.left(self.at)));
                }
                Ok(())
            }
        }
    }

    fn found(&self) -> Option<FileShape> {
        self.array.shape()
    }
}
