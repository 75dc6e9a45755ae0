//! Tables for every kind of output: cells under headings that name their units.

use crate::number::{UNKNOWN, with_interval};
use schemars::JsonSchema;
use serde::Serialize;

/// Rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ReportTable {
    /// Text above the table.
    pub title: String,
    /// Column headings.
    pub columns: Vec<TableColumn>,
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<TableCell>>,
    /// Whether the rows are the runs of a report. These rows are link targets.
    #[serde(skip)]
    pub is_of_runs: bool,
    /// Indexes of rows that are shown as unused.
    #[serde(skip)]
    pub muted: Vec<usize>,
}

/// The heading of a column, with the unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TableColumn {
    /// `Read (MB/s)`.
    pub name: String,
    /// Alignment and shading.
    #[serde(skip)]
    pub kind: ColumnKind,
}

/// Alignment and shading of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, aligned to the left.
    #[default]
    Text,
    /// Numbers, aligned to the right.
    Number,
    /// Percentages, shaded by their value.
    Utilisation,
    /// Numbers, shaded relative to the highest number of their column.
    Rate,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TableCell {
    /// Displayed text.
    pub text: String,
    /// Exact value, used for sorting and shading.
    #[serde(skip)]
    pub value: Option<f64>,
    /// Link names with their addresses.
    #[serde(skip)]
    pub links: Vec<(String, String)>,
}

impl ReportTable {
    /// A table without columns.
    pub fn new(title: impl Into<String>) -> Self {
        ReportTable { title: title.into(), ..ReportTable::default() }
    }

    /// A table of text cells.
    pub fn from_text<'a>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item: IntoIterator<Item = String>>,
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

    /// Adds a column; the first one creates the rows.
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

    /// Heading and rows as lines. `write` formats a cell; `between` separates cells.
    pub fn lines(&self, write: fn(&str) -> String, between: &str) -> Vec<String> {
        let heading = self.columns.iter().map(|column| write(&column.name)).collect::<Vec<_>>();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| write(&cell.text)).collect());
        std::iter::once(heading).chain(rows).map(|cells| cells.join(between)).collect()
    }

    /// The table without empty columns.
    pub fn without_empty_columns(mut self) -> Self {
        for index in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| ["", UNKNOWN].contains(&row[index].text.as_str())) {
                self.columns.remove(index);
                self.rows.iter_mut().for_each(|row| drop(row.remove(index)));
            }
        }
        self
    }
}

impl TableCell {
    /// A number with all its digits; empty if unknown.
    pub fn number(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        TableCell {
            text: value.map_or(String::new(), |value| value.to_string()),
            value,
            ..TableCell::default()
        }
    }

    /// A number, formatted by `text`.
    pub fn written(value: Option<f64>, text: impl Fn(Option<f64>) -> String) -> Self {
        TableCell { text: text(value), value, ..TableCell::default() }
    }

    /// An estimate with its interval: `95.0 [94.1, 95.9]`, `95.0` without interval, a dash if unknown.
    pub fn middle(
        value: Option<f64>,
        ends: Option<(f64, f64)>,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let written = value.map(|middle| with_interval(middle, ends, text));
        TableCell { text: written.unwrap_or_else(|| UNKNOWN.into()), value, ..TableCell::default() }
    }

    /// A level of a factor. Its numeric value, if any, makes 2 sort before 10.
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
