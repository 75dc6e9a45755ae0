//! Results for other programs: gates as test cases in JUnit's XML, and metrics in the text format of OpenMetrics.

mod junit;
mod openmetrics;

pub(crate) use junit::{CaseState, ErrorKind, RUN_CASE, TestCase, TestSuite};
pub(crate) use openmetrics::{MetricSet, labels};

use crate::cli::OUTPUT;
use crate::exit::Exit;
use crate::messages;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use feedrate_session::failure::{self, FailureKind};
use feedrate_session::output::{is_device, write_output};
use feedrate_session::request::Request;
use feedrate_session::resolve;
use feedrate_spec::refusal::Refusal;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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
    /// Whether the files have the result.
    #[arg(skip)]
    is_written: Arc<AtomicBool>,
}

/// What a command tests, known before its work.
pub(crate) struct ExportSubject {
    /// Name of the suite of test cases, such as `feedrate run unet3d_h100`.
    suite: String,
    /// The workload, or the kind of work.
    name: String,
}

impl ExportSubject {
    /// The subject of `command`.
    pub(crate) fn new(command: &str, name: &str) -> Self {
        ExportSubject { suite: format!("feedrate {command}"), name: name.into() }
    }

    /// The workload of a request to `command`, which may not exist.
    pub(crate) fn for_workload(command: &str, request: &Request) -> Self {
        let name = resolve::workload_name(request);
        ExportSubject { suite: format!("feedrate {command} {name}"), name }
    }
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

    /// Does the work of a command that writes its result by [`ExportArguments::write`]. Until then, and after a failure, the files say that there
    /// is no result, so that no earlier one stays in them.
    ///
    /// # Errors
    /// The work fails, or a file cannot be written; then no work is done.
    pub(crate) fn keep_current(
        &self,
        subject: &ExportSubject,
        work: impl FnOnce() -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let unfinished = "started, and not finished";
        self.write_error(subject, ErrorKind::Unfinished, unfinished.into()).map_err(|error| {
            let hint =
                "give `--junit` and `--openmetrics` files in existing folders that you may write";
            Refusal::new(error.to_string(), hint)
        })?;
        work().inspect_err(|error| {
            let kind = match FailureKind::from_error(error) {
                FailureKind::Refused => ErrorKind::Usage,
                FailureKind::Interrupted => ErrorKind::Interrupted,
                FailureKind::Failed | FailureKind::TooManySteps => ErrorKind::Failed,
            };
            if !self.is_written.load(Relaxed) {
                // The error itself is reported, which matters more than a file that cannot be written.
                let _ = self.write_error(subject, kind, failure::message(error));
            }
        })
    }

    /// Writes an error as the only test case, and no metrics.
    fn write_error(
        &self,
        subject: &ExportSubject,
        kind: ErrorKind,
        says: String,
    ) -> anyhow::Result<()> {
        let case = TestCase {
            subject: subject.name.clone(),
            name: RUN_CASE.into(),
            duration_s: None,
            state: CaseState::Error(kind),
            says: says.trim_start_matches("error: ").into(),
        };
        let suite = TestSuite { name: subject.suite.clone(), cases: vec![case] };
        // A pipe gets only the result.
        let is_wanted = |file: &&PathBuf| kind != ErrorKind::Unfinished || !is_device(file);
        self.write_files(&suite, &[], is_wanted)
    }

    /// Writes the result of a command to the requested files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, suite: &TestSuite, metrics: &[MetricSet]) -> anyhow::Result<()> {
        if self.junit.is_some() && !suite.has_gates() {
            messages::note(
                "note: without a gate, `--junit` only says that runs are complete: give limits in `expect`, or `--fail-below-au`",
            );
        }
        self.write_files(suite, metrics, |_| true)?;
        self.is_written.store(true, Relaxed);
        Ok(())
    }

    /// Writes those files that are `wanted`.
    fn write_files(
        &self,
        suite: &TestSuite,
        metrics: &[MetricSet],
        wanted: impl Fn(&&PathBuf) -> bool,
    ) -> anyhow::Result<()> {
        if let Some(file) = self.junit.as_ref().filter(&wanted) {
            write_output(file, &suite.xml()?, Some(true))?;
        }
        if let Some(file) = self.openmetrics.as_ref().filter(&wanted) {
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
