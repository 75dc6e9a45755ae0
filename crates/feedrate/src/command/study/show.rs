//! `feedrate study show`: runs of a study, what they came to, and every attempt at them.

use super::how::StudyHow;
use super::ledger::{Ledger, found};
use super::row_view::RowView;
use crate::exit::Exit;
use crate::messages;
use clap::Args;
use feedrate_report::output::Schema;
use serde_json::json;
use std::path::PathBuf;

/// `feedrate study show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate study show study.csv '#6'
  feedrate study show study.csv 'unet3d_h100/*'")]
pub(in crate::command) struct StudyShowArguments {
    /// The study's CSV.
    study: PathBuf,
    /// Rows: `#6` by place, or by model, experiment (`4_batch_size_1`) or both (`unet3d/4`), with `*`.
    #[arg(required = true)]
    runs: Vec<String>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Show runs.
pub(super) fn show(arguments: &StudyShowArguments) -> anyhow::Result<Exit> {
    let ledger = Ledger::open(&arguments.study, &StudyHow::default())?;
    let places = ledger.places();
    let indices = found(&ledger.rows, &arguments.runs)?.into_iter();
    let views = indices.map(|index| RowView::new(&ledger, index, &places[index]));
    let views: Vec<RowView> = views.map(|view| view.with_attempts(&ledger)).collect();
    if arguments.json {
        messages::print_json(Schema::StudyShow.object(json!({ "runs": views })))?;
    } else {
        let pages: Vec<String> = views.iter().map(RowView::page).collect();
        messages::print_page(&pages.join("\n\n"))?;
    }
    Ok(Exit::Fine)
}
