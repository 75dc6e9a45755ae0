//! The tables of the page. Those of experiments and runs can be sorted and filtered; colour repeats what the text says.

use super::doubt_id;
use crate::report::grid::{Cell, Column, Kind, OF_EXPERIMENTS, OF_RUNS, wanted};
use crate::report::{Report, Run, Table, experiments};
use feedrate_measure::doubt::Severity;
use feedrate_spec::units;
use maud::{Markup, html};

/// Highest value of each column, for shades.
fn highest<'a>(rows: impl Iterator<Item = &'a Vec<Cell>> + Clone, columns: usize) -> Vec<f64> {
    let of =
        |column: usize| rows.clone().filter_map(|row| row[column].value).fold(0.0_f64, f64::max);
    (0..columns).map(of).collect()
}

fn shaded(kind: Kind, cell: &Cell, highest: f64) -> Markup {
    let value = cell.value.filter(|value| value.is_finite());
    let share = match (kind, value) {
        (Kind::Utilisation, Some(percent)) => Some(("au", percent)),
        (Kind::Rate, Some(rate)) if highest > 0.0 => Some(("rate", 100.0 * rate / highest)),
        _ => None,
    };
    let is_number = kind != Kind::Text;
    // Values out of their range are wrong, and have no shade.
    let share = share.filter(|(_, share)| (0.0..=100.0).contains(share));
    let class = match share {
        Some(("au", share)) if share < 50.0 => "number au low",
        Some(("au", _)) => "number au high",
        Some(_) => "number rate",
        None if is_number => "number",
        None => "",
    };
    let style = share.map(|(_, share)| format!("--s:{share:.0}"));
    html! {
        td class=[(!class.is_empty()).then_some(class)] style=[style] data-v=[value] {
            @if is_number { (in_pieces(&cell.text)) } @else { (cell.text) }
        }
    }
}

/// A name and its unit break between them only.
fn heading(name: &str) -> Markup {
    let unit_at = name.find(" (").unwrap_or(name.len());
    let (name, unit) = name.split_at(unit_at);
    html! {
        th scope="col" { span { (name) } @if !unit.is_empty() { " " span { (unit.trim_start()) } } }
    }
}

/// `95.0 [94.1, 95.9]` breaks before its interval only.
fn in_pieces(text: &str) -> String {
    text.replace(", ", ",\u{a0}")
}

fn cells<T>(report: &Report, columns: &[&'static Column<T>], rows: &[T]) -> Vec<Vec<Cell>> {
    let row = |of: &T| columns.iter().map(|column| (column.of)(report, of)).collect();
    rows.iter().map(row).collect()
}

/// A box that scrolls by itself, so that the page does not.
fn scrolling(name: &str, table: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) { (table) }
    }
}

pub(super) fn experiment_section(report: &Report) -> Markup {
    let all = experiments(report);
    let columns: Vec<_> = wanted(report, OF_EXPERIMENTS).collect();
    let cells = cells(report, &columns, &all);
    let highest = highest(cells.iter(), columns.len());
    let table = html! {
        table.sortable {
            caption { span { "Means of n runs (of rates geometric), with 95 % intervals where there are several." } }
            thead { tr { @for column in &columns { (heading(column.name)) } } }
            tbody {
                @for row in &cells {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            (shaded(columns[at].kind, cell, highest[at]))
                        }
                    }
                }
            }
        }
    };
    html! {
        @if !all.is_empty() {
            section #experiments aria-labelledby="experiments-heading" {
                h2 #experiments-heading { "Experiments" }
                (scrolling("Experiments", &table))
            }
        }
    }
}

pub(super) fn run_section(report: &Report) -> Markup {
    let columns: Vec<_> = wanted(report, OF_RUNS).collect();
    let cells = cells(report, &columns, &report.runs);
    let is_used = |(run, _): &(&Run, &Vec<Cell>)| run.unused.is_none();
    let used = report.runs.iter().zip(&cells).filter(is_used);
    let highest = highest(used.map(|(_, row)| row), columns.len());
    let table = html! {
        table.sortable.filtered {
            caption { span { "One row a run. Its number leads to its record, a doubt to what was seen. Runs that are not used are grey." } }
            thead {
                tr {
                    th scope="col" { "Run" }
                    th scope="col" { "Doubts" }
                    @for column in &columns { (heading(column.name)) }
                    th scope="col" { "Folder" }
                }
            }
            tbody {
                @for (index, (run, row)) in report.runs.iter().zip(&cells).enumerate() {
                    tr .unused[run.unused.is_some()] id={ "run-" (index + 1) } {
                        (number_of(index, run))
                        (doubts_of(report, run))
                        @for (at, cell) in row.iter().enumerate() {
                            (shaded(columns[at].kind, cell, highest[at]))
                        }
                        td { code.path { (run.path) } }
                    }
                }
            }
        }
    };
    html! {
        @if !report.runs.is_empty() {
            section #runs aria-labelledby="runs-heading" {
                h2 #runs-heading { "Runs" }
                (scrolling("Runs", &table))
            }
        }
    }
}

fn number_of(index: usize, run: &Run) -> Markup {
    html! {
        th scope="row" data-v=(index + 1) {
            @match &run.link {
                Some(link) => a href=(link) title="its record" { (index + 1) },
                None => (index + 1),
            }
        }
    }
}

fn doubts_of(report: &Report, run: &Run) -> Markup {
    html! {
        td data-v=(run.doubts.len()) {
            @if run.doubts.is_empty() {
                "none"
            } @else {
                details {
                    summary { (severities(report, run)) }
                    @for doubt in &run.doubts {
                        @match report.doubts.iter().position(|known| known.name == *doubt) {
                            Some(index) => a href={ "#" (doubt_id(report, index)) } { (doubt) },
                            None => (doubt),
                        }
                        br;
                    }
                }
            }
        }
    }
}

/// `1 invalid, 2 warnings, 3 notes`.
fn severities(report: &Report, run: &Run) -> String {
    let of = |name: &String| report.doubts.iter().find(|doubt| doubt.name == *name);
    let count = |severity: Severity| {
        let has = |name: &&String| of(name).is_some_and(|doubt| doubt.severity == severity);
        match (run.doubts.iter().filter(has).count() as u64, severity) {
            (0, _) => None,
            (count, Severity::Invalid) => Some(format!("{count} invalid")),
            (count, _) => Some(units::counted(count, severity.name())),
        }
    };
    let counts =
        [Severity::Invalid, Severity::Warning, Severity::Note].into_iter().filter_map(count);
    counts.collect::<Vec<_>>().join(", ")
}

/// The numbers behind a figure.
pub(super) fn values_table(table: &Table) -> Markup {
    named_table(table, &format!("Values: {}", table.title))
}

pub(super) fn plain_table(table: &Table) -> Markup {
    named_table(table, &table.title)
}

fn named_table(table: &Table, name: &str) -> Markup {
    let markup = html! {
        table {
            caption { span { (name) } }
            thead { tr { @for column in &table.columns { th scope="col" { (column) } } } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (place, cell) in row.iter().enumerate() {
                            @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        }
    };
    scrolling(name, &markup)
}
