//! `feedrate study status`: how far a study is, by row, by what is varied, by model and processes, and how long it still takes.

use super::ledger::Ledger;
use super::precision;
use crate::cli::StudyStatusArguments;
use crate::exit::Exit;
use crate::messages;
use feedrate_measure::doubt::Severity;
use feedrate_measure::summary::Summary;
use feedrate_spec::units;
use feedrate_study::overview::{Cell, Counts, Factor, Overview, orphans};
use feedrate_study::runner::in_order;
use feedrate_study::state::{Attempt, Outcome, Status};
use serde_json::{Value, json};

/// Rows that are shown one by one, at most.
const ROWS_MAX: usize = 60;
/// Width of a bar.
const BAR: usize = 24;

/// Show how far a study is.
pub(super) fn status(arguments: &StudyStatusArguments) -> anyhow::Result<Exit> {
    let mut ledger = Ledger::open(&arguments.study)?;
    let overview = Overview::of(&ledger.rows, &ledger.history);
    let expected_s = ledger.expected_s();
    let open = ledger.rows.iter().zip(&expected_s).filter(|(row, _)| !row.done);
    let left_s: Option<f64> = open.map(|(_, run_s)| *run_s).sum();
    let known = precision::known(arguments, &mut ledger)?;
    let gone = orphans(&ledger.rows, &ledger.history);
    if arguments.json {
        let rows: Vec<Value> = (0..ledger.rows.len()).map(|index| ledger.json_of(index)).collect();
        messages::print(json!({
            "study": ledger.files.csv,
            "overview": overview,
            "left_s": left_s,
            "rows": rows,
            "precision": known.as_ref().map(precision::json),
            "without_a_row": gone.iter().map(|attempt| &attempt.run_dir).collect::<Vec<_>>(),
        }));
        return Ok(Exit::Fine);
    }
    let mut parts = vec![head(&ledger, &overview.counts, left_s)];
    parts.push(rows(&ledger, arguments.all));
    parts.push(factors(&overview.factors));
    parts.push(matrix(&overview.matrix));
    parts.push(failures(&ledger));
    parts.extend(known.as_ref().map(precision::page));
    if !gone.is_empty() {
        let folders: Vec<String> =
            gone.iter().map(|attempt| format!("  {}", attempt.run_dir.display())).collect();
        parts.push(format!("Results whose rows are no longer in the CSV:\n{}", folders.join("\n")));
    }
    parts.retain(|part| !part.is_empty());
    messages::print(parts.join("\n\n"));
    Ok(Exit::Fine)
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

fn rows(ledger: &Ledger, all: bool) -> String {
    let mut table = plain_table(["Row", "Run", "State", "AU all", "Delivered", "Took", "Doubts"]);
    let order = in_order(&ledger.rows);
    let shown = if all { order.len() } else { order.len().min(ROWS_MAX) };
    for &index in &order[..shown] {
        let summary = ledger.summary(index);
        let attempt = ledger.result(index);
        let cell = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        table.add_row([
            format!("#{}", index + 1),
            ledger.label(index),
            ledger.status(index).name().into(),
            cell(au(&summary)),
            cell(rate(&summary)),
            cell(attempt.and_then(took)),
            summary.map_or_else(String::new, |of| doubts(&of)),
        ]);
    }
    let mut text = text_of(&table);
    if shown < order.len() {
        text.push_str(&format!("\n and {} more with `--all`", order.len() - shown));
    }
    text
}

fn au(summary: &Option<Summary>) -> Option<String> {
    summary.as_ref()?.au.all_steps_percent.map(|au| format!("{au:.1} %"))
}

fn rate(summary: &Option<Summary>) -> Option<String> {
    let rate = summary.as_ref()?.throughput.delivered_bytes_per_second.whole;
    rate.map(units::bytes_per_second)
}

fn took(attempt: &Attempt) -> Option<String> {
    match attempt.outcome {
        Outcome::Finished { duration_s, .. } => Some(units::seconds(duration_s)),
        _ => None,
    }
}

/// But for notes, of which each run of a study has some.
pub(super) fn doubts(summary: &Summary) -> String {
    let serious = summary.doubts.iter().filter(|doubt| doubt.severity != Severity::Note);
    serious.map(|doubt| doubt.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn factors(factors: &[Factor]) -> String {
    let mut table = plain_table(["Factor", "Level", "", "Done", "Pending", "Failed"]);
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
    if factors.is_empty() { String::new() } else { text_of(&table) }
}

fn matrix(cells: &[Cell]) -> String {
    let mut models: Vec<&str> = cells.iter().map(|cell| cell.model.as_str()).collect();
    models.dedup();
    let of = |model: &str| cells.iter().filter(move |cell| cell.model == model).collect::<Vec<_>>();
    let Some(first) = models.first() else { return String::new() };
    let mut header = vec!["Done of all, by processes".to_string()];
    header.extend(of(first).iter().map(|cell| cell.processes.to_string()));
    let mut table = plain_table(header);
    for model in models {
        let mut row = vec![model.to_string()];
        row.extend(of(model).iter().map(|cell| match cell.counts.all() {
            0 => "-".into(),
            all => format!("{}/{all}", cell.counts.done),
        }));
        table.add_row(row);
    }
    text_of(&table)
}

fn failures(ledger: &Ledger) -> String {
    let lines: Vec<String> = (0..ledger.rows.len())
        .filter_map(|index| match ledger.status(index) {
            Status::Failed(_, reason) => Some(format!(
                "  #{} {}: {}",
                index + 1,
                ledger.label(index),
                reason.replace('\n', "\n      ")
            )),
            _ => None,
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("Failed, run again with `feedrate study run --retry`:\n{}", lines.join("\n"))
}

pub(super) fn plain_table(header: impl Into<comfy_table::Row>) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    table
}

pub(super) fn text_of(table: &comfy_table::Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
