//! Results for other programs: gates as test cases in JUnit's XML, and metrics in the text format of OpenMetrics.

mod junit;
mod openmetrics;

pub(crate) use junit::{CaseState, TestCase, TestSuite};
pub(crate) use openmetrics::{MetricSet, labels};

use crate::cli::OUTPUT;
use crate::messages::StdoutError;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use feedrate_session::failure::Interrupted;
use feedrate_session::output::write_output;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Starts of the files that `--junit` replaces.
const JUNIT_STARTS: &[&str] = &["<?xml"];
/// Starts of the files that `--openmetrics` replaces.
const OPENMETRICS_STARTS: &[&str] = &["# TYPE ", "# EOF"];

/// Options for the files of other programs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExportArguments {
    /// Write gates as test cases (JUnit's XML).
    ///
    /// An earlier one is replaced. A gate that is not decided is an error, never passed.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    #[arg(value_parser = replaceable(JUNIT_STARTS))]
    junit: Option<PathBuf>,
    /// Write metrics as OpenMetrics, for Prometheus.
    ///
    /// An earlier one is replaced.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    #[arg(value_parser = replaceable(OPENMETRICS_STARTS))]
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

    /// Writes the failure of `command` as its only test case, so that no earlier result stays in the files. After an interruption or a failed write
    /// to stdout, the files have the result.
    pub(crate) fn write_failure(&self, command: &str, error: &anyhow::Error) {
        if !self.are_given() || error.is::<Interrupted>() || error.is::<StdoutError>() {
            return;
        }
        let case = TestCase {
            subject: command.into(),
            name: "run".into(),
            duration_s: None,
            state: CaseState::Error,
            says: format!("{error:#}"),
        };
        let suite = TestSuite { name: command.into(), cases: vec![case] };
        // The error itself is reported, which matters more than a file that cannot be written.
        let _ = self.write(&suite, &[]);
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

/// Parses the name of a file to write. The path is absolute, since a study changes the working folder.
fn replaceable(starts: &'static [&'static str]) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |file| check_replaceable(&file, starts))
}

/// Refuses an existing file that starts otherwise, such as a workload: it was not written by an earlier command.
fn check_replaceable(file: &Path, starts: &[&str]) -> Result<PathBuf, String> {
    let mut found = Vec::new();
    if file.is_file() {
        File::open(file)
            .and_then(|existing| existing.take(16).read_to_end(&mut found))
            .map_err(|error| error.to_string())?;
    }
    if !found.is_empty() && !starts.iter().any(|start| found.starts_with(start.as_bytes())) {
        return Err("the file exists with other content: give another name".into());
    }
    std::path::absolute(file).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_earlier_results_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for (content, expected) in [("", true), ("<?xml version", true), ("model: small", false)] {
            std::fs::write(&file, content).unwrap();
            assert_eq!(check_replaceable(&file, JUNIT_STARTS).is_ok(), expected, "{content}");
        }
        // A study changes the working folder.
        assert!(check_replaceable(Path::new("new.xml"), JUNIT_STARTS).unwrap().is_absolute());
    }
}
