//! One page that needs nothing but itself: no request leaves it. Its content is whole without its script, which only sorts, filters, zooms,
//! hides and colours.

mod sections;
mod tables;
mod figures;

use super::ReportOutput;
use super::words::{Stretch, glance, run_number, stretches};
use crate::experiment::experiments;
use crate::grid::tables_over_time;
use crate::opening::{BELOW, ELSEWHERE, FINDINGS_MAX};
use crate::report::{FigureUse, FindingFigure, Report, ReportAnswer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use feedrate_spec::units::counted;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "html",
    extension: "html",
    summary: "One page that works offline: findings, doubts, figures, sortable tables, methods.",
    figures: FigureUse::Pictures,
    write,
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

fn write(report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(report))
            body {
                a.skip href="#findings" { "Skip to the findings" }
                (banner(report))
                main {
                    (answer(report))
                    section #findings aria-labelledby="findings-heading" {
                        h2 #findings-heading { "Findings" }
                        (opening(report, |line| BELOW.contains(&&*line.name) && !is_finding(report, line)))
                        (sections::findings(report))
                    }
                    @for section in sections(report) { (section) }
                }
                footer { p { "Made by " (report.program) "." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Below the findings, in the order of reading; each with a note on how much there is of it, empty where that is one.
fn sections(report: &Report) -> Vec<Markup> {
    let figures = report.figures.iter().filter(|figure| !figure.is_lead).count();
    let more = if figures > 0 { counted(figures as u64, "figure") } else { "none drawn".into() };
    let changes: usize = report.advice.iter().map(|of| of.changes.len()).sum();
    let counted = |count: usize, what: &str| counted(count as u64, what);
    let doubts = counted(report.doubts.len(), "doubt");
    let doubts = format!("{doubts} in {}", counted(report.doubted_runs(), "run"));
    let tables = tables_over_time(report).len();
    let (experiments, runs) = (experiments(report).len(), report.runs.len());
    let all = [
        ("comparison", "Comparison", String::new(), comparison(report, false)),
        ("recommendation", "Recommendation", String::new(), sections::recommendation(report)),
        ("advice", "Advice", counted(changes, "change"), sections::advice(report, false)),
        ("doubts", "Doubts", doubts, sections::doubts(report)),
        ("figures", "More figures", more, figures::figures(report)),
        ("experiments", "Experiments", counted(experiments, "row"), tables::experiments(report)),
        (
            "over-time",
            "Epochs and checkpoints",
            counted(tables, "table"),
            tables::over_time(report),
        ),
        ("runs", "Runs", counted(runs, "row"), tables::runs(report)),
        ("methods", "Methods", String::new(), sections::methods(report)),
        ("setup", "Setup", String::new(), sections::setup(report)),
    ];
    let all = all.into_iter();
    all.filter_map(|(id, heading, note, content)| Some(folded(id, heading, &note, &content?)))
        .collect()
}

fn folded(id: &str, heading: &str, note: &str, content: &Markup) -> Markup {
    html! {
        details.section id=(id) {
            summary { h2 { (heading) } @if !note.is_empty() { " " span.faint { (note) } } }
            (content)
        }
    }
}

/// Scripts other than ours do not run, whatever a path or a name holds; nothing is fetched.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

fn head(report: &Report) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy());
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (report.title) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn banner(report: &Report) -> Markup {
    html! {
        header {
            h1 { (report.title) }
            p.glance { (glance(report)) "." }
            @if report.has_several_sources() {
                ul.sources aria-label="Sources" {
                    @for source in &report.sources {
                        li { code { (source.path) } " " span.faint { "(" (counted(source.runs as u64, "run")) ")" } }
                    }
                }
            }
        }
    }
}

/// The first screen: the answer, what would help, what must not be used, and the pictures that say most.
fn answer(report: &Report) -> Markup {
    let is_first =
        |line: &FindingFigure| ![BELOW, ELSEWHERE].iter().any(|of| of.contains(&&*line.name));
    html! {
        div #answer {
            @if let Some(ReportAnswer { says, answer }) = &report.answer {
                div.verdict.(answer.kind.name()) { @for says in says { p.says { (sentence(says)) } } }
            }
            (opening(report, is_first))
            @if let Some(table) = comparison(report, true) { (table) }
            @if let Some(tried) = sections::advice(report, true) { (tried) }
            (figures::leads(report))
        }
    }
}

/// Rows of a comparison that have room on the first screen.
const COMPARED_MAX: usize = 6;

fn comparison(report: &Report, is_first: bool) -> Option<Markup> {
    let table = &report.comparison.as_ref()?.table;
    let is_short = table.rows.len() <= COMPARED_MAX;
    (is_short == is_first).then(|| tables::plain_table(table, &table.title))
}

/// Whether a finding that is not folded says the same.
fn is_finding(report: &Report, line: &FindingFigure) -> bool {
    report.findings.iter().take(FINDINGS_MAX).any(|one| line.value.contains(&one.says))
}

fn opening(report: &Report, is_wanted: impl Fn(&FindingFigure) -> bool) -> Markup {
    let lines = report.opening.iter().filter(|line| is_wanted(line));
    html! {
        dl.opening {
            @for line in lines { div { dt { (line.name) } dd { (sentence(&line.value)) } } }
        }
    }
}

/// A sentence with its names as code.
fn sentence(text: &str) -> Markup {
    html! {
        @for stretch in stretches(text) {
            @match stretch {
                Stretch::Plain(text) => (text),
                Stretch::Name(name) => code { (name) },
            }
        }
    }
}

fn links(runs: &[usize]) -> Markup {
    html! {
        @for (place, &run) in runs.iter().enumerate() {
            @if place > 0 { ", " }
            a href={ "#run-" (run + 1) } { (run_number(run)) }
        }
    }
}

/// The id of a doubt of the report: its own, where a name is there twice, of different severities, or two differ in marks only.
fn doubt_id(report: &Report, index: usize) -> String {
    let own = slug(&report.doubts[index].name);
    match report.doubts[..index].iter().filter(|before| slug(&before.name) == own).count() {
        0 => format!("doubt-{own}"),
        before => format!("doubt-{own}-{}", before + 1),
    }
}

/// A name as an id may hold it.
fn slug(name: &str) -> String {
    name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}
