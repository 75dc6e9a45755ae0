//! The one place that writes to stdout, and the one that writes to stderr. Data that cannot be written is an error; talk that
//! nobody can hear is none. Text shows what steers a terminal as escapes, whoever wrote it.

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

/// Reports an error with its causes and, where there is one, its hint.
pub(crate) fn print_error(error: &anyhow::Error) {
    if !error.is::<AlreadyReported>() {
        say(failure::message(error));
    }
}

/// How much is said beside errors, warnings and what is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Nothing.
    Quiet,
    /// Progress and notes.
    #[default]
    Normal,
    /// Plans and commands that are started too.
    Verbose,
}

/// Set before anything is said, and never again.
static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Colours as the user wants them, from now on.
pub(crate) fn set_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
    .write_global();
}

/// As the user wants it, from now on.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    VERBOSITY.get_or_init(|| verbosity);
}

pub(crate) fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or_default()
}

/// Progress, or a note, which `--quiet` leaves out.
pub(crate) fn note(text: impl Display) {
    if Verbosity::Normal <= verbosity() {
        say(text);
    }
}

/// Shown with `--verbose` alone.
pub(crate) fn detail<T: Display>(text: impl FnOnce() -> T) {
    if verbosity() == Verbosity::Verbose {
        say(text());
    }
}

/// Something the user should know that stops nothing.
pub(crate) fn say(text: impl Display) {
    let stderr = io::stderr();
    let text = escape::lines(&text::coloured(&text.to_string(), false)).into_owned();
    let text = text::wrapped(&text, terminal_width(&stderr));
    // Work goes on where nobody listens.
    let _ = writeln!(stderr.lock(), "{text}");
}

/// Whether somebody may look at a live line, which nothing else runs into.
pub(crate) fn is_live() -> bool {
    verbosity() == Verbosity::Normal && io::stderr().is_terminal()
}

/// Help that was asked for, or a complaint about arguments.
pub(crate) fn print_usage(usage: &clap::Error) -> anyhow::Result<Exit> {
    let printed = usage.print().and_then(|()| io::stdout().flush());
    if usage.use_stderr() {
        return Ok(Exit::Usage);
    }
    whole(printed)?;
    Ok(Exit::Fine)
}

/// Data that was to be printed is not.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout: {error}{}", hint(error))]
pub(crate) struct StdoutError {
    #[source]
    error: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\n  hint: what was printed is cut short: free some space, or print elsewhere"
        }
        _ => "",
    }
}

/// A reader that has gone away (`| head`) has what it wanted.
fn whole(printed: io::Result<()>) -> Result<(), StdoutError> {
    printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(StdoutError { error }),
    })
}

fn write_line(text: &str) -> Result<(), StdoutError> {
    let mut stdout = io::stdout().lock();
    whole(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// Data: the answer to the command, in its own lines.
pub(crate) fn print(text: &str) -> Result<(), StdoutError> {
    write_line(&escape::lines(text))
}

/// Data as one JSON object.
pub(crate) fn print_json(schema: Schema, object: &impl Serialize) -> Result<(), StdoutError> {
    let text = schema.text(object).map_err(|error| StdoutError { error: error.into() })?;
    write_line(&text)
}

/// Writes a text to a file, which `force` may replace, else to stdout.
pub(crate) fn write_or_print(file: Option<&Path>, text: &str, force: bool) -> anyhow::Result<()> {
    match file {
        Some(file) => write_output(file, text.as_bytes(), Some(force)),
        None => Ok(print(text.trim_end())?),
    }
}

/// Data for people: lines as wide as the terminal, colours where they are wanted.
pub(crate) fn print_page(text: &str) -> Result<(), StdoutError> {
    let stdout = io::stdout();
    let is_coloured = AutoStream::choice(&stdout) != ColorChoice::Never;
    let text = text::wrapped(&escape::lines(text), terminal_width(&stdout));
    write_line(&text::coloured(&text, is_coloured))
}

/// The same, no longer than the screen of a terminal: lines that do not fit are left out. `last` ends it in any case, and says where they are.
pub(crate) fn print_screen(text: &str, last: &str) -> Result<(), StdoutError> {
    print_page(&text::fitted(
        &as_wide_as_the_terminal(text),
        &as_wide_as_the_terminal(last),
        rows(),
    ))
}

/// A document. Without folded parts it is no longer than the screen, but for `is_whole`.
pub(crate) fn print_document(document: &Document, is_whole: bool) -> Result<(), StdoutError> {
    let (page, last) = terminal::write(document, Screen { columns: page_width(), is_whole });
    if last.is_empty() {
        print_page(&page)
    } else if is_whole {
        print_page(&format!("{page}\n\n{last}"))
    } else {
        print_screen(&page, &last)
    }
}

/// A document in full. Where a terminal has too few rows for it, the answer that it begins with also ends it.
pub(crate) fn print_answered(document: &Document) -> Result<(), StdoutError> {
    let screen = Screen { columns: page_width(), is_whole: true };
    let page = as_wide_as_the_terminal(&terminal::write(document, screen).0);
    let answer = page.split("\n\n").next().unwrap_or_default();
    print_page(&text::with_begin_repeated(&page, answer, rows()))
}

fn as_wide_as_the_terminal(text: &str) -> String {
    text::wrapped(&escape::lines(text), terminal_width(io::stdout()))
}

/// Rows of the terminal that data goes to.
fn rows() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(_, height)| usize::from(height.0))
}

/// Columns of the terminal that data goes to; `None` of a file or program.
pub(crate) fn page_width() -> Option<usize> {
    terminal_width(io::stdout())
}

/// `None` where there is no terminal.
fn terminal_width(stream: impl AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(stream).map(|size| usize::from(size.0.0))
}
