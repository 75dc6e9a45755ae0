//! Lays out text for a terminal: rows of names and values, tables without lines, wrapped lines, colours.

use crate::table::{ColumnKind, ReportTable, TableColumn};
use anstyle::{AnsiColor, Reset, Style};
use comfy_table::{CellAlignment, Row, Table, presets};
use feedrate_analysis::answer::AnswerKind;

/// Rows of a name and a value. All values start in the same column, also their further lines.
pub fn rows(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(32);
    let lines: Vec<String> = rows
        .iter()
        .map(|(name, value)| {
            let value = value.replace('\n', &format!("\n{:width$}  ", ""));
            format!("{name:width$}  {value}").trim_end().to_string()
        })
        .collect();
    lines.join("\n")
}

/// A table without lines and without trailing blanks.
pub fn table<R: Into<Row>>(header: impl Into<Row>, rows: impl IntoIterator<Item = R>) -> String {
    table_with_numbers(header, rows, &[])
}

/// A table without lines whose columns in `numbers` are aligned to the right.
pub fn table_with_numbers<R: Into<Row>>(
    header: impl Into<Row>,
    rows: impl IntoIterator<Item = R>,
    numbers: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for &column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Width at which a heading is wrapped, in characters.
const HEADING_COLUMNS: usize = 12;
/// Width at which a cell's text is wrapped, in characters.
const CELL_COLUMNS: usize = 40;

/// A table in lines of at most `columns` characters. Columns that do not fit follow in a further block, which repeats the columns that name the rows.
pub fn report_table(table: &ReportTable, columns: Option<usize>) -> String {
    let heading_columns = columns.map(|_| HEADING_COLUMNS);
    let text_columns = columns.map(|_| CELL_COLUMNS);
    let cells = |index: usize| {
        let column = &table.columns[index];
        let widest =
            table.rows.iter().map(|row| row[index].text.chars().count()).max().unwrap_or(0);
        let heading = wrap(&column.name, heading_columns.map(|most| most.max(widest)));
        let texts = table.rows.iter().map(|row| wrap(&row[index].text, text_columns));
        Vec::from_iter([heading].into_iter().chain(texts))
    };
    let mut all: Vec<Vec<String>> = (0..table.columns.len()).map(cells).collect();
    // Each column has a blank on either side.
    let width = |cells: &Vec<String>| {
        let lines = cells.iter().flat_map(|cell| cell.lines());
        lines.map(|line| line.chars().count()).max().unwrap_or(0) + 2
    };
    let is_measured =
        |column: &TableColumn| matches!(column.kind, ColumnKind::Utilisation | ColumnKind::Rate);
    let mut kinds: Vec<ColumnKind> = table.columns.iter().map(|column| column.kind).collect();
    let mut names = table.columns.iter().position(is_measured).unwrap_or(1).min(all.len());
    let widths = |all: &[Vec<String>]| all.iter().map(width).sum::<usize>();
    let is_wide = columns.is_some_and(|columns| columns < 2 * widths(&all[..names]));
    if is_wide && columns < Some(widths(&all)) {
        // Further blocks identify rows by number.
        if !table.is_of_runs {
            let numbers = (1..=table.rows.len()).map(|number| number.to_string());
            all.insert(0, [String::new()].into_iter().chain(numbers).collect());
            kinds.insert(0, ColumnKind::Number);
        }
        names = 1;
    }
    let widths: Vec<usize> = all.iter().map(width).collect();
    let mut parts: Vec<Vec<usize>> = vec![(0..names).collect()];
    for index in names..all.len() {
        let last = parts.last().map_or(0, |part| part.iter().map(|&index| widths[index]).sum());
        let is_full = columns.is_some_and(|columns| columns < last + widths[index]);
        if is_full && parts.last().is_some_and(|part| names < part.len()) {
            parts.push((0..names).collect());
        }
        parts.last_mut().into_iter().for_each(|part| part.push(index));
    }
    let parts = parts.iter().map(|part| {
        let row = |number: usize| {
            part.iter().map(|&index| all[index][number].clone()).collect::<Vec<_>>()
        };
        let is_number = |index: &usize| kinds[part[*index]] != ColumnKind::Text;
        let numbers: Vec<usize> = (0..part.len()).filter(is_number).collect();
        table_with_numbers(row(0), (1..=table.rows.len()).map(row), &numbers)
    });
    parts.collect::<Vec<_>>().join("\n\n")
}

/// The clauses of a text, separated by semicolons, that fit into `characters`; always at least the first.
pub fn clauses(text: &str, characters: usize) -> String {
    let mut kept = String::new();
    for clause in text.split("; ") {
        let more = if kept.is_empty() { clause.to_string() } else { format!("{kept}; {clause}") };
        if !kept.is_empty() && characters < more.chars().count() {
            break;
        }
        kept = more;
    }
    kept
}

/// The text, or as many of its words as fit into `characters`.
pub fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.into();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    match kept.rsplit_once(' ') {
        Some((words, _)) => format!("{words} …"),
        None => format!("{kept}…"),
    }
}

