//! The files that a report can be: one file each, one row each in [`OUTPUTS`].
//!
//! To add one: write its file with a `pub(super) static OUTPUT`, add its `mod` line and row here. `feedrate report --format` and the contract
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

use crate::document::{Detail, run_number};
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

/// A stretch of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch<'a> {
    Plain(&'a str),
    /// A key, a name, a command: what stands in backticks.
    Name(&'a str),
}

/// A sentence in stretches. A backtick without a partner is itself.
fn stretches(sentence: &str) -> Vec<Stretch<'_>> {
    let mut stretches = Vec::new();
    let mut rest = sentence;
    while let Some((before, (name, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        stretches.extend([Stretch::Plain(before), Stretch::Name(name)]);
        rest = after;
    }
    stretches.push(Stretch::Plain(rest));
    stretches.retain(|stretch| *stretch != Stretch::Plain(""));
    stretches
}

/// The begin of a detail in text: `run 1, run 2: `; empty where it has neither a name nor runs.
fn head_of(detail: &Detail) -> String {
    let runs = detail.runs.iter().map(|&run| run_number(run)).collect::<Vec<_>>().join(", ");
    let parts = [detail.name.as_str(), &runs];
    let head = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if head.is_empty() || detail.text.is_empty() { head } else { head + ": " }
}
