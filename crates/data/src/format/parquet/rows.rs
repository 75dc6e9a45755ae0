//! Finds the rows of one file after another: reads the footer, then the sample's row group.
//! The footer and the position in the row group are kept for further samples of the same file.

use super::super::ahead::{Finder, ReadOrder, WantedSample};
use super::super::{CursorOptions, FileMember, StoredSample};
use super::footer::Footer;
use super::footer_finder::FooterFinder;
use super::group::GroupStream;
use super::{FileShape, FormatError, PayloadSink, describe_shape, shape_of_bytes, truncated};
use std::sync::Arc;

/// [`Finder`] of the format.
pub(super) struct RowFinder {
    /// Names of the columns to read; all if there are none.
    columns: Arc<[String]>,
    /// Whether pages of other programs' files are decompressed.
    unpacks: bool,
    wants_payload: bool,
    wanted: WantedSample,
    file_bytes: u64,
    phase: FooterPhase,
    finder: FooterFinder,
    /// Whether `footer` belongs to the current file.
    is_footer_current: bool,
    footer: Footer,
    /// Number of the row group in `stream`, if its position is valid.
    group: Option<usize>,
    stream: GroupStream,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FooterPhase {
    #[default]
    Footer,
    /// The footer is known, and the sample must be looked up.
    Known,
    Group,
}

impl RowFinder {
    pub(super) fn new(options: &CursorOptions) -> Self {
        RowFinder {
            columns: Arc::clone(&options.members),
            unpacks: options.decodes_members,
            wants_payload: options.wants_payload,
            wanted: WantedSample::default(),
            file_bytes: 0,
            phase: FooterPhase::Footer,
            finder: FooterFinder::new(options),
            is_footer_current: false,
            footer: Footer::default(),
            group: None,
            stream: GroupStream::default(),
        }
    }

    /// Takes bytes of the tail or the footer, and looks up the sample once the footer is complete.
    fn read_footer(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if !self.finder.take(bytes, &mut self.footer, &self.columns)? {
            return Ok(());
        }
        self.is_footer_current = true;
        self.group = None;
        self.phase = FooterPhase::Known;
        self.look_up()
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
        let Some(number) = self.footer.group_with(self.wanted.sample) else {
            return Err(FormatError::new(0, "row groups that are not contiguous"));
        };
        let row = self.wanted.sample - self.footer.groups[number].first;
        if self.group != Some(number) || !self.stream.can_reach(row) {
            self.group = None;
            let sample_bytes = found.map(|shape| shape.sample_bytes());
            self.stream.start(&self.footer, number, sample_bytes, self.unpacks)?;
            self.group = Some(number);
        }
        self.stream.begin(row);
        self.phase = FooterPhase::Group;
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
            self.phase = FooterPhase::Footer;
            return self.finder.restart();
        }
        self.phase = FooterPhase::Known;
        // `take` repeats the look-up and returns the error.
        let _ = self.look_up();
    }

    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.file_bytes = bytes;
        self.phase = FooterPhase::Footer;
        self.finder.begin(bytes)
    }

    fn offset(&self) -> Option<u64> {
        match self.phase {
            FooterPhase::Footer => Some(self.finder.offset()),
            FooterPhase::Group if self.stream.is_complete() => None,
            FooterPhase::Known | FooterPhase::Group => Some(self.stream.offset()),
        }
    }

    fn end(&self) -> u64 {
        match self.phase {
            FooterPhase::Group if self.stream.is_complete() => self.stream.offset(),
            FooterPhase::Group => self.stream.run_end(),
            _ => self.finder.end(),
        }
    }

    /// Longer than any piece, so that nothing beyond the chunks is read ahead.
    fn record_bytes(&self) -> u64 {
        u64::MAX
    }

    /// At the end of the values, [`Finder::take`] is called without bytes and reports that they end too early.
    fn has_buffered_bytes(&self) -> bool {
        match self.phase {
            FooterPhase::Footer => false,
            FooterPhase::Known => true,
            // A row group that ends too early is reported in the same way.
            FooterPhase::Group => {
                self.stream.has_buffered_bytes() || self.stream.offset() == self.stream.run_end()
            }
        }
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let taken = match self.phase {
            FooterPhase::Known => return self.look_up(),
            FooterPhase::Group => self.stream.take(bytes, sink),
            FooterPhase::Footer => self.read_footer(bytes),
        };
        // The footer of a broken file is not used again.
        self.is_footer_current &= taken.is_ok();
        taken
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        Err(truncated(self.file_bytes, self.end().saturating_sub(self.file_bytes).max(1)))
    }

    fn file_shape(&self) -> Option<FileShape> {
        if self.phase != FooterPhase::Group {
            return None;
        }
        self.described_shape()
            .or_else(|| Some(shape_of_bytes(self.stream.sample_bytes()?, self.footer.samples)))
    }

    fn members(&self) -> Vec<FileMember> {
        if self.phase == FooterPhase::Footer { Vec::new() } else { self.footer.members() }
    }

    fn elsewhere(&self) -> Option<&str> {
        if self.phase == FooterPhase::Footer { None } else { self.footer.elsewhere() }
    }

    fn stored_sample(&self) -> Option<StoredSample> {
        let samples = self.footer.samples.max(1) as f64;
        let Footer { read_bytes, column_bytes, .. } = self.footer;
        Some(StoredSample {
            bytes: read_bytes as f64 / samples,
            file_bytes: column_bytes as f64 / samples,
        })
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        if self.phase == FooterPhase::Group { self.stream.undecoded() } else { None }
    }

    fn ready_samples(&self) -> u64 {
        let is_in_group = self.phase == FooterPhase::Group && !self.wants_payload;
        if is_in_group { self.stream.ready_rows() } else { 0 }
    }

    fn take_ready(&mut self, samples: u64) -> u64 {
        self.wanted.sample += samples;
        self.stream.take_ready(samples)
    }
}
