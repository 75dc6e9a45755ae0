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
use feedrate_spec::refusal::{Refusal, refuse};
use std::ffi::OsString;
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

    /// The wanted files with their options.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [("--junit", &self.junit), ("--openmetrics", &self.openmetrics)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?)))
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
        self.refuse_one_file_for_both()?;
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
            // The result of a run that could not be saved is not a result. That of an interrupted run says so itself.
            if !self.is_written.load(Relaxed) || kind == ErrorKind::Failed {
                // The error itself is reported, which matters more than a file that cannot be written.
                let _ = self.write_error(subject, kind, failure::message(error));
            }
        })
    }

    /// Refuses one file for both texts, since the second would replace the first.
    fn refuse_one_file_for_both(&self) -> Result<(), Refusal> {
        match (&self.junit, &self.openmetrics) {
            (Some(junit), Some(openmetrics)) if is_same_file(junit, openmetrics) => refuse(
                format!("`--junit` and `--openmetrics` are both `{}`", junit.display()),
                "give different files",
            ),
            _ => Ok(()),
        }
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
        // A pipe gets only one text.
        let is_last = kind != ErrorKind::Unfinished && !self.is_written.load(Relaxed);
        let is_wanted = |file: &&PathBuf| is_last || !is_device(file);
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

/// Whether two paths lead to one regular file, which may not exist yet.
fn is_same_file(first: &Path, second: &Path) -> bool {
    let real = |file: &Path| {
        let in_folder = || Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?));
        file.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| file.into())
    };
    real(first) == real(second) && !is_device(first)
}

/// Commands with [`ExportArguments`].
const EXPORTING_COMMANDS: [&str; 4] = ["run", "scale", "compare", "study"];

/// Writes a refusal of the command line into the files that it names, so that no earlier result stays in them. `words` are the arguments, which
/// could not be parsed.
pub(crate) fn write_usage_error(words: &[OsString], says: &str) {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let is_command = |word: &&&str| EXPORTING_COMMANDS.contains(*word);
    let Some(command) = words.iter().find(is_command) else { return };
    let file = |option: &str, starts| {
        let is_option = |word: &&str| word.split('=').next() == Some(option);
        let index = words.iter().position(is_option)?;
        let value = words[index].split_once('=').map(|(_, value)| value);
        let next = || words.get(index + 1).copied().filter(|next| !next.starts_with('-'));
        let value = value.or_else(next)?;
        check_replaceable(Path::new(value), starts).ok()
    };
    let exports = ExportArguments {
        junit: file("--junit", JUNIT_STARTS),
        openmetrics: file("--openmetrics", OPENMETRICS_STARTS),
        is_written: Arc::default(),
    };
    if exports.refuse_one_file_for_both().is_ok() {
        // The refusal itself is reported, which matters more than a file that cannot be written.
        let subject = ExportSubject::new(command, command);
        let _ = exports.write_error(&subject, ErrorKind::Usage, says.into());
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

    /// A run whose results cannot be saved fails after it wrote its passed gates.
    #[test]
    fn a_failure_after_the_result_replaces_it() {
        let check = |error: anyhow::Error, kind: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            let [junit, openmetrics] =
                ["junit.xml", "metrics.txt"].map(|file| folder.path().join(file));
            let exports = ExportArguments {
                junit: Some(junit.clone()),
                openmetrics: Some(openmetrics.clone()),
                ..ExportArguments::default()
            };
            let case = TestCase {
                subject: "w".into(),
                name: "au".into(),
                duration_s: None,
                state: CaseState::Passed,
                says: String::new(),
            };
            let suite = TestSuite { name: "feedrate run w".into(), cases: vec![case] };
            let set = MetricSet { runs: 1, ..MetricSet::default() };
            let outcome = exports.keep_current(&ExportSubject::new("run", "w"), || {
                exports.write(&suite, &[set])?;
                Err(error)
            });
            assert!(outcome.is_err());
            let [junit, metrics] =
                [junit, openmetrics].map(|file| std::fs::read_to_string(file).unwrap());
            let is_replaced = kind.is_some_and(|kind| junit.contains(&format!("type=\"{kind}\"")));
            let has_metrics = metrics.contains("feedrate_runs");
            assert_eq!((is_replaced, has_metrics), (kind.is_some(), kind.is_none()), "{junit}");
        };
        check(anyhow::anyhow!("no space left"), Some("failed"));
        // The result says itself that the run was interrupted.
        check(failure::Interrupted("results".into()).into(), None);
    }

    #[test]
    fn arguments_that_cannot_be_parsed_leave_no_earlier_result() {
        let folder = tempfile::tempdir().unwrap();
        let [junit, other] = ["junit.xml", "other.yaml"].map(|file| folder.path().join(file));
        let write = |command: &str, option: String| {
            std::fs::write(&junit, "<?xml earlier").unwrap();
            std::fs::write(&other, "model: small").unwrap();
            write_usage_error(&["feedrate", command, "--bad", &option].map(OsString::from), "bad");
            let texts = [&junit, &other].map(|file| std::fs::read_to_string(file).unwrap());
            assert_eq!(texts[1], "model: small");
            texts[0].contains("type=\"usage\"")
        };
        assert!(write("run", format!("--junit={}", junit.display())));
        assert!(!write("plan", format!("--junit={}", junit.display())));
        assert!(!write("run", format!("--junit={}", other.display())));
    }

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
