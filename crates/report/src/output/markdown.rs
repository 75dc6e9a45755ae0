//! The report as Markdown, as GitHub and pandoc read it. Whatever users called their things is not read as markup.

use super::ReportOutput;
use super::words::{glance, run_number, seen, written};
use crate::advice;
use crate::grid::{table_of_experiments, table_of_runs, tables_over_time};
use crate::opening::FINDINGS_MAX;
use crate::report::{FigureUse, Report};
use crate::table::{ColumnKind, ReportTable};
use feedrate_spec::units::counted;
use std::borrow::Borrow;

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "markdown",
    extension: "md",
    summary: "For a wiki, an issue, or pandoc.",
    figures: FigureUse::Values,
    write,
};

/// Rows of a figure's table, at most.
const VALUES_MAX: usize = 60;

fn write(report: &Report) -> String {
    let mut parts = vec![format!("# {}", plain(&report.title))];
    parts.extend(report.answer.iter().flat_map(|of| &of.says).map(|says| sentence(says)));
    for line in &report.opening {
        parts.push(format!("- **{}:** {}", plain(&line.name), sentence(&line.value)));
    }
    parts.push(format!("{}.", glance(report)));
    for source in &report.sources {
        parts.push(format!("- {} ({})", name(&source.path), counted(source.runs as u64, "run")));
    }
    if let Some(of) = &report.comparison {
        let of = &of.table;
        parts.extend(["## Comparison".into(), plain(&of.title), table(of)]);
    }
    parts.push("## Findings".into());
    parts.push(findings(report));
    parts.extend(recommendation(report));
    parts.extend(advice(report));
    parts.push("## Doubts".into());
    parts.push(doubts(report));
    for figure in &report.figures {
        parts.push(format!("## {}", plain(&figure.title)));
        parts.push(sentence(&figure.caption));
        parts.push(match figure.values.rows.len() {
            rows if VALUES_MAX < rows => {
                format!("Its {rows} values are in the reports as HTML and JSON.")
            }
            _ => table(&figure.values),
        });
    }
    for one in &report.not_drawn {
        let says = format!("- {} is not drawn: {}", name(&one.name), sentence(&one.why));
        parts.push(format!("{says} ({})", sentence(&one.hint)));
    }
    parts.push("## Experiments".into());
    parts.push(table(&table_of_experiments(report)));
    let over_time = tables_over_time(report);
    if !over_time.is_empty() {
        parts.push("## Epochs and checkpoints".into());
    }
    for of in &over_time {
        parts.push(plain(&of.title));
        parts.push(table(of));
    }
    parts.push("## Runs".into());
    parts.push(runs(report));
    parts.push("## Methods".into());
    for method in &report.methods {
        parts.push(format!("**{}.** {}", plain(&method.name), sentence(&method.says)));
        parts.push(code(&method.commands));
    }
    for of in report.setups.iter().chain([&report.configuration]) {
        if !of.rows.is_empty() {
            parts.push(format!("## {}", plain(&of.title)));
            parts.push(table(of));
        }
    }
    parts.push(format!("Made by {}.", plain(&report.program)));
    parts.retain(|part| !part.is_empty());
    joined(&parts) + "\n"
}

fn recommendation(report: &Report) -> Vec<String> {
    let mut parts = Vec::new();
    if !report.recommendations.is_empty() {
        parts.push("## Recommendation".into());
    }
    for of in &report.recommendations {
        parts.push(format!("Of {}, the best of what was tested:", sentence(&of.heading())));
        parts.extend(of.says.iter().map(|says| format!("- {}", sentence(says))));
    }
    parts
}

fn advice(report: &Report) -> Vec<String> {
    let mut parts = Vec::new();
    if !report.advice.is_empty() {
        parts.push("## Advice".into());
    }
    for of in &report.advice {
        parts.extend(of.says.iter().map(|says| format!("- {}", sentence(says))));
        let advised = advice::table(of);
        parts.extend([plain(&advised.title), table(&advised), code(&of.commands())]);
    }
    parts
}

