//! Writes to stdout and stderr. No other code in the program does. A failed write to stdout is an error, a failed write to stderr is
//! ignored. Control characters are printed as escapes, since text may come from untrusted files.

use crate::exit::Exit;
use crate::text;
use anstream::{AutoStream, ColorChoice};
use feedrate_report::document::Document;
use feedrate_report::output::Schema;
use feedrate_report::output::terminal::{self, Screen};
use feedrate_session::failure::{self, AlreadyReported};
use feedrate_session::output::write_output;
use feedrate_spec::escape;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

/// Reports an error with its causes and its hint, if it has one.
pub(crate) fn print_error(error: &anyhow::Error) {
    if !error.is::<AlreadyReported>() {
        say(failure::message(error));
    }
}

/// Amount of output on stderr in addition to errors and warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// None.
    Quiet,
    /// Progress and notes.
    #[default]
    Normal,
    /// Progress, notes, plans, and the commands that are started.
    Verbose,
}

/// Set once, before the first message.
static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Sets whether output is coloured. The files of jobs are not, even if the environment forces colours (`CLICOLOR_FORCE`). `mpirun` connects the
/// stdout of a rank to a pseudo-terminal although its own may be a file; only stderr shows that there is no terminal.
pub(crate) fn set_color(choice: clap::ColorChoice) {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    let is_job = ["SLURM_JOB_ID", "OMPI_COMM_WORLD_SIZE"].iter().any(is_set);
    let has_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
    match choice {
        clap::ColorChoice::Auto if is_job && !has_terminal => ColorChoice::Never,
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Sets the verbosity; only the first call has an effect.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    VERBOSITY.get_or_init(|| verbosity);
}

pub(crate) fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or_default()
}

/// Prints progress or a note on stderr, except with `--quiet`.
pub(crate) fn note(text: impl Display) {
    if Verbosity::Normal <= verbosity() {
        say(text);
    }
}

/// Prints a detail on stderr, only with `--verbose`.
pub(crate) fn detail<T: Display>(text: impl FnOnce() -> T) {
    if verbosity() == Verbosity::Verbose {
        say(text());
    }
}

/// Prints an error, a warning or another important message on stderr.
pub(crate) fn say(text: impl Display) {
    let stderr = io::stderr();
    let text = escape::escape_lines(&text::apply_colours(&text.to_string(), false)).into_owned();
    let text = text::wrap(&text, terminal_width(&stderr));
    // The work goes on if stderr is closed.
    let _ = writeln!(stderr.lock(), "{text}");
}

/// Whether progress lines are redrawn on stderr.
pub(crate) fn is_live() -> bool {
    let term = std::env::var("TERM").ok();
    verbosity() == Verbosity::Normal && can_redraw(stderr_size(), term.as_deref())
}

/// Size of the terminal on stderr; `None` if stderr is no terminal.
pub(crate) fn stderr_size() -> Option<TerminalSize> {
    let (columns, rows) = terminal_size::terminal_size_of(io::stderr())?;
    Some(TerminalSize { rows: rows.0.into(), columns: columns.0.into() })
}

/// Rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Number of columns.
    pub(crate) columns: usize,
}

impl TerminalSize {
    /// Minimum rows of a terminal in which lines are redrawn.
    const ROWS_MIN: usize = 20;

    /// Whether a table leaves room for other messages.
    pub(crate) fn has_room(self) -> bool {
        Self::ROWS_MIN <= self.rows
    }
}

/// Whether lines are redrawn on a stream. `size`: size of its terminal; `None` if it is no terminal or the size is unknown. `term`: the
/// variable `TERM`.
fn can_redraw(size: Option<TerminalSize>, term: Option<&str>) -> bool {
    size.is_some_and(TerminalSize::has_room) && !matches!(term, None | Some("" | "dumb"))
}

/// Prints the help or version on stdout, or a usage error on stderr.
pub(crate) fn print_usage(usage: &clap::Error) -> anyhow::Result<Exit> {
    let printed = usage.print().and_then(|()| io::stdout().flush());
    if usage.use_stderr() {
        return Ok(Exit::Usage);
    }
    ignore_broken_pipe(printed)?;
    Ok(Exit::Fine)
}

/// Failure to write to stdout.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout: {error}{}", hint(error))]
pub(crate) struct StdoutError {
    #[source]
    error: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\n  hint: the output is incomplete: free some space, or write to another file system"
        }
        _ => "",
    }
}

