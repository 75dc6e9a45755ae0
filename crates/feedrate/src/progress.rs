//! Shows progress on stderr: lines that are redrawn in place in a terminal with room, one plain line at intervals elsewhere. A run that a study
//! started writes its lines to a file, and the study's process shows them.

use crate::messages::{self, TerminalSize, Verbosity};
use crate::{interrupt, text};
use feedrate_session::progress_text::{SEPARATOR, whole_seconds};
use feedrate_spec::escape;
use feedrate_spec::listener::{Listener, MessageLevel, ProgressLine, ProgressText};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time until lines are first drawn in a terminal.
const FIRST: Duration = Duration::from_millis(200);
/// Interval at which lines are redrawn in a terminal or written to a file.
const PERIOD: Duration = Duration::from_secs(1);
/// Default interval between plain lines, in seconds.
const PLAIN_S: f64 = 10.0;
/// Environment variable with the interval between plain lines, in seconds; 0 for none.
const PLAIN_VARIABLE: &str = "FEEDRATE_PROGRESS_S";
/// Maximum columns of a plain line, and of a line in a terminal of unknown width.
pub(crate) const COLUMNS: usize = 79;

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
    progress: Progress,
    /// The lines that are drawn; `None` if this terminal shows no progress.
    drawn: Option<DrawnLines>,
}

/// Shows only messages on stderr, while nothing is drawn there.
pub(crate) const TERMINAL: Terminal = Terminal { progress: Progress::Shown, drawn: None };

impl Terminal {
    /// Shows messages and progress.
    pub(crate) fn new(progress: Progress) -> Self {
        Terminal { progress, drawn: Some(DrawnLines::default()) }
    }

    /// Shows progress lines until the result is dropped.
    pub(crate) fn start(&self, text: ProgressText) -> LiveLines {
        LiveLines::start(self.progress.clone(), self.drawn.clone().unwrap_or_default(), text)
    }

    /// Copies the lines that another process writes to stderr above the progress lines, until it closes the stream.
    pub(crate) fn copy_above(&self, stream: impl Read) {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            self.print(|| write_stderr(&line));
            line.clear();
        }
    }

    /// Prints a message above the progress lines.
    fn print(&self, print: impl FnOnce()) {
        match &self.drawn {
            Some(drawn) => drawn.suspend(print),
            None => print(),
        }
    }
}

impl Listener for Terminal {
    fn message(&self, level: MessageLevel, text: &str) {
        self.print(|| match level {
            MessageLevel::Important => messages::say(text),
            MessageLevel::Note => messages::note(text),
            MessageLevel::Detail => messages::detail(|| text),
        });
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
        Box::new(self.start(text))
    }

    fn redraws_progress(&self) -> bool {
        messages::is_live()
    }
}

/// Progress lines that are updated until they are dropped.
pub(crate) struct LiveLines {
    drawn: DrawnLines,
    is_drawn: bool,
    /// The drawing thread ends when the sender is dropped.
    drawer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl ProgressLine for LiveLines {}

impl LiveLines {
    /// Starts a thread that shows `text` at intervals.
    fn start(progress: Progress, drawn: DrawnLines, mut text: ProgressText) -> Self {
        let is_drawn = progress == Progress::Shown && messages::is_live();
        let period = match progress {
            Progress::Shown if !is_drawn => plain_period(),
            _ => Some(PERIOD),
        };
        let Some(period) = period else { return LiveLines { drawn, is_drawn, drawer: None } };
        let lines = drawn.clone();
        let start = Instant::now();
        let (stop, stop_receiver) = mpsc::channel();
        let draw = move || {
            interrupt::block_in_thread();
            let mut wait = if is_drawn { FIRST } else { period };
            while stop_receiver.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = period;
                let elapsed = start.elapsed();
                match &progress {
                    // A failed write is ignored: the next one replaces it.
                    Progress::File(file) => drop(std::fs::write(file, text(elapsed))),
                    Progress::Shown if is_drawn => lines.draw(|| text(elapsed)),
                    Progress::Shown => {
                        text(elapsed)
                            .lines()
                            .take(1)
                            .for_each(|line| messages::note(shorten(line, COLUMNS)));
                    }
                }
            }
            if let Progress::File(file) = &progress {
                let _ = std::fs::remove_file(file);
            }
        };
        // If no thread can be started, nothing is shown.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(draw).ok();
        LiveLines { drawn, is_drawn, drawer: thread.map(|thread| (stop, thread)) }
    }

    /// Whether the lines are drawn in a terminal. Then no other message reports progress.
    pub(crate) fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    /// Clears the lines until there is text again.
    pub(crate) fn clear(&self) {
        self.drawn.draw(String::new);
    }
}

impl Drop for LiveLines {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawer.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.clear();
    }
}

/// The lines that are drawn on stderr. The cursor stays below them, so an echoed `^C` does not move them.
#[derive(Clone, Debug, Default)]
struct DrawnLines(Arc<Mutex<Vec<String>>>);

