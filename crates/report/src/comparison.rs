//! Builds a report's comparison of two sources, with the verdicts of `feedrate compare`. Decides nothing.

use crate::number::UNKNOWN;
use crate::report::ReportComparison;
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::comparison::{percent, verdict};
use feedrate_analysis::compare::{
    ComparedResponse, Comparison, IntervalEstimate, MAIN_RESPONSES, Pairing, Question, Side,
    VerdictReason, compare, find_shared_run, read_sides,
};
use feedrate_analysis::findings::MARGIN;
use feedrate_measure::metric::Metric;
use std::path::PathBuf;

/// Compares the experiments that both sources have. `None` unless there are two sources with experiments that can be compared.
pub(super) fn build_comparison(paths: &[PathBuf], threads: usize) -> Option<ReportComparison> {
    let [a, b] = paths else { return None };
    let (side_a, side_b) = read_sides(a, b, threads).ok()?;
    if find_shared_run(&side_a, &side_b).is_some() {
        return None;
    }
    let question = Question::Within(MARGIN);
    let found = compare(side_a, side_b, &MAIN_RESPONSES, question, Pairing::None, &[]);
    let title = format!("A is {}, B is {}; with 95 % intervals.", a.display(), b.display());
    let subject = format!("B (`{}`) against A (`{}`)", b.display(), a.display());
    (!found.findings.is_empty()).then(|| ReportComparison {
        says: format!("{subject}: {}", verdict_counts(&found.findings)),
        table: table(title, &found),
    })
}

/// The number of comparisons by verdict: `better in 2 of 8, the same within 2 % in 1, inconclusive in 5`.
fn verdict_counts(all: &[ComparedResponse]) -> String {
    let count = |is_wanted: fn(&VerdictReason) -> bool| {
        all.iter().filter(|row| is_wanted(&row.reason)).count()
    };
    let better = count(|reason| matches!(reason, VerdictReason::Differs { is_better: true, .. }));
    let worse = count(|reason| matches!(reason, VerdictReason::Differs { is_better: false, .. }));
    let same = count(|reason| matches!(reason, VerdictReason::Within(_) | VerdictReason::Equal(_)));
    let counts = [
        (better, "better".to_string()),
        (worse, "worse".into()),
        (same, format!("the same within {}", percent(MARGIN))),
        (all.len() - better - worse - same, "inconclusive".into()),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(count, says)| format!("{says} in {count}")).collect();
    parts[0] += &format!(" of {}", all.len());
    parts.join(", ")
}

fn table(title: String, found: &Comparison) -> ReportTable {
    let mut table = ReportTable::new(title);
    let all = &found.findings;
    if all.iter().any(|row| row.experiment != all[0].experiment) {
        table.add("Experiment", ColumnKind::Text, experiment_names(all));
    }
    table.add("Metric", ColumnKind::Text, all.iter().map(|row| row.response));
    table.add("A", ColumnKind::Number, all.iter().map(|row| side_cell(row, &row.a)));
    table.add("B", ColumnKind::Number, all.iter().map(|row| side_cell(row, &row.b)));
    let ratios = all.iter().map(|row| match row.ratio {
        Some(ratio) => cell(ratio, |value| format!("{value:.3}")),
        None => UNKNOWN.into(),
    });
    table.add("B ÷ A", ColumnKind::Number, ratios);
    table.add("Verdict", ColumnKind::Text, all.iter().map(verdict));
    table
}

/// The names of experiments without the parts that all names share.
fn experiment_names(all: &[ComparedResponse]) -> Vec<String> {
    let parts = |row: &ComparedResponse| {
        row.experiment.split(", ").map(str::to_string).collect::<Vec<String>>()
    };
    let mut shared = parts(&all[0]);
    shared.retain(|part| all.iter().all(|row| parts(row).contains(part)));
    let names = all.iter().map(|row| {
        let mut parts = parts(row);
        parts.retain(|part| !shared.contains(part));
        if parts.is_empty() { "shared settings".into() } else { parts.join(", ") }
    });
    names.collect()
}

/// The value of one side with its unit and interval.
fn side_cell(row: &ComparedResponse, side: &Side) -> TableCell {
    let unit = Metric::find(row.response).map(|response| response.unit).ok();
    let text = |value| unit.map_or(UNKNOWN.into(), |unit| unit.text(value));
    cell(side.mean, text)
}

fn cell(estimate: IntervalEstimate, text: impl Fn(f64) -> String) -> TableCell {
    TableCell::middle(estimate.estimate, estimate.low.zip(estimate.high), text)
}
