//! DLIO's log on stderr, while the run goes on.

use crate::execute::Talk;
use crate::messages;
use feedrate_measure::dlio::{self, Invocation};
use feedrate_measure::record::Record;
use std::collections::HashMap;

/// Levels as `DLIO_LOG_LEVEL` has them; lines below it are not said.
const LEVELS: &[(&str, u8)] = &[
    ("debug", 10),
    ("info", INFO),
    ("warning", WARNING),
    ("warn", WARNING),
    ("", WARNING),
    ("error", 40),
    ("critical", 50),
];
/// DLIO's `INFO` lines.
const INFO: u8 = 20;
/// DLIO's `WARNING` lines.
const WARNING: u8 = 30;
/// DLIO's `OUTPUT` lines.
const OUTPUT: u8 = 35;

/// The level that `DLIO_LOG_LEVEL` names.
///
/// # Errors
/// It is none.
pub(super) fn level_from_environment() -> Result<u8, String> {
    let text = std::env::var_os("DLIO_LOG_LEVEL").unwrap_or_default();
    let text = text.to_string_lossy();
    let found = LEVELS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(_, level)| *level).ok_or_else(|| {
        format!("DLIO_LOG_LEVEL is `{text}`\n  hint: use debug, info, warning, error or critical")
    })
}

/// Says each line of `dlio.log` once, as soon as it is known.
pub(super) struct LogLines {
    level: u8,
    /// Whether this process says anything.
    tells: bool,
    /// How often each line was said.
    said: HashMap<String, usize>,
}

impl LogLines {
    /// Nothing is said yet.
    pub(super) fn new(level: u8, tells: bool) -> Self {
        LogLines { level, tells, said: HashMap::new() }
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
                Some("[WARNING]") => WARNING,
                Some("[INFO]") => INFO,
                _ => level,
            };
            // Those of steps are in the log of their epoch's end only, and there are too many to remember.
            if level == INFO {
                news.extend((self.level <= level).then_some(line));
                continue;
            }
            let seen = seen.entry(line).or_default();
            *seen += 1;
            let said = self.said.entry(line.to_string()).or_default();
            if *said < *seen {
                *said = *seen;
                news.extend((self.level <= level).then_some(line));
            }
        }
        news
    }
}

/// Tells of a run.
pub(super) struct LogTalk<'a> {
    pub(super) lines: &'a mut LogLines,
    pub(super) invocation: &'a Invocation,
}

impl Talk for LogTalk<'_> {
    fn epoch(&mut self, record: &Record) {
        self.lines.say(&if self.lines.level <= INFO {
            dlio::log_with_steps(record, self.invocation)
        } else {
            dlio::log(record, self.invocation, None)
        });
    }

    fn checkpoint(&mut self, record: &Record) {
        self.lines.say(&dlio::log(record, self.invocation, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_into_the_middle_is_said_once() {
        let mut lines = LogLines::new(WARNING, true);
        assert_eq!(lines.news("[OUTPUT] a\n[OUTPUT] end\n"), ["[OUTPUT] a", "[OUTPUT] end"]);
        let more = "[OUTPUT] a\n[OUTPUT] late\n[OUTPUT] end\n[OUTPUT] b\n";
        assert_eq!(lines.news(more), ["[OUTPUT] late", "[OUTPUT] b"]);
        assert!(lines.news(more).is_empty());
    }

    #[test]
    fn a_line_that_stands_twice_is_said_twice() {
        let mut lines = LogLines::new(WARNING, true);
        let block = "[OUTPUT] x\n[METRIC] ==\n[METRIC] ==\n\n";
        assert_eq!(lines.news(block), ["[OUTPUT] x", "[METRIC] ==", "[METRIC] ==", ""]);
        assert!(lines.news(block).is_empty());
    }

    #[test]
    fn levels_hide_lines() {
        let mut lines = LogLines::new(40, true);
        assert!(lines.news("[OUTPUT] x\n[METRIC] y\n[WARNING] z\n").is_empty());
    }
}
