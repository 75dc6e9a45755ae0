//! The text of a CSV: its lines, and where their cells lie, as the `csv` crate has it. A quote counts only where it begins a cell, and twice inside
//! one it is a quote. Knows no columns.

use std::ops::Range;

/// A line: a record, a comment, or nothing. Ends of lines in quotes are part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CsvLine<'a> {
    /// Number of its first line in the file, from 1.
    pub number: usize,
    pub text: &'a str,
    /// Where quotes are not those of a CSV.
    pub fault: Option<QuoteFault>,
}

/// A quote that would take what follows into its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteFault {
    NeverClosed,
    TextAfterClosing,
}

impl QuoteFault {
    pub(crate) fn says(self) -> &'static str {
        match self {
            QuoteFault::NeverClosed => "a quote is never closed",
            QuoteFault::TextAfterClosing => "a cell goes on after its closing quote",
        }
    }
}

/// Whether the line says nothing to a CSV.
pub(crate) fn is_remark(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// All lines, without their ends.
pub(crate) fn lines(text: &str) -> Vec<CsvLine<'_>> {
    let mut lines = Vec::new();
    let (mut rest, mut number) = (text, 1);
    while !rest.is_empty() {
        let first = rest.split('\n').next().unwrap_or_default();
        let (end, fault) = if is_remark(first) {
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

/// Where the cells of a line lie, quotes included.
pub(crate) fn cells(line: &str) -> Vec<Range<usize>> {
    scan(line).cells
}

/// Contents of its cells without blanks around them; `None` where it is not one record, or holds control characters.
pub(crate) fn fields(line: &str) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let mut records = reader.records();
    let record = records.next()?.ok()?;
    let is_plain = !record.iter().any(|cell| cell.contains(char::is_control));
    let is_alone = is_plain && records.next().is_none() && record.len() == cells(line).len();
    is_alone.then(|| record.iter().map(str::to_string).collect())
}

/// A line with another word in one cell, and nothing else changed; `None` where it has no such cell.
pub(crate) fn with_cell(line: &str, index: usize, word: &str) -> Option<String> {
    let cell = cells(line).get(index)?.clone();
    Some(format!("{}{word}{}", &line[..cell.start], &line[cell.end..]))
}

/// A line that holds these.
pub(crate) fn line_of(fields: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    // What goes into memory cannot fail.
    let _ = writer.write_record(fields);
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_string()
}

struct Scanned {
    cells: Vec<Range<usize>>,
    /// Where the line ends, before the end of line itself.
    end: usize,
    fault: Option<QuoteFault>,
}

/// Where a scan stands in its cell.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Start,
    Bare,
    Quoted,
    /// After a quote that closes the cell, unless another follows.
    Closed,
    /// Among the blanks after it.
    Behind,
}

/// The record that `text` begins with.
fn scan(text: &str) -> Scanned {
    let mut scanned = Scanned { cells: Vec::new(), end: text.len(), fault: None };
    let (mut at, mut start) = (At::Start, 0);
    for (i, c) in text.char_indices() {
        at = match (at, c) {
            (At::Quoted, '"') => At::Closed,
            (At::Quoted, _) => At::Quoted,
            (At::Start | At::Closed, '"') => At::Quoted,
            (_, '\n') => {
                scanned.end = i;
                break;
            }
            (_, ',') => {
                scanned.cells.push(start..i);
                start = i + 1;
                At::Start
            }
            (At::Closed | At::Behind, blank) if blank.is_whitespace() => At::Behind,
            (At::Closed | At::Behind, _) => {
                scanned.fault.get_or_insert(QuoteFault::TextAfterClosing);
                At::Bare
            }
            (At::Start | At::Bare, _) => At::Bare,
        };
    }
    if at == At::Quoted {
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
    fn a_quote_counts_where_it_begins_a_cell() {
        check("a,b", &["a", "b"]);
        check("a,\"b,c\",d", &["a", "\"b,c\"", "d"]);
        check("a,\"b \"\"c\"\", d\",", &["a", "\"b \"\"c\"\", d\"", ""]);
        check("w,1,N,5\" disk", &["w", "1", "N", "5\" disk"]);
        check("5\" disk,1,3\" disk,N", &["5\" disk", "1", "3\" disk", "N"]);
        check(" \"a,b\"", &[" \"a", "b\""]);
    }

    #[test]
    fn lines_end_outside_quotes_and_have_their_numbers() {
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
    fn a_quote_that_takes_what_follows_is_a_fault() {
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
    fn what_the_csv_crate_has_as_two_records_is_not_one() {
        assert_eq!(fields("a,b\rc,d"), None);
        assert_eq!(fields(" a ,\"b,c\""), Some(vec!["a".into(), "b,c".into()]));
    }

    proptest! {
        #[test]
        fn lines_and_cells_are_those_of_the_csv_crate(text in "[a-c\", \n]{0,60}") {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(text.as_bytes());
            let theirs: Vec<usize> = reader.records().map(|record| record.unwrap().len()).collect();
            // To the crate only a line of no characters is none.
            let ours: Vec<usize> = {
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
            prop_assert_eq!(ours, theirs);
        }
    }
}
