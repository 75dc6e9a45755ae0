//! Splits the text of a CSV into lines and cells under the rules of the `csv` crate, but with the position of each cell. A quote is special
//! only at the start of a cell, and a doubled quote inside a quoted cell is a literal quote. This module does not interpret columns.

use std::ops::Range;

/// A line of a CSV: a record, a comment or a blank line. It includes line ends that are inside quotes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CsvLine<'a> {
    /// Number in the file, from 1. A record of several lines has the number of its first line.
    pub number: usize,
    pub text: &'a str,
    /// Quoting error, if any.
    pub fault: Option<QuoteFault>,
}

/// A quoting error, which could make a cell absorb the text after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteFault {
    NeverClosed,
    TextAfterClosing,
}

impl QuoteFault {
    pub(crate) fn message(self) -> &'static str {
        match self {
            QuoteFault::NeverClosed => "a quote is never closed",
            QuoteFault::TextAfterClosing => "a cell goes on after its closing quote",
        }
    }
}

/// Returns whether the line is blank or a comment.
pub(crate) fn is_comment_or_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Splits a CSV into its lines, without line ends.
pub(crate) fn lines(text: &str) -> Vec<CsvLine<'_>> {
    let mut lines = Vec::new();
    let mut rest = text;
    let mut number = 1;
    while !rest.is_empty() {
        let first = rest.split('\n').next().unwrap_or_default();
        let (end, fault) = if is_comment_or_blank(first) {
            (first.len(), None)
        } else {
            let scanned = scan(rest);
            (scanned.end, scanned.fault)
        };
        let text = &rest[..end];
        lines.push(CsvLine { number, text: text.trim_end_matches('\r'), fault });
        number += text.matches('\n').count() + 1;
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    lines
}

/// Returns the byte ranges of a line's cells, including their quotes.
pub(crate) fn cells(line: &str) -> Vec<Range<usize>> {
    scan(line).cells
}

/// Returns the contents of a line's cells, without surrounding whitespace. `None` if the line is not exactly one record or contains control
/// characters.
pub(crate) fn fields(line: &str) -> Option<Vec<String>> {
    // The csv crate builds its tables for each reader, which takes longer than the line.
    if !line.is_empty() && !line.contains(['"', '\r', '\n']) {
        let fields: Vec<String> = line.split(',').map(|cell| cell.trim().to_string()).collect();
        let is_plain = !fields.iter().any(|cell| cell.contains(char::is_control));
        return is_plain.then_some(fields);
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let mut records = reader.records();
    let record = records.next()?.ok()?;
    let is_plain = !record.iter().any(|cell| cell.contains(char::is_control));
    let is_single = is_plain && records.next().is_none() && record.len() == cells(line).len();
    is_single.then(|| record.iter().map(str::to_string).collect())
}

/// Replaces the text of one cell and leaves the rest of the line unchanged. `None` if there is no such cell.
pub(crate) fn with_cell(line: &str, index: usize, word: &str) -> Option<String> {
    let cell = cells(line).get(index)?.clone();
    Some(format!("{}{word}{}", &line[..cell.start], &line[cell.end..]))
}

/// Formats fields as a line of a CSV.
pub(crate) fn format_line(fields: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(fields);
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_string()
}

struct ScannedRecord {
    cells: Vec<Range<usize>>,
    /// Offset of the line end that terminates the record.
    end: usize,
    fault: Option<QuoteFault>,
}

/// Position of a scan within a cell.
#[derive(Clone, Copy, PartialEq)]
enum CellState {
    Start,
    Unquoted,
    Quoted,
    /// After a quote that closes the cell, unless another quote follows.
    Closed,
    /// In the whitespace after the closing quote.
    AfterClosed,
}

/// Scans the record at the beginning of `text`.
fn scan(text: &str) -> ScannedRecord {
    let mut scanned = ScannedRecord { cells: Vec::new(), end: text.len(), fault: None };
    let mut state = CellState::Start;
    let mut start = 0;
    for (i, c) in text.char_indices() {
        state = match (state, c) {
            (CellState::Quoted, '"') => CellState::Closed,
            (CellState::Quoted, _) => CellState::Quoted,
            (CellState::Start | CellState::Closed, '"') => CellState::Quoted,
            (_, '\n') => {
                scanned.end = i;
                break;
            }
            (_, ',') => {
                scanned.cells.push(start..i);
                start = i + 1;
                CellState::Start
            }
            (CellState::Closed | CellState::AfterClosed, blank) if blank.is_whitespace() => {
                CellState::AfterClosed
            }
            (CellState::Closed | CellState::AfterClosed, _) => {
                scanned.fault.get_or_insert(QuoteFault::TextAfterClosing);
                CellState::Unquoted
            }
            (CellState::Start | CellState::Unquoted, _) => CellState::Unquoted,
        };
    }
    if state == CellState::Quoted {
        scanned.fault.get_or_insert(QuoteFault::NeverClosed);
    }
    scanned.cells.push(start..scanned.end);
    scanned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let found: Vec<&str> = cells(line).into_iter().map(|cell| &line[cell]).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn a_quote_is_special_only_at_the_start_of_a_cell() {
        check("a,b", &["a", "b"]);
        check("a,\"b,c\",d", &["a", "\"b,c\"", "d"]);
        check("a,\"b \"\"c\"\", d\",", &["a", "\"b \"\"c\"\", d\"", ""]);
        check("w,1,N,5\" disk", &["w", "1", "N", "5\" disk"]);
        check("5\" disk,1,3\" disk,N", &["5\" disk", "1", "3\" disk", "N"]);
        check(" \"a,b\"", &[" \"a", "b\""]);
    }

    #[test]
    fn lines_end_outside_quotes_and_are_numbered() {
        let text = "a,b\r\n# it's 5\" wide\n\n1,\"x\ny\"\n5\" disk,N\nlast";
        let found: Vec<_> = lines(text).iter().map(|line| (line.number, line.text)).collect();
        assert_eq!(
            found,
            [
                (1, "a,b"),
                (2, "# it's 5\" wide"),
                (3, ""),
                (4, "1,\"x\ny\""),
                (6, "5\" disk,N"),
                (7, "last")
            ]
        );
    }

    #[test]
    fn unbalanced_quotes_are_faults() {
        for (text, expected) in [
            ("1,\"5 disk\n2,N\n", Some(QuoteFault::NeverClosed)),
            ("1,\"5 disk\n2,N\n3,\"3 disk\n", Some(QuoteFault::TextAfterClosing)),
            ("1,\"a\" \"b\"\n", Some(QuoteFault::TextAfterClosing)),
            ("1,\"a\" ,b\r\n", None),
        ] {
            assert_eq!(lines(text)[0].fault, expected, "{text}");
        }
    }

    #[test]
    fn a_line_that_the_csv_crate_reads_as_two_records_is_refused() {
        assert_eq!(fields("a,b\rc,d"), None);
        assert_eq!(fields(" a ,\"b,c\""), Some(vec!["a".into(), "b,c".into()]));
    }

    proptest! {
        #[test]
        fn records_and_cells_match_the_csv_crate(text in "[a-c\", \n]{0,60}") {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(text.as_bytes());
            let expected: Vec<usize> = reader.records().map(|record| record.unwrap().len()).collect();
            // The csv crate skips only empty lines.
            let found: Vec<usize> = {
                let mut counts = Vec::new();
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let scanned = scan(rest);
                    if 0 < scanned.end {
                        counts.push(scanned.cells.len());
                    }
                    rest = rest.get(scanned.end + 1..).unwrap_or_default();
                }
                counts
            };
            prop_assert_eq!(found, expected);
        }
    }
}
