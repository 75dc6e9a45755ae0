//! DLIO's log on stderr, while the run goes on.

use crate::execute::Talk;
use crate::messages;
use feedrate_measure::dlio::{self, Invocation};
use feedrate_measure::record::Record;
use std::collections::HashMap;

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

/// Level of DLIO's `OUTPUT` lines.
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
pub(super) struct Lines {
    level: Level,
    /// Whether this process says anything.
    tells: bool,
    /// How often each line was said.
    said: HashMap<String, usize>,
}

impl Lines {
    /// Nothing is said yet.
    pub(super) fn new(level: Level, tells: bool) -> Self {
        Lines { level, tells, said: HashMap::new() }
    }

    /// Say the lines of the log that were not said yet.
    pub(super) fn say(&mut self, log: &str) {
        if !self.tells {
            return;
        }
        for line in self.news(log) {
            messages::say(line);
        }
    }

    /// Lines that the log has more often than they were said, in its order. What becomes known later need not come last: a
    /// checkpoint in the background stands in the epoch that it is of.
    fn news<'l>(&mut self, log: &'l str) -> Vec<&'l str> {
        let mut level = OUTPUT;
        let mut seen = HashMap::<&str, usize>::new();
        let mut news = Vec::new();
        for line in log.lines() {
            // Lines that begin with `[METRIC]` belong to the record before them.
            level = match line.split(' ').next() {
                Some("[OUTPUT]") => OUTPUT,
                Some("[WARNING]") => Level::Warning as u8,
                Some("[INFO]") => Level::Info as u8,
                _ => level,
            };
            // Those of steps are in the log of their epoch's end only, and there are too many to remember.
            if level == Level::Info as u8 {
                news.extend(self.level.shows(level).then_some(line));
                continue;
            }
            let seen = seen.entry(line).or_default();
            *seen += 1;
            let said = self.said.entry(line.to_string()).or_default();
            if *said < *seen {
                *said = *seen;
                news.extend(self.level.shows(level).then_some(line));
            }
        }
        news
    }
}

/// Tells of a run.
pub(super) struct Told<'a> {
    pub(super) lines: &'a mut Lines,
    pub(super) invocation: &'a Invocation,
}

impl Talk for Told<'_> {
    fn epoch(&mut self, record: &Record) {
        let log = match self.lines.level {
            Level::Debug | Level::Info => dlio::log_with_steps(record, self.invocation),
            _ => dlio::log(record, self.invocation, None),
        };
        self.lines.say(&log);
    }

    fn checkpoint(&mut self, record: &Record) {
        self.lines.say(&dlio::log(record, self.invocation, None));
    }

    fn draws(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_into_the_middle_is_said_once() {
        let mut lines = Lines::new(Level::Warning, true);
        assert_eq!(lines.news("[OUTPUT] a\n[OUTPUT] end\n"), ["[OUTPUT] a", "[OUTPUT] end"]);
        let more = "[OUTPUT] a\n[OUTPUT] late\n[OUTPUT] end\n[OUTPUT] b\n";
        assert_eq!(lines.news(more), ["[OUTPUT] late", "[OUTPUT] b"]);
        assert!(lines.news(more).is_empty());
    }

    #[test]
    fn a_line_that_stands_twice_is_said_twice() {
        let mut lines = Lines::new(Level::Warning, true);
        let block = "[OUTPUT] x\n[METRIC] ==\n[METRIC] ==\n\n";
        assert_eq!(lines.news(block), ["[OUTPUT] x", "[METRIC] ==", "[METRIC] ==", ""]);
        assert!(lines.news(block).is_empty());
    }

    #[test]
    fn levels_hide_lines() {
        let mut lines = Lines::new(Level::Error, true);
        assert!(lines.news("[OUTPUT] x\n[METRIC] y\n[WARNING] z\n").is_empty());
    }
}
