//! Plots of runs and studies: one file and one row in [`PLOTS`] for each. A plot makes a [`Figure`] of plain data; it reads no file and draws
//! nothing.
//!
//! To add a plot: copy `stall.rs`, add its `mod` line and its row; the contract tests run on it.

pub mod data;
mod block;
mod response;
mod caption;
pub mod ceilings;
mod against;
mod scaling;
mod factor_levels;
mod effects;
mod stall;
mod together;
mod epochs;
mod phases;
mod checkpoint_rates;
mod timeline;
mod latency;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use phases::GPUS_OF_OTHERS;

use crate::draw::figure::Figure;
use data::Data;
use feedrate_measure::metric::Metric;

/// Every plot, in the order of help and reports. A page opens with the first three plots for which its runs have data.
pub static PLOTS: &[&Plot] = &[
    &scaling::PLOT,
    &ceilings::PLOT,
    &stall::PLOT,
    &against::AU_PROCESSES,
    &timeline::PLOT,
    &against::THROUGHPUT_PROCESSES,
    &factor_levels::PLOT,
    &effects::PLOT,
    &phases::PLOT,
    &checkpoint_rates::PLOT,
    &latency::PLOT,
    &status::PLOT,
];

/// The plot of this name, or its replacement.
pub fn find(name: &str) -> Option<&'static Plot> {
    PLOTS.iter().copied().find(|plot| plot.name == name || plot.aliases.contains(&name))
}

/// A plot.
#[derive(Debug)]
pub struct Plot {
    /// Name as users write it.
    pub name: &'static str,
    /// Names of plots that it replaced, or of the command whose results it shows.
    pub aliases: &'static [&'static str],
    /// Description in one sentence.
    pub summary: &'static str,
    /// Data that the plot needs.
    pub needs: Needs,
    /// Responses shown by default, if `--response` can choose another response; empty for other plots.
    pub responses: &'static [&'static Metric],
    /// Whether it has panels for factors, of which `--factor` can choose some.
    pub has_factor_panels: bool,
    make: fn(&Data, Option<&'static Metric>) -> Result<Figure, Missing>,
}

impl Plot {
    /// Makes the figure with its complete caption. `response`: the user's choice.
    ///
    /// # Errors
    /// The data lacks what the plot needs.
    pub fn figure(
        &self,
        data: &Data,
        response: Option<&'static Metric>,
    ) -> Result<Figure, Missing> {
        let mut figure = (self.make)(data, response)?;
        if figure.shows_single_position() {
            return Err(Missing::new(
                "there is one mark, and nothing to compare it with",
                "run more than one experiment; `feedrate show RUN` prints the numbers of a run",
            ));
        }
        if self.needs != Needs::Progress {
            figure.caption.push_str(&caption::drawing_notes(&figure));
            figure.caption.push_str(&caption::changed_together(data));
        }
        Ok(figure)
    }
}

/// Data that a plot needs.
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
