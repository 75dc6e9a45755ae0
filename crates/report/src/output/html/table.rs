//! Writes the tables of the page. Tables of measured values can be sorted; tables of runs can also be filtered. Colours only repeat the text.

use crate::table::{ColumnKind, ReportTable, TableCell};
use maud::{Markup, html};

/// A table in a box that scrolls separately from the page.
pub(super) fn table(table: &ReportTable) -> Markup {
    let highest = highest(table);
    let is_measured = |kind| matches!(kind, ColumnKind::Utilisation | ColumnKind::Rate);
    let is_sortable = table.columns.iter().any(|column| is_measured(column.kind));
    html! {
        @if !table.rows.is_empty() {
            div.scroll tabindex="0" role="region" aria-label=(table.title) {
                table.sortable[is_sortable].filtered[table.is_of_runs] {
                    caption { span { (table.title) } }
                    thead { tr { @for column in &table.columns { (heading(&column.name)) } } }
                    tbody {
                        @for (number, row) in (1..).zip(&table.rows) {
                            @let id = table.is_of_runs.then(|| format!("run-{number}"));
                            tr .unused[table.muted.contains(&(number - 1))] id=[id] {
                                @for (index, cell) in row.iter().enumerate() {
                                    (self::cell(table.columns[index].kind, cell, highest[index], index == 0))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A heading that breaks only between name and unit.
fn heading(name: &str) -> Markup {
    let (name, unit) = name.split_at(name.find(" (").unwrap_or(name.len()));
    html! { th scope="col" { span { (name) } @if !unit.is_empty() { " " span { (unit.trim_start()) } } } }
}

/// The highest value of each column, except in muted rows.
fn highest(table: &ReportTable) -> Vec<f64> {
    let mut highest = vec![0.0_f64; table.columns.len()];
    for (_, row) in table.rows.iter().enumerate().filter(|(index, _)| !table.muted.contains(index))
    {
        for (highest, cell) in highest.iter_mut().zip(row) {
            *highest = cell.value.map_or(*highest, |value| value.max(*highest));
        }
    }
    highest
}

fn cell(kind: ColumnKind, cell: &TableCell, highest: f64, is_heading: bool) -> Markup {
    let value = cell.value.filter(|value| value.is_finite());
    let share = match (kind, value) {
        (ColumnKind::Utilisation, Some(percent)) => Some(percent),
        (ColumnKind::Rate, Some(rate)) if highest > 0.0 => Some(100.0 * rate / highest),
        _ => None,
    };
    // Values outside of their range are wrong and are not shaded.
    let share = share.filter(|share| (0.0..=100.0).contains(share));
    let class = match (kind, share) {
        (ColumnKind::Text, _) => None,
        (ColumnKind::Utilisation, Some(share)) if share < 50.0 => Some("number au low"),
        (ColumnKind::Utilisation, Some(_)) => Some("number au high"),
        (_, Some(_)) => Some("number rate"),
        (_, None) => Some("number"),
    };
    let style = share.map(|share| format!("--s:{share:.0}"));
    // `95.0 [94.1, 95.9]` breaks only before its interval.
    let text = match kind {
        ColumnKind::Text => cell.text.clone(),
        _ => cell.text.replace(", ", ",\u{a0}"),
    };
    let content = html! {
        @match cell.links.as_slice() {
            [] => (text),
            [(name, target)] if *name == text => a href=(target) { (text) },
            links => details {
                summary { (text) }
                @for (name, target) in links { a href=(target) { (name) } br; }
            },
        }
    };
    html! {
        @if is_heading { th scope="row" data-v=[value] { (content) } }
        @else { td class=[class] style=[style] data-v=[value] { (content) } }
    }
}
