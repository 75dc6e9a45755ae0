//! The sections of text: findings, doubts, methods, setup. A section that has nothing to say is not there.

use super::super::words::seen;
use super::tables::plain_table;
use super::{doubt_id, links, sentence};
use crate::advice::table;
use crate::opening::FINDINGS_MAX;
use crate::report::{FindingText, Report, SeenDoubt, Support};
use feedrate_measure::doubt::Severity;
use feedrate_spec::units::counted;
use maud::{Markup, html};
use std::borrow::Borrow;

pub(super) fn findings(report: &Report) -> Markup {
    html! {
        @if report.findings.is_empty() {
            p { "None is made of these runs." }
        } @else {
            @let (first, rest) = report.findings.split_at(report.findings.len().min(FINDINGS_MAX));
            ol.findings { @for finding in first { (finding_item(finding)) } }
            @if !rest.is_empty() {
                details {
                    summary { (rest.len()) " more findings" }
                    ol.findings start=(FINDINGS_MAX + 1) { @for finding in rest { (finding_item(finding)) } }
                }
            }
        }
    }
}

fn finding_item(finding: &FindingText) -> Markup {
    let class = match finding.support {
        Support::Shown => "shown",
        Support::Doubted => "doubted",
        Support::Described => "described",
        Support::CannotBeTold => "untold",
    };
    html! {
        li class=(class) {
            p.says { (sentence(&finding.says)) " " span.badge { (finding.support.text()) } }
            @if !(finding.figures.is_empty() && finding.doubts.is_empty() && finding.runs.is_empty()) {
                details {
                    summary { (evidence(finding)) }
                    @if !finding.figures.is_empty() {
                        dl {
                            @for fact in &finding.figures {
                                div { dt { (fact.name) } dd { (sentence(&fact.value)) } }
                            }
                        }
                    }
                    @if !finding.doubts.is_empty() {
                        ul.doubts { @for doubt in &finding.doubts { li { (sentence(doubt)) } } }
                    }
                    @if !finding.runs.is_empty() { p { "Rests on " (links(&finding.runs)) "." } }
                }
            }
        }
    }
}

/// `6 runs, 2 numbers, 1 doubt`.
fn evidence(finding: &FindingText) -> String {
    let counts = [
        (finding.runs.len(), "run"),
        (finding.figures.len(), "number"),
        (finding.doubts.len(), "doubt"),
    ];
    let counts = counts.into_iter().filter(|of| of.0 > 0);
    counts.map(|(count, what)| counted(count as u64, what)).collect::<Vec<_>>().join(", ")
}

pub(super) fn recommendation(report: &Report) -> Option<Markup> {
    let markup = html! {
        p.faint { "The best of what was tested; what was not is not known." }
        @for of in &report.recommendations {
            @if 1 < report.recommendations.len() { h3 { (sentence(&of.heading())) } }
            ul { @for says in &of.says { li { (sentence(says)) } } }
        }
    };
    (!report.recommendations.is_empty()).then_some(markup)
}

/// Changes that were tried, or those that are predicted.
pub(super) fn advice(report: &Report, is_tried: bool) -> Option<Markup> {
    let mut all = report.advice.iter().filter(|of| of.trials.is_some() == is_tried).peekable();
    let has_any = all.peek().is_some();
    let markup = html! {
        @for of in all {
            @let table = table(of);
            // The answer says the same of what was tried.
            @if !is_tried { ul { @for says in &of.says { li { (sentence(says)) } } } }
            (plain_table(&table, &table.title))
            @if !of.commands().is_empty() {
                details { summary { "Commands" } (code(&of.commands())) }
            }
        }
    };
    has_any.then_some(markup)
}

pub(super) fn doubts(report: &Report) -> Option<Markup> {
    Some(html! {
        @if report.doubts.is_empty() && report.left_out.is_empty() {
            p { "None was seen. That does not prove the numbers right." }
        } @else {
            p.faint { "Named reasons not to believe a number, the worst first." }
        }
        div.side-by-side {
            @for (index, doubt) in report.doubts.iter().enumerate() {
                (doubt_article(&doubt_id(report, index), doubt))
            }
        }
        @if !report.left_out.is_empty() {
            h3 { "Left out" }
            ul {
                @for one in &report.left_out {
                    li { code { (one.path.display()) } ": " (sentence(&one.why)) }
                }
            }
        }
    })
}

fn doubt_article(id: &str, doubt: &SeenDoubt) -> Markup {
    let class = match doubt.severity {
        Severity::Invalid => "badge invalid",
        Severity::Warning => "badge warning",
        Severity::Note => "badge note",
    };
    html! {
        article.doubt id=(id) aria-labelledby={ (id) "-name" } {
            h3 id={ (id) "-name" } {
                code { (doubt.name) } " "
                span class=(class) { (doubt.severity.name()) }
            }
            @match seen(doubt).as_slice() {
                [(runs, evidence)] => p { (evidence_in(runs, evidence)) },
                several => details {
                    summary { "Seen in " (doubt.seen.len()) " runs" }
                    ul { @for (runs, evidence) in several { li { (evidence_in(runs, evidence)) } } }
                },
            }
            // Of the same doubt the advice is mostly the same.
            @if let Some(first) = doubt.seen.first() {
                p.advice { "What to do: " (sentence(&first.advice)) "." }
            }
        }
    }
}

fn evidence_in(runs: &[usize], evidence: &str) -> Markup {
    html! {
        (links(runs))
        @if !runs.is_empty() { ": " }
        (sentence(evidence))
    }
}

pub(super) fn methods(report: &Report) -> Option<Markup> {
    let methods = html! {
        dl.methods {
            @for method in &report.methods {
                div {
                    dt { (method.name) }
                    dd {
                        p { (sentence(&method.says)) }
                        @if !method.commands.is_empty() { (code(&method.commands)) }
                    }
                }
            }
        }
    };
    (!report.methods.is_empty()).then_some(methods)
}

fn code<S: Borrow<str>>(commands: &[S]) -> Markup {
    html! {
        pre tabindex="0" role="region" aria-label="Commands" { code { (commands.join("\n")) } }
    }
}

pub(super) fn setup(report: &Report) -> Option<Markup> {
    let tables = report.setups.iter().chain([&report.configuration]);
    let tables: Vec<_> = tables.filter(|table| !table.rows.is_empty()).collect();
    (!tables.is_empty()).then(|| {
        html! { div.side-by-side { @for table in &tables { (plain_table(table, &table.title)) } } }
    })
}
