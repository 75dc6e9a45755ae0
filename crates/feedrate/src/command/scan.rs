//! `feedrate scan`: reports the number, size and format of the files in a folder or below a prefix.

use crate::exit::Exit;
use crate::messages;
use clap::Args;
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_report::output::Schema;
use feedrate_session::{folder, store};
use std::path::PathBuf;

/// `feedrate scan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate scan /mnt/fs/imagenet
  feedrate scan s3://bucket/imagenet --json")]
pub(super) struct ScanArguments {
    /// Folder of the files, or URL of the objects, searched recursively.
    folder: PathBuf,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Prints a description of the files in a folder.
pub(super) fn scan(arguments: &ScanArguments) -> anyhow::Result<Exit> {
    store::configure_url(&arguments.folder)?;
    let names = tempfile::tempdir()?;
    let found = folder::scan(&arguments.folder, &names.path().join(NAMES_FILE), &[])?;
    if arguments.json {
        messages::print_json(Schema::Scan, &found)?;
    } else {
        let lines: Vec<String> = [found.line()].into_iter().chain(found.notes()).collect();
        messages::print_page(&lines.join("\n"))?;
    }
    Ok(Exit::Fine)
}
