//! Reads samples of one file after another: length, tail, footer, then the column chunk of the sample's row group in
//! pieces. The footer is kept while samples of the same file follow, and so is the place in the row group.

use super::chunk::ChunkStream;
use super::footer::{Footer, Group};
use super::{
    Cursor, Dims, Element, FOOTER_BYTES_MAX, FileShape, FormatError, MAGIC, Need, PayloadSink,
    TAIL_BYTES, check_sample, compare_shapes, cut_off, in_words, piece_len,
};

/// Made once per worker.
pub(super) struct ParquetCursor {
    piece_bytes: usize,
    expected: Option<FileShape>,
    sample: u64,
    file: u64,
    /// Number of the file whose footer is known.
    known: Option<u64>,
    file_bytes: u64,
    phase: Phase,
    /// The tail, then the footer.
    gathered: Vec<u8>,
    footer: Footer,
    group: Group,
    /// Row of the sample in its row group.
    row: u64,
    stream: ChunkStream,
    /// Bytes of the chunk that were read and not yet used, from `kept_at` on.
    kept: Vec<u8>,
    kept_at: usize,
    /// Offset in the file of the next byte to read.
    at: u64,
    asked_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Length,
    Tail,
    Footer {
        start: u64,
    },
    /// The footer is known: the sample is to be looked up.
    Known,
    Chunk,
}

impl ParquetCursor {
    pub(super) fn new(piece_bytes: usize) -> Self {
        ParquetCursor {
            piece_bytes,
            expected: None,
            sample: 0,
            file: 0,
            known: None,
            file_bytes: 0,
            phase: Phase::Length,
            gathered: Vec::new(),
            footer: Footer::default(),
            group: Group::default(),
            row: 0,
            stream: ChunkStream::new(),
            kept: Vec::new(),
            kept_at: 0,
            at: 0,
            asked_bytes: 0,
        }
    }

    fn feed_front(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.gathered.extend_from_slice(bytes);
        let come = self.gathered.len() as u64;
        let (start, end) = match self.phase {
            Phase::Footer { start } => (start, self.file_bytes - TAIL_BYTES),
            _ => (self.file_bytes - TAIL_BYTES, self.file_bytes),
        };
        if bytes.len() < self.asked_bytes {
            return Err(cut_off(start + come, end - start - come));
        }
        if start + come < end {
            return Ok(());
        }
        if self.phase == Phase::Tail {
            self.phase = Phase::Footer { start: self.tail(start)? };
            self.gathered.clear();
            return Ok(());
        }
        self.footer.read(&self.gathered, start)?;
        self.known = Some(self.file);
        self.group = Group::default();
        self.phase = Phase::Known;
        self.look_up()
    }

    /// Offset of the footer, as the tail states it.
    fn tail(&self, start: u64) -> Result<u64, FormatError> {
        let (length, magic) = self.gathered.split_at(4);
        if magic != MAGIC {
            let message = match magic {
                b"PARE" => "the footer is encrypted, which is not supported",
                _ => "no `PAR1` at the end: the file is cut off, or is not parquet",
            };
            return Err(FormatError::new(start + 4, message));
        }
        let bytes = u64::from(length.first_chunk().copied().map_or(0, u32::from_le_bytes));
        let first = start.checked_sub(bytes).filter(|&first| first >= MAGIC.len() as u64);
        let (Some(first), 1..) = (first, bytes) else {
            let message = format!("a footer of {bytes} bytes in a file of {}", self.file_bytes);
            return Err(FormatError::new(start, message));
        };
        if bytes > FOOTER_BYTES_MAX {
            let message = format!("a footer of {bytes} bytes, more than {FOOTER_BYTES_MAX}");
            return Err(FormatError::new(start, message));
        }
        Ok(first)
    }

    /// Find the sample in the file whose footer is known.
    fn look_up(&mut self) -> Result<(), FormatError> {
        let samples = self.footer.samples;
        let described = self.footer.described;
        let found = described.map(|(dims, element)| FileShape { dims, element, samples });
        match (&found, &self.expected) {
            (Some(found), expected) => {
                compare_shapes(found, expected.as_ref())?;
                check_sample(found, self.sample)?;
            }
            (None, Some(expected)) => {
                let wanted = in_words(expected);
                let message = format!(
                    "does not say what its {samples} samples are, but the plan says {wanted}"
                );
                return Err(FormatError::new(0, message));
            }
            (None, None) if self.sample >= samples => {
                let message =
                    format!("holds {samples} rows, so there is no sample {}", self.sample);
                return Err(FormatError::new(0, message));
            }
            (None, None) => {}
        }
        let group = self.footer.group_of(self.sample).copied();
        let group = group.ok_or_else(|| FormatError::new(0, "row groups that do not follow"))?;
        self.row = self.sample - group.first;
        self.stream.want();
        if group != self.group || !self.stream.can_reach(self.row) {
            self.group = Group::default();
            self.kept.clear();
            self.kept_at = 0;
            self.at = group.start;
            let value_bytes = found.map(|shape| shape.sample_bytes());
            self.stream.start(self.footer.column, &group, value_bytes)?;
            self.group = group;
        }
        self.phase = Phase::Chunk;
        Ok(())
    }

