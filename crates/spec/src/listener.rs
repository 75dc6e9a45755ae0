//! Messages and progress of libraries. A library reports to a [`Listener`]; the program decides what is shown, and where.

use std::fmt::Display;
use std::time::Duration;

/// Importance of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageLevel {
    /// Shown with `--verbose` only.
    Detail,
    /// Left out by `--quiet`.
    Note,
    /// Always shown: warnings, errors, and reasons to wait.
    Important,
}

/// Text about the progress of work as a function of the time since it was first shown. The first line is a summary; the other lines are a
/// table, shown only in terminals with room. An empty text hides all.
pub type ProgressText = Box<dyn FnMut(Duration) -> String + Send>;

/// Progress, shown until it is dropped.
pub trait ProgressLine {}

/// Receives messages and progress from libraries.
pub trait Listener: Send + Sync {
    /// Receives a message for the user, ready to be shown.
    fn message(&self, level: MessageLevel, text: &str);

    /// Whether messages of this level are shown, so that callers can avoid building expensive texts.
    fn shows(&self, level: MessageLevel) -> bool;

    /// Shows progress. Another thread builds its text.
    fn show_progress(&self, text: ProgressText) -> Box<dyn ProgressLine>;

    /// Whether progress is redrawn in place. Messages about progress are then unnecessary.
    fn redraws_progress(&self) -> bool;
}

impl dyn Listener + '_ {
    /// Reports a message that is always shown.
    pub fn important(&self, text: impl Display) {
        self.message(MessageLevel::Important, &text.to_string());
    }

    /// Reports a note or progress.
    pub fn note(&self, text: impl Display) {
        self.message(MessageLevel::Note, &text.to_string());
    }

    /// Reports a detail.
    pub fn detail<T: Display>(&self, text: impl FnOnce() -> T) {
        if self.shows(MessageLevel::Detail) {
            self.message(MessageLevel::Detail, &text().to_string());
        }
    }
}

/// A listener that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl ProgressLine for Silent {}

impl Listener for Silent {
    fn message(&self, _: MessageLevel, _: &str) {}

    fn shows(&self, _: MessageLevel) -> bool {
        false
    }

    fn show_progress(&self, _: ProgressText) -> Box<dyn ProgressLine> {
        Box::new(Silent)
    }

    fn redraws_progress(&self) -> bool {
        false
    }
}

/// Passes messages on to another listener, and shows no progress lines.
pub struct WithoutProgress<'a>(pub &'a dyn Listener);

impl Listener for WithoutProgress<'_> {
    fn message(&self, level: MessageLevel, text: &str) {
        self.0.message(level, text);
    }

    fn shows(&self, level: MessageLevel) -> bool {
        self.0.shows(level)
    }

    fn show_progress(&self, _: ProgressText) -> Box<dyn ProgressLine> {
        Box::new(Silent)
    }

    fn redraws_progress(&self) -> bool {
        false
    }
}
