//! Tables for a paper: LaTeX with booktabs, to be `\input`. Text is escaped; units stay as they are.

use super::ReportOutput;
use crate::document::{Block, Document};
use crate::report::FigureUse;
use crate::table::{ColumnKind, ReportTable};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "latex",
    extension: "tex",
    summary: "Tables for a paper, by booktabs; to be \\input.",
    figures: FigureUse::Nothing,
    write: |report| write(&report.document(FigureUse::Nothing)),
};

fn write(document: &Document) -> String {
    let mut parts =
        vec!["% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.".to_string()];
    for section in &document.sections {
        let tables = section.blocks.iter().filter_map(|block| match block {
            // A line for each run is no table of a paper.
            Block::Table(table) if !table.is_of_runs => Some(table),
            _ => None,
        });
        for (number, of_section) in (1..).zip(tables) {
            let number = if number == 1 { String::new() } else { number.to_string() };
            parts.push(table(of_section, &format!("tab:{}{number}", section.id())));
        }
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
