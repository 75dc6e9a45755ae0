//! Reads samples of one file after another: length, tail, footer, then the column chunk of the sample's row group in
//! pieces. The footer is kept while samples of the same file follow, and so is the place in the row group.

use super::super::ahead::WantedSample;
use super::chunk::ChunkStream;
use super::footer::{Footer, RowGroup};
use super::{
    Cursor, Dims, Element, FOOTER_BYTES_MAX, FileShape, FormatError, MAGIC, Need, PayloadSink,
    TAIL_BYTES, cut_off, in_words, length_of, piece_len,
};

/// Made once per worker.
#[derive(Default)]
pub(super) struct ParquetCursor {
    piece_bytes: usize,
    wanted: WantedSample,
    /// Number of the file whose footer is known.
    known: Option<u64>,
    file_bytes: u64,
    phase: FooterPhase,
    /// The tail, then the footer.
    gathered: Vec<u8>,
    footer: Footer,
    group: RowGroup,
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

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FooterPhase {
    #[default]
    Length,
    /// The tail, up to the end of the file, then the footer before it.
    Gather {
        start: u64,
        end: u64,
    },
    /// The footer is known: the sample is to be looked up.
    Known,
    Chunk,
}

impl ParquetCursor {
    pub(super) fn new(piece_bytes: usize) -> Self {
        ParquetCursor { piece_bytes, ..ParquetCursor::default() }
    }

    fn gather(&mut self, start: u64, end: u64, bytes: &[u8]) -> Result<(), FormatError> {
        self.gathered.extend_from_slice(bytes);
        let at = start + self.gathered.len() as u64;
        if bytes.len() < self.asked_bytes {
            return Err(cut_off(at, end - at));
        }
        if at < end {
            return Ok(());
        }
        if end == self.file_bytes {
            self.phase = FooterPhase::Gather { start: self.tail(start)?, end: start };
            self.gathered.clear();
            return Ok(());
        }
        self.footer.read(&self.gathered, start)?;
        self.known = Some(self.wanted.file);
        self.group = RowGroup::default();
        self.phase = FooterPhase::Known;
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
        let message = match first {
            Some(first) if (1..=FOOTER_BYTES_MAX).contains(&bytes) => return Ok(first),
            Some(_) if bytes > 0 => {
                format!("a footer of {bytes} bytes, more than {FOOTER_BYTES_MAX}")
            }
            _ => format!("a footer of {bytes} bytes in a file of {}", self.file_bytes),
        };
        Err(FormatError::new(start, message))
    }

    /// Find the sample in the file whose footer is known.
    fn look_up(&mut self) -> Result<(), FormatError> {
        let samples = self.footer.samples;
        let found = self.described();
        match (&found, &self.wanted.expected) {
            (Some(found), _) => self.wanted.check(found)?,
            (None, Some(expected)) => {
                let wanted = in_words(expected);
                let message = format!(
                    "does not say what its {samples} samples are, but the plan says {wanted}"
                );
                return Err(FormatError::new(0, message));
            }
            (None, None) if self.wanted.sample >= samples => {
                let holds = format!("{samples} rows");
                return Err(FormatError::no_sample(0, samples, holds, self.wanted.sample));
            }
            (None, None) => {}
        }
        let group = self.footer.group_of(self.wanted.sample).copied();
        let group = group.ok_or_else(|| FormatError::new(0, "row groups that do not follow"))?;
        self.row = self.wanted.sample - group.first;
        self.stream.want();
        if group != self.group || !self.stream.can_reach(self.row) {
            self.group = RowGroup::default();
            self.kept.clear();
            self.kept_at = 0;
            self.at = group.start;
            let value_bytes = found.map(|shape| shape.sample_bytes());
            self.stream.start(self.footer.column, &group, value_bytes)?;
            self.group = group;
        }
        self.phase = FooterPhase::Chunk;
        Ok(())
    }