    fn need_chunk(&mut self) -> Result<Need, FormatError> {
        if self.stream.is_past(self.row) {
            return Ok(Need::Done);
        }
        let to_come = self.group.start + self.group.bytes - self.at;
        // Where nothing is left to come, this finds that the chunk ends too early.
        if self.stream.holds(self.row) || self.kept_at < self.kept.len() || to_come == 0 {
            self.asked_bytes = 0;
            return Ok(Need::Kept);
        }
        Ok(self.ask(self.at, to_come))
    }

    /// The rest of a range at the end of the file; what fits a piece is one read, wherever it begins.
    fn ask_front(&mut self, start: u64, end: u64) -> Need {
        let offset = start + self.gathered.len() as u64;
        let left = end - offset;
        if left > self.piece_bytes as u64 {
            return self.ask(offset, left);
        }
        let len = left as usize;
        self.asked_bytes = len;
        Need::Bytes { part: 0, offset, len }
    }

    fn ask(&mut self, offset: u64, left: u64) -> Need {
        let len = piece_len(self.piece_bytes, offset, left);
        self.asked_bytes = len;
        Need::Bytes { part: 0, offset, len }
    }

    fn feed_chunk(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.asked_bytes == 0 {
            self.kept_at += self.stream.feed(&self.kept[self.kept_at..], self.row, sink)?;
            return Ok(());
        }
        self.at += bytes.len() as u64;
        let used = self.stream.feed(bytes, self.row, sink)?;
        if used < bytes.len() {
            self.kept.clear();
            self.kept.reserve_exact(self.piece_bytes);
            self.kept.extend_from_slice(&bytes[used..]);
            self.kept_at = 0;
        }
        if bytes.len() < self.asked_bytes {
            let end = self.group.start + self.group.bytes;
            return Err(cut_off(self.at, end - self.at));
        }
        Ok(())
    }

    fn feed_length(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.file_bytes = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        if self.file_bytes < TAIL_BYTES + MAGIC.len() as u64 {
            let message = format!("a file of {} bytes is too short for parquet", self.file_bytes);
            return Err(FormatError::new(0, message));
        }
        self.gathered.clear();
        self.phase = Phase::Tail;
        Ok(())
    }
}

impl Cursor for ParquetCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        self.expected = expected.copied();
        self.sample = sample;
        self.file = file;
        let is_known = self.known == Some(file);
        self.phase = if is_known { Phase::Known } else { Phase::Length };
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        if self.phase == Phase::Known {
            self.look_up()?;
        }
        match self.phase {
            Phase::Length | Phase::Known => {
                self.known = None;
                Ok(Need::Length { part: 0 })
            }
            Phase::Tail => Ok(self.ask_front(self.file_bytes - TAIL_BYTES, self.file_bytes)),
            Phase::Footer { start } => Ok(self.ask_front(start, self.file_bytes - TAIL_BYTES)),
            Phase::Chunk => self.need_chunk(),
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let fed = match self.phase {
            Phase::Length | Phase::Known => self.feed_length(bytes),
            Phase::Tail | Phase::Footer { .. } => self.feed_front(bytes),
            Phase::Chunk => self.feed_chunk(bytes, sink),
        };
        if fed.is_err() {
            // What was learnt of the file is not to be built upon.
            self.known = None;
        }
        fed
    }

    fn found(&self) -> Option<FileShape> {
        if self.phase != Phase::Chunk {
            return None;
        }
        let samples = self.footer.samples;
        match self.footer.described {
            Some((dims, element)) => Some(FileShape { dims, element, samples }),
            None => self.stream.found_bytes().map(|bytes| FileShape {
                dims: bytes_dims(bytes),
                element: Element::Uint8,
                samples,
            }),
        }
    }
}

fn bytes_dims(bytes: u64) -> Dims {
    Dims::new(&[bytes]).unwrap_or_else(|| unreachable!("one dimension fits"))
}
