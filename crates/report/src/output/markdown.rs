//! Writes a document as Markdown for GitHub and pandoc. Names chosen by users are escaped.

use super::{ReportOutput, TextPart, detail_prefix, split_names};
use crate::document::{Block, Document, Item};
use crate::report::FigureUse;
use crate::table::ReportTable;

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "markdown",
    extension: "md",
    summary: "For a wiki, an issue, or pandoc.",
    figures: FigureUse::Values,
    write: |report| write(&report.document(FigureUse::Values)),
};

/// Maximum number of rows in a figure's table.
const VALUES_MAX: usize = 60;

fn write(document: &Document) -> String {
    let mut parts = vec![format!("# {}", escape_markdown(&document.title))];
    for (index, section) in document.sections.iter().enumerate() {
        // The first section is the answer. The summary follows it.
        if index == 1 {
            parts.push(sentence(&document.summary));
        }
        if !section.heading.is_empty() {
            parts.push(format!("## {}", section.heading));
        }
        parts.extend(section.blocks.iter().map(block));
    }
    parts.push(format!("Made by {}.", escape_markdown(&document.program)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(text) => format!("### {}", sentence(text)),
        Block::Sentence(text) => sentence(text),
        Block::Verdict(_, says) => {
            says.iter().map(|says| sentence(says)).collect::<Vec<_>>().join("\n\n")
        }
        Block::Facts(facts) => {
            let lines = facts.iter().map(|fact| {
                format!("- **{}:** {}", escape_markdown(&fact.name), sentence(&fact.value))
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        Block::List { first, items } => {
            let lines = items.iter().enumerate().map(|(index, item)| match first {
                Some(first) => self::item(&format!("{}. ", first + index), item),
                None => self::item("- ", item),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        Block::Table(table) => {
            format!("{}\n\n{}", escape_markdown(&table.title), self::table(table))
                .trim_start()
                .into()
        }
        Block::Figures(figures) => {
            let parts = figures.iter().map(|figure| {
                let values = match figure.values.rows.len() {
                    rows if VALUES_MAX < rows => {
                        format!("Its {rows} values are in the reports as HTML and JSON.")
                    }
                    _ => self::table(&figure.values),
                };
                format!(
                    "### {}\n\n{}\n\n{values}",
                    escape_markdown(&figure.title),
                    sentence(&figure.caption)
                )
            });
            parts.collect::<Vec<_>>().join("\n\n")
        }
        Block::Commands(commands) => {
            format!("```sh\n{}\n```", commands.join("\n").replace("```", ""))
        }
        Block::Fold(summary, blocks) => {
            let blocks = blocks.iter().map(self::block).collect::<Vec<_>>().join("\n\n");
            format!("{}:\n\n{blocks}", escape_markdown(summary))
        }
    }
}

fn item(mark: &str, item: &Item) -> String {
    let says = sentence(&item.says);
    let mut text = match item.badge {
        Some((_, badge)) => format!("{mark}**{says}** ({badge})"),
        None => format!("{mark}{says}"),
    };
    for detail in &item.details {
        let head = escape_markdown(&detail_prefix(detail));
        text += &format!("\n   - {head}{}", sentence(&detail.text));
    }
    if !item.advice.is_empty() {
        text += &format!("\n   - advice: {}", sentence(&item.advice));
    }
    text
}

fn table(table: &ReportTable) -> String {
    let mut lines: Vec<String> =
        table.lines(escape_markdown, " | ").iter().map(|line| format!("| {line} |")).collect();
    lines.insert(1, format!("|{}", " --- |".repeat(table.columns.len())));
    lines.join("\n")
}

fn sentence(text: &str) -> String {
    let written = split_names(text).into_iter().map(|stretch| match stretch {
        TextPart::Plain(text) => escape_markdown(text),
        TextPart::Name(text) => name(text),
    });
    written.collect()
}

/// A name as code; characters that would end the code or the line are replaced.
fn name(text: &str) -> String {
    let text = text.replace('`', "'").replace(char::is_control, " ").replace('|', "\\|");
    format!("`{text}`")
}

/// Escapes markup. An underscore inside a word and a bracket that opens no link are not markup (CommonMark 0.31, 6.2 and 6.3).
fn escape_markdown(text: &str) -> String {
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