/// Items of a list stand under one another, all else apart.
fn joined(parts: &[String]) -> String {
    let mut text = String::new();
    for part in parts {
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        let gap = if part.starts_with("- ") && last_line.starts_with("- ") { "\n" } else { "\n\n" };
        text += if text.is_empty() { "" } else { gap };
        text += part;
    }
    text
}

fn findings(report: &Report) -> String {
    if report.findings.is_empty() {
        return "None is made.".into();
    }
    let mut text = String::new();
    for (number, finding) in (1..).zip(report.findings.iter().take(FINDINGS_MAX)) {
        let says = sentence(&finding.says);
        text += &format!("{number}. **{says}** ({})", finding.support.text());
        for fact in &finding.figures {
            text += &format!("\n   - {}: {}", plain(&fact.name), sentence(&fact.value));
        }
        for doubt in &finding.doubts {
            text += &format!("\n   - doubt: {}", sentence(doubt));
        }
        if !finding.runs.is_empty() {
            let runs: Vec<String> = finding.runs.iter().map(|&run| run_number(run)).collect();
            text += &format!("\n   - rests on {}", runs.join(", "));
        }
        text += "\n";
    }
    let more = report.findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let more = counted(more as u64, "more finding");
        text += &format!("\nIn the reports as HTML and JSON: {more}.");
    }
    text.trim_end().into()
}

fn doubts(report: &Report) -> String {
    let mut lines = Vec::new();
    for doubt in &report.doubts {
        lines.push(format!("- **{}** ({})", plain(&doubt.name), doubt.severity.name()));
        for (runs, evidence) in seen(doubt) {
            let runs: Vec<String> = runs.into_iter().map(run_number).collect();
            let colon = if runs.is_empty() { "" } else { ": " };
            lines.push(format!("  - {}{colon}{}", runs.join(", "), sentence(evidence)));
        }
        let advice = doubt.seen.first().map_or("", |seen| seen.advice.as_str());
        lines.push(format!("  - advice: {}", sentence(advice)));
    }
    for left_out in &report.left_out {
        lines.push(format!(
            "- left out: {}: {}",
            name(&left_out.path.display().to_string()),
            sentence(&left_out.why)
        ));
    }
    if lines.is_empty() { "None.".into() } else { lines.join("\n") }
}

fn runs(report: &Report) -> String {
    let mut all = ReportTable::new("");
    all.add("Run", ColumnKind::Number, (1..=report.runs.len() as u64).map(Some));
    let more = table_of_runs(report);
    all.columns.extend(more.columns);
    all.rows.iter_mut().zip(more.rows).for_each(|(row, more)| row.extend(more));
    let doubts = report.runs.iter().map(|one| one.doubts().join(", "));
    all.add("Doubts", ColumnKind::Text, doubts);
    let folders = report.runs.iter().map(|one| one.run.path.display().to_string());
    all.add("Folder", ColumnKind::Text, folders);
    table(&all)
}

fn code<S: Borrow<str>>(commands: &[S]) -> String {
    if commands.is_empty() {
        return String::new();
    }
    format!("```sh\n{}\n```", commands.join("\n").replace("```", ""))
}

fn table(table: &ReportTable) -> String {
    if table.columns.is_empty() {
        return String::new();
    }
    let lines = table.lines(plain, " | ").into_iter();
    let mut lines: Vec<String> = lines.map(|line| format!("| {line} |")).collect();
    lines.insert(1, format!("|{}", " --- |".repeat(table.columns.len())));
    lines.join("\n")
}

fn sentence(text: &str) -> String {
    written(text, plain, name)
}

/// As code; what would end it or its line is replaced.
fn name(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| match c {
            '`' => '\'',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    format!("`{}`", text.replace('|', "\\|"))
}

/// Text that is nothing but text. An underscore inside a word and a bracket that opens no link are no markup (CommonMark 0.31, 6.2 and 6.3).
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied().unwrap_or(' ');
        let is_markup = match c {
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            ']' => matches!(after, '(' | '[' | ':'),
            c => r"\`*<>|#~&!".contains(c),
        };
        if is_markup {
            plain.push('\\');
        }
        plain.push(if c.is_control() { ' ' } else { c });
        before = c;
    }
    plain
}
