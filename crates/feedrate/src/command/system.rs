//! `feedrate system`: this machine as the table of component and specification that studies print.

use crate::cli::SystemArguments;
use crate::exit::Exit;
use crate::messages;
use comfy_table::{Table, presets};

/// Print the table.
pub(crate) fn system(arguments: &SystemArguments) -> anyhow::Result<Exit> {
    let system = feedrate_run::system::system(Some(&arguments.data), None);
    if arguments.json {
        messages::print(serde_json::to_string(&system)?);
        return Ok(Exit::Fine);
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(["Component", "Specification"]);
    for (component, specification) in &system.components {
        table.add_row([component, specification]);
    }
    messages::print(table);
    Ok(Exit::Fine)
}
