//! Writes a document as one self-contained HTML page that makes no requests. The content is complete without the script: it only sorts, filters, zooms,
//! hides and colours.

mod table;

use super::{ReportOutput, TextPart, split_names};
use crate::document::{Block, Depth, Detail, Document, Item, Section, slug};
use crate::number::{run_noun, run_ranges};
use crate::report::{FigureUse, FindingFigure, ReportFigure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use table::table;

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "html",
    extension: "html",
    summary: "One page that works offline: findings, doubts, figures, sortable tables, methods.",
    figures: FigureUse::Pictures,
    write: |report| write(&report.document(FigureUse::Pictures)),
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

fn write(document: &Document) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (document.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#findings" { "Skip to the findings" }
                header {
                    h1 { (document.title) }
                    p.summary { (sentence(&document.summary)) }
                }
                main { @for part in &document.sections { (section(part)) } }
                footer { p { "Made by " (document.program) "." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The page's Content-Security-Policy: no other scripts run, even if a path or a name contains one, and nothing is fetched.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

fn section(section: &Section) -> Markup {
    let id = section.id();
    let note = section.note();
    let content = blocks(&section.blocks);
    html! {
        @if section.heading.is_empty() {
            div id=(id) { (content) }
        } @else if section.depth == Depth::Answer {
            section id=(id) aria-labelledby={ (id) "-heading" } {
                h2 id={ (id) "-heading" } { (section.heading) }
                (content)
            }
        } @else {
            details.section id=(id) {
                summary { h2 { (section.heading) } @if !note.is_empty() { " " span.faint { (note) } } }
                (content)
            }
        }
    }
}

fn blocks(all: &[Block]) -> Markup {
    html! { @for part in all { (block(part)) } }
}

fn block(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Heading(text) => h3 { (sentence(text)) },
            Block::Sentence(text) => p { (sentence(text)) },
            Block::Verdict(kind, says) => div.verdict.(kind.name()) {
                @for says in says { p.says { (sentence(says)) } }
            },
            // The first row is the headline, unless it is one of several of the same kind.
            Block::Facts(facts) => dl.facts.alike[has_equal_names(facts)] {
                @for FindingFigure { name, value } in facts { div { dt { (name) } dd { (sentence(value)) } } }
            },
            Block::List { first: Some(first), items } => ol.items start=(first) { @for entry in items { (item(entry)) } },
            Block::List { first: None, items } => {
                ul.items[items.iter().any(|item| item.badge.is_some())] { @for entry in items { (item(entry)) } }
            }
            Block::Table(content) => (table(content)),
            Block::Figures(figures) => {
                div.leads[figures[0].is_lead].figures[!figures[0].is_lead] { @for picture in figures { (figure(picture)) } }
            }
            Block::Commands(commands) => {
                pre tabindex="0" role="region" aria-label="Commands" { code { (commands.join("\n")) } }
            }
            Block::Fold(summary, all) => details { summary { (summary) } (blocks(all)) },
        }
    }
}

fn has_equal_names(facts: &[FindingFigure]) -> bool {
    matches!(facts, [first, second, ..] if first.name == second.name)
}

fn item(item: &Item) -> Markup {
    let id = (!item.id.is_empty()).then_some(&item.id);
    html! {
        li id=[id] {
            p.says {
                (sentence(&item.says))
                @if let Some((class, badge)) = item.badge { " " span class={ "badge " (class) } { (badge) } }
            }
            @match item.details.as_slice() {
                [] => {}
                [only] => p.evidence { (detail(only)) },
                all => details { summary { (item.note) } ul { @for evidence in all { li { (detail(evidence)) } } } },
            }
            @if !item.advice.is_empty() { p.advice { "What to do: " (sentence(&item.advice)) "." } }
        }
    }
}

fn detail(detail: &Detail) -> Markup {
    let Detail { name, runs, text } = detail;
    html! {
        @if !name.is_empty() { span.faint { (name) } }
        @if !runs.is_empty() { " " (run_noun(runs.len())) }
        @for (place, range) in run_ranges(runs).into_iter().enumerate() {
            @if place > 0 { "," }
            " " a href={ "#run-" (range.first) } { (range.first) }
            @if range.first < range.last { " to " a href={ "#run-" (range.last) } { (range.last) } }
        }
        @if !(text.is_empty() || name.is_empty() && runs.is_empty()) { ": " }
        (sentence(text))
    }
}

/// A figure with its explanation. The script makes a button for each series in `data-names`.
fn figure(figure: &ReportFigure) -> Markup {
    let names = serde_json::to_string(&figure.series).unwrap_or_default();
    let id = format!("figure-{}", slug(&figure.name));
    html! {
        figure .wide[!figure.is_lead && is_wide(&figure.svg)] id=(id) data-names=(names) aria-labelledby={ (id) "-name" } {
            @let name = html! { span id={ (id) "-name" } { (figure.title) } };
            @if figure.is_lead { h2 { (name) } } @else { h3 { (name) } }
            div.canvas {
                div.on-light { (PreEscaped(&figure.svg)) }
                div.on-dark { (PreEscaped(&figure.svg_dark)) }
            }
            details {
                summary { "Explanation, tools, values" }
                p.caption { (sentence(&figure.caption)) }
                p.caption { "As a file for a paper: " code { (figure.command) } }
                (table(&figure.values))
            }
        }
    }
}

/// Minimum width of a figure that spans both columns. In one column its text would be too small.
const WIDE_PT: f64 = 400.0;

fn is_wide(svg: &str) -> bool {
    let view = svg.split_once("viewBox=\"").and_then(|(_, rest)| rest.split('"').next());
    let width = view.and_then(|view| view.split_whitespace().nth(2)?.parse::<f64>().ok());
    width.is_some_and(|width| WIDE_PT < width)
}

/// A sentence with names in backticks as code.
fn sentence(text: &str) -> Markup {
    html! {
        @for stretch in split_names(text) {
            @match stretch {
                TextPart::Plain(text) => (text),
                TextPart::Name(name) => code { (name) },
            }
        }
    }
}
