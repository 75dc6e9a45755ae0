//! Tables for a paper: LaTeX with booktabs, to be `\input`. Text is escaped; units stay as they are.

use super::Output;
use super::words::{Word, words};
use crate::report::grid::{Kind, OF_EXPERIMENTS, texts, wanted};
use crate::report::{Report, Table, experiments};

pub(super) static OUTPUT: Output = Output {
    name: "latex",
    extension: "tex",
    summary: "Findings and tables for a paper, by booktabs; to be \\input.",
    write,
};

fn write(report: &Report) -> String {
    let mut parts =
        vec!["% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.".to_string()];
    if !report.findings.is_empty() {
        let item = |finding: &crate::report::Finding| {
            format!("  \\item {} ({})", sentence(&finding.says), finding.support.text())
        };
        let items: Vec<String> = report.findings.iter().map(item).collect();
        parts.push(format!("\\begin{{enumerate}}\n{}\n\\end{{enumerate}}", items.join("\n")));
    }
    let all = experiments(report);
    let (heading, rows) = texts(report, OF_EXPERIMENTS, &all);
    let columns: String = wanted(report, OF_EXPERIMENTS)
        .map(|column| if column.kind == Kind::Text { 'l' } else { 'r' })
        .collect();
    let caption = "Utilisation (AU) and throughput: means of n runs (of rates geometric) with 95 % intervals.";
    parts.push(table(caption, "tab:experiments", &columns, &heading, &rows));
    for (number, of) in report.setups.iter().enumerate() {
        parts.push(of_text(of, &format!("tab:setup{}", number + 1)));
    }
    if !report.configuration.rows.is_empty() {
        parts.push(of_text(&report.configuration, "tab:configuration"));
    }
    parts.join("\n\n") + "\n"
}

fn of_text(of: &Table, label: &str) -> String {
    let heading: Vec<&str> = of.columns.iter().map(String::as_str).collect();
    table(&of.title, label, &"l".repeat(heading.len()), &heading, &of.rows)
}

/// Columns of a table that a column of a page may hold.
const NARROW_MAX: usize = 5;

fn table(
    caption: &str,
    label: &str,
    columns: &str,
    heading: &[&str],
    rows: &[Vec<String>],
) -> String {
    let line = |cells: Vec<String>| format!("    {} \\\\", cells.join(" & "));
    // Across both columns of a page, where one is too narrow.
    let is_wide = NARROW_MAX < heading.len();
    let environment = if is_wide { "table*" } else { "table" };
    let size = if is_wide { "  \\footnotesize\\setlength{\\tabcolsep}{3pt}\n" } else { "" };
    let mut lines = vec![
        format!("\\begin{{{environment}}}"),
        format!("{size}  \\centering"),
        format!("  \\caption{{{}}}", plain(caption)),
        format!("  \\label{{{label}}}"),
        format!("  \\begin{{tabular}}{{{columns}}}"),
        "    \\toprule".into(),
        line(heading.iter().map(|cell| plain(cell)).collect()),
        "    \\midrule".into(),
    ];
    lines.extend(rows.iter().map(|row| line(row.iter().map(|cell| plain(cell)).collect())));
    lines.extend(["    \\bottomrule", "  \\end{tabular}"].map(String::from));
    lines.push(format!("\\end{{{environment}}}"));
    lines.join("\n")
}

fn sentence(text: &str) -> String {
    let one = |word| match word {
        Word::Plain(text) => plain(text),
        Word::Name(text) => format!("\\texttt{{{}}}", plain(text)),
    };
    words(text).into_iter().map(one).collect()
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
