//! Reads a log line by line. Lines have a maximum length; the rest of a longer line is skipped.

use super::tally::Tally;
use std::io::{self, BufRead, Read};

/// Maximum number of bytes of a line that are read.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Kinds of errors that damaged text causes.
const DAMAGED_TEXT: [io::ErrorKind; 3] =
    [io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput];

/// Lines of a text.
pub(super) struct Lines<'a> {
    text: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    /// Number of lines that were too long.
    truncated: u64,
    is_damaged: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: Box<dyn BufRead + 'a>) -> Self {
        Lines { text, line: Vec::new(), truncated: 0, is_damaged: false }
    }

    /// Reads the next line, without its line end and with invalid UTF-8 replaced. `None` at the end of the text.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        self.line.clear();
        match self.read_line() {
            // Truncated or damaged compressed text ends here.
            Err(error) if DAMAGED_TEXT.contains(&error.kind()) => self.is_damaged = true,
            result => result?,
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    fn read_line(&mut self) -> io::Result<()> {
        let limit = LINE_BYTES_MAX + 1;
        self.text.by_ref().take(limit as u64).read_until(b'\n', &mut self.line)?;
        if self.line.len() == limit && !self.line.ends_with(b"\n") {
            self.truncated += 1;
            self.line.truncate(LINE_BYTES_MAX);
            self.text.skip_until(b'\n')?;
        }
        Ok(())
    }

    /// Reports the skipped parts of the text to the tally.
    pub(super) fn report_lost(&self, tally: &mut Tally) {
        tally.lose_many("line", "of more than 64 KiB: the rest was skipped", self.truncated);
        let damaged = u64::from(self.is_damaged);
        tally.lose_many("file", "truncated or damaged, whose rest is missing", damaged);
        tally.is_cut |= self.is_damaged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_truncated() {
        let text = format!("a\n{}\n\nb", "x".repeat(LINE_BYTES_MAX + 5));
        let mut lines = Lines::new(Box::new(io::BufReader::with_capacity(7, text.as_bytes())));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.len());
        }
        assert_eq!((found, lines.truncated), (vec![1, LINE_BYTES_MAX, 0, 1], 1));
    }
}
