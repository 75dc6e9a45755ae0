//! Finds rows of one file after another: tail, footer, then the column chunk of the sample's row group. The footer is kept
//! while samples of the same file follow, and so is the place in the row group.

use super::super::ahead::{Finder, Gathered, ReadOrder, WantedSample};
use super::chunk::ChunkStream;
use super::footer::{Footer, RowGroup};
use super::{
    FOOTER_BYTES_MAX, FileShape, FormatError, MAGIC, PayloadSink, TAIL_BYTES, cut_off, in_words,
    shape_of_bytes,
};

/// The rows of one file after another.
#[derive(Default)]
pub(super) struct RowFinder {
    wanted: WantedSample,
    file_bytes: u64,
    phase: FooterPhase,
    /// The tail or the footer, and where it begins.
    gathered: Gathered,
    start: u64,
    /// The footer is of the file that is read.
    is_known: bool,
    footer: Footer,
    group: RowGroup,
    /// Row of the sample in its row group.
    row: u64,
    stream: ChunkStream,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FooterPhase {
    #[default]
    Tail,
    Footer,
    /// The footer is known: the sample is to be looked up.
    Known,
    Chunk,
}

impl RowFinder {
    fn seek_tail(&mut self) {
        self.phase = FooterPhase::Tail;
        self.start = self.file_bytes.saturating_sub(TAIL_BYTES);
        self.gathered.begin(TAIL_BYTES as usize);
    }

    /// The tail or the footer is whole.
    fn gathered(&mut self) -> Result<(), FormatError> {
        if self.phase == FooterPhase::Tail {
            let footer = self.footer_start()?;
            self.gathered.begin((self.start - footer) as usize);
            (self.start, self.phase) = (footer, FooterPhase::Footer);
            return Ok(());
        }
        self.footer.read(&self.gathered.bytes, self.start)?;
        self.is_known = true;
        self.group = RowGroup::default();
        self.phase = FooterPhase::Known;
        self.look_up()
    }

    /// Offset of the footer, as the tail states it.
    fn footer_start(&self) -> Result<u64, FormatError> {
        let start = self.start;
        let (length, magic) = self.gathered.bytes.split_at(4);
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
}

impl Finder for RowFinder {
    fn begin(&mut self, wanted: &WantedSample, begun: ReadOrder) {
        self.wanted = *wanted;
        self.is_known &= begun != ReadOrder::Anew;
        if !self.is_known {
            return self.seek_tail();
        }
        self.phase = FooterPhase::Known;
        // A sample that is refused is refused again by `take`, which can say so.
        let _ = self.look_up();
    }

    fn length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.file_bytes = bytes;
        if bytes < TAIL_BYTES + MAGIC.len() as u64 {
            let message = format!("a file of {bytes} bytes is too short for parquet");
            return Err(FormatError::new(0, message));
        }
        self.seek_tail();
        Ok(())
    }

    fn at(&self) -> Option<u64> {
        match self.phase {
            FooterPhase::Tail | FooterPhase::Footer => {
                Some(self.start + self.gathered.bytes.len() as u64)
            }
            FooterPhase::Chunk if self.stream.is_past(self.row) => None,
            FooterPhase::Known | FooterPhase::Chunk => Some(self.stream.at()),
        }
    }

    fn end(&self) -> u64 {
        match self.phase {
            FooterPhase::Chunk if self.stream.is_past(self.row) => self.stream.at(),
            FooterPhase::Chunk => self.group.end(),
            _ => self.start + self.gathered.wanted as u64,
        }
    }

    /// Longer than any piece: what lies behind a column chunk is not wanted.
    fn record_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Where nothing of a chunk is left to come, it finds that it ends too early.
    fn has_kept(&self) -> bool {
        match self.phase {
            FooterPhase::Tail | FooterPhase::Footer => false,
            FooterPhase::Known => true,
            FooterPhase::Chunk => self.stream.is_held() || self.stream.at() == self.group.end(),
        }
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let taken = match self.phase {
            FooterPhase::Known => return self.look_up(),
            FooterPhase::Chunk => self.stream.feed(bytes, self.row, sink),
            FooterPhase::Tail | FooterPhase::Footer => {
                self.gathered.take(bytes);
                if self.gathered.missing() > 0 { Ok(()) } else { self.gathered() }
            }
        };
        // What was learnt of a broken file is not to be built upon.
        self.is_known &= taken.is_ok();
        taken
    }

    fn ended(&mut self) -> Result<(), FormatError> {
        Err(cut_off(self.file_bytes, self.end().saturating_sub(self.file_bytes).max(1)))
    }

    fn found(&self) -> Option<FileShape> {
        if self.phase != FooterPhase::Chunk {
            return None;
        }
        self.described()
            .or_else(|| Some(shape_of_bytes(self.stream.found_bytes()?, self.footer.samples)))
    }
}
