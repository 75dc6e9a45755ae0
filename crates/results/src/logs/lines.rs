//! Lines of a log, one at a time and none longer than a bound: the rest of a longer one is passed over.

use super::tally::Tally;
use std::io::{self, BufRead};

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
        let (mut has_any, mut is_cut) = (false, false);
        loop {
            let buffer = match self.text.fill_buf() {
                // What was compressed and broken off, or damaged, ends here.
                Err(error) if IN_TEXT.contains(&error.kind()) => {
                    self.is_broken = true;
                    break;
                }
                other => other?,
            };
            if buffer.is_empty() {
                break;
            }
            has_any = true;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let (piece, used) =
                (&buffer[..end.unwrap_or(buffer.len())], end.map_or(buffer.len(), |end| end + 1));
            let room = LINE_BYTES_MAX - self.line.len();
            is_cut |= piece.len() > room;
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.text.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.cut += u64::from(is_cut);
        Ok(has_any.then(|| String::from_utf8_lossy(&self.line).into_owned()))
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
