//! `feedrate study show`: runs of a study, what they came to, and every attempt at them.

use super::how::StudyHow;
use super::ledger::{Ledger, found, summary};
use super::status::doubts;
use crate::exit::Exit;
use crate::{messages, text};
use clap::Args;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE};
use feedrate_report::output::Schema;
use feedrate_results::setting::Setting;
use feedrate_results::state::{Attempt, Outcome, RowState};
use feedrate_spec::units;
use serde_json::{Value, json};
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
    if arguments.json {
        let runs = indices.map(|index| {
            let mut run = ledger.json_of(index, &places[index]);
            run["attempts"] = attempts(&ledger, index).map(json_of).collect();
            run
        });
        messages::print_json(Schema::StudyShow.object(json!({ "runs": runs.collect::<Value>() })))?;
        return Ok(Exit::Fine);
    }
    let pages: Vec<String> = indices.map(|index| page(&ledger, index, &places[index])).collect();
    messages::print_page(&pages.join("\n\n"))?;
    Ok(Exit::Fine)
}

/// Attempts at the row, and at those that ask for the same.
fn attempts(ledger: &Ledger, index: usize) -> impl Iterator<Item = &Attempt> {
    let key = ledger.rows[index].key();
    ledger.state.attempts.iter().filter(move |attempt| attempt.key == key)
}

/// When it began: its folder is called after that.
fn at(attempt: &Attempt) -> String {
    let name = attempt.run_dir.file_name();
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn json_of(attempt: &Attempt) -> Value {
    json!({
        "attempt": attempt.number,
        "at": at(attempt),
        "outcome": outcome(attempt),
        "superseded": attempt.outcome == Outcome::Superseded,
        "run_dir": attempt.run_dir,
    })
}

fn outcome(attempt: &Attempt) -> String {
    match &attempt.outcome {
        Outcome::Running => "running, or left by a runner that died".into(),
        Outcome::Complete(Some(checked)) => {
            format!("done in {}", units::seconds(checked.duration_s))
        }
        Outcome::Complete(None) => "done".into(),
        Outcome::Superseded => "done, superseded".into(),
        Outcome::Failed { reason, .. } => format!("failed: {reason}"),
        Outcome::BrokenOff => "broken off".into(),
    }
}

fn page(ledger: &Ledger, index: usize, place: &RowState) -> String {
    let row = &ledger.rows[index];
    let settings: Vec<String> = row.settings.iter().map(Setting::text).collect();
    let mut rows = vec![
        ("run", format!("#{} {}", index + 1, ledger.label(index))),
        ("state", place.status.name().into()),
        ("sets", if settings.is_empty() { "nothing".into() } else { settings.join("\n") }),
    ];
    let places = [("replicate", row.replicate), ("block", row.block), ("order", row.order)];
    rows.extend(places.iter().filter_map(|(name, value)| Some((*name, (*value)?.to_string()))));
    if !row.note.is_empty() {
        rows.push(("note", row.note.clone()));
    }
    if let Some(summary) = summary(place) {
        let [all, windowed, sustained] = [&AU_ALL_STEPS, &AU_WINDOWED, &AU_SUSTAINED]
            .map(|au| text::known(summary.figures.value(au), |value| au.unit.text(value)));
        let rate = text::known(summary.figures.value(&DELIVERED_WHOLE), units::bytes_per_second);
        rows.extend([
            ("AU", format!("all steps {all}, windowed {windowed}, sustained {sustained}")),
            ("delivered", rate),
            ("verdict", summary.verdict.name.name().to_string()),
        ]);
        let doubts = doubts(Some(&summary), place);
        rows.extend((!doubts.is_empty()).then_some(("doubts", doubts)));
    }
    let mut attempts = attempts(ledger, index).map(|attempt| {
        let folder = attempt.run_dir.display().to_string();
        [attempt.number.to_string(), at(attempt), outcome(attempt), folder]
    });
    let page = text::rows(&rows);
    match attempts.next() {
        None => page,
        Some(first) => {
            let header = ["Attempt", "Began", "Came to", "Folder"];
            format!("{page}\n\n{}", text::table(header, [first].into_iter().chain(attempts)))
        }
    }
}
