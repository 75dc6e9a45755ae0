//! The sections of text: findings, doubts, methods, setup.

use super::super::words::seen;
use super::tables::plain_table;
use super::{doubt_id, links, run_links, sentence};
use crate::report::{Doubt, Finding, Report, Support};
use feedrate_measure::doubt::Severity;
use maud::{Markup, html};

pub(super) fn findings(report: &Report) -> Markup {
    html! {
        section #findings aria-labelledby="findings-heading" {
            h2 #findings-heading { "Findings" }
            @if report.findings.is_empty() {
                p { "None is made of these runs." }
            } @else {
                ol.findings {
                    @for finding in &report.findings { (one(finding)) }
                }
            }
        }
    }
}

fn one(finding: &Finding) -> Markup {
    let class = match finding.support {
        Support::Shown => "shown",
        Support::Doubted => "doubted",
        Support::Described => "described",
        Support::CannotBeTold => "untold",
    };
    html! {
        li class=(class) {
            p.says { (sentence(&finding.says)) " " span.badge { (finding.support.text()) } }
            @if !finding.figures.is_empty() {
                dl {
                    @for fact in &finding.figures {
                        div { dt { (fact.name) } dd { (sentence(&fact.value)) } }
                    }
                }
            }
            @if !finding.doubts.is_empty() {
                ul.doubts {
                    @for doubt in &finding.doubts { li { (sentence(doubt)) } }
                }
            }
            @if !finding.runs.is_empty() { (run_links(&finding.runs)) }
        }
    }
}

pub(super) fn doubts(report: &Report) -> Markup {
    html! {
        section #doubts aria-labelledby="doubts-heading" {
            h2 #doubts-heading { "Doubts" }
            @if report.doubts.is_empty() && report.left_out.is_empty() {
                p { "None was seen. That does not prove the numbers right." }
            } @else {
                p.faint { "Named reasons not to believe a number, the worst first." }
            }
            @for (index, doubt) in report.doubts.iter().enumerate() { (doubt_of(report, index, doubt)) }
            @if !report.left_out.is_empty() {
                h3 { "Left out" }
                ul {
                    @for one in &report.left_out {
                        li { code { (one.path) } ": " (sentence(&one.why)) }
                    }
                }
            }
        }
    }
}

fn doubt_of(report: &Report, index: usize, doubt: &Doubt) -> Markup {
    let class = match doubt.severity {
        Severity::Invalid => "badge invalid",
        Severity::Warning => "badge warning",
        Severity::Note => "badge note",
    };
    // Of the same doubt the advice is mostly the same.
    let mut advice: Vec<&str> = doubt.seen.iter().map(|seen| seen.advice.as_str()).collect();
    advice.dedup();
    html! {
        article.doubt id=(doubt_id(report, index)) aria-labelledby={ (doubt_id(report, index)) "-name" } {
            h3 id={ (doubt_id(report, index)) "-name" } {
                code { (doubt.name) } " "
                span class=(class) { (doubt.severity.name()) }
            }
            @match seen(doubt).as_slice() {
                [(runs, of)] => p { (evidence(runs, of)) },
                several => details {
                    summary { "Seen in " (doubt.seen.len()) " runs" }
                    ul { @for (runs, of) in several { li { (evidence(runs, of)) } } }
                },
            }
            @for advice in advice.into_iter().take(1) {
                p.advice { "What to do: " (sentence(advice)) "." }
            }
        }
    }
}

fn evidence(runs: &[usize], of: &str) -> Markup {
    html! {
        (links(runs))
        @if !runs.is_empty() { ": " }
        (sentence(of))
    }
}

pub(super) fn methods(report: &Report) -> Markup {
    html! {
        @if !report.methods.is_empty() {
            section #methods aria-labelledby="methods-heading" {
                h2 #methods-heading { "Methods" }
                dl.methods {
                    @for method in &report.methods {
                        div {
                            dt { (method.name) }
                            dd {
                                p { (sentence(&method.says)) }
                                @if !method.commands.is_empty() {
                                    pre tabindex="0" role="region" aria-label="Commands" {
                                        code { (method.commands.join("\n")) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn setup(report: &Report) -> Markup {
    let tables = || report.setups.iter().chain([&report.configuration]);
    html! {
        @if tables().any(|table| !table.rows.is_empty()) {
            section #setup aria-labelledby="setup-heading" {
                h2 #setup-heading { "Setup" }
                @for table in tables().filter(|table| !table.rows.is_empty()) {
                    (plain_table(table))
                }
            }
        }
    }
}
