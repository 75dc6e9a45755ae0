//! Logs of other programs' I/O, as a record of ours: one file a kind, one row a kind in [`KINDS`].
//!
//! A record made of a log has one epoch, with the counters of each rank of the job; of steps it knows nothing. Nothing here opens a
//! file or starts a program: who has the texts hands them over, and they are read as streams.
//!
//! To add a kind: its file with a [`LogKind`], which tells the `Tally` of calls, its `mod` line and its row.

mod lines;
mod reader;
mod tally;
mod job;
mod strace;
mod dftracer;
mod darshan;
#[cfg(test)]
mod tests;

pub use self::job::{LogBatch, LogJob, OtherFiles};

use self::tally::Tally;
use feedrate_measure::record::Record;
use std::io::{self, BufRead};

/// Every kind; one that tells itself by less comes later.
pub static KINDS: &[&LogKind] = &[&darshan::KIND, &dftracer::KIND, &strace::KIND];

/// A kind of log.
pub struct LogKind {
    /// `strace`.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// How its text is had.
    pub input: Input,
    /// Whether a log of this file name and beginning is one.
    pub is: fn(&str, &str) -> bool,
    read: fn(Vec<LogPart>) -> Result<Tally, LogError>,
}

/// How the text of a log is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// It is text, compressed by gzip or not, in one file or several.
    Text,
    /// It is what these programs print when they are given the log, each a part.
    Programs(&'static [&'static str]),
}

/// One text of a log.
pub struct LogPart<'a> {
    /// Name of the file, or of the program.
    pub name: String,
    /// Its lines.
    pub text: Box<dyn BufRead + 'a>,
}

/// A log that was read.
#[derive(Clone, Debug)]
pub struct ImportedLog {
    /// Name of its [`LogKind`].
    pub kind: &'static str,
    /// Its reads, as if a run of ours had made them; never written.
    pub record: Record,
    /// The job that it is of.
    pub job: LogJob,
    /// Things that do not come through.
    pub lost: Vec<Lost>,
}

/// Things of a log that do not come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub count: u64,
    /// Name of one.
    pub noun: &'static str,
    /// Trouble with them.
    pub why: &'static str,
}

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LogError {
    message: String,
    hint: String,
}

impl LogError {
    /// Words on the trouble, and what to do.
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        LogError { message: message.into(), hint: hint.into() }
    }

    /// Advice on what to do.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        LogError::new(format!("it cannot be read: {error}"), "give a log that is whole")
    }
}

/// The kind of a log of this file name, which begins so.
pub fn kind_of(name: &str, head: &str) -> Option<&'static LogKind> {
    KINDS.iter().copied().find(|kind| (kind.is)(name, head))
}

impl LogKind {
    /// Read a log.
    ///
    /// # Errors
    /// It is none of this kind, or no data is read in it.
    pub fn import(&self, parts: Vec<LogPart>) -> Result<ImportedLog, LogError> {
        let mut tally = (self.read)(parts)?;
        let (record, job) = job::sum_up(&mut tally)?;
        Ok(ImportedLog { kind: self.name, record, job, lost: tally.take_lost() })
    }
}
