//! Collects the advice of a report: changes that were tried for the workloads of its runs, else changes predicted from a single run's record. Decides nothing.

use crate::number::percent;
use crate::report::{ReportAdvice, ReportChange};
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::{advice as words, trials};
use feedrate_analysis::advice::Advice;
use feedrate_results::replan::Replan;
use feedrate_results::trials::{Outcome, TrialRuns, TrialsResult, TriedAdvice};
use feedrate_spec::escape::bash_word;

/// Advice whose changes were tried, with their outcomes.
pub(super) fn tried_advice(trials_result: &TrialsResult) -> ReportAdvice {
    let changes = trials_result.advice.iter().map(|row| ReportChange {
        change: trials::tried_change(row),
        why: row.reason.clone(),
        is_withdrawn: row.is_withdrawn(),
        advice: row.clone(),
    });
    ReportAdvice {
        workload: trials_result.workload.clone(),
        says: trials::tried(trials_result),
        trials: Some(trials_result.results.clone()),
        baseline: trials_result.baseline,
        changes: changes.collect(),
    }
}

/// Predicted advice from a record; `None` if there is no advice.
pub(super) fn predicted_advice(
    workload: &str,
    run_dir: &str,
    advice: &[Advice],
    replan: &dyn Replan,
) -> Option<ReportAdvice> {
    let changes: Vec<ReportChange> =
        advice.iter().map(|item| untried_change(item, replan)).collect();
    let says = if changes.iter().any(|row| !row.advice.overrides.is_empty()) {
        let run_dir = bash_word(run_dir);
        format!(
            "Predicted from the record and not tried; `feedrate advise {run_dir} --try` tries it"
        )
    } else {
        "Predicted from the record; no setting of the workload makes this change".to_string()
    };
    (!changes.is_empty()).then(|| ReportAdvice {
        workload: workload.into(),
        says: vec![says],
        trials: None,
        baseline: None,
        changes,
    })
}

fn untried_change(Advice { proposal, prediction }: &Advice, replan: &dyn Replan) -> ReportChange {
    let overrides = proposal.overrides.clone();
    ReportChange {
        change: words::change(proposal),
        why: Some(format!("{} ({})", words::why(proposal), words::cost(proposal))),
        is_withdrawn: false,
        advice: TriedAdvice {
            name: proposal.rule.into(),
            predicted_percent: prediction.map(|prediction| prediction.au_percent),
            interval: prediction.map(|prediction| prediction.interval),
            tried: None,
            is_mispredicted: None,
            outcome: Outcome::NotTried,
            reason: None,
            break_even_epochs: None,
            command: (!overrides.is_empty()).then(|| replan.command(&overrides)),
            change: words::change(proposal),
            overrides,
        },
    }
}

/// A table with a row for each change; trials also have a row for the unchanged workload.
pub(super) fn table(advice: &ReportAdvice) -> ReportTable {
    let explanation = match advice.trials {
        Some(_) => {
            "tried; AU over all steps with 95 % intervals; predictions have the range that the record allows"
        }
        None => "not tried; predicted AU over all steps with the range that the record allows",
    };
    let mut table = ReportTable::new(format!("{}: advice, {explanation}", advice.workload));
    let no_change = advice.trials.as_ref().map(|_| (advice.baseline, None));
    let rows = no_change.into_iter();
    let rows: Vec<(Option<TrialRuns>, Option<&ReportChange>)> =
        rows.chain(advice.changes.iter().map(|row| (row.advice.tried, Some(row)))).collect();
    let names = rows.iter().map(|row| row.1.map_or("unchanged", |row| &row.change));
    table.add("Change", ColumnKind::Text, names);
    let predicted = rows.iter().map(|(_, row)| match row {
        Some(ReportChange { advice, .. }) => with_range(advice.predicted_percent, advice.interval),
        None => with_range(None, None),
    });
    table.add("AU predicted (%)", ColumnKind::Number, predicted);
    if advice.trials.is_some() {
        let tried = rows.iter().map(|(tried, _)| match tried {
            Some(tried) => with_range(Some(tried.mean_percent), tried.interval),
            None => with_range(None, None),
        });
        table.add("AU tried (%)", ColumnKind::Number, tried);
        let runs = rows.iter().map(|(tried, _)| TableCell::from(tried.map(|tried| tried.n)));
        table.add("n", ColumnKind::Number, runs);
    }
    let outcomes = rows.iter().map(|(_, row)| row.map_or("", |row| outcome(advice, row)));
    table.add("Outcome", ColumnKind::Text, outcomes);
    let why = rows.iter().map(|(_, row)| row.and_then(|row| row.why.clone()).unwrap_or_default());
    // Table cells do not render names in backticks.
    let why = why.map(|why| why.replace('`', ""));
    table.add("Because", ColumnKind::Text, why);
    table.without_empty_columns()
}

fn with_range(value: Option<f64>, range: Option<[f64; 2]>) -> TableCell {
    TableCell::middle(value, range.map(<(f64, f64)>::from), |value| percent(Some(value)))
}

/// The outcome of a change in a few words.
fn outcome(advice: &ReportAdvice, row: &ReportChange) -> &'static str {
    match (advice.trials.is_some(), row.advice.predicted_percent) {
        (true, _) => trials::outcome(row.advice.outcome),
        (false, Some(_)) => "predicted",
        (false, None) => "not predicted",
    }
}
