//! Finds the rows of one file after another: reads the tail, the footer, then the column chunk of the sample's row group.
//! The footer and the position in the row group are kept for further samples of the same file.

use super::super::ahead::{ByteCollector, Finder, ReadOrder, WantedSample};
use super::chunk::ChunkStream;
use super::footer::{Footer, RowGroup};
use super::{
    FOOTER_BYTES_MAX, FileShape, FormatError, MAGIC, PayloadSink, TAIL_BYTES, describe_shape,
    shape_of_bytes, truncated,
};

/// [`Finder`] of the format.
#[derive(Default)]
pub(super) struct RowFinder {
    wanted: WantedSample,
    file_bytes: u64,
    phase: FooterPhase,
    /// The tail or the footer, while it is read.
    collected: ByteCollector,
    /// Offset of `collected` in the file.
    start: u64,
    /// Whether `footer` belongs to the current file.
    is_footer_current: bool,
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
    /// The footer is known, and the sample must be looked up.
    Known,
    Chunk,
}

impl RowFinder {
    fn seek_tail(&mut self) {
        self.phase = FooterPhase::Tail;
        self.start = self.file_bytes.saturating_sub(TAIL_BYTES);
        self.collected.begin(TAIL_BYTES as usize);
    }

    /// Continues after the tail or the footer has been read completely.
    fn read_collected(&mut self) -> Result<(), FormatError> {
        if self.phase == FooterPhase::Tail {
            let footer_start = self.footer_start()?;
            self.collected.begin((self.start - footer_start) as usize);
            self.start = footer_start;
            self.phase = FooterPhase::Footer;
            return Ok(());
        }
        self.footer.read(&self.collected.bytes, self.start)?;
        self.is_footer_current = true;
        self.group = RowGroup::default();
        self.phase = FooterPhase::Known;
        self.look_up()
    }

    /// Offset of the footer, computed from the tail.
    fn footer_start(&self) -> Result<u64, FormatError> {
        let start = self.start;
        let (length, magic) = self.collected.bytes.split_at(4);
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

    /// Finds the sample in the footer.
    fn look_up(&mut self) -> Result<(), FormatError> {
        let samples = self.footer.samples;
        let found = self.described_shape();
        match (&found, &self.wanted.expected) {
            (Some(found), _) => self.wanted.check(found)?,
            (None, Some(expected)) => {
                let planned = describe_shape(expected);
                let message =
                    format!("does not describe its {samples} samples, but the plan says {planned}");
                return Err(FormatError::new(0, message));
            }
            (None, None) if self.wanted.sample >= samples => {
                let contents = format!("{samples} rows");
                return Err(FormatError::no_sample(0, samples, contents, self.wanted.sample));
            }
            (None, None) => {}
        }
        let group = self
            .footer
            .group_with(self.wanted.sample)
            .copied()
            .ok_or_else(|| FormatError::new(0, "row groups that are not contiguous"))?;
        self.row = self.wanted.sample - group.first;
        self.stream.begin_sample();
        if group != self.group || !self.stream.can_reach(self.row) {
            self.group = RowGroup::default();
            let value_bytes = found.map(|shape| shape.sample_bytes());
            self.stream.start(self.footer.column, &group, value_bytes)?;
            self.group = group;
        }
        self.phase = FooterPhase::Chunk;
        Ok(())
    }

    /// Shape of the file, if its metadata contains it.
    fn described_shape(&self) -> Option<FileShape> {
        let (dims, element) = self.footer.sample_type?;
        Some(FileShape { dims, element, samples: self.footer.samples })
    }
}

impl Finder for RowFinder {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        self.wanted = *wanted;
        self.is_footer_current &= order != ReadOrder::NewFile;
        if !self.is_footer_current {
            return self.seek_tail();
        }
        self.phase = FooterPhase::Known;
        // `take` repeats the look-up and returns the error.
        let _ = self.look_up();
    }

    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.file_bytes = bytes;
        if bytes < TAIL_BYTES + MAGIC.len() as u64 {
            let message = format!("a file of {bytes} bytes is too short for parquet");
            return Err(FormatError::new(0, message));
        }
        self.seek_tail();
        Ok(())
    }

    fn offset(&self) -> Option<u64> {
        match self.phase {
            FooterPhase::Tail | FooterPhase::Footer => {
                Some(self.start + self.collected.bytes.len() as u64)
            }
            FooterPhase::Chunk if self.stream.has_passed(self.row) => None,
            FooterPhase::Known | FooterPhase::Chunk => Some(self.stream.offset()),
        }
    }

    fn end(&self) -> u64 {
        match self.phase {
            FooterPhase::Chunk if self.stream.has_passed(self.row) => self.stream.offset(),
            FooterPhase::Chunk => self.group.end(),
            _ => self.start + self.collected.wanted as u64,
        }
    }

    /// Longer than any piece, so that nothing beyond the column chunk is read ahead.
    fn record_bytes(&self) -> u64 {
        u64::MAX
    }

    /// At the end of a chunk, [`Finder::take`] is called without bytes and reports that the chunk ends too early.
    fn has_buffered_bytes(&self) -> bool {
        match self.phase {
            FooterPhase::Tail | FooterPhase::Footer => false,
            FooterPhase::Known => true,
            FooterPhase::Chunk => {
                self.stream.has_loaded_page() || self.stream.offset() == self.group.end()
            }
        }
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let taken = match self.phase {
            FooterPhase::Known => return self.look_up(),
            FooterPhase::Chunk => self.stream.feed(bytes, self.row, sink),
            FooterPhase::Tail | FooterPhase::Footer => {
                self.collected.take(bytes);
                if self.collected.missing_bytes() > 0 { Ok(()) } else { self.read_collected() }
            }
        };
        // The footer of a broken file is not used again.
        self.is_footer_current &= taken.is_ok();
        taken
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        Err(truncated(self.file_bytes, self.end().saturating_sub(self.file_bytes).max(1)))
    }

    fn file_shape(&self) -> Option<FileShape> {
        if self.phase != FooterPhase::Chunk {
            return None;
        }
        self.described_shape()
            .or_else(|| Some(shape_of_bytes(self.stream.found_bytes()?, self.footer.samples)))
    }
}
