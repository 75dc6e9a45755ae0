//! Plain text for the terminal: rows of a name and a value, tables without lines.

use comfy_table::{Row, Table, presets};

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

/// A table without lines.
pub(crate) fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Its lines, without the blanks that fill them up.
pub(crate) fn lines(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_aligned() {
        let text = super::rows(&[("a", "1".into()), ("long", "2\n3".into())]);
        assert_eq!(text, "a     1\nlong  2\n      3");
    }
}
