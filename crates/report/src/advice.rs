//! Advice of a report: what was tried for the workloads of its runs, else what the record of a single run predicts. Decides nothing.

use crate::number::percent;
use crate::report::{ReportAdvice, ReportChange};
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::{advice as words, trials};
use feedrate_analysis::advice::Advice;
use feedrate_results::replan::Replan;
use feedrate_results::trials::{Outcome, TrialsResult, Tried, TriedAdvice};
use feedrate_spec::escape::bash_word;

/// Advice with its outcome.
pub(super) fn tried(of: &TrialsResult) -> ReportAdvice {
    let changes = of.advice.iter().map(|row| ReportChange {
        change: trials::tried_change(row),
        why: row.reason.clone(),
        is_withdrawn: row.is_withdrawn(),
        of: row.clone(),
    });
    ReportAdvice {
        workload: of.workload.clone(),
        says: trials::tried(of),
        trials: Some(of.results.clone()),
        baseline: of.baseline,
        changes: changes.collect(),
    }
}

/// Advice that nobody tried; `None` where there is none.
pub(super) fn predicted(
    workload: &str,
    run_dir: &str,
    advice: &[Advice],
    replan: &dyn Replan,
) -> Option<ReportAdvice> {
    let changes: Vec<ReportChange> = advice.iter().map(|one| untried(one, replan)).collect();
    let says = if changes.iter().any(|row| !row.of.overrides.is_empty()) {
        let run_dir = bash_word(run_dir);
        format!("From the record, and not tried: `feedrate advise {run_dir} --try` tries it")
    } else {
        "From the record; no key of the workload does it".to_string()
    };
    (!changes.is_empty()).then(|| ReportAdvice {
        workload: workload.into(),
        says: vec![says],
        trials: None,
        baseline: None,
        changes,
    })
}

fn untried(Advice { proposal, prediction }: &Advice, replan: &dyn Replan) -> ReportChange {
    let overrides = proposal.overrides.clone();
    ReportChange {
        change: words::change(proposal),
        why: Some(format!("{} ({})", words::why(proposal), words::price(proposal))),
        is_withdrawn: false,
        of: TriedAdvice {
            name: proposal.rule.into(),
            predicted_percent: prediction.map(|of| of.au_percent),
            interval: prediction.map(|of| of.interval),
            tried: None,
            outcome: Outcome::NotTried,
            reason: None,
            break_even_epochs: None,
            command: (!overrides.is_empty()).then(|| replan.command(&overrides)),
            change: words::change(proposal),
            overrides,
        },
    }
}

/// A row for each change; of what was tried, one for the workload without any.
pub(super) fn table(of: &ReportAdvice) -> ReportTable {
    let told = match of.trials {
        Some(_) => {
            "tried; AU is of all steps, with 95 % intervals; ranges of predictions are what the record leaves open"
        }
        None => {
            "not tried; AU predicted is of all steps, with the range that the record leaves open"
        }
    };
    let mut table = ReportTable::new(format!("{}: advice, {told}", of.workload));
    let no_change = of.trials.as_ref().map(|_| (of.baseline, None));
    let rows = no_change.into_iter();
    let rows: Vec<(Option<Tried>, Option<&ReportChange>)> =
        rows.chain(of.changes.iter().map(|row| (row.of.tried, Some(row)))).collect();
    let names = rows.iter().map(|row| row.1.map_or("as it is", |row| &row.change));
    table.add("Change", ColumnKind::Text, names);
    let predicted = rows.iter().map(|(_, row)| match row {
        Some(ReportChange { of, .. }) => with_range(of.predicted_percent, of.interval),
        None => with_range(None, None),
    });
    table.add("AU predicted (%)", ColumnKind::Number, predicted);
    if of.trials.is_some() {
        let tried = rows.iter().map(|(tried, _)| match tried {
            Some(tried) => with_range(Some(tried.mean_percent), tried.interval),
            None => with_range(None, None),
        });
        table.add("AU tried (%)", ColumnKind::Number, tried);
        let runs = rows.iter().map(|(tried, _)| TableCell::from(tried.map(|tried| tried.n)));
        table.add("n", ColumnKind::Number, runs);
    }
    let outcomes = rows.iter().map(|(_, row)| row.map_or("", |row| outcome(of, row)));
    table.add("Outcome", ColumnKind::Text, outcomes);
    let why = rows.iter().map(|(_, row)| row.and_then(|row| row.why.clone()).unwrap_or_default());
    // Cells of tables have no names.
    let why = why.map(|why| why.replace('`', ""));
    table.add("Because", ColumnKind::Text, why);
    table.without_empty_columns()
}

fn with_range(value: Option<f64>, range: Option<[f64; 2]>) -> TableCell {
    TableCell::middle(value, range.map(<(f64, f64)>::from), |value| percent(Some(value)))
}

fn outcome(of: &ReportAdvice, row: &ReportChange) -> &'static str {
    match (of.trials.is_some(), row.of.predicted_percent) {
        (true, _) => trials::outcome(row.of.outcome),
        (false, Some(_)) => "predicted",
        (false, None) => "not predicted",
    }
}
