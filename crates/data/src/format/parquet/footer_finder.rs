//! Finds the footer of a file as pyarrow does: reads the tail of the file first, then the whole footer if it is longer.

use super::super::CursorOptions;
use super::super::ahead::ByteCollector;
use super::footer::Footer;
use super::{FOOTER_BYTES_MAX, FormatError, MAGIC, TAIL_BYTES};

/// Length of the first read of a file, from its end, as by pyarrow.
const TAIL_READ_BYTES: u64 = 64 << 10;

/// The state of a search for a footer.
pub(super) struct FooterFinder {
    /// Length of the first read of a file.
    tail_bytes: u64,
    file_bytes: u64,
    /// The tail or the footer, while it is read.
    collected: ByteCollector,
    /// Offset of `collected` in the file.
    start: u64,
}

impl FooterFinder {
    pub(super) fn new(options: &CursorOptions) -> Self {
        FooterFinder {
            tail_bytes: TAIL_READ_BYTES.min(options.piece_bytes as u64),
            file_bytes: 0,
            collected: ByteCollector::default(),
            start: 0,
        }
    }

    /// Starts the search in a file of `file_bytes` bytes.
    pub(super) fn begin(&mut self, file_bytes: u64) -> Result<(), FormatError> {
        self.file_bytes = file_bytes;
        if file_bytes < TAIL_BYTES + MAGIC.len() as u64 {
            let message = format!("a file of {file_bytes} bytes is too short for parquet");
            return Err(FormatError::new(0, message));
        }
        self.restart();
        Ok(())
    }

    /// Starts the search in the same file again.
    pub(super) fn restart(&mut self) {
        self.start = self.file_bytes.saturating_sub(self.tail_bytes);
        self.collected.begin((self.file_bytes - self.start) as usize);
    }

    /// Offset of the bytes needed next.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.collected.bytes.len() as u64
    }

    /// End of the bytes that are needed.
    pub(super) fn end(&self) -> u64 {
        self.start + self.collected.wanted as u64
    }

    /// Takes bytes from [`FooterFinder::offset`] on. Returns true when `footer` is read, with the columns called `columns`.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        footer: &mut Footer,
        columns: &[String],
    ) -> Result<bool, FormatError> {
        self.collected.take(bytes);
        if self.collected.missing_bytes() > 0 {
            return Ok(false);
        }
        let footer_start = self.footer_start()?;
        let end = self.collected.bytes.len() - TAIL_BYTES as usize;
        let Some(skip) = footer_start.checked_sub(self.start) else {
            self.start = footer_start;
            self.collected.begin((self.file_bytes - footer_start) as usize);
            return Ok(false);
        };
        footer.read(&self.collected.bytes[skip as usize..end], footer_start, columns)?;
        Ok(true)
    }

    /// Offset of the footer, computed from the tail.
    fn footer_start(&self) -> Result<u64, FormatError> {
        let start = self.file_bytes - TAIL_BYTES;
        let tail = &self.collected.bytes[self.collected.bytes.len() - TAIL_BYTES as usize..];
        let (length, magic) = tail.split_at(4);
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
}
