//! The figures of the page: pictures as they were drawn, on a light and a dark ground, and the numbers behind them.

use super::tables::plain_table;
use super::{sentence, slug};
use crate::report::{NotDrawn, Report, ReportFigure};
use feedrate_spec::escape::bash_word;
use maud::{Markup, PreEscaped, html};

/// Those that a page opens with.
pub(super) fn leads(report: &Report) -> Markup {
    let leads = report.figures.iter().filter(|figure| figure.is_lead);
    html! { div.leads { @for figure in leads { (one(report, figure)) } } }
}

/// All others.
pub(super) fn figures(report: &Report) -> Option<Markup> {
    let mut others = report.figures.iter().filter(|figure| !figure.is_lead).peekable();
    let has_any = others.peek().is_some() || !report.not_drawn.is_empty();
    let figures = html! {
        div.figures { @for figure in others { (one(report, figure)) } }
        @if !report.not_drawn.is_empty() {
            h3 { "Not drawn" }
            ul { @for one in &report.not_drawn { (not_drawn(one)) } }
        }
    };
    has_any.then_some(figures)
}

fn not_drawn(of: &NotDrawn) -> Markup {
    html! {
        li { code { (of.name) } ": " (sentence(&of.why)) ". " span.advice { "What to do: " (sentence(&of.hint)) "." } }
    }
}

/// `data-names` are the series that the script makes buttons for.
fn one(report: &Report, figure: &ReportFigure) -> Markup {
    let names = serde_json::to_string(&figure.series).unwrap_or_default();
    html! {
        figure .wide[!figure.is_lead && is_wide(&figure.svg)] id={ "figure-" (slug(&figure.name)) } data-names=(names)
            aria-labelledby={ "figure-" (slug(&figure.name)) "-name" } {
            @let name = html! { span id={ "figure-" (slug(&figure.name)) "-name" } { (figure.title) } };
            @if figure.is_lead { h2 { (name) } } @else { h3 { (name) } }
            div.canvas {
                div.on-light { (PreEscaped(&figure.svg)) }
                div.on-dark { (PreEscaped(&figure.svg_dark)) }
            }
            @if !figure.is_lead { figcaption { (sentence(&figure.caption)) } }
            details {
                summary { @if figure.is_lead { "Explanation, tools, values" } @else { "Tools, values" } }
                @if figure.is_lead { p.caption { (sentence(&figure.caption)) } }
                p.caption { "As a file for a paper: " code { (command(report, figure)) } }
                @if !figure.values.rows.is_empty() {
                    (plain_table(&figure.values, &format!("Values: {}", figure.values.title)))
                }
            }
        }
    }
}

/// Draws the figure into a file.
fn command(report: &Report, figure: &ReportFigure) -> String {
    let sources = report.sources.iter().map(|source| bash_word(&source.path)).collect::<Vec<_>>();
    format!("feedrate plot {} {}", figure.name, sources.join(" "))
}

/// Drawn for both columns of a paper, so that its text is small in one.
const WIDE_PT: f64 = 400.0;

fn is_wide(svg: &str) -> bool {
    let view = svg.split_once("viewBox=\"").and_then(|(_, rest)| rest.split('"').next());
    let width = view.and_then(|view| view.split_whitespace().nth(2)?.parse::<f64>().ok());
    width.is_some_and(|width| WIDE_PT < width)
}
