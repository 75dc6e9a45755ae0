//! `feedrate study status`: how far a study is, by row, by what is varied, by model and processes, and how long it still takes.

use super::ledger::{Ledger, summary};
use super::precision;
use crate::cli::StudyStatusArguments;
use crate::exit::Exit;
use crate::messages;
use crate::text;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_ALL_STEPS, DELIVERED_WHOLE};
use feedrate_measure::summary::Summary;
use feedrate_results::overview::{Cell, Counts, Factor, Overview, orphans};
use feedrate_results::state::{Attempt, RowState, Status};
use feedrate_spec::units;
use feedrate_study::runner::in_order;
use serde_json::{Value, json};

/// Rows that are shown one by one, at most.
const ROWS_MAX: usize = 60;
/// Width of a bar.
const BAR: usize = 24;

/// Show how far a study is.
pub(super) fn status(arguments: &StudyStatusArguments) -> anyhow::Result<Exit> {
    let mut ledger = Ledger::open(&arguments.study)?;
    let overview = Overview::new(&ledger.rows, &ledger.state);
    let left_s = ledger.left_s();
    let known = precision::known(arguments, &mut ledger)?;
    let places = ledger.places();
    let orphans = folders_of(orphans(&ledger.rows, &ledger.state));
    if arguments.json {
        let rows: Vec<Value> =
            places.iter().enumerate().map(|(n, place)| ledger.json_of(n, place)).collect();
        messages::print(json!({
            "study": ledger.files.csv,
            "overview": overview,
            "left_s": left_s,
            "rows": rows,
            "precision": known.as_ref().map(precision::json),
            "without_a_row": orphans,
        }));
        return Ok(Exit::Fine);
    }
    let mut parts = vec![head(&ledger, &overview.counts, left_s)];
    parts.push(rows(&ledger, &places, arguments.all));
    parts.push(factors(&overview.factors));
    parts.push(matrix(&overview.matrix));
    parts.push(failures(&ledger, &places));
    parts.extend(known.as_ref().map(precision::page));
    parts.push(list("Results whose rows are no longer in the CSV:", &orphans));
    parts.push(list(
        "Left by a runner that died; the next `study run` looks at them:",
        &folders_of(&ledger.left),
    ));
    parts.push(without_results(&places));
    parts.retain(|part| !part.is_empty());
    messages::print(parts.join("\n\n"));
    Ok(Exit::Fine)
}

fn folders_of<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Vec<String> {
    attempts.into_iter().map(|attempt| attempt.run_dir.display().to_string()).collect()
}

fn list(about: &str, items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("{about}\n  {}", items.join("\n  ")) }
}

fn has_no_result(place: &RowState) -> bool {
    place.status == Status::Done && place.attempt.is_none()
}

fn without_results(places: &[RowState]) -> String {
    match places.iter().filter(|place| has_no_result(place)).count() {
        0 => String::new(),
        count => format!(
            "{} marked `Y`, no result here: set back to `N` what is to be run.",
            units::counted(count as u64, "row")
        ),
    }
}

