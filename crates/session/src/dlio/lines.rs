//! Writes DLIO's log to stderr during a run.

use crate::execute::RunObserver;
use feedrate_measure::dlio::{self, Invocation};
use feedrate_measure::record::Record;
use feedrate_spec::listener::Listener;
use std::collections::HashMap;

/// Levels of `DLIO_LOG_LEVEL`, with the values of Python's logging.
const LEVELS: &[(&str, u8)] = &[
    ("debug", 10),
    ("info", 20),
    ("warning", WARNING),
    ("warn", WARNING),
    ("", WARNING),
    ("error", 40),
    ("critical", 50),
];
/// Level of DLIO's `WARNING` lines.
const WARNING: u8 = 30;
/// Level of DLIO's `OUTPUT` lines.
const OUTPUT: u8 = 35;

/// Parses the value of `DLIO_LOG_LEVEL`.
///
/// # Errors
/// Returns a message for an unknown level.
pub fn log_level(text: &str) -> Result<u8, String> {
    let found = LEVELS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(_, level)| *level).ok_or_else(|| {
        format!("DLIO_LOG_LEVEL is `{text}`\n  hint: use debug, info, warning, error or critical")
    })
}

/// Reports each line of `dlio.log` once, as soon as it is known. Lines below the level are left out.
pub(super) struct LogLines<'a> {
    level: u8,
    /// Receives the lines; `None` if this process reports nothing.
    listener: Option<&'a dyn Listener>,
    /// Number of reports of each line.
    reported: HashMap<String, usize>,
}

impl<'a> LogLines<'a> {
    /// Starts without reported lines.
    pub(super) fn new(level: u8, listener: Option<&'a dyn Listener>) -> Self {
        LogLines { level, listener, reported: HashMap::new() }
    }

    /// Reports the new lines of the log.
    pub(super) fn report(&mut self, log: &str) {
        let Some(listener) = self.listener else { return };
        for line in self.new_lines(log) {
            listener.important(line);
        }
    }

    /// Returns the lines of the log that were not reported yet, in the order of the log. New lines need not be at the end, because a background
    /// checkpoint is logged within its epoch. Equal lines are counted.
    fn new_lines<'l>(&mut self, log: &'l str) -> Vec<&'l str> {
        let mut level = OUTPUT;
        let mut seen = HashMap::<&str, usize>::new();
        let mut new_lines = Vec::new();
        for line in log.lines() {
            // Lines that begin with `[METRIC]` belong to the record before them.
            level = match line.split(' ').next() {
                Some("[OUTPUT]") => OUTPUT,
                Some("[WARNING]") => WARNING,
                _ => level,
            };
            let count = seen.entry(line).or_default();
            *count += 1;
            let reported = self.reported.entry(line.to_string()).or_default();
            if *reported < *count {
                *reported = *count;
                new_lines.extend((self.level <= level).then_some(line));
            }
        }
        new_lines
    }
}

/// Reports the log of a run after each epoch and checkpoint.
pub(super) struct LogObserver<'a, 'l> {
    pub(super) lines: &'a mut LogLines<'l>,
    pub(super) invocation: &'a Invocation,
}

impl RunObserver for LogObserver<'_, '_> {
    fn after_epoch(&mut self, record: &Record) {
        self.lines.report(&dlio::log(record, self.invocation, None));
    }

    fn after_checkpoint(&mut self, record: &Record) {
        self.lines.report(&dlio::log(record, self.invocation, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_the_middle_are_reported_once() {
        let mut lines = LogLines::new(WARNING, None);
        assert_eq!(lines.new_lines("[OUTPUT] a\n[OUTPUT] end\n"), ["[OUTPUT] a", "[OUTPUT] end"]);
        let more = "[OUTPUT] a\n[OUTPUT] late\n[OUTPUT] end\n[OUTPUT] b\n";
        assert_eq!(lines.new_lines(more), ["[OUTPUT] late", "[OUTPUT] b"]);
        assert!(lines.new_lines(more).is_empty());
    }

    #[test]
    fn a_line_that_is_logged_twice_is_reported_twice() {
        let mut lines = LogLines::new(WARNING, None);
        let block = "[OUTPUT] x\n[METRIC] ==\n[METRIC] ==\n\n";
        assert_eq!(lines.new_lines(block), ["[OUTPUT] x", "[METRIC] ==", "[METRIC] ==", ""]);
        assert!(lines.new_lines(block).is_empty());
    }

    #[test]
    fn lines_below_the_level_are_hidden() {
        let mut lines = LogLines::new(40, None);
        assert!(lines.new_lines("[OUTPUT] x\n[METRIC] y\n[WARNING] z\n").is_empty());
    }
}
