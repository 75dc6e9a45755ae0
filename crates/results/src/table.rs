//! The CSV of a study, in the form `model,epochs,processes[,overrides],run` or with feedrate's additional columns. Comments and blank lines
//! keep their place, and a line is rewritten only if its row changes. Parses and formats text; files are read and written elsewhere.
//!
//! Long because reading a table and writing it back unchanged are tested together.

use crate::cells;
use crate::row::{Row, text};
use crate::setting::{self, Setting};
use feedrate_spec::problem::{Location, Problem, Problems};
use std::str::FromStr;

/// Maximum number of processes of a row.
pub const PROCESSES_MAX: u32 = 1 << 20;

/// All known columns, in the order of a new file.
const COLUMNS: &[&str] = &[
    "model",
    "epochs",
    "processes",
    "overrides",
    "scale",
    "seed",
    "block",
    "order",
    "replicate",
    "note",
    "run",
];
/// Columns that every study must have.
const REQUIRED_COLUMNS: &[&str] = &["model", "processes", "run"];
/// Columns that a new file has even if they are empty.
const BASE_COLUMNS: &[&str] = &["model", "epochs", "processes", "overrides", "run"];

/// A study's CSV.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<String>,
    lines: Vec<TableLine>,
    newline: &'static str,
    /// Byte order mark at the start of the file, as spreadsheets write it; empty if there is none.
    byte_order_mark: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
enum TableLine {
    /// A comment or a blank line.
    Other(String),
    /// The line with the column names, verbatim.
    Header(String),
    /// A row, with its line verbatim.
    Row { text: String, row: Box<Row> },
}