fn head(ledger: &Ledger, counts: &Counts, left_s: Option<f64>) -> String {
    let mut words = vec![format!("{} of {} done", counts.done, counts.all())];
    let others =
        [("running", counts.running), ("pending", counts.pending), ("failed", counts.failed)];
    words.extend(others.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{n} {name}")));
    if counts.done < counts.all() {
        words.extend(left_s.map(|left_s| format!("about {} left", units::seconds(left_s))));
    }
    format!("{}\n[{}] {}", ledger.files.csv.display(), bar(counts, BAR), words.join(", "))
}

/// `=` done, `x` failed, blank pending.
fn bar(counts: &Counts, width: usize) -> String {
    let all = counts.all().max(1);
    let part = |n: usize| n * width / all;
    let (done, failed) = (part(counts.done), part(counts.failed));
    format!("{}{}{}", "=".repeat(done), "x".repeat(failed), " ".repeat(width - done - failed))
}

fn rows(ledger: &Ledger, places: &[RowState], all: bool) -> String {
    let mut table = text::table(["Row", "Run", "State", "AU all", "Delivered", "Took", "Doubts"]);
    let order = in_order(&ledger.rows);
    let shown = if all { order.len() } else { order.len().min(ROWS_MAX) };
    for &index in &order[..shown] {
        let place = &places[index];
        let summary = summary(place);
        let state = if has_no_result(place) { "Y, no result here" } else { place.status.name() };
        let cell = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        table.add_row([
            format!("#{}", index + 1),
            ledger.label(index),
            state.into(),
            cell(au(&summary)),
            cell(rate(&summary)),
            cell(took(place)),
            doubts(summary.as_ref(), place),
        ]);
    }
    let mut text = text::lines(&table);
    if shown < order.len() {
        text.push_str(&format!("\n and {} more with `--all`", order.len() - shown));
    }
    text
}

fn au(summary: &Option<Summary>) -> Option<String> {
    summary.as_ref()?.figures.value(&AU_ALL_STEPS).map(|au| format!("{au:.1} %"))
}

fn rate(summary: &Option<Summary>) -> Option<String> {
    let rate = summary.as_ref()?.figures.value(&DELIVERED_WHOLE);
    rate.map(units::bytes_per_second)
}

fn took(place: &RowState) -> Option<String> {
    Some(units::seconds(place.result()?.checked()?.duration_s))
}

/// But for notes, of which each run of a study has some.
pub(super) fn doubts(summary: Option<&Summary>, place: &RowState) -> String {
    let of_run = summary.iter().flat_map(|summary| &summary.doubts);
    let serious = of_run.filter(|doubt| doubt.severity != Severity::Note);
    let mut names: Vec<&str> = serious.map(|doubt| doubt.name.as_str()).collect();
    let checked = place.result().and_then(Attempt::checked);
    names.extend(checked.iter().flat_map(|of| &of.doubts).map(|doubt| doubt.name.as_str()));
    let mut told: Vec<&str> = Vec::new();
    for name in names {
        if !told.contains(&name) {
            told.push(name);
        }
    }
    told.join(", ")
}

fn factors(factors: &[Factor]) -> String {
    let mut table = text::table(["Factor", "Level", "", "Done", "Pending", "Failed"]);
    for factor in factors {
        for (n, level) in factor.levels.iter().enumerate() {
            let counts = &level.counts;
            table.add_row([
                if n == 0 { factor.factor.clone() } else { String::new() },
                level.level.clone(),
                format!("[{}]", bar(counts, BAR / 2)),
                counts.done.to_string(),
                (counts.pending + counts.running).to_string(),
                counts.failed.to_string(),
            ]);
        }
    }
    if factors.is_empty() { String::new() } else { text::lines(&table) }
}

fn matrix(cells: &[Cell]) -> String {
    let mut models: Vec<&str> = cells.iter().map(|cell| cell.model.as_str()).collect();
    models.dedup();
    let of = |model: &str| cells.iter().filter(move |cell| cell.model == model).collect::<Vec<_>>();
    let Some(first) = models.first() else { return String::new() };
    let mut header = vec!["Done of all, by processes".to_string()];
    header.extend(of(first).iter().map(|cell| cell.processes.to_string()));
    let mut table = text::table(header);
    for model in models {
        let mut row = vec![model.to_string()];
        row.extend(of(model).iter().map(|cell| match cell.counts.all() {
            0 => "-".into(),
            all => format!("{}/{all}", cell.counts.done),
        }));
        table.add_row(row);
    }
    text::lines(&table)
}

fn failures(ledger: &Ledger, places: &[RowState]) -> String {
    let lines: Vec<String> = (0..ledger.rows.len())
        .filter(|index| places[*index].status == Status::Failed)
        .map(|index| {
            let reason = places[index].reason().unwrap_or_default().replace('\n', "\n      ");
            format!("  #{} {}: {reason}", index + 1, ledger.label(index))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("Failed, run again with `feedrate study run --retry`:\n{}", lines.join("\n"))
}
