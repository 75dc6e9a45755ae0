//! Two sources side by side, as `feedrate compare` judges them. Decides nothing.

use crate::number::UNKNOWN;
use crate::report::ReportComparison;
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::comparison::{percent, verdict};
use feedrate_analysis::compare::{
    ComparedResponse, Comparison, Ground, IntervalEstimate, MAIN_RESPONSES, Pairing, Question,
    Side, compare, find_shared_run, read_sides,
};
use feedrate_analysis::findings::MARGIN;
use feedrate_measure::metric::Metric;
use std::path::PathBuf;

/// Experiments that both have; `None` where there are not two sources, or nothing of theirs can be compared.
pub(super) fn comparison(paths: &[PathBuf], threads: usize) -> Option<ReportComparison> {
    let [a, b] = paths else { return None };
    let (of_a, of_b) = read_sides(a, b, threads).ok()?;
    if find_shared_run(&of_a, &of_b).is_some() {
        return None;
    }
    let question = Question::Within(MARGIN);
    let found = compare(of_a, of_b, &MAIN_RESPONSES, question, Pairing::None, &[]);
    let title = format!("A is {}, B is {}; with 95 % intervals.", a.display(), b.display());
    let of = format!("B (`{}`) against A (`{}`)", b.display(), a.display());
    (!found.findings.is_empty()).then(|| ReportComparison {
        says: format!("{of}: {}", counted(&found.findings)),
        table: table(title, &found),
    })
}

/// `better in 2 of 8, the same within 2 % in 1, cannot be told in 5`.
fn counted(all: &[ComparedResponse]) -> String {
    let count = |is_one: fn(&Ground) -> bool| all.iter().filter(|of| is_one(&of.ground)).count();
    let better = count(|of| matches!(of, Ground::Differs { is_better: true, .. }));
    let worse = count(|of| matches!(of, Ground::Differs { is_better: false, .. }));
    let same = count(|of| matches!(of, Ground::Within(_) | Ground::Equal(_)));
    let counts = [
        (better, "better".to_string()),
        (worse, "worse".into()),
        (same, format!("the same within {}", percent(MARGIN))),
        (all.len() - better - worse - same, "cannot be told".into()),
    ];
    let counts = counts.into_iter().filter(|of| of.0 > 0);
    let mut told: Vec<String> = counts.map(|(count, says)| format!("{says} in {count}")).collect();
    told[0] += &format!(" of {}", all.len());
    told.join(", ")
}

fn table(title: String, found: &Comparison) -> ReportTable {
    let (mut table, all) = (ReportTable::new(title), &found.findings);
    if all.iter().any(|one| one.experiment != all[0].experiment) {
        table.add("Experiment", ColumnKind::Text, names(all));
    }
    table.add("Response", ColumnKind::Text, all.iter().map(|one| one.response));
    table.add("A", ColumnKind::Number, all.iter().map(|one| side(one, &one.a)));
    table.add("B", ColumnKind::Number, all.iter().map(|one| side(one, &one.b)));
    let ratios = all.iter().map(|one| match one.ratio {
        Some(ratio) => cell(ratio, |value| format!("{value:.3}")),
        None => UNKNOWN.into(),
    });
    table.add("B ÷ A", ColumnKind::Number, ratios);
    table.add("Verdict", ColumnKind::Text, all.iter().map(verdict));
    table
}

/// Names of experiments, without the parts that all share.
fn names(all: &[ComparedResponse]) -> Vec<String> {
    let parts = |one: &ComparedResponse| {
        one.experiment.split(", ").map(str::to_string).collect::<Vec<String>>()
    };
    let mut shared = parts(&all[0]);
    shared.retain(|part| all.iter().all(|one| parts(one).contains(part)));
    let own = all.iter().map(|one| {
        parts(one).into_iter().filter(|part| !shared.contains(part)).collect::<Vec<_>>()
    });
    own.map(|own| if own.is_empty() { "as all".into() } else { own.join(", ") }).collect()
}

fn side(of: &ComparedResponse, side: &Side) -> TableCell {
    let unit = Metric::find(of.response).map(|response| response.unit).ok();
    let text = |value| unit.map_or(UNKNOWN.into(), |unit| unit.text(value));
    cell(side.middle, text)
}

fn cell(of: IntervalEstimate, text: impl Fn(f64) -> String) -> TableCell {
    TableCell::middle(of.estimate, of.low.zip(of.high), text)
}
