//! Shows progress on stderr: one redrawn line in a terminal, plain lines at intervals elsewhere. A run that a study
//! started writes its line to a file, and the study's process shows it.

use crate::messages::{self, Verbosity};
use crate::{interrupt, text};
use feedrate_session::progress_text::{SEPARATOR, whole_seconds};
use feedrate_spec::listener::{Listener, MessageLevel, ProgressLine, ProgressText};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval at which the line is redrawn in a terminal.
const TICK: Duration = Duration::from_millis(200);
/// Interval at which the line is written to a file.
const FILE_PERIOD: Duration = Duration::from_secs(1);
/// Default interval between plain lines, in seconds.
const PLAIN_S: f64 = 10.0;
/// Environment variable with the interval between plain lines, in seconds; 0 for none.
const PLAIN_VARIABLE: &str = "FEEDRATE_PROGRESS_S";
/// Maximum columns of the line: one less than 80, since a full line wraps in some terminals.
const COLUMNS: usize = 79;

/// Where progress lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// To stderr.
    Shown,
    /// To this file, which the parent process reads.
    File(PathBuf),
}

/// Prints messages on stderr, and shows progress there or writes it to a file.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// Where progress lines go.
    pub(crate) progress: Progress,
}

/// Shows messages and progress on stderr.
pub(crate) const TERMINAL: Terminal = Terminal { progress: Progress::Shown };

impl Listener for Terminal {
    fn message(&self, level: MessageLevel, text: &str) {
        match level {
            MessageLevel::Important => messages::say(text),
            MessageLevel::Note => messages::note(text),
            MessageLevel::Detail => messages::detail(|| text),
        }
    }

    fn shows(&self, level: MessageLevel) -> bool {
        let least = match level {
            MessageLevel::Important => Verbosity::Quiet,
            MessageLevel::Note => Verbosity::Normal,
            MessageLevel::Detail => Verbosity::Verbose,
        };
        least <= messages::verbosity()
    }

    fn show_progress(&self, text: ProgressText) -> Box<dyn ProgressLine> {
        Box::new(LiveLine::start(self.progress.clone(), text))
    }

    fn redraws_progress(&self) -> bool {
        messages::is_live()
    }
}

/// A progress line that is updated until it is dropped.
pub(crate) struct LiveLine {
    bar: ProgressBar,
    /// The drawing thread ends when the sender is dropped.
    drawer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl ProgressLine for LiveLine {}

impl LiveLine {
    /// Starts a thread that shows `text` at intervals.
    pub(crate) fn start(progress: Progress, mut text: ProgressText) -> Self {
        let is_live = messages::is_live();
        let period = match progress {
            Progress::Shown if is_live => Some(TICK),
            Progress::Shown => plain_period(),
            Progress::File(_) => Some(FILE_PERIOD),
        };
        let is_drawn = progress == Progress::Shown && is_live;
        let bar = if is_drawn { bar() } else { ProgressBar::hidden() };
        let Some(period) = period else { return LiveLine { bar, drawer: None } };
        let drawn_bar = bar.clone();
        let start = Instant::now();
        let (stop, stop_receiver) = mpsc::channel();
        let draw = move || {
            interrupt::block_in_thread();
            while stop_receiver.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                let line = shorten_to_columns(&text(start.elapsed()));
                match &progress {
                    _ if line.is_empty() => drawn_bar.finish_and_clear(),
                    // A failed write is ignored: the next one replaces it.
                    Progress::File(file) => drop(std::fs::write(file, &line)),
                    _ if is_drawn => {
                        if drawn_bar.is_finished() {
                            drawn_bar.reset();
                        }
                        drawn_bar.set_message(line);
                    }
                    _ => messages::note(&line),
                }
            }
            if let Progress::File(file) = &progress {
                let _ = std::fs::remove_file(file);
            }
        };
        // If no thread can be started, no line is shown.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(draw).ok();
        LiveLine { bar, drawer: thread.map(|thread| (stop, thread)) }
    }

    /// Whether the line is drawn in a terminal. Then no other message reports progress.
    pub(crate) fn is_drawn(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Clears the line until there is text again.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a permanent line above the progress line.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| messages::note(text));
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawer.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

/// Interval between plain lines; `None` if they are disabled.
fn plain_period() -> Option<Duration> {
    let given = std::env::var(PLAIN_VARIABLE).ok().and_then(|text| text.parse().ok());
    let period = Duration::try_from_secs_f64(given.unwrap_or(PLAIN_S)).ok();
    period.filter(|period| !period.is_zero())
}

/// Progress line that a run wrote to `file`, or the elapsed time if there is none.
pub(crate) fn line_in_file(file: Option<&Path>, elapsed: Duration) -> String {
    let line = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    if line.is_empty() { whole_seconds(elapsed) } else { line }
}

/// Drops trailing parts of the line until it has at most `COLUMNS` columns.
fn shorten_to_columns(line: &str) -> String {
    let mut line = line;
    while line.chars().count() > COLUMNS
        && let Some((shorter, _)) = line.rsplit_once(SEPARATOR)
    {
        line = shorter;
    }
    if line.chars().count() <= COLUMNS { line.into() } else { text::cut(line, COLUMNS - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let line = "epoch 3/10 step 1000000/2000000 · AU 60.0 % · ≈ 3 min left · 80 MB/s";
        assert_eq!(shorten_to_columns(&format!("{line} · stall 20.0 %")), line);
        for text in ["a word ".repeat(40), "word".repeat(40)] {
            assert!(shorten_to_columns(&text).chars().count() <= COLUMNS, "{text}");
        }
        for line in ["as it is · 3 s".to_string(), "x".repeat(COLUMNS - 6) + " · 3 s"] {
            assert_eq!(shorten_to_columns(&line), line);
        }
    }

    #[test]
    fn the_line_of_another_process_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live");
        let elapsed = Duration::from_millis(2900);
        assert_eq!(line_in_file(Some(&file), elapsed), "2 s");
        std::fs::write(&file, "epoch 1/2 step 1/2").unwrap();
        assert_eq!(line_in_file(Some(&file), elapsed), "epoch 1/2 step 1/2");
    }
}