impl DrawnLines {
    /// Replaces the lines by those of `text` that fit; an empty text clears them. The text is made under the lock, so that none from before
    /// a clearing is drawn after it.
    fn draw(&self, text: impl FnOnce() -> String) {
        let mut drawn = self.lock();
        let lines = fitting_lines(&text(), messages::stderr_size());
        let count = drawn.len();
        *drawn = lines;
        write_stderr(frame(count, &drawn).as_bytes());
    }

    /// Prints a message above the lines.
    fn suspend(&self, print: impl FnOnce()) {
        let drawn = self.lock();
        write_stderr(frame(drawn.len(), &[]).as_bytes());
        print();
        write_stderr(frame(0, &drawn).as_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The characters that replace `count` lines above the cursor by `lines`.
fn frame(count: usize, lines: &[String]) -> String {
    // Up to the first line, and clear from there to the end of the screen.
    let clear = if count == 0 { String::new() } else { format!("\r\x1b[{count}A\x1b[J") };
    lines.iter().fold(clear, |text, line| text + line + "\n")
}

fn write_stderr(bytes: &[u8]) {
    // The work goes on if stderr is closed.
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// The lines of a text for a terminal of this size, if it is known: all in a terminal with room for a table, else the first.
fn fitting_lines(text: &str, size: Option<TerminalSize>) -> Vec<String> {
    let columns = size.map_or(COLUMNS, |size| size.columns.saturating_sub(1));
    let rows = if size.is_some_and(TerminalSize::has_room) { usize::MAX } else { 1 };
    text.lines().take(rows).map(|line| shorten(&escape::one_line(line), columns)).collect()
}

/// Interval between plain lines; `None` if they are disabled.
fn plain_period() -> Option<Duration> {
    let given = std::env::var(PLAIN_VARIABLE).ok().and_then(|text| text.parse().ok());
    let period = Duration::try_from_secs_f64(given.unwrap_or(PLAIN_S)).ok();
    period.filter(|period| !period.is_zero())
}

/// Progress lines that a run wrote to `file`, or the elapsed time if there are none.
pub(crate) fn lines_in_file(file: Option<&Path>, elapsed: Duration) -> String {
    let lines = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    if lines.is_empty() { whole_seconds(elapsed) } else { lines }
}

/// Drops trailing parts of the line until it has at most `columns`.
fn shorten(line: &str, columns: usize) -> String {
    let mut line = line;
    while line.chars().count() > columns
        && let Some((shorter, _)) = line.rsplit_once(SEPARATOR)
    {
        line = shorter;
    }
    if line.chars().count() <= columns {
        line.into()
    } else {
        text::cut(line, columns.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: TerminalSize = TerminalSize { rows: 15, columns: 40 };
    const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

    #[test]
    fn a_frame_replaces_the_lines_above_the_cursor() {
        let lines = ["a".to_string(), "b".to_string()];
        assert_eq!(frame(0, &lines), "a\nb\n");
        assert_eq!(frame(3, &lines), "\r\x1b[3A\x1b[Ja\nb\n");
        assert_eq!(frame(2, &[]), "\r\x1b[2A\x1b[J");
        assert_eq!(frame(0, &[]), "");
    }

    #[test]
    fn lines_fit_the_terminal() {
        let text = "epoch 3/10 step 50/100 · AU 60.0 % · ≈ 3 min left\naccelerator  rate\n0            40 MB/s\u{1b}[2J";
        let all = [
            "epoch 3/10 step 50/100 · AU 60.0 % · ≈ 3 min left",
            "accelerator  rate",
            "0            40 MB/s\\u{1b}[2J",
        ];
        assert_eq!(fitting_lines(text, Some(USUAL)), all);
        let narrow = ["epoch 3/10 step 50/100 · AU 60.0 %", all[1], all[2]];
        assert_eq!(fitting_lines(text, Some(TerminalSize { columns: 40, ..USUAL })), narrow);
        assert_eq!(fitting_lines(text, Some(SMALL)), narrow[..1]);
        assert_eq!(fitting_lines(text, None), all[..1]);
        assert_eq!(fitting_lines("", Some(USUAL)), Vec::<String>::new());
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let line = "epoch 3/10 step 1000000/2000000 · AU 60.0 % · ≈ 3 min left · 80 MB/s";
        assert_eq!(shorten(&format!("{line} · stall 20.0 %"), COLUMNS), line);
        for text in ["a word ".repeat(40), "word".repeat(40)] {
            assert!(shorten(&text, COLUMNS).chars().count() <= COLUMNS, "{text}");
        }
        for line in ["as it is · 3 s".to_string(), "x".repeat(COLUMNS - 6) + " · 3 s"] {
            assert_eq!(shorten(&line, COLUMNS), line);
        }
        for columns in 0..4 {
            assert!(shorten("a word", columns).chars().count() <= columns.max(1), "{columns}");
        }
    }

    #[test]
    fn the_lines_of_another_process_are_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live");
        let elapsed = Duration::from_millis(2900);
        assert_eq!(lines_in_file(Some(&file), elapsed), "2 s");
        std::fs::write(&file, "epoch 1/2 step 1/2").unwrap();
        assert_eq!(lines_in_file(Some(&file), elapsed), "epoch 1/2 step 1/2");
    }
}
