//! A table, whatever file it comes to stand in: cells under headings, which name their units.

use crate::number::{UNKNOWN, with_ends};
use schemars::JsonSchema;
use serde::Serialize;

/// Rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ReportTable {
    /// Above it.
    pub title: String,
    /// Headings.
    pub columns: Vec<TableColumn>,
    /// As long as `columns` each.
    pub rows: Vec<Vec<TableCell>>,
    /// Whether its rows are the runs of a report, which others link to.
    #[serde(skip)]
    pub is_of_runs: bool,
    /// Rows that count for nothing, by their index.
    #[serde(skip)]
    pub muted: Vec<usize>,
}

/// The heading of a column, with the unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TableColumn {
    /// `Read (MB/s)`.
    pub name: String,
    /// Its looks.
    #[serde(skip)]
    pub kind: ColumnKind,
}

/// The looks of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKind {
    /// Words, from the left.
    #[default]
    Text,
    /// Numbers, to the right.
    Number,
    /// Numbers of 100, shaded.
    Utilisation,
    /// Numbers shaded by the highest of their column.
    Rate,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TableCell {
    /// For readers.
    pub text: String,
    /// For programs, in full; sorted and shaded by.
    #[serde(skip)]
    pub value: Option<f64>,
    /// Names with the address that each leads to.
    #[serde(skip)]
    pub links: Vec<(String, String)>,
}

impl ReportTable {
    /// A table without columns.
    pub fn new(title: impl Into<String>) -> Self {
        ReportTable { title: title.into(), ..ReportTable::default() }
    }

    /// A table of words.
    pub fn from_text<'a>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns
            .into_iter()
            .map(|name| TableColumn { name: name.into(), kind: ColumnKind::Text });
        let rows = rows.into_iter().map(|row| row.into_iter().map(TableCell::from).collect());
        ReportTable {
            title: title.into(),
            columns: columns.collect(),
            rows: rows.collect(),
            ..ReportTable::default()
        }
    }

    /// Add a column; the first one makes the rows.
    pub fn add<C: Into<TableCell>>(
        &mut self,
        name: &str,
        kind: ColumnKind,
        cells: impl IntoIterator<Item = C>,
    ) {
        if self.columns.is_empty() {
            self.rows = cells.into_iter().map(|cell| vec![cell.into()]).collect();
        } else {
            self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell.into()));
        }
        self.columns.push(TableColumn { name: name.into(), kind });
    }

    /// Heading and rows as lines of cells that `write` writes, with `between` between them.
    pub fn lines(&self, write: fn(&str) -> String, between: &str) -> Vec<String> {
        let heading = self.columns.iter().map(|column| write(&column.name)).collect::<Vec<_>>();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| write(&cell.text)).collect());
        std::iter::once(heading).chain(rows).map(|cells| cells.join(between)).collect()
    }

    /// Leave out columns that nothing stands in.
    pub fn without_empty_columns(mut self) -> Self {
        for at in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| ["", UNKNOWN].contains(&row[at].text.as_str())) {
                self.columns.remove(at);
                self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            }
        }
        self
    }
}

impl TableCell {
    /// A number, written in full; nothing where it is not known.
    pub fn number(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        TableCell {
            text: value.map_or(String::new(), |value| value.to_string()),
            value,
            ..TableCell::default()
        }
    }

    /// A number as `text` writes it.
    pub fn written(value: Option<f64>, text: impl Fn(Option<f64>) -> String) -> Self {
        TableCell { text: text(value), value, ..TableCell::default() }
    }

    /// `95.0 [94.1, 95.9]`, `95.0` without ends, a dash where nothing is known.
    pub fn middle(
        value: Option<f64>,
        ends: Option<(f64, f64)>,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let written = value.map(|middle| with_ends(middle, ends, text));
        TableCell { text: written.unwrap_or_else(|| UNKNOWN.into()), value, ..TableCell::default() }
    }

    /// A level of a factor: a number where it is one, so that 2 sorts before 10.
    pub fn level(text: &str) -> Self {
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        TableCell { text: text.into(), value, ..TableCell::default() }
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        TableCell { text, ..TableCell::default() }
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        TableCell::from(text.to_string())
    }
}

impl From<&String> for TableCell {
    fn from(text: &String) -> Self {
        TableCell::from(text.clone())
    }
}

/// A count.
impl From<Option<u64>> for TableCell {
    fn from(count: Option<u64>) -> Self {
        let text = count.map_or(UNKNOWN.into(), |count| count.to_string());
        TableCell { text, value: count.map(|count| count as f64), ..TableCell::default() }
    }
}
