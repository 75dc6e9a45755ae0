//! Plain text for the terminal: rows of a name and a value, tables without lines, values that may not be known.

use comfy_table::{CellAlignment, Row, Table, presets};

/// Rows under one another; values start in one column, further lines of a value are indented to it.
pub(crate) fn rows(rows: &[(&str, String)]) -> String {
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

/// A table without lines, and without the blanks that fill them up.
pub(crate) fn table<R: Into<Row>>(
    header: impl Into<Row>,
    rows: impl IntoIterator<Item = R>,
) -> String {
    table_of_numbers(header, rows, &[])
}

/// The same with these columns set to the right.
pub(crate) fn table_of_numbers<R: Into<Row>>(
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

/// The text, or as many of its words as so many characters hold.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.into();
    }
    let kept: String = text.chars().take(characters - 1).collect();
    let words = kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words);
    format!("{words} …")
}

/// A value that may not be known.
pub(crate) fn known<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_cut_ends_with_a_word() {
        assert_eq!(super::cut("one two three", 13), "one two three");
        assert_eq!(super::cut("one two three", 10), "one two …");
    }

    #[test]
    fn values_are_aligned() {
        let text = super::rows(&[("a", "1".into()), ("long", "2\n3".into())]);
        assert_eq!(text, "a     1\nlong  2\n      3");
    }
}