/// A comment (without its `#`) or a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "documented above")]
pub enum TableEntry<'a> {
    Comment(&'a str),
    Row(&'a Row),
}

impl Table {
    /// Creates a table with `comments` above its rows.
    pub fn new(rows: Vec<Row>, comments: &[String]) -> Self {
        let used = COLUMNS.iter().filter(|column| {
            BASE_COLUMNS.contains(column) || rows.iter().any(|row| !field(row, column).is_empty())
        });
        let columns: Vec<String> = used.map(|column| (*column).into()).collect();
        let mut lines = vec![TableLine::Header(columns.join(","))];
        lines.extend(
            comments
                .iter()
                .map(|comment| TableLine::Other(format!("# {comment}").trim_end().into())),
        );
        let mut table = Table { columns, lines, newline: "\n", byte_order_mark: "" };
        for row in rows {
            table.push_line(row);
        }
        table
    }

    /// Parses a CSV. Problems refer to it as `name`.
    ///
    /// # Errors
    /// All problems of the file, with their lines.
    pub fn parse(name: &str, text: &str) -> Result<Self, Problems> {
        let (byte_order_mark, text) = match text.strip_prefix('\u{feff}') {
            Some(rest) => ("\u{feff}", rest),
            None => ("", text),
        };
        let mut problems = Problems::default();
        let mut table = Table {
            columns: Vec::new(),
            lines: Vec::new(),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            byte_order_mark,
        };
        for line in cells::lines(text) {
            let place = Some(Location::File { name: name.into(), line: line.number, column: 1 });
            let before = problems.0.len();
            let parsed = table.read_line(&line, &mut problems);
            for problem in problems.0.iter_mut().skip(before) {
                problem.location.clone_from(&place);
            }
            let is_header = matches!(parsed, Some(TableLine::Header(_)));
            table.lines.extend(parsed);
            // With a wrong header, every row would be wrong too.
            if is_header && before < problems.0.len() {
                break;
            }
        }
        if table.columns.is_empty() {
            let hint = format!("begin it with `{}`", BASE_COLUMNS.join(","));
            problems.push(Problem::error("", format!("`{name}` has no header")).hint(hint));
        }
        if problems.has_errors() { Err(problems) } else { Ok(table) }
    }

    fn read_line(
        &mut self,
        line: &cells::CsvLine<'_>,
        problems: &mut Problems,
    ) -> Option<TableLine> {
        let text = line.text;
        if cells::is_comment_or_blank(text) {
            return Some(TableLine::Other(text.into()));
        }
        if let Some(fault) = line.fault {
            let hint = "inside a quoted cell, write each quote twice: `\"a \"\"b\"\" c\"`";
            problems.push(Problem::error("", fault.message()).hint(hint));
            return None;
        }
        let Some(fields) = cells::fields(text) else {
            let hint = "remove carriage returns and other control characters";
            problems.push(Problem::error("", "is not one line of a CSV").hint(hint));
            return None;
        };
        if self.columns.is_empty() {
            self.columns = fields.iter().map(|name| name.to_lowercase()).collect();
            check_header(&self.columns, problems);
            return Some(TableLine::Header(text.into()));
        }
        if fields.len() != self.columns.len() {
            let message =
                format!("has {} fields, but the header has {}", fields.len(), self.columns.len());
            let hint = "quote fields that contain a comma: `\"a=[1,2]\"`";
            problems.push(Problem::error("", message).hint(hint));
            return None;
        }
        let row = read_row(&self.columns, &fields, problems);
        Some(TableLine::Row { text: text.into(), row: Box::new(row) })
    }

    /// Returns the rows, in file order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.lines.iter().filter_map(|line| match line {
            TableLine::Row { row, .. } => Some(&**row),
            TableLine::Other(_) | TableLine::Header(_) => None,
        })
    }

    /// Returns comments and rows, in file order.
    pub fn entries(&self) -> impl Iterator<Item = TableEntry<'_>> {
        self.lines.iter().filter_map(|line| match line {
            TableLine::Row { row, .. } => Some(TableEntry::Row(row)),
            TableLine::Other(text) => {
                text.trim().strip_prefix('#').map(|comment| TableEntry::Comment(comment.trim()))
            }
            TableLine::Header(_) => None,
        })
    }

    /// Formats the table as the text of its file.
    pub fn text(&self) -> String {
        let mut text = self.byte_order_mark.to_string();
        for line in &self.lines {
            text.push_str(match line {
                TableLine::Other(line)
                | TableLine::Header(line)
                | TableLine::Row { text: line, .. } => line,
            });
            text.push_str(self.newline);
        }
        text
    }

    /// Marks the row at `index` as done or pending. The rest of its line stays unchanged.
    pub fn mark(&mut self, index: usize, done: bool) {
        let Some(run) = self.columns.iter().position(|column| column == "run") else { return };
        let mut rows = self.lines.iter_mut().filter(|line| matches!(line, TableLine::Row { .. }));
        if let Some(TableLine::Row { text, row }) = rows.nth(index) {
            row.done = done;
            let marked = cells::with_cell(text, run, &field(row, "run"));
            debug_assert!(marked.is_some(), "a row has one cell per column");
            *text = marked.unwrap_or_else(|| std::mem::take(text));
        }
    }

    /// Appends a row. Columns that only this row needs are added, with empty cells at the end of all other lines.
    pub fn push(&mut self, row: Row) {
        let missing = COLUMNS.iter().filter(|column| {
            !field(&row, column).is_empty() && !self.columns.iter().any(|known| known == *column)
        });
        let missing: Vec<String> = missing.map(|column| (*column).to_string()).collect();
        for line in &mut self.lines {
            match line {
                TableLine::Other(_) => {}
                TableLine::Header(text) => {
                    text.extend(missing.iter().flat_map(|column| [",", column.as_str()]));
                }
                TableLine::Row { text, .. } => text.push_str(&",".repeat(missing.len())),
            }
        }
        self.columns.extend(missing);
        self.push_line(row);
    }

    fn push_line(&mut self, row: Row) {
        let fields: Vec<String> = self.columns.iter().map(|column| field(&row, column)).collect();
        self.lines.push(TableLine::Row { text: cells::format_line(&fields), row: Box::new(row) });
    }
}

