//! Tables for a paper: LaTeX with booktabs, to be `\input`. Text is escaped; units stay as they are.

use super::ReportOutput;
use super::words::written;
use crate::advice;
use crate::grid::{table_of_experiments, tables_over_time};
use crate::report::{FigureUse, Report};
use crate::table::{ColumnKind, ReportTable};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "latex",
    extension: "tex",
    summary: "Findings and tables for a paper, by booktabs; to be \\input.",
    figures: FigureUse::Nothing,
    write,
};

fn write(report: &Report) -> String {
    let mut parts =
        vec!["% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.".to_string()];
    if !report.findings.is_empty() {
        let mut items = String::new();
        for of in &report.findings {
            items += &format!("  \\item {} ({})\n", sentence(&of.says), of.support.text());
        }
        parts.push(format!("\\begin{{enumerate}}\n{items}\\end{{enumerate}}"));
    }
    for of in &report.recommendations {
        let says: Vec<String> = of.says.iter().map(|says| sentence(says)).collect();
        parts.push(format!("Best tested, {}: {}.", sentence(&of.heading()), says.join("; ")));
    }
    for (number, of) in (1..).zip(&report.advice) {
        parts.push(table(&advice::table(of), &format!("tab:advice{number}")));
    }
    let experiments = ReportTable {
        title: "Utilisation (AU) and throughput: means of n runs (of rates geometric) with 95 % intervals.".into(),
        ..table_of_experiments(report)
    };
    parts.push(table(&experiments, "tab:experiments"));
    for (number, of) in (1..).zip(&tables_over_time(report)) {
        parts.push(table(of, &format!("tab:time{number}")));
    }
    for (number, of) in (1..).zip(&report.setups) {
        parts.push(table(of, &format!("tab:setup{number}")));
    }
    if !report.configuration.rows.is_empty() {
        parts.push(table(&report.configuration, "tab:configuration"));
    }
    parts.join("\n\n") + "\n"
}

/// Columns of a table that a column of a page may hold.
const NARROW_MAX: usize = 5;

fn table(table: &ReportTable, label: &str) -> String {
    // Across both columns of a page, where one is too narrow.
    let is_wide = NARROW_MAX < table.columns.len();
    let environment = if is_wide { "table*" } else { "table" };
    let size = if is_wide { "  \\footnotesize\\setlength{\\tabcolsep}{3pt}\n" } else { "" };
    let columns = table.columns.iter();
    let sides: String =
        columns.map(|of| if of.kind == ColumnKind::Text { 'l' } else { 'r' }).collect();
    let lines = table.lines(plain, " & ").into_iter();
    let mut lines = lines.map(|line| format!("    {line} \\\\\n"));
    let (heading, rows) = (lines.next().unwrap_or_default(), lines.collect::<String>());
    let caption = plain(&table.title);
    format!(
        "\\begin{{{environment}}}\n{size}  \\centering\n  \\caption{{{caption}}}\n  \\label{{{label}}}\n  \\begin{{tabular}}{{{sides}}}\n    \\toprule\n\
         {heading}    \\midrule\n{rows}    \\bottomrule\n  \\end{{tabular}}\n\\end{{{environment}}}"
    )
}

fn sentence(text: &str) -> String {
    written(text, plain, |name| format!("\\texttt{{{}}}", plain(name)))
}

/// Text that TeX reads as nothing but text. A bracket after `\\` would be an argument, so it stands in braces.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => plain.push_str("\\textbackslash{}"),
            '~' => plain.push_str("\\textasciitilde{}"),
            '^' => plain.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => plain.extend(['\\', c]),
            '[' | ']' => plain.extend(['{', c, '}']),
            '<' => plain.push_str("\\textless{}"),
            '>' => plain.push_str("\\textgreater{}"),
            '×' => plain.push_str("$\\times$"),
            '–' => plain.push_str("--"),
            '≈' => plain.push_str("$\\approx$"),
            // Two hyphens would become a dash.
            '-' if plain.ends_with('-') => plain.push_str("{}-"),
            'µ' => plain.push_str("$\\mu$"),
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}
