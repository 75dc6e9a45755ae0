//! One page that needs nothing but itself: no request leaves it. Its content is whole without its script, which only sorts, filters, zooms,
//! hides and colours.

mod sections;
mod tables;
mod figures;

use super::ReportOutput;
use super::words::{Stretch, glance, run_number, stretches};
use crate::report::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use feedrate_spec::units::counted;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "html",
    extension: "html",
    summary: "One page that works offline: findings, doubts, figures, sortable tables, methods.",
    write,
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A section of the page: id, heading, content.
type Section = (&'static str, &'static str, Markup);

fn write(report: &Report) -> String {
    let all = [
        ("findings", "Findings", sections::findings(report)),
        ("recommendation", "Recommendation", sections::recommendation(report)),
        ("advice", "Advice", sections::advice(report)),
        ("doubts", "Doubts", sections::doubts(report)),
        ("figures", "Figures", figures::figures(report)),
        ("experiments", "Experiments", tables::experiments(report)),
        ("over-time", "Epochs and checkpoints", tables::over_time(report)),
        ("runs", "Runs", tables::runs(report)),
        ("methods", "Methods", sections::methods(report)),
        ("setup", "Setup", sections::setup(report)),
    ];
    let sections: Vec<Section> = all
        .into_iter()
        .filter_map(|(id, heading, content)| Some((id, heading, content?)))
        .collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(report))
            body {
                a.skip href="#findings" { "Skip to the findings" }
                (banner(report, &sections))
                main {
                    @for (id, heading, content) in &sections {
                        section id=(id) aria-labelledby={ (id) "-heading" } {
                            h2 id={ (id) "-heading" } { (heading) }
                            (content)
                        }
                    }
                }
                footer { p { "Made by " (report.program) "." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
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

fn banner(report: &Report, sections: &[Section]) -> Markup {
    html! {
        header {
            h1 { (report.title) }
            @if let Some(answer) = &report.answer {
                div id="answer" { @for says in &answer.says { p.says { (sentence(says)) } } }
            }
            dl.opening {
                @for line in &report.opening { div { dt { (line.name) } dd { (sentence(&line.value)) } } }
            }
            p.glance { (glance(report)) "." }
            ul.sources aria-label="Sources" {
                @for source in &report.sources {
                    li { code { (source.path) } " " span.faint { "(" (counted(source.runs as u64, "run")) ")" } }
                }
            }
            nav aria-label="Contents" {
                ul {
                    @for (id, heading, _) in sections { li { a href={ "#" (id) } { (heading) } } }
                }
            }
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

/// More of them than this are folded up.
const LINKS_MAX: usize = 12;

fn links(runs: &[usize]) -> Markup {
    html! {
        @for (place, &run) in runs.iter().enumerate() {
            @if place > 0 { ", " }
            a href={ "#run-" (run + 1) } { (run_number(run)) }
        }
    }
}

fn run_links(runs: &[usize]) -> Markup {
    html! {
        @if runs.len() <= LINKS_MAX {
            p.evidence { "Rests on " (links(runs)) "." }
        } @else {
            details.evidence { summary { "Rests on " (runs.len()) " runs" } p { (links(runs)) } }
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
