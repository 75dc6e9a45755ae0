//! DLIO's log on stderr, while the run goes on.

use crate::execute::Talk;
use crate::messages;
use feedrate_measure::dlio::{self, Invocation};
use feedrate_measure::record::Record;
use std::path::Path;

/// Lines below it are not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Everything there is.
    Debug = 10,
    /// Everything but what only developers want.
    Info = 20,
    /// Warnings, and what DLIO puts out.
    Warning = 30,
    /// Errors only.
    Error = 40,
    /// The end only.
    Critical = 50,
}

/// Of DLIO's `OUTPUT` lines.
const OUTPUT: u8 = 35;

impl Level {
    /// `DLIO_LOG_LEVEL`.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn from_environment() -> Result<Self, String> {
        let Some(text) = std::env::var_os("DLIO_LOG_LEVEL") else { return Ok(Level::Warning) };
        let text = text.to_string_lossy();
        Ok(match text.as_ref() {
            "debug" | "DEBUG" => Level::Debug,
            "info" | "INFO" => Level::Info,
            "" | "warning" | "WARNING" | "warn" | "WARN" => Level::Warning,
            "error" | "ERROR" => Level::Error,
            "critical" | "CRITICAL" => Level::Critical,
            _ => {
                return Err(format!(
                    "DLIO_LOG_LEVEL is `{text}`\n  hint: use debug, info, warning, error or critical"
                ));
            }
        })
    }

    fn shows(self, line_level: u8) -> bool {
        self as u8 <= line_level
    }
}

/// Says each line of `dlio.log` once, as soon as it is known.
pub(super) struct Lines<'a> {
    pub(super) level: Level,
    pub(super) invocation: &'a Invocation,
    pub(super) said: usize,
    /// Whether this process says anything.
    pub(super) tells: bool,
}

impl Lines<'_> {
    /// What the log has beyond what was said.
    pub(super) fn say(&mut self, log: &str) {
        if !self.tells {
            return;
        }
        let mut level = OUTPUT;
        for (i, line) in log.lines().enumerate() {
            // Lines that begin with `[METRIC]` belong to the record before them.
            level = match line.split(' ').next() {
                Some("[OUTPUT]") => OUTPUT,
                Some("[WARNING]") => Level::Warning as u8,
                _ => level,
            };
            if self.said <= i && self.level.shows(level) {
                messages::say(line);
            }
        }
        self.said = self.said.max(log.lines().count());
    }

    /// The whole log, its end included.
    pub(super) fn end(&mut self, record: &Record, folder: &Path) {
        let log = dlio::log(record, self.invocation, Some(folder));
        self.say(&log);
    }
}

impl Talk for Lines<'_> {
    fn epoch(&mut self, record: &Record) {
        self.say(&dlio::log(record, self.invocation, None));
    }

    fn checkpoint(&mut self, record: &Record) {
        self.say(&dlio::log(record, self.invocation, None));
    }

    fn draws(&self) -> bool {
        false
    }
}
