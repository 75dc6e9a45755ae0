//! `feedrate system`: prints a table of this machine's components and specifications.

use crate::exit::Exit;
use crate::messages;
use clap::Args;
use comfy_table::{Table, presets};
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

/// Prints the table.
pub(crate) fn system(arguments: &SystemArguments) -> anyhow::Result<Exit> {
    let mut system = feedrate_run::system::system(Some(&arguments.data), None);
    let gpus = describe_gpus().unwrap_or_else(|reason| format!("none ({reason})"));
    system.components.push(("GPUs".into(), gpus));
    if arguments.json {
        messages::print_json(Schema::System, &system)?;
        return Ok(Exit::Fine);
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(["Component", "Specification"]);
    table.add_rows(system.components.iter().map(|(component, value)| [component, value]));
    messages::print(&table.to_string())?;
    Ok(Exit::Fine)
}
