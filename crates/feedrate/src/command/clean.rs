//! `feedrate clean`: lists datasets, their copies, results and checkpoints that feedrate wrote, and removes them with `--yes`.

use crate::cli::names_parser;
use crate::exit::Exit;
use crate::messages::{self, StdoutError};
use clap::Args;
use feedrate_data::storage::object::Access;
use feedrate_report::document::{Block, Document};
use feedrate_report::output::Schema;
use feedrate_report::table::{ColumnKind, ReportTable};
use feedrate_session::cleaning::{self, CleanItem, CleanKind};
use feedrate_session::store;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_study::own_datasets::CLAIM;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// `feedrate clean`.
#[derive(Debug, Args)]
#[command(after_help = "\
Removes the files that a manifest (of a dataset, copy or checkpoint) or the record of a run lists, then their folders if these are empty. \
Other files are kept and listed. Links are not followed. Of a store, datasets and checkpoints are removed, with their unfinished \
uploads; the keys are those of the environment or of a profile.

Examples:
  feedrate clean data results checkpoints
  feedrate clean s3://bucket/prefix --yes")]
pub(super) struct CleanArguments {
    /// Folders of datasets, copies, runs or checkpoints, or parent folders; or URLs in a store.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Remove the files; without this option they are only listed.
    #[arg(long)]
    yes: bool,
    /// List or remove only this kind.
    #[arg(long, value_name = "KIND", value_parser = names_parser(CleanKind::ALL, CleanKind::name, CleanKind::meaning))]
    only: Option<CleanKind>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Finds and lists items, and removes them with `--yes`.
pub(super) fn clean(arguments: &CleanArguments) -> anyhow::Result<Exit> {
    let mut folders = Vec::new();
    for folder in &arguments.folders {
        if store::is_url(folder) {
            let access = if arguments.yes { Access::Write } else { Access::Read };
            store::open_url(folder, access)?;
            folders.push(folder.clone());
            continue;
        }
        if !folder.is_dir() {
            let message = format!("there is no folder `{}`", folder.display());
            return refuse(
                message,
                "give folders of datasets, results or checkpoints, or parent folders",
            );
        }
        folders.push(folder.canonicalize()?);
    }
    let mut items = Vec::new();
    let mut errors = Vec::new();
    for found in cleaning::find(&folders, &[CLAIM])? {
        if arguments.only.is_some_and(|only| only != found.kind) {
            continue;
        }
        match found.clean(arguments.yes, &[CLAIM]) {
            Ok(item) => items.extend(item),
            Err(error) => errors.push(error),
        }
    }
    if !items.is_empty() || errors.is_empty() || arguments.json {
        print_items(&items, arguments)?;
    }
    errors.iter().for_each(messages::print_error);
    if !errors.is_empty() {
        return Ok(Exit::Failed);
    }
    Ok(if arguments.yes && items.iter().any(|item| item.in_use) { Exit::Unmet } else { Exit::Fine })
}

/// Output of `clean --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct CleanOutput<'a> {
    /// Whether the items were removed (`--yes`).
    removed: bool,
    /// Bytes of all items.
    bytes: u64,
    /// Items that were or would be removed.
    items: &'a [CleanItem],
}

fn print_items(items: &[CleanItem], arguments: &CleanArguments) -> Result<(), StdoutError> {
    let removed = || items.iter().filter(|item| !item.in_use);
    let bytes = removed().map(|item| item.bytes).sum();
    if arguments.json {
        let output = CleanOutput { removed: arguments.yes, bytes, items };
        return messages::print_json(Schema::Clean, &output);
    }
    if items.is_empty() {
        return messages::print_page("nothing from feedrate found");
    }
    let rows = items.iter().flat_map(|item| {
        let stays = item.stays.iter().map(|path| format!("`{path}`"));
        let in_use = item.in_use.then(|| "everything: in use".to_string());
        let folder = item.folder.display().to_string();
        let uploads = (item.uploads > 0).then(|| {
            let kind = "unfinished uploads".to_string();
            [kind, folder.clone(), item.uploads.to_string(), String::new(), String::new()]
        });
        let files = [
            match item.kind {
                CleanKind::Datasets => "dataset".to_string(),
                CleanKind::Copies => "copy".to_string(),
                CleanKind::Results => "results".to_string(),
                CleanKind::Checkpoints => "checkpoints".to_string(),
            },
            folder,
            item.files.to_string(),
            units::bytes(item.bytes),
            in_use.into_iter().chain(stays).collect::<Vec<_>>().join(", "),
        ];
        [files].into_iter().chain(uploads)
    });
    let header = ["", "Folder", "Files", "Size", "Kept"];
    let mut table = ReportTable::from_text("", header, rows);
    // Long paths would move an empty column to a table of its own.
    if items.iter().all(|item| item.stays.is_empty() && !item.in_use) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    table.columns[2..4].iter_mut().for_each(|column| column.kind = ColumnKind::Number);
    messages::print_document(&Document::from(vec![Block::Table(table)]), true)?;
    let files = units::counted(removed().map(|item| item.files).sum(), "file");
    let mut total = format!("{files}, {}", units::bytes(bytes));
    let uploads: u64 = removed().map(|item| item.uploads).sum();
    if uploads > 0 {
        total += &format!(", {}", units::counted(uploads, "unfinished upload"));
    }
    messages::note(if arguments.yes {
        format!("removed {total}")
    } else {
        format!("would remove {total}; to remove them, add `--yes`")
    });
    Ok(())
}
