//! Talk on stderr: errors, warnings, hints. Data goes to stdout, and not from here.

use crate::exit::UsageError;
use feedrate_data::generate::{ForeignError, GenerateError};
use feedrate_data::storage::StorageError;
use feedrate_data::verify::VerifyError;
use feedrate_engine::job::ReadError;
use feedrate_measure::record::file::RecordFileError;
use feedrate_run::driver::RunError;
use feedrate_spec::problem::Problems;
use std::error::Error;
use std::fmt::Display;

/// One error with its causes and, where there is one, its hint.
#[expect(clippy::print_stderr, reason = "this is where talk goes")]
pub(crate) fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<Problems>() {
        Some(problems) => eprintln!("{problems}"),
        None => eprintln!("error: {}", told(error)),
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
#[expect(clippy::print_stderr, reason = "this is where talk goes")]
pub(crate) fn say(text: impl Display) {
    eprintln!("{text}");
}

/// Data: the answer to the command. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: impl Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
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
    error.chain().find_map(|cause| match cause.downcast_ref::<UsageError>() {
        Some(usage) => usage.hint.clone(),
        None => hint_of_library(cause).map(str::to_string),
    })
}

/// The hint of the first of these errors that `cause` is, and that has one.
macro_rules! first_hint {
    ($cause:expr, $($error:ty),*) => {
        None$(.or_else(|| $cause.downcast_ref().and_then(<$error>::hint)))*
    };
}

fn hint_of_library(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    match cause.downcast_ref() {
        Some(VerifyError::Storage(storage)) => storage.hint(),
        _ => first_hint!(
            cause,
            RecordFileError,
            GenerateError,
            ForeignError,
            RunError,
            ReadError,
            StorageError
        ),
    }
}
