//! Reads I/O logs of other programs into a [`Record`]. Each kind of log has one file and one row in [`KINDS`].
//!
//! A record from a log has one epoch with the I/O counters of each rank, and no steps. This module opens no files and starts no programs: callers
//! pass the texts, which are read as streams.
//!
//! To add a kind of log: write its file with a [`LogKind`] that reports calls to the `Tally`, and add its `mod` line and its row.

mod lines;
mod file_use;
mod natural_order;
mod reader;
mod program_files;
mod process_tree;
mod tally;
mod ranks;
mod answer;
mod job;
mod strace;
mod dftracer;
mod darshan;
#[cfg(test)]
mod tests;

pub use self::answer::{IoAnswer, IoUnknown, TimeOf};
pub use self::job::{LogBatch, LogJob, OtherFiles};

use self::job::Evaluation;
use self::tally::Tally;
use feedrate_measure::record::Record;
use feedrate_spec::escape::bash_word;
use std::io::{self, BufRead};
use std::path::Path;

/// All kinds of logs. Detection tries them in this order, so kinds with a less specific test come later.
pub static KINDS: &[&LogKind] = &[&darshan::KIND, &dftracer::KIND, &strace::KIND];

/// A kind of log.
pub struct LogKind {
    /// Name, such as `strace`.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the log's text.
    pub input: Input,
    /// Returns whether a log with this file name and beginning is of this kind.
    pub detect: fn(&str, &str) -> bool,
    /// Returns whether a file that begins with these bytes may be a log of this kind, whatever its name is.
    pub has_content: fn(&[u8]) -> bool,
    read: fn(Vec<LogPart>) -> Result<Tally, LogError>,
}

/// Source of a log's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// One or several text files, plain or compressed by gzip.
    Text,
    /// The output of each of these programs for the log.
    Programs(&'static [&'static str]),
}

/// One text of a log.
pub struct LogPart<'a> {
    /// Name of the file or of the program.
    pub name: String,
    /// Content.
    pub text: Box<dyn BufRead + 'a>,
}

/// Result of reading a log.
#[derive(Clone, Debug)]
pub struct ImportedLog {
    /// Name of its [`LogKind`].
    pub kind: &'static str,
    /// Reads of the log in the form of a run's record. It is not written to a file.
    pub record: Record,
    /// Properties of the logged job.
    pub job: LogJob,
    /// Whether I/O is the problem of the job.
    pub answer: IoAnswer,
    /// Time from the start of the log to the first call on a data file; `None` if it is unknown.
    pub before_ns: Option<u64>,
    /// Share of calls that could not be read, in percent; `None` if it is unknown or negligible.
    pub unreadable_percent: Option<f64>,
    /// Whether the end of the log is missing, as in a copy of a log that is still being written.
    pub is_cut: bool,
    /// Information in the log that could not be used.
    pub lost: Vec<Lost>,
}

/// Entries of a log that could not be used, for one reason. Rendered as `{count} {noun} {why}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Number of entries.
    pub count: u64,
    /// Noun for one entry, in the singular.
    pub noun: &'static str,
    /// Reason, to be printed after the noun.
    pub why: &'static str,
}

/// An error of reading a log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LogError {
    message: String,
    hint: String,
}

impl LogError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        LogError { message: message.into(), hint: hint.into() }
    }

    /// Returns a remedy.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        LogError::new(format!("it cannot be read: {error}"), "pass a complete log")
    }
}

/// Describes a log that was given instead of another file.
pub const LOG_OF_JOB: &str = "the I/O log of a job";

/// Names the command that reads the log at `path`.
pub fn import_hint(path: &Path) -> String {
    let log = bash_word(&path.display().to_string());
    format!(
        "`feedrate import {log}` answers whether I/O is its problem, and with `-o FILE` writes a workload like it"
    )
}

/// Detects the kind of a log by its file name and its beginning.
pub fn detect_kind(name: &str, head: &str) -> Option<&'static LogKind> {
    KINDS.iter().copied().find(|kind| (kind.detect)(name, head))
}

impl LogKind {
    /// Reads a log of this kind.
    ///
    /// # Errors
    /// The log is not of this kind, or contains no reads of data.
    pub fn import(&self, parts: Vec<LogPart>) -> Result<ImportedLog, LogError> {
        let mut tally = (self.read)(parts)?;
        let Evaluation { record, job, answer, before_ns } = job::evaluate(&mut tally)?;
        Ok(ImportedLog {
            kind: self.name,
            record,
            job,
            answer,
            before_ns,
            unreadable_percent: tally.unreadable_percent,
            is_cut: tally.is_cut,
            lost: tally.take_lost(),
        })
    }
}
