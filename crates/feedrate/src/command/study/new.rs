//! `feedrate study new`: from a design to the CSV of its runs. Runs nothing.

use crate::cli::StudyNewArguments;
use crate::exit::{Exit, UsageError};

/// Write the CSV of a design.
pub(crate) fn new(_: &StudyNewArguments) -> anyhow::Result<Exit> {
    Err(UsageError { message: "no design can be made yet".into(), hint: None }.into())
}