fn check_header(columns: &[String], problems: &mut Problems) {
    let is_present = |name: &str| columns.iter().any(|column| column == name);
    for missing in REQUIRED_COLUMNS.iter().filter(|name| !is_present(name)) {
        let hint = format!("the header of a study is `{}`", BASE_COLUMNS.join(","));
        problems.push(Problem::error("", format!("there is no column `{missing}`")).hint(hint));
    }
    let repeated = columns.iter().enumerate().filter(|(i, column)| columns[..*i].contains(column));
    for (_, column) in repeated {
        problems.push(Problem::error("", format!("there are two columns `{column}`")));
    }
}

/// Formats a row's value in a column; empty if the row has no value there.
pub(crate) fn field(row: &Row, column: &str) -> String {
    match column {
        "model" => row.model.clone(),
        "epochs" => text(row.epochs),
        "processes" => row.accelerators.to_string(),
        "overrides" => {
            let texts: Vec<String> = row.settings.iter().map(Setting::text).collect();
            texts.join(" ")
        }
        "scale" => text(row.scale),
        "seed" => text(row.seed),
        "block" => text(row.block),
        "order" => text(row.order),
        "replicate" => text(row.replicate),
        "note" => row.note.clone(),
        "run" => if row.done { "Y" } else { "N" }.into(),
        _ => String::new(),
    }
}

fn read_row(columns: &[String], fields: &[String], problems: &mut Problems) -> Row {
    let mut row = Row::new("", 0);
    for (column, text) in columns.iter().zip(fields) {
        if let Err(problem) = read_field(&mut row, column, text, problems) {
            problems.push(problem);
        }
    }
    problems.0.extend(row.repeated_keys());
    row
}

fn read_field(
    row: &mut Row,
    column: &str,
    text: &str,
    problems: &mut Problems,
) -> Result<(), Problem> {
    match column {
        "model" if text.is_empty() => return Err(Problem::error("model", "no workload is named")),
        "model" => row.model = text.into(),
        "epochs" => row.epochs = number(column, text, |n| *n > 0)?,
        "processes" => {
            let count = number(column, text, |n| (1..=PROCESSES_MAX).contains(n))?;
            row.accelerators =
                count.ok_or_else(|| Problem::error("processes", "no number is given"))?;
        }
        "overrides" => {
            for word in setting::split_overrides(text) {
                match Setting::parse(&word) {
                    Ok(setting) => row.settings.push(setting),
                    Err(problem) => problems.push(problem),
                }
            }
        }
        "scale" => row.scale = number(column, text, |scale| *scale > 0.0 && *scale <= 1.0)?,
        "seed" => row.seed = number(column, text, |_| true)?,
        "block" => row.block = number(column, text, |_| true)?,
        "order" => row.order = number(column, text, |_| true)?,
        "replicate" => row.replicate = number(column, text, |_| true)?,
        "note" => row.note = text.into(),
        "run" => match text.to_ascii_uppercase().as_str() {
            "Y" => row.done = true,
            "N" | "" => row.done = false,
            _ => {
                let problem = Problem::error("run", format!("`{text}` is neither `Y` nor `N`"));
                return Err(problem.hint("`N` is pending, `Y` is done"));
            }
        },
        // Unknown columns are preserved.
        _ => {}
    }
    Ok(())
}

/// Parses the number in a cell; `None` if the cell is empty.
fn number<T: FromStr>(
    column: &str,
    text: &str,
    is_allowed: impl Fn(&T) -> bool,
) -> Result<Option<T>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let value = without_fraction(text).parse().ok().filter(is_allowed);
    value.map(Some).ok_or_else(|| Problem::error(column, format!("`{text}` is not a valid value")))
}

