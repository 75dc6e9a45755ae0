//! DLIO's log on stderr, while the run goes on.

use crate::execute::RunObserver;

use feedrate_measure::dlio::{self, Invocation};
use feedrate_measure::record::Record;
use feedrate_spec::listener::Listener;
use std::collections::HashMap;

/// Levels of `DLIO_LOG_LEVEL`; lines below it are left out.
const LEVELS: &[(&str, u8)] = &[
    ("debug", 10),
    ("info", 20),
    ("warning", WARNING),
    ("warn", WARNING),
    ("", WARNING),
    ("error", 40),
    ("critical", 50),
];
/// DLIO's `WARNING` lines.
const WARNING: u8 = 30;
/// DLIO's `OUTPUT` lines.
const OUTPUT: u8 = 35;

/// The level that a value of `DLIO_LOG_LEVEL` names.
///
/// # Errors
/// It names none.
pub fn log_level(text: &str) -> Result<u8, String> {
    let found = LEVELS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(_, level)| *level).ok_or_else(|| {
        format!("DLIO_LOG_LEVEL is `{text}`\n  hint: use debug, info, warning, error or critical")
    })
}

/// Says each line of `dlio.log` once, as soon as it is known.
pub(super) struct LogLines<'a> {
    level: u8,
    /// Receives the lines; `None` if this process reports nothing.
    listener: Option<&'a dyn Listener>,
    /// How often each line was reported.
    reported: HashMap<String, usize>,
}

impl<'a> LogLines<'a> {
    /// No line is reported yet.
    pub(super) fn new(level: u8, listener: Option<&'a dyn Listener>) -> Self {
        LogLines { level, listener, reported: HashMap::new() }
    }

    /// Reports the lines of the log that were not reported yet.
    pub(super) fn report(&mut self, log: &str) {
        let Some(listener) = self.listener else { return };
        for line in self.news(log) {
            listener.important(line);
        }
    }

    /// Lines that the log has more often than they were reported, in its order. Later lines need not come last: a background checkpoint is
    /// logged in its epoch.
    fn news<'l>(&mut self, log: &'l str) -> Vec<&'l str> {
        let mut level = OUTPUT;
        let mut seen = HashMap::<&str, usize>::new();
        let mut news = Vec::new();
        for line in log.lines() {
            // Lines that begin with `[METRIC]` belong to the record before them.
            level = match line.split(' ').next() {
                Some("[OUTPUT]") => OUTPUT,
                Some("[WARNING]") => WARNING,
                _ => level,
            };
            let seen = seen.entry(line).or_default();
            *seen += 1;
            let reported = self.reported.entry(line.to_string()).or_default();
            if *reported < *seen {
                *reported = *seen;
                news.extend((self.level <= level).then_some(line));
            }
        }
        news
    }
}

/// Reports the log of a run while it goes on.
pub(super) struct LogObserver<'a, 'l> {
    pub(super) lines: &'a mut LogLines<'l>,
    pub(super) invocation: &'a Invocation,
}

impl RunObserver for LogObserver<'_, '_> {
    fn epoch(&mut self, record: &Record) {
        self.lines.report(&dlio::log(record, self.invocation, None));
    }

    fn checkpoint(&mut self, record: &Record) {
        self.lines.report(&dlio::log(record, self.invocation, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_the_middle_are_reported_once() {
        let mut lines = LogLines::new(WARNING, None);
        assert_eq!(lines.news("[OUTPUT] a\n[OUTPUT] end\n"), ["[OUTPUT] a", "[OUTPUT] end"]);
        let more = "[OUTPUT] a\n[OUTPUT] late\n[OUTPUT] end\n[OUTPUT] b\n";
        assert_eq!(lines.news(more), ["[OUTPUT] late", "[OUTPUT] b"]);
        assert!(lines.news(more).is_empty());
    }

    #[test]
    fn a_line_that_is_logged_twice_is_reported_twice() {
        let mut lines = LogLines::new(WARNING, None);
        let block = "[OUTPUT] x\n[METRIC] ==\n[METRIC] ==\n\n";
        assert_eq!(lines.news(block), ["[OUTPUT] x", "[METRIC] ==", "[METRIC] ==", ""]);
        assert!(lines.news(block).is_empty());
    }

    #[test]
    fn levels_hide_lines() {
        let mut lines = LogLines::new(40, None);
        assert!(lines.news("[OUTPUT] x\n[METRIC] y\n[WARNING] z\n").is_empty());
    }
}
