//! Plots of runs and studies: one file a plot, one row in [`PLOTS`]. A plot makes a [`Figure`] of plain data; it reads no file and draws
//! nothing.
//!
//! To add one: copy `stall.rs`, implement [`Plot`], add its `mod` line and its row; the contract tests run on it.

pub mod data;
pub mod points;
mod groups;
mod caption;
mod compared;
mod against;
mod au_processes;
mod throughput_processes;
mod scaling;
mod factor_levels;
mod main_effects;
mod stall;
mod phases;
mod timeline;
mod latency;
mod status;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod compared_tests;
#[cfg(test)]
mod told_tests;

use crate::draw::figure::Figure;
use data::Data;
use feedrate_results::response::Response;
use feedrate_spec::catalog::Member;

/// Every plot, in the order that help shows them.
pub static PLOTS: &[&dyn Plot] = &[
    &au_processes::AuProcesses,
    &throughput_processes::ThroughputProcesses,
    &scaling::Scaling,
    &factor_levels::FactorLevels,
    &main_effects::MainEffects,
    &stall::StallSplit,
    &phases::Phases,
    &timeline::Timeline,
    &latency::Latency,
    &status::StudyStatus,
];

/// The plot of this name.
pub fn find(name: &str) -> Option<&'static dyn Plot> {
    PLOTS.iter().copied().find(|plot| plot.member().name == name)
}

/// What a plot shows, with what all plots must tell of these runs.
///
/// # Errors
/// The data lacks what the plot needs.
pub fn figure_of(
    plot: &dyn Plot,
    data: &Data,
    response: Option<&'static Response>,
) -> Result<Figure, Missing> {
    let mut figure = plot.figure(data, response)?;
    if plot.needs() != Needs::Progress {
        figure.caption.push_str(&caption::of_look(&figure));
        figure.caption.push_str(&caption::together(&data.runs));
    }
    Ok(figure)
}

/// A plot.
pub trait Plot: Sync {
    /// Name and summary.
    fn member(&self) -> &'static Member;

    /// What it is drawn from beside the summaries of runs.
    fn needs(&self) -> Needs {
        Needs::Summaries
    }

    /// The response it shows where nobody asks for another; `None` of plots that have no choice.
    fn response(&self) -> Option<&'static str> {
        None
    }

    /// What is shown. `response`: that of [`Plot::response`], or the one asked for.
    ///
    /// # Errors
    /// The data lacks what the plot needs.
    fn figure(&self, data: &Data, response: Option<&'static Response>) -> Result<Figure, Missing>;
}

/// What a plot is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// [`data::RunPoint`]s without their details.
    Summaries,
    /// With their details, which take the whole record.
    Records,
    /// The rows of a study, or how far the runs of folders came.
    Progress,
}

/// What a plot lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Missing {
    /// A lowercase fragment.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Missing {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Missing { message: message.into(), hint: hint.into() }
    }

    /// There is no run to draw.
    fn runs() -> Self {
        Missing::new(
            "there is no run to draw",
            "run something: `feedrate run`, `feedrate study run`",
        )
    }
}