    /// Shape of the file, if its metadata says it.
    fn described(&self) -> Option<FileShape> {
        let (dims, element) = self.footer.described?;
        Some(FileShape { dims, element, samples: self.footer.samples })
    }

    fn need_chunk(&mut self) -> Need {
        if self.stream.is_past(self.row) {
            return Need::Done;
        }
        let to_come = self.group.start + self.group.bytes - self.at;
        let has_bytes = self.stream.is_held() || self.kept_at < self.kept.len();
        // Where nothing is left to come, this finds that the chunk ends too early.
        if (self.stream.missing() == 0 && has_bytes) || to_come == 0 {
            self.asked_bytes = 0;
            return Need::Kept;
        }
        self.ask(self.at, piece_len(self.piece_bytes, self.at, to_come))
    }

    fn ask(&mut self, offset: u64, len: usize) -> Need {
        self.asked_bytes = len;
        Need::Bytes { part: 0, offset, len }
    }

    fn feed_chunk(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.at += bytes.len() as u64;
        let mut rest = bytes;
        if !rest.is_empty() {
            self.kept.drain(..self.kept_at);
            self.kept_at = 0;
        }
        // What was kept comes first, with as much behind it as that needs.
        while self.kept_at < self.kept.len() {
            let (now, later) = rest.split_at(self.stream.missing().min(rest.len()));
            self.kept.extend_from_slice(now);
            rest = later;
            self.kept_at += self.stream.feed(&self.kept[self.kept_at..], self.row, sink)?;
            if rest.is_empty() || self.stream.is_past(self.row) {
                break;
            }
        }
        if self.kept_at == self.kept.len() {
            self.kept.clear();
            self.kept_at = 0;
            rest = &rest[self.stream.feed(rest, self.row, sink)?..];
        }
        self.kept.extend_from_slice(rest);
        if bytes.len() < self.asked_bytes {
            let end = self.group.start + self.group.bytes;
            return Err(cut_off(self.at, end - self.at));
        }
        Ok(())
    }

    fn feed_length(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.file_bytes = length_of(bytes);
        if self.file_bytes < TAIL_BYTES + MAGIC.len() as u64 {
            let message = format!("a file of {} bytes is too short for parquet", self.file_bytes);
            return Err(FormatError::new(0, message));
        }
        self.gathered.clear();
        let start = self.file_bytes - TAIL_BYTES;
        self.phase = FooterPhase::Gather { start, end: self.file_bytes };
        Ok(())
    }
}

impl Cursor for ParquetCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        self.wanted = WantedSample::new(file, sample, expected);
        let is_known = self.known == Some(file);
        self.phase = if is_known { FooterPhase::Known } else { FooterPhase::Length };
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        if self.phase == FooterPhase::Known {
            self.look_up()?;
        }
        Ok(match self.phase {
            FooterPhase::Length | FooterPhase::Known => {
                self.known = None;
                Need::Length { part: 0 }
            }
            FooterPhase::Gather { start, end } => {
                let offset = start + self.gathered.len() as u64;
                // What fits a piece is one read, wherever it begins.
                let left = end - offset;
                let is_one = left <= self.piece_bytes as u64;
                let len =
                    if is_one { left as usize } else { piece_len(self.piece_bytes, offset, left) };
                self.ask(offset, len)
            }
            FooterPhase::Chunk => self.need_chunk(),
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let fed = match self.phase {
            FooterPhase::Length | FooterPhase::Known => self.feed_length(bytes),
            FooterPhase::Gather { start, end } => self.gather(start, end, bytes),
            FooterPhase::Chunk => self.feed_chunk(bytes, sink),
        };
        if fed.is_err() {
            // What was learnt of the file is not to be built upon.
            self.known = None;
        }
        fed
    }

    fn found(&self) -> Option<FileShape> {
        if self.phase != FooterPhase::Chunk {
            return None;
        }
        self.described().or_else(|| {
            let dims = Dims::new(&[self.stream.found_bytes()?])?;
            Some(FileShape { dims, element: Element::Uint8, samples: self.footer.samples })
        })
    }
}
