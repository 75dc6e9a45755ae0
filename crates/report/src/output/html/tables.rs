//! The tables of the page. Those of experiments and runs can be sorted and filtered; colour repeats what the text says.

use super::doubt_id;
use crate::grid::{table_of_experiments, table_of_runs, tables_over_time};
use crate::report::{Report, ReportedRun};
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::answer;
use maud::{Markup, html};

/// A box that scrolls by itself, so that the page does not.
fn scrolling(name: &str, table: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) { (table) }
    }
}

pub(super) fn experiments(report: &Report) -> Option<Markup> {
    sortable("Experiments", &table_of_experiments(report))
}

pub(super) fn over_time(report: &Report) -> Option<Markup> {
    let tables = tables_over_time(report);
    let markup = html! {
        @for table in &tables { @if let Some(table) = sortable("Epochs and checkpoints", table) { (table) } }
    };
    (!tables.is_empty()).then_some(markup)
}

fn sortable(name: &str, table: &ReportTable) -> Option<Markup> {
    let highest = highest(table, |_| true);
    let markup = html! {
        table.sortable {
            caption { span { (table.title) } }
            thead { tr { (headings(table)) } }
            tbody { @for row in &table.rows { tr { (cells(table, row, &highest)) } } }
        }
    };
    (!table.rows.is_empty()).then(|| scrolling(name, &markup))
}

pub(super) fn runs(report: &Report) -> Option<Markup> {
    let table = table_of_runs(report);
    let highest = highest(&table, |row| report.runs[row].unused().is_none());
    let markup = html! {
        table.sortable.filtered {
            caption { span { (table.title) } }
            thead {
                tr {
                    th scope="col" { "Run" }
                    th scope="col" { "Doubts" }
                    (headings(&table))
                    th scope="col" { "Folder" }
                }
            }
            tbody {
                @for (number, (one, row)) in (1..).zip(report.runs.iter().zip(&table.rows)) {
                    tr .unused[one.unused().is_some()] id={ "run-" (number) } {
                        th scope="row" data-v=(number) {
                            @match &one.link {
                                Some(link) => a href=(link) title="its record" { (number) },
                                None => (number),
                            }
                        }
                        (doubts_of(report, one))
                        (cells(&table, row, &highest))
                        td { code.path { (one.run.path.display()) } }
                    }
                }
            }
        }
    };
    (!report.runs.is_empty()).then(|| scrolling("Runs", &markup))
}

/// A name and its unit break between them only.
fn headings(table: &ReportTable) -> Markup {
    html! {
        @for column in &table.columns {
            @let (name, unit) = column.name.split_at(column.name.find(" (").unwrap_or(column.name.len()));
            th scope="col" { span { (name) } @if !unit.is_empty() { " " span { (unit.trim_start()) } } }
        }
    }
}

fn cells(table: &ReportTable, row: &[TableCell], highest: &[f64]) -> Markup {
    html! {
        @for (at, cell) in row.iter().enumerate() { (shaded(table.columns[at].kind, cell, highest[at])) }
    }
}

/// Highest value of each column in some of its rows, for shades.
fn highest(table: &ReportTable, has: impl Fn(usize) -> bool) -> Vec<f64> {
    let mut highest = vec![0.0_f64; table.columns.len()];
    for (_, row) in table.rows.iter().enumerate().filter(|(at, _)| has(*at)) {
        for (highest, cell) in highest.iter_mut().zip(row) {
            *highest = cell.value.map_or(*highest, |value| value.max(*highest));
        }
    }
    highest
}

fn shaded(kind: ColumnKind, cell: &TableCell, highest: f64) -> Markup {
    let value = cell.value.filter(|value| value.is_finite());
    let share = match (kind, value) {
        (ColumnKind::Utilisation, Some(percent)) => Some(percent),
        (ColumnKind::Rate, Some(rate)) if highest > 0.0 => Some(100.0 * rate / highest),
        _ => None,
    };
    // Values out of their range are wrong, and have no shade.
    let share = share.filter(|share| (0.0..=100.0).contains(share));
    let class = match (kind, share) {
        (ColumnKind::Text, _) => None,
        (ColumnKind::Utilisation, Some(share)) if share < 50.0 => Some("number au low"),
        (ColumnKind::Utilisation, Some(_)) => Some("number au high"),
        (_, Some(_)) => Some("number rate"),
        (_, None) => Some("number"),
    };
    let style = share.map(|share| format!("--s:{share:.0}"));
    // `95.0 [94.1, 95.9]` breaks before its interval only.
    let text = match kind {
        ColumnKind::Text => cell.text.clone(),
        _ => cell.text.replace(", ", ",\u{a0}"),
    };
    html! {
        td class=[class] style=[style] data-v=[value] { (text) }
    }
}

fn doubts_of(report: &Report, one: &ReportedRun) -> Markup {
    html! {
        td data-v=(one.run.doubts.len()) {
            @if one.run.doubts.is_empty() {
                "none"
            } @else {
                details {
                    summary { (answer::counted(&one.run.doubts)) }
                    @for name in one.doubts() {
                        @match report.doubts.iter().position(|known| known.name == name) {
                            Some(index) => a href={ "#" (doubt_id(report, index)) } { (name) },
                            None => (name),
                        }
                        br;
                    }
                }
            }
        }
    }
}

/// A table of words, which has no tools.
pub(super) fn plain_table(table: &ReportTable, name: &str) -> Markup {
    let markup = html! {
        table {
            caption { span { (name) } }
            thead { tr { @for column in &table.columns { th scope="col" { (column.name) } } } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            @let is_number = table.columns[at].kind != ColumnKind::Text;
                            @if at == 0 { th scope="row" { (cell.text) } }
                            @else { td .number[is_number] { (cell.text) } }
                        }
                    }
                }
            }
        }
    };
    scrolling(name, &markup)
}
