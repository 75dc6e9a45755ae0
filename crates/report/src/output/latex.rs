//! Writes tables for a paper: LaTeX with booktabs, to be included with `\input`. Text is escaped; units are unchanged.

use super::ReportOutput;
use crate::document::{Block, Document};
use crate::report::FigureUse;
use crate::table::{ColumnKind, ReportTable};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "latex",
    extension: "tex",
    summary: "Tables for a paper with booktabs, to be included with \\input.",
    figures: FigureUse::Nothing,
    write: |report| write(&report.document(FigureUse::Nothing)),
};

fn write(document: &Document) -> String {
    let mut parts =
        vec!["% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.".to_string()];
    for section in &document.sections {
        let tables = section.blocks.iter().filter_map(|block| match block {
            // Tables of single runs are too long for a paper.
            Block::Table(table) if !table.is_of_runs => Some(table),
            _ => None,
        });
        for (number, section_table) in (1..).zip(tables) {
            let number = if number == 1 { String::new() } else { number.to_string() };
            parts.push(table(section_table, &format!("tab:{}{number}", section.id())));
        }
    }
    parts.join("\n\n") + "\n"
}

/// Maximum number of table columns that fit into a column of the page.
const NARROW_MAX: usize = 5;

fn table(table: &ReportTable, label: &str) -> String {
    // A wide table spans both columns of the page.
    let is_wide = NARROW_MAX < table.columns.len();
    let environment = if is_wide { "table*" } else { "table" };
    let size = if is_wide { "  \\footnotesize\\setlength{\\tabcolsep}{3pt}\n" } else { "" };
    let columns = table.columns.iter();
    let sides: String =
        columns.map(|column| if column.kind == ColumnKind::Text { 'l' } else { 'r' }).collect();
    let lines = table.lines(escape_latex, " & ").into_iter();
    let mut lines = lines.map(|line| format!("    {line} \\\\\n"));
    let heading = lines.next().unwrap_or_default();
    let rows: String = lines.collect();
    let caption = escape_latex(&table.title);
    format!(
        "\\begin{{{environment}}}\n{size}  \\centering\n  \\caption{{{caption}}}\n  \\label{{{label}}}\n  \\begin{{tabular}}{{{sides}}}\n    \\toprule\n\
         {heading}    \\midrule\n{rows}    \\bottomrule\n  \\end{{tabular}}\n\\end{{{environment}}}"
    )
}

/// Escapes text for TeX. A bracket after `\\` would be an argument, so brackets are put in braces.
fn escape_latex(text: &str) -> String {
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
