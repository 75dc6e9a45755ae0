//! Talk on stderr: errors, warnings, hints. Data goes to stdout, and not from here.

use crate::exit::UsageError;
use crate::text;
use feedrate_data::error::DatasetError;
use feedrate_data::storage::StorageError;
use feedrate_engine::job::ReadError;
use feedrate_measure::record::file::RecordFileError;
use feedrate_report::output::with_schema;
use feedrate_run::driver::RunError;
use feedrate_spec::problem::Problems;
use serde_json::Value;
use std::fmt::Display;
use std::io::Write;
use std::os::fd::AsFd;

/// One error with its causes and, where there is one, its hint.
pub(crate) fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<Problems>() {
        Some(problems) => say(problems),
        None => say(format!("error: {}", told(error))),
    }
}

/// An error as other processes are told of it.
pub(crate) fn told(error: &anyhow::Error) -> String {
    match hint_of(error) {
        Some(hint) => format!("{}\n  hint: {hint}", causes(error)),
        None => causes(error),
    }
}

/// Something the user should know that stops nothing.
pub(crate) fn say(text: impl Display) {
    let stderr = std::io::stderr();
    let width = terminal_width(&stderr);
    let _ = writeln!(stderr.lock(), "{}", text::wrapped(&text.to_string(), width));
}

/// Data: the answer to the command, as it is. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Data as one JSON object.
pub(crate) fn print_json(object: Value) {
    print(&with_schema(object).to_string());
}

/// Data for people: lines as wide as the terminal, colours where they are wanted.
pub(crate) fn print_page(text: &str) {
    let stdout = std::io::stdout();
    let _ = writeln!(anstream::stdout(), "{}", text::wrapped(text, terminal_width(&stdout)));
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
            .or_else(|| hint(cause, RunError::hint))
            .or_else(|| hint(cause, ReadError::hint))
            .or_else(|| hint(cause, StorageError::hint))
            .map(str::to_string)
    })
}

/// The hint of `cause`, if it is an `E` that has one.
fn hint<E: std::error::Error + 'static>(
    cause: &(dyn std::error::Error + 'static),
    of: fn(&E) -> Option<&'static str>,
) -> Option<&'static str> {
    cause.downcast_ref().and_then(of)
}
