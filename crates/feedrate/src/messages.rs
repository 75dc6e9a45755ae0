//! The one place that writes to stdout, and the one that writes to stderr. Data that cannot be written is an error; talk that
//! nobody can hear is none. Text shows what steers a terminal as escapes, whoever wrote it.

use crate::exit::{Exit, UsageError};
use crate::text;
use anstream::{AutoStream, ColorChoice};
use feedrate_data::error::DatasetError;
use feedrate_data::stage::StageError;
use feedrate_data::storage::StorageError;
use feedrate_engine::job::ReadError;
use feedrate_measure::record::file::RecordFileError;
use feedrate_report::output::JsonObject;
use feedrate_run::checkpoint::CheckpointError;
use feedrate_run::driver::RunError;
use feedrate_spec::escape;
use feedrate_spec::problem::Problems;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// One error with its causes and, where there is one, its hint.
pub(crate) fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<Problems>() {
        Some(problems) => say(problems),
        // Problems, as a table may have, say so themselves.
        None => say(format!("error: {}", told(error).trim_start_matches("error: "))),
    }
}

/// An error as other processes are told of it.
pub(crate) fn told(error: &anyhow::Error) -> String {
    match hint_of(error) {
        Some(hint) => format!("{}\n  hint: {hint}", causes(error)),
        None => causes(error),
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

fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or_default()
}

/// Progress, or a note, which `--quiet` leaves out.
pub(crate) fn note(text: impl Display) {
    if Verbosity::Normal <= verbosity() {
        say(text);
    }
}

/// Told with `--verbose` alone.
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
#[error("cannot write to stdout: {0}")]
pub(crate) struct StdoutError(#[source] io::Error);

impl StdoutError {
    fn hint(&self) -> Option<&'static str> {
        let is_full =
            matches!(self.0.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        is_full.then_some("what was printed is cut short: free some space, or print elsewhere")
    }
}

/// A reader that has gone away (`| head`) has what it wanted.
fn whole(printed: io::Result<()>) -> Result<(), StdoutError> {
    printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(StdoutError(error)),
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
pub(crate) fn print_json(object: JsonObject) -> Result<(), StdoutError> {
    write_line(object.text())
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

/// The same in full. Where a terminal has too few rows for it, the answer that it begins with also ends it.
pub(crate) fn print_answered(answer: &str, rest: &str) -> Result<(), StdoutError> {
    let [text, answer] =
        [format!("{answer}\n\n{rest}"), answer.into()].map(|of| as_wide_as_the_terminal(&of));
    print_page(&text::begun_again(&text, &answer, rows()))
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

/// Causes that say something new, joined.
fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(usage) = cause.downcast_ref::<UsageError>() {
            return usage.hint.clone();
        }
        hint(cause, RecordFileError::hint)
            .or_else(|| hint(cause, DatasetError::hint))
            .or_else(|| hint(cause, StageError::hint))
            .or_else(|| hint(cause, RunError::hint))
            .or_else(|| hint(cause, CheckpointError::hint))
            .or_else(|| hint(cause, ReadError::hint))
            .or_else(|| hint(cause, StorageError::hint))
            .or_else(|| hint(cause, StdoutError::hint))
            .or_else(|| hint(cause, file_size_hint))
            .map(str::to_string)
    })
}

fn file_size_hint(error: &io::Error) -> Option<&'static str> {
    let is_too_large = error.kind() == io::ErrorKind::FileTooLarge;
    is_too_large.then_some(
        "raise the limit on file sizes (`ulimit -f`), or write to a file system that takes larger files",
    )
}

/// The hint of `cause`, if it is an `E` that has one.
fn hint<E: std::error::Error + 'static>(
    cause: &(dyn std::error::Error + 'static),
    of: fn(&E) -> Option<&'static str>,
) -> Option<&'static str> {
    cause.downcast_ref().and_then(of)
}
