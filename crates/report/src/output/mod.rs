//! The files that a report can be: one file each, one row each in [`OUTPUTS`].
//!
//! To add one: write its file with a `pub(super) static OUTPUT`, add its `mod` line and row here. `feedrate report --format` and the contract
//! tests read the table.

mod html;
mod markdown;
mod csv;
mod latex;
mod json;
mod words;
#[cfg(test)]
mod tests;

pub use json::{JsonObject, Schema};

use crate::report::{FigureUse, Report};
use feedrate_spec::escape;
use std::path::Path;

/// Every output, in the order that help shows them. Of several with the same ending, a file's name asks for the first.
pub static OUTPUTS: &[&ReportOutput] = &[
    &html::OUTPUT,
    &markdown::OUTPUT,
    &csv::STUDY,
    &csv::STUDY_WITH_DEVIATIONS,
    &csv::TIDY,
    &latex::OUTPUT,
    &json::OUTPUT,
];

/// One of [`OUTPUTS`].
#[derive(Debug)]
pub struct ReportOutput {
    /// The name for `--format`.
    pub name: &'static str,
    /// The ending of its files.
    pub extension: &'static str,
    /// A sentence about it.
    pub summary: &'static str,
    /// Parts of figures that it shows: no others are made for it.
    pub figures: FigureUse,
    /// Make the whole file. Cells of unknown values are empty.
    pub write: fn(&Report) -> String,
}

impl ReportOutput {
    /// The whole file. Whatever runs are called, its lines are its own.
    pub fn text(&self, report: &Report) -> String {
        escape::lines(&(self.write)(report)).into_owned()
    }
}

/// By its name.
pub fn find(name: &str) -> Option<&'static ReportOutput> {
    OUTPUTS.iter().copied().find(|output| output.name == name)
}

/// By the ending of a file's name.
pub fn for_file(path: &Path) -> Option<&'static ReportOutput> {
    let extension = path.extension()?.to_str()?;
    OUTPUTS.iter().copied().find(|output| output.extension.eq_ignore_ascii_case(extension))
}