/// Removes a fraction of zeros: spreadsheets and data frames write `2` as `2.0` in a column with empty cells.
fn without_fraction(text: &str) -> &str {
    match text.split_once('.') {
        Some((integer, zeros)) if zeros.bytes().all(|digit| digit == b'0') => integer,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STUDY: &str = "\
model,epochs,processes,overrides,run
# Vary batch_size

unet3d_h100_custom,5,4,\"++workload.reader.batch_size=1\",N
unet3d_h100_custom,5,4,\"++workload.reader.batch_size=4 ++workload.train.seed_change=[1,2]\",Y
";

    fn parse(text: &str) -> Table {
        Table::parse("study.csv", text).unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn both_forms_are_read_and_written_back_unchanged() {
        let earlier = "model,epochs,processes,run\ncosmoflow_h100_custom,1,2,N\n";
        for text in [STUDY, earlier, &STUDY.replace('\n', "\r\n"), &format!("\u{feff}{STUDY}")] {
            assert_eq!(parse(text).text(), text);
        }
        let table = parse(STUDY);
        let rows: Vec<&Row> = table.rows().collect();
        assert_eq!(rows[0].settings, [Setting::new("reader.batch_size", "1")]);
        assert_eq!((rows[0].epochs, rows[0].accelerators, rows[0].done), (Some(5), 4, false));
        assert_eq!(rows[1].settings.len(), 2);
        assert!(rows[1].done);
    }

    #[test]
    fn marking_a_row_changes_one_cell() {
        let mut table = parse(STUDY);
        table.mark(0, true);
        assert_eq!(table.text(), STUDY.replacen("=1\",N", "=1\",Y", 1));
        table.mark(1, false);
        assert!(table.text().contains("seed_change=[1,2]\",N"), "{}", table.text());
        let mut spaced = parse("model, run ,processes\n\"w\", N ,\"4\"\n");
        spaced.mark(0, true);
        assert_eq!(spaced.text(), "model, run ,processes\n\"w\",Y,\"4\"\n");
        assert_eq!(parse(&table.text()), table);
    }

    #[test]
    fn an_appended_row_adds_missing_columns() {
        let mut table = parse(STUDY);
        let row = Row { replicate: Some(2), ..table.rows().next().unwrap().clone() };
        table.push(row.clone());
        let text = table.text();
        let mut lines: Vec<String> = STUDY.lines().map(String::from).collect();
        lines[0].push_str(",replicate");
        lines[3].push(',');
        lines[4].push(',');
        lines.push("unet3d_h100_custom,5,4,++workload.reader.batch_size=1,N,2\n".into());
        assert_eq!(text, lines.join("\n"));
        assert_eq!(parse(&text).rows().last(), Some(&row));
    }

    #[test]
    fn a_new_table_omits_empty_columns() {
        let row = Row { order: Some(1), ..Row::new("quickstart", 2) };
        let table = Table::new(vec![row], &["One run.".into(), String::new()]);
        assert_eq!(
            table.text(),
            "model,epochs,processes,overrides,order,run\n# One run.\n#\nquickstart,,2,,1,N\n"
        );
    }

    #[test]
    fn a_quote_inside_an_unquoted_cell_is_literal() {
        let text = "model,processes,run,note\nw.yaml,1,N,5\" disk\nw.yaml,2,N,ok\nw.yaml,3,N,3\" disk\nw.yaml,4,N,x\n";
        let processes: Vec<u32> = parse(text).rows().map(|row| row.accelerators).collect();
        assert_eq!(processes, [1, 2, 3, 4]);
        assert_eq!(parse(text).rows().next().unwrap().note, "5\" disk");
        let mut before_run =
            parse("note,model,processes,run\n5\" disk,w,1,N\n\"a \"\"b\"\", c\",w,2,N\n");
        before_run.mark(0, true);
        before_run.mark(1, true);
        assert_eq!(
            before_run.text(),
            "note,model,processes,run\n5\" disk,w,1,Y\n\"a \"\"b\"\", c\",w,2,Y\n"
        );
    }

    #[test]
    fn a_quote_that_would_hide_rows_is_refused() {
        const HEADER: &str = "note,model,processes,run\n";
        for (rows, words) in [
            ("\"5 disk,w,1,N\nx,w,2,N\n", "study.csv:2:1: a quote is never closed"),
            ("x,w,1,N\n\"5 disk,w,2,N\n\"3 disk,w,3,N\n", "study.csv:3:1: a cell goes on after"),
            ("a\rb,w,1,N\n", "study.csv:2:1: is not one line of a CSV"),
        ] {
            let problems = Table::parse("study.csv", &format!("{HEADER}{rows}")).unwrap_err();
            assert!(problems.to_string().contains(words), "no `{words}` in {problems}");
        }
    }

    #[test]
    fn appending_a_row_leaves_other_rows_unchanged() {
        let text = "Owner, Model ,processes,run,\"My note\"\n\"me\", w ,\"4\",N,\"a, b\"\n";
        let mut table = parse(text);
        table.push(Row { replicate: Some(2), ..Row::new("w", 4) });
        assert_eq!(
            table.text(),
            "Owner, Model ,processes,run,\"My note\",replicate\n\"me\", w ,\"4\",N,\"a, b\",\n,w,4,N,,2\n"
        );
        assert_eq!(parse(&table.text()), table);
    }

    #[test]
    fn integers_may_have_a_zero_fraction() {
        let text = "model,epochs,processes,seed,block,order,replicate,scale,run\nw,5.0,4.0,7.0,1.0,3.00,2.0,1.0,N\n";
        let expected = Row {
            epochs: Some(5),
            seed: Some(7),
            block: Some(1),
            order: Some(3),
            replicate: Some(2),
            scale: Some(1.0),
            ..Row::new("w", 4)
        };
        assert_eq!(parse(text).rows().collect::<Vec<_>>(), [&expected]);
        for wrong in ["2.5", ".0", "2.0.0", "2.0e1"] {
            let text = format!("model,processes,run\nw,{wrong},N\n");
            assert!(Table::parse("study.csv", &text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_columns_are_preserved() {
        let text = "run,who,model,processes\nN,me,w,4\n";
        let mut table = parse(text);
        table.mark(0, true);
        assert_eq!(table.text(), "run,who,model,processes\nY,me,w,4\n");
    }

    #[test]
    fn all_problems_are_reported_with_their_lines() {
        let text = "model,epochs,processes,overrides,run\n,x,0,batch size,maybe\nw,5,4,N\n";
        let problems = Table::parse("study.csv", text).unwrap_err().to_string();
        for words in [
            "study.csv:2:1: model: no workload is named",
            "study.csv:2:1: epochs: `x`",
            "study.csv:2:1: processes: `0`",
            "study.csv:2:1: run: `maybe` is neither",
            "study.csv:3:1: has 4 fields, but the header has 5",
            "hint: quote fields",
        ] {
            assert!(problems.contains(words), "no `{words}` in {problems}");
        }
        for (text, words) in [
            ("", "has no header"),
            (
                "model,processes,epochs,overrides,run\nw,1,2,train.epochs=1,N\n",
                "study.csv:2:1: train.epochs: is set by the column `epochs`",
            ),
            ("model,run\nw,N\n", "no column `processes`"),
            ("model,run,processes,run\n", "two columns `run`"),
        ] {
            let problems = Table::parse("study.csv", text).unwrap_err().to_string();
            assert!(problems.contains(words), "no `{words}` in {problems}");
        }
        let problems = Table::parse("study.csv", "model,run\nw\nw,maybe\n").unwrap_err();
        assert_eq!(problems.0.len(), 1, "only the header: {problems}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(model,epochs,processes,overrides,run\n)?[ -~\n\"é]{0,80}") {
            if let Ok(table) = Table::parse("study.csv", &text) {
                let again = parse(&table.text());
                prop_assert_eq!(again.text(), table.text());
            }
        }
    }
}
