//! Formats of a report: one file and one row in [`OUTPUTS`] for each.
//!
//! To add a format: write its file with a `pub(super) static OUTPUT`, add its `mod` line and row here. `feedrate report --format` and the contract
//! tests read the table.

mod html;
mod markdown;
mod csv;
mod latex;
mod json;
pub mod terminal;
#[cfg(test)]
mod tests;

pub use json::{OpenObject, ReportObject, Schema, Versioned};

use crate::document::Detail;
use crate::number::run_numbers;
use crate::report::{FigureUse, Report};
use feedrate_spec::escape;
use std::path::Path;

/// Every output, in the order of help. A file's name selects the first with its extension.
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
    /// Extension of its files.
    pub extension: &'static str,
    /// A sentence about the output.
    pub summary: &'static str,
    /// Parts of figures that the output shows. Other parts are not computed.
    pub figures: FigureUse,
    /// Writes the content of the file. Cells of unknown values are empty.
    pub write: fn(&Report) -> String,
}

impl ReportOutput {
    /// The content of the file, with line breaks and control characters of names escaped.
    pub fn text(&self, report: &Report) -> String {
        escape::escape_lines(&(self.write)(report)).into_owned()
    }
}

/// The output of this name.
pub fn find(name: &str) -> Option<&'static ReportOutput> {
    OUTPUTS.iter().copied().find(|output| output.name == name)
}

/// The output for a file, by its extension.
pub fn for_file(path: &Path) -> Option<&'static ReportOutput> {
    let extension = path.extension()?.to_str()?;
    OUTPUTS.iter().copied().find(|output| output.extension.eq_ignore_ascii_case(extension))
}

/// A part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPart<'a> {
    Plain(&'a str),
    /// A word in backticks: a key, a name or a command.
    Name(&'a str),
}

/// Splits a sentence at backticks. A backtick without a partner is plain text.
fn split_names(sentence: &str) -> Vec<TextPart<'_>> {
    let mut stretches = Vec::new();
    let mut rest = sentence;
    while let Some((before, (name, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        stretches.extend([TextPart::Plain(before), TextPart::Name(name)]);
        rest = after;
    }
    stretches.push(TextPart::Plain(rest));
    stretches.retain(|stretch| *stretch != TextPart::Plain(""));
    stretches
}

/// The prefix of a detail: `runs 1, 2: `; empty for a detail without name and runs.
fn detail_prefix(detail: &Detail) -> String {
    let runs = if detail.runs.is_empty() { String::new() } else { run_numbers(&detail.runs) };
    let parts = [detail.name.as_str(), &runs];
    let head = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if head.is_empty() || detail.text.is_empty() { head } else { head + ": " }
}
