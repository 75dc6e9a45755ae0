//! Results for other programs: gates as test cases in JUnit's XML, and metrics in the text format of OpenMetrics.

mod junit;
mod openmetrics;

pub(crate) use junit::{CaseState, TestCase, TestSuite};
pub(crate) use openmetrics::{MetricSet, labels};

use crate::cli::OUTPUT;
use clap::Args;
use feedrate_session::output::write_output;
use std::path::PathBuf;

/// Options for the files of other programs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExportArguments {
    /// Write gates as test cases (JUnit's XML).
    ///
    /// An existing file is replaced. A gate that is not decided is an error, never passed.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    junit: Option<PathBuf>,
    /// Write metrics as OpenMetrics, for Prometheus.
    ///
    /// An existing file is replaced.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    openmetrics: Option<PathBuf>,
}

impl ExportArguments {
    /// Whether a file is wanted.
    pub(crate) fn are_given(&self) -> bool {
        self.junit.is_some() || self.openmetrics.is_some()
    }

    /// Whether the metrics are wanted, which may need the records of all runs.
    pub(crate) fn wants_metrics(&self) -> bool {
        self.openmetrics.is_some()
    }

    /// Writes the requested files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, suite: &TestSuite, metrics: &[MetricSet]) -> anyhow::Result<()> {
        if let Some(file) = &self.junit {
            write_output(file, &suite.xml()?, Some(true))?;
        }
        if let Some(file) = &self.openmetrics {
            write_output(file, openmetrics::text(metrics).as_bytes(), Some(true))?;
        }
        Ok(())
    }
}
