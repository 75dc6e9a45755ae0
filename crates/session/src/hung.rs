//! Reports files that a run still waits for because their storage does not answer.

use feedrate_run::live::Signals;
use feedrate_run::system;
use feedrate_spec::listener::Listener;
use feedrate_spec::units;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Beginning of the message. [`repeat_report`] finds the message in logs by it.
const STILL_WAITING: &str = "still waiting for";
/// Maximum number of files in the message.
const NAMED_MAX: usize = 3;

/// Reports the files that the process still waits for. If the process has given up, they are taken from its threads' system calls, else from
/// `known`.
pub fn report(signals: &Signals, known: impl Iterator<Item = PathBuf>, listener: &dyn Listener) {
    let mut files =
        if signals.abandon.load(Relaxed) { system::blocked_files() } else { BTreeSet::new() };
    if files.is_empty() {
        files = known.filter_map(|file| std::path::absolute(file).ok()).collect();
    }
    if let Some(waiting) = describe(files) {
        listener.important(format!("warning: {waiting}"));
    }
}

/// Repeats such messages from the `log` of another feedrate process.
pub fn repeat_report(log: &Path, listener: &dyn Listener) {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    for line in text.lines().filter(|line| line.contains(STILL_WAITING)) {
        listener.important(line);
    }
}

/// Returns the message about files that threads of this process wait for; `None` if there are none.
pub fn waiting_message() -> Option<String> {
    describe(system::blocked_files())
}

fn describe(files: BTreeSet<PathBuf>) -> Option<String> {
    let named: Vec<_> =
        files.iter().take(NAMED_MAX).map(|file| format!("`{}`", file.display())).collect();
    let more = match files.len() - named.len() {
        0 => String::new(),
        more => format!(" and {}", units::counted(more as u64, "more file")),
    };
    (!named.is_empty())
        .then(|| format!("{STILL_WAITING} {}{more}: the storage does not answer", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_files_are_named() {
        let text = |files: &[&str]| describe(files.iter().map(PathBuf::from).collect());
        assert_eq!(text(&[]), None);
        let expected = "still waiting for `/d/a`: the storage does not answer";
        assert_eq!(text(&["/d/a"]).unwrap(), expected);
        let expected =
            "still waiting for `/a`, `/b`, `/c` and 2 more files: the storage does not answer";
        assert_eq!(text(&["/a", "/b", "/c", "/d", "/e"]).unwrap(), expected);
    }
}