/// The text of a value, or a dash if it is unknown.
pub fn known<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), text)
}

/// A word in bold, in the colour of its kind of answer.
pub fn answer_head(kind: AnswerKind, word: &str) -> String {
    let colour = match kind {
        AnswerKind::Yes => Some(AnsiColor::Green),
        AnswerKind::No => Some(AnsiColor::Red),
        AnswerKind::Unknown => Some(AnsiColor::Yellow),
        AnswerKind::Rate | AnswerKind::Checkpoints => None,
    };
    paint(colour, word)
}

/// A word in the colour of its class.
pub fn badge(class: &str, word: &str) -> String {
    match class {
        "invalid" => paint(Some(AnsiColor::Red), word),
        "warning" => paint(Some(AnsiColor::Yellow), word),
        "note" => paint(None, word),
        _ => word.into(),
    }
}

/// Marks that begin a coloured word, with their colours. Unicode reserves these characters for internal use. The last mark ends a word.
const PAINTS: [(char, Option<AnsiColor>); 5] = [
    ('\u{fdd0}', None),
    ('\u{fdd1}', Some(AnsiColor::Red)),
    ('\u{fdd2}', Some(AnsiColor::Green)),
    ('\u{fdd3}', Some(AnsiColor::Yellow)),
    (UNPAINTED, None),
];
const UNPAINTED: char = '\u{fdd4}';

fn paint(colour: Option<AnsiColor>, word: &str) -> String {
    let paint = PAINTS.iter().find(|(_, paint)| *paint == colour);
    format!("{}{word}{UNPAINTED}", paint.map_or(UNPAINTED, |(mark, _)| *mark))
}

/// Replaces the colour marks of a text by escape sequences, or removes them.
pub fn apply_colours(text: &str, is_coloured: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match PAINTS.iter().find(|(mark, _)| *mark == c) {
            None => out.push(c),
            Some(_) if !is_coloured => {}
            Some((UNPAINTED, _)) => out += &Reset.render().to_string(),
            Some((_, colour)) => {
                let style = Style::new().bold().fg_color(colour.map(Into::into));
                out += &style.render().to_string();
            }
        }
    }
    out
}

/// Wraps a text into lines of at most `width` characters. Breaks at blanks but not after a number. Continued lines are indented like their text.
pub fn wrap(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.into() };
    let lines: Vec<String> = text.lines().map(|line| wrap_line(line, width)).collect();
    lines.join("\n")
}

/// Shortens `text` to the lines that fit into `rows`, together with an empty line, `last` and a row for the next prompt.
pub fn fit_to_rows(text: &str, last: &str, rows: Option<usize>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let free = rows.map_or(usize::MAX, |rows| rows.saturating_sub(last.lines().count() + 1));
    match lines.len() {
        all if all < free => format!("{text}\n\n{last}"),
        all if all == free => format!("{text}\n{last}"),
        all => {
            let shown = free.saturating_sub(2);
            let left_out = all - shown;
            format!(
                "{}\n… {left_out} more lines: `--all` shows them\n\n{last}",
                lines[..shown].join("\n")
            )
        }
    }
}

/// Appends `begin`, the beginning of the text, if it would scroll out of `rows`.
pub fn repeat_beginning(text: &str, begin: &str, rows: Option<usize>) -> String {
    if rows.is_some_and(|rows| rows <= text.lines().count()) {
        format!("{text}\n\n{begin}")
    } else {
        text.into()
    }
}

fn wrap_line(line: &str, width: usize) -> String {
    let columns = |text: &str| apply_colours(text, false).chars().count();
    if columns(line) <= width {
        return line.into();
    }
    let begin = text_column(line);
    let indent = if begin <= width / 2 { begin } else { 0 };
    if line.trim_start().starts_with("feedrate ") {
        return wrap_command(line, width);
    }
    let (mut wrapped, mut column) = (String::new(), 0);
    for part in words_with_blanks(line) {
        let word = part.trim_end_matches(' ');
        if indent < column && width < column + columns(word) {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped += &format!("\n{:indent$}", "");
            column = indent;
            if word.is_empty() {
                continue;
            }
        }
        wrapped += part;
        column += columns(part);
    }
    wrapped.truncate(wrapped.trim_end_matches(' ').len());
    wrapped
}

