//! Lists the row groups of a file from its footer, to read each in one request.

use super::super::{CursorOptions, FileRange, Lister};
use super::FormatError;
use super::footer::Footer;
use super::footer_finder::FooterFinder;
use std::ops::Range;
use std::sync::Arc;

/// [`Lister`] of the format.
pub(super) struct RowGroupLister {
    columns: Arc<[String]>,
    finder: FooterFinder,
    footer: Footer,
    is_complete: bool,
}

impl RowGroupLister {
    pub(super) fn new(options: &CursorOptions) -> Self {
        RowGroupLister {
            columns: Arc::clone(&options.members),
            finder: FooterFinder::new(options),
            footer: Footer::default(),
            is_complete: false,
        }
    }
}

impl Lister for RowGroupLister {
    fn begin(&mut self, file_bytes: u64) -> Result<(), FormatError> {
        self.is_complete = false;
        self.finder.begin(file_bytes)
    }

    fn need(&self) -> Option<Range<u64>> {
        (!self.is_complete).then(|| self.finder.offset()..self.finder.end())
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if bytes.is_empty() {
            return Err(FormatError::new(self.finder.offset(), "the file ends within its footer"));
        }
        self.is_complete = self.finder.take(bytes, &mut self.footer, &self.columns)?;
        Ok(())
    }

    /// A range reaches from the first to the last chunk of the selected columns.
    fn ranges(&self) -> Vec<FileRange> {
        let range = |group| {
            let chunks = self.footer.chunks(group);
            let start = chunks.first().map_or(0, |chunk| chunk.start);
            let end = chunks.last().map_or(0, |chunk| chunk.end());
            FileRange { first_sample: group.first, samples: group.rows, bytes: start..end }
        };
        self.footer.groups.iter().map(range).collect()
    }
}
