//! Plots of runs and studies: one file and one row in [`PLOTS`] for each. A plot makes a [`Figure`] of plain data; it reads no file and draws
//! nothing.
//!
//! To add one: copy `stall.rs`, add its `mod` line and its row; the contract tests run on it.

pub mod data;
mod block;
mod response;
mod caption;
pub mod ceilings;
mod against;
mod scaling;
mod factor_levels;
mod stall;
mod together;
mod epochs;
mod phases;
mod timeline;
mod latency;
mod status;
#[cfg(test)]
mod tests;

use crate::draw::figure::Figure;
use data::Data;
use feedrate_measure::metric::Metric;

/// Every plot, in the order of help and reports. A page opens with the first three that its runs have data for.
pub static PLOTS: &[&Plot] = &[
    &scaling::PLOT,
    &ceilings::PLOT,
    &stall::PLOT,
    &against::AU_PROCESSES,
    &timeline::PLOT,
    &against::THROUGHPUT_PROCESSES,
    &factor_levels::PLOT,
    &phases::PLOT,
    &latency::PLOT,
    &status::PLOT,
];

/// The plot of this name, or the one that replaced it.
pub fn find(name: &str) -> Option<&'static Plot> {
    PLOTS.iter().copied().find(|plot| plot.name == name || plot.aliases.contains(&name))
}

/// A plot.
#[derive(Debug)]
pub struct Plot {
    /// The name users write.
    pub name: &'static str,
    /// Names of plots that it replaced.
    pub aliases: &'static [&'static str],
    /// One sentence.
    pub summary: &'static str,
    /// Kind of data that it is drawn from.
    pub needs: Needs,
    /// Responses that it shows by default if `--response` can choose another; empty for plots without a choice.
    pub responses: &'static [&'static Metric],
    make: fn(&Data, Option<&Metric>) -> Result<Figure, Missing>,
}

impl Plot {
    /// Makes the figure with its complete caption. `response`: the user's choice.
    ///
    /// # Errors
    /// The data lacks what the plot needs.
    pub fn figure(&self, data: &Data, response: Option<&Metric>) -> Result<Figure, Missing> {
        let mut figure = (self.make)(data, response)?;
        if figure.is_bare() {
            return Err(Missing::new(
                "there is one mark, and nothing to compare it with",
                "run more than one experiment; `feedrate show RUN` prints the numbers of a run",
            ));
        }
        if self.needs != Needs::Progress {
            figure.caption.push_str(&caption::look(&figure));
            figure.caption.push_str(&caption::changed_together(data));
        }
        Ok(figure)
    }
}

/// Data that a plot is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Runs, without every step.
    Summaries,
    /// Runs with their records, or with the steps in DLIO's results.
    Records,
    /// Diagnoses beside the records of runs.
    Diagnosis,
    /// The rows of a study, or the states of runs in folders.
    Progress,
}

/// The reason why a plot cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Missing {
    /// A lowercase fragment.
    pub message: String,
    /// Advice.
    pub hint: String,
}

impl Missing {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Missing { message: message.into(), hint: hint.into() }
    }

    /// The error for data without runs.
    fn runs() -> Self {
        Missing::new(
            "there is no run to draw",
            "run something: `feedrate run`, `feedrate study run`",
        )
    }

    /// The error for `count` experiments that do not fit into one picture.
    fn too_many(count: usize, most: usize, hint: &str) -> Self {
        let message = format!("{count} experiments are too many for one picture of at most {most}");
        Missing::new(message, hint)
    }
}