/// Treats a closed pipe as success: its reader, such as `head`, has read enough.
fn ignore_broken_pipe(printed: io::Result<()>) -> Result<(), StdoutError> {
    printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(StdoutError { error }),
    })
}

fn write_line(text: &str) -> Result<(), StdoutError> {
    let mut stdout = io::stdout().lock();
    ignore_broken_pipe(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// Prints text on stdout, with its line breaks unchanged.
pub(crate) fn print(text: &str) -> Result<(), StdoutError> {
    write_line(&escape::escape_lines(text))
}

/// Prints one JSON object on stdout.
pub(crate) fn print_json(schema: Schema, object: &impl Serialize) -> Result<(), StdoutError> {
    let text = schema.text(object).map_err(|error| StdoutError { error: error.into() })?;
    write_line(&text)
}

/// Writes text to `file`, or to stdout if there is no file. `force` replaces an existing file.
pub(crate) fn write_or_print(file: Option<&Path>, text: &str, force: bool) -> anyhow::Result<()> {
    match file {
        Some(file) => write_output(file, text.as_bytes(), Some(force)),
        None => Ok(print(text.trim_end())?),
    }
}

/// Prints text on stdout, wrapped at the width of the terminal, with colours if enabled.
pub(crate) fn print_page(text: &str) -> Result<(), StdoutError> {
    let stdout = io::stdout();
    let is_coloured = AutoStream::choice(&stdout) != ColorChoice::Never;
    let text = text::wrap(&escape::escape_lines(text), terminal_width(&stdout));
    write_line(&text::apply_colours(&text, is_coloured))
}

/// Prints as many lines of a page as the terminal has rows. `last` is always printed; it says how to see the other lines.
pub(crate) fn print_screen(text: &str, last: &str) -> Result<(), StdoutError> {
    print_page(&text::fit_to_rows(&wrapped_to_terminal(text), &wrapped_to_terminal(last), rows()))
}

/// Prints a document. Unless `shows_all`, folded parts are left out and the page is cut to the rows of the terminal.
pub(crate) fn print_document(document: &Document, shows_all: bool) -> Result<(), StdoutError> {
    let (page, last) = terminal::write(document, Screen { columns: page_width(), shows_all });
    if last.is_empty() {
        print_page(&page)
    } else if shows_all {
        print_page(&format!("{page}\n\n{last}"))
    } else {
        print_screen(&page, &last)
    }
}

/// Prints a whole document. If it is longer than the terminal, its first paragraph, the answer, is repeated at the end.
pub(crate) fn print_answered(document: &Document) -> Result<(), StdoutError> {
    let screen = Screen { columns: page_width(), shows_all: true };
    let page = wrapped_to_terminal(&terminal::write(document, screen).0);
    let answer = page.split("\n\n").next().unwrap_or_default();
    print_page(&text::repeat_beginning(&page, answer, rows()))
}

fn wrapped_to_terminal(text: &str) -> String {
    text::wrap(&escape::escape_lines(text), terminal_width(io::stdout()))
}

/// Rows of the terminal on stdout; `None` if stdout is no terminal.
fn rows() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(_, height)| usize::from(height.0))
}

/// Columns of the terminal on stdout; `None` if stdout is no terminal.
pub(crate) fn page_width() -> Option<usize> {
    terminal_width(io::stdout())
}

/// Columns of the terminal on `stream`; `None` if it is no terminal.
fn terminal_width(stream: impl AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(stream).map(|size| usize::from(size.0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_redrawn_only_in_terminals_with_room() {
        let small = TerminalSize { rows: 15, columns: 40 };
        let usual = TerminalSize { rows: 24, columns: 80 };
        let xterm = Some("xterm-256color");
        for (size, term, expected) in [
            (Some(usual), xterm, true),
            (Some(TerminalSize { rows: 20, ..small }), xterm, true),
            (Some(TerminalSize { rows: 19, ..usual }), xterm, false),
            (Some(small), xterm, false),
            (None, xterm, false),
            (Some(usual), Some("dumb"), false),
            (Some(usual), Some(""), false),
            (Some(usual), None, false),
        ] {
            assert_eq!(can_redraw(size, term), expected, "{size:?} {term:?}");
        }
    }
}
