//! `feedrate system`: prints this machine's components and their specifications.

use crate::exit::Exit;
use crate::{messages, text};
use clap::Args;
use feedrate_report::output::Schema;
use feedrate_run::system::describe_gpus;
use std::path::PathBuf;

/// `feedrate system`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate system --data /mnt/fs
  feedrate system --json")]
pub(super) struct SystemArguments {
    /// Folder on the storage to describe.
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Prints the components.
pub(crate) fn system(arguments: &SystemArguments) -> anyhow::Result<Exit> {
    let mut system = feedrate_run::system::system(Some(&arguments.data), None);
    let gpus = describe_gpus().unwrap_or_else(|reason| format!("none ({reason})"));
    system.components.push(("GPUs".into(), gpus));
    if arguments.json {
        messages::print_json(Schema::System, &system)?;
        return Ok(Exit::Fine);
    }
    let components = system.components.iter();
    let rows: Vec<(&str, String)> =
        components.map(|(component, value)| (component.as_str(), value.clone())).collect();
    messages::print_page(&text::rows(&rows))?;
    Ok(Exit::Fine)
}
