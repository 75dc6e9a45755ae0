//! `feedrate study show`: runs of a study, what they came to, and every attempt at them.

use super::ledger::{Ledger, found, summary};
use super::status::doubts;
use crate::cli::StudyShowArguments;
use crate::exit::Exit;
use crate::messages;
use crate::text;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE};
use feedrate_results::setting::Setting;
use feedrate_results::state::{Attempt, Outcome, RowState};
use feedrate_spec::units;
use serde_json::{Value, json};

/// Show runs.
pub(super) fn show(arguments: &StudyShowArguments) -> anyhow::Result<Exit> {
    let ledger = Ledger::open(&arguments.study)?;
    let indices = found(&ledger.rows, &arguments.runs)?;
    let places = ledger.places();
    if arguments.json {
        let runs: Vec<Value> = indices
            .iter()
            .map(|&index| {
                let mut run = ledger.json_of(index, &places[index]);
                run["attempts"] = attempts(&ledger, index).iter().map(|of| json_of(of)).collect();
                run
            })
            .collect();
        messages::print(json!({ "runs": runs }));
        return Ok(Exit::Fine);
    }
    let pages: Vec<String> =
        indices.iter().map(|&index| page(&ledger, index, &places[index])).collect();
    messages::print(pages.join("\n\n"));
    Ok(Exit::Fine)
}

/// Attempts at the row, and at those that ask for the same.
fn attempts(ledger: &Ledger, index: usize) -> Vec<&Attempt> {
    let key = ledger.rows[index].key();
    ledger.state.attempts.iter().filter(|attempt| attempt.key == key).collect()
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
    rows.extend(figures(place));
    format!("{}\n\n{}", text::rows(&rows), table(ledger, index)).trim_end().to_string()
}

fn figures(place: &RowState) -> Vec<(&'static str, String)> {
    let Some(summary) = summary(place) else { return Vec::new() };
    let percent = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1} %"));
    let rate = summary.figures.value(&DELIVERED_WHOLE);
    let mut rows = vec![
        (
            "AU",
            format!(
                "all steps {}, windowed {}, sustained {}",
                percent(summary.figures.value(&AU_ALL_STEPS)),
                percent(summary.figures.value(&AU_WINDOWED)),
                percent(summary.figures.value(&AU_SUSTAINED))
            ),
        ),
        ("delivered", rate.map_or("-".into(), units::bytes_per_second)),
        ("verdict", summary.verdict.name.name().to_string()),
    ];
    let doubts = doubts(Some(&summary), place);
    if !doubts.is_empty() {
        rows.push(("doubts", doubts));
    }
    rows
}

fn table(ledger: &Ledger, index: usize) -> String {
    let attempts = attempts(ledger, index);
    if attempts.is_empty() {
        return String::new();
    }
    let mut table = text::table(["Attempt", "Began", "Came to", "Folder"]);
    for attempt in attempts {
        table.add_row([
            attempt.number.to_string(),
            at(attempt),
            outcome(attempt),
            attempt.run_dir.display().to_string(),
        ]);
    }
    text::lines(&table)
}
