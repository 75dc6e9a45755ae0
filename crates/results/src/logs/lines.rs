//! Lines of a log, one at a time and none longer than a bound: the rest of a longer one is passed over.

use super::tally::Tally;
use std::io::{self, BufRead, Read};

/// Bytes of a line that are looked at.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Errors that lie in the text and not in the machine.
const IN_TEXT: [io::ErrorKind; 3] =
    [io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput];

/// Lines of a text.
pub(super) struct Lines<'a> {
    text: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    /// Lines that were longer than the bound.
    cut: u64,
    is_broken: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: Box<dyn BufRead + 'a>) -> Self {
        Lines { text, line: Vec::new(), cut: 0, is_broken: false }
    }

    /// The next line without its end; what is no UTF-8 is replaced. `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        self.line.clear();
        match self.read_line() {
            // What was compressed and broken off, or damaged, ends here.
            Err(error) if IN_TEXT.contains(&error.kind()) => self.is_broken = true,
            other => other?,
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    fn read_line(&mut self) -> io::Result<()> {
        let most = LINE_BYTES_MAX + 1;
        self.text.by_ref().take(most as u64).read_until(b'\n', &mut self.line)?;
        if self.line.len() == most && !self.line.ends_with(b"\n") {
            self.cut += 1;
            self.line.truncate(LINE_BYTES_MAX);
            self.text.skip_until(b'\n')?;
        }
        Ok(())
    }

    /// Tell what of the text was not looked at.
    pub(super) fn tell(&self, tally: &mut Tally) {
        tally.lose_many("line", "of more than 64 KiB: the rest of it", self.cut);
        tally.lose_many("file", "broken off or damaged: the rest of it", u64::from(self.is_broken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut() {
        let text = format!("a\n{}\n\nb", "x".repeat(LINE_BYTES_MAX + 5));
        let mut lines = Lines::new(Box::new(io::BufReader::with_capacity(7, text.as_bytes())));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.len());
        }
        assert_eq!((found, lines.cut), (vec![1, LINE_BYTES_MAX, 0, 1], 1));
    }
}
