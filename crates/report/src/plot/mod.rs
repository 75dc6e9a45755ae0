//! Plots of runs and studies: one file a plot, one row in [`PLOTS`]. A plot makes a [`Figure`] of plain data; it reads no file and draws
//! nothing.
//!
//! To add one: copy `stall.rs`, add its `mod` line and its row; the contract tests run on it.

pub mod data;
mod block;
mod response;
mod caption;
mod search;
pub mod ceilings;
pub mod whatif;
mod against;
mod scaling;
mod factor_levels;
mod main_effects;
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

/// Every plot, in the order that help and reports show them: a page opens with the first three that its runs have enough for.
pub static PLOTS: &[&Plot] = &[
    &search::PLOT,
    &ceilings::PLOT,
    &main_effects::PLOT,
    &stall::PLOT,
    &against::AU_PROCESSES,
    &timeline::PLOT,
    &against::THROUGHPUT_PROCESSES,
    &scaling::PLOT,
    &factor_levels::PLOT,
    &whatif::PLOT,
    &epochs::PLOT,
    &phases::PLOT,
    &latency::PLOT,
    &status::PLOT,
];

/// The plot of this name.
pub fn find(name: &str) -> Option<&'static Plot> {
    PLOTS.iter().copied().find(|plot| plot.name == name)
}

/// A plot.
#[derive(Debug)]
pub struct Plot {
    /// The name users write.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Kind of data that it is drawn from.
    pub needs: Needs,
    make: Make,
}

/// Makes the figure.
#[derive(Debug)]
enum Make {
    Figure(fn(&Data) -> Result<Figure, Missing>),
    /// Takes a response: the first of these that suits the runs, where nobody asks for another.
    Response(&'static [&'static Metric], fn(&Data, &Metric) -> Result<Figure, Missing>),
}

impl Plot {
    /// The responses of which it shows one where nobody asks for another; none of plots that have no choice.
    pub fn responses(&self) -> &'static [&'static Metric] {
        match self.make {
            Make::Figure(_) => &[],
            Make::Response(own, _) => own,
        }
    }

    /// Make the figure, with what all captions tell. `response`: the one asked for.
    ///
    /// # Errors
    /// The data lacks what the plot needs.
    pub fn figure(&self, data: &Data, response: Option<&Metric>) -> Result<Figure, Missing> {
        let mut figure = match self.make {
            Make::Figure(make) => make(data)?,
            Make::Response([own], make) => make(data, response.unwrap_or(own))?,
            Make::Response(_, make) => make(data, response.unwrap_or_else(|| data.throughput()))?,
        };
        if figure.is_bare() {
            return Err(Missing::new(
                "there is one mark, and nothing to compare it with",
                "run more than one experiment; `feedrate show RUN` tells the numbers of a run",
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
    /// Runs with their records, or with the steps that others' results tell.
    Records,
    /// The answer of a search.
    Search,
    /// Diagnoses beside the records of runs.
    Diagnosis,
    /// Runs with their records, and what these predict.
    Predictions,
    /// The rows of a study, or how far the runs of folders came.
    Progress,
}

/// Something that a plot lacks.
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

    /// There is no run to draw.
    fn runs() -> Self {
        Missing::new(
            "there is no run to draw",
            "run something: `feedrate run`, `feedrate study run`",
        )
    }

    /// `count` experiments do not fit into one picture.
    fn too_many(count: usize, most: usize, hint: &str) -> Self {
        let message = format!("{count} experiments are too many for one picture of at most {most}");
        Missing::new(message, hint)
    }
}