/// Wraps a command that can still be copied: lines continue after a backslash and never break inside quotes.
fn wrap_command(line: &str, width: usize) -> String {
    const CONTINUATION: &str = " \\\n";
    let indent = line.len() - line.trim_start().len() + 2;
    let (mut wrapped, mut column, mut is_quoted) = (String::new(), 0, false);
    for (index, word) in line.split(' ').enumerate() {
        let columns = word.chars().count() + 1;
        if 0 < index {
            let fits = column + columns + CONTINUATION.len() <= width + 1;
            let goes_on = is_quoted || fits || column <= indent;
            if !goes_on {
                wrapped += CONTINUATION;
                column = indent;
            }
            wrapped += &if goes_on { " ".into() } else { " ".repeat(indent) };
        }
        wrapped += word;
        column += columns;
        is_quoted ^= word.matches(['\'', '"']).count() % 2 == 1;
    }
    wrapped
}

/// Splits a line into words with their trailing blanks. A number stays with the word after it.
fn words_with_blanks(line: &str) -> impl Iterator<Item = &str> {
    let after_number = |offset: usize| {
        let word = line[..offset].rsplit(' ').next().unwrap_or_default();
        word.ends_with(|c: char| c.is_ascii_digit()) && !word.contains('=')
    };
    let ends = line.match_indices(' ').filter(move |(offset, _)| !after_number(*offset));
    let ends = ends.map(|(offset, _)| offset + 1).chain([line.len()]);
    ends.scan(0, |begin, end| Some(&line[std::mem::replace(begin, end)..end]))
}

/// The column where a line's text starts: at the value, if the line is a row of a name and a value, else at the first word.
fn text_column(line: &str) -> usize {
    let first = line.chars().take_while(|&c| c == ' ').count();
    let name = line[first..].split("  ").next().unwrap_or_default();
    let value = line[first + name.len()..].trim_start_matches(' ');
    if value.is_empty() { first } else { line.chars().count() - value.chars().count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_only_at_blanks() {
        for (text, width, expected) in [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two\nthree"),
            ("  one two three", 9, "  one two\n  three"),
            ("incomprehensibilities go", 10, "incomprehensibilities\ngo"),
            ("a    one two", 10, "a    one\n     two"),
            ("at 20 ms it is", 6, "at\n20 ms\nit is"),
            ("key=1 more=2", 8, "key=1\nmore=2"),
            ("a\n\nb c", 1, "a\n\nb\nc"),
        ] {
            assert_eq!(wrap(text, Some(width)), expected, "{text}");
            assert_eq!(wrap(text, None), text);
        }
    }

    #[test]
    fn a_long_command_continues_after_backslashes() {
        for (text, width, expected) in [
            ("feedrate run a -n 4 b=1", 23, "feedrate run a -n 4 b=1"),
            ("feedrate run a -n 4 b=1", 22, "feedrate run a -n 4 \\\n  b=1"),
            ("  feedrate run a b", 17, "  feedrate run \\\n    a b"),
            ("feedrate run 'a b' c", 15, "feedrate run \\\n  'a b' c"),
        ] {
            assert_eq!(wrap(text, Some(width)), expected);
        }
    }

    #[test]
    fn a_screen_keeps_its_last_line_and_counts_omitted_lines() {
        for (text, rows, expected) in [
            ("a\nb\nc", None, "a\nb\nc\n\nlast"),
            ("a\nb\nc", Some(6), "a\nb\nc\n\nlast"),
            ("a\nb\nc", Some(5), "a\nb\nc\nlast"),
            ("a\nb\nc\nd", Some(5), "a\n… 3 more lines: `--all` shows them\n\nlast"),
        ] {
            assert_eq!(fit_to_rows(text, "last", rows), expected);
            assert!(rows.is_none_or(|rows| expected.lines().count() < rows));
        }
    }

    #[test]
    fn a_beginning_that_scrolls_away_is_repeated() {
        for (rows, expected) in [(None, "a\nb"), (Some(3), "a\nb"), (Some(2), "a\nb\n\na")] {
            assert_eq!(repeat_beginning("a\nb", "a", rows), expected);
        }
    }

    #[test]
    fn colours_do_not_count_as_columns() {
        let text = format!("{} is not", answer_head(AnswerKind::No, "NO:"));
        assert_eq!(wrap(&text, Some(10)), text);
        assert_eq!(wrap(&text, Some(9)), text.replace(" not", "\nnot"));
    }

    #[test]
    fn a_text_is_cut_only_between_clauses() {
        let text = "one; two; three";
        for (characters, expected) in [(15, text), (14, "one; two"), (3, "one"), (1, "one")] {
            assert_eq!(clauses(text, characters), expected);
        }
    }

    #[test]
    fn a_cut_text_ends_with_a_word() {
        assert_eq!(super::cut("one two three", 13), "one two three");
        assert_eq!(super::cut("one two three", 10), "one two …");
        for (characters, expected) in [(13, "read_threads…"), (4, "rea…"), (1, "…")] {
            assert_eq!(super::cut("read_threads_and_more", characters), expected);
        }
    }

    #[test]
    fn values_are_aligned() {
        let text = rows(&[("a", "1".into()), ("long", "2\n3".into())]);
        assert_eq!(text, "a     1\nlong  2\n      3");
    }
}
