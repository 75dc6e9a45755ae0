//! Writes a document for a terminal. Its last line names the folded parts; figures are not shown.

use super::detail_prefix;
use crate::document::{Block, Depth, Document, Item};
use crate::number::run_numbers;
use crate::opening::STEP;
use crate::text;
use std::collections::BTreeSet;

/// The size of the terminal, and how much to show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Characters per line; `None` for a file.
    pub columns: Option<usize>,
    /// Whether folded parts and the evidence of items are shown.
    pub shows_all: bool,
}

/// Approximate maximum length of an item without its evidence; sentences are cut only at semicolons.
const ITEM_MAX: usize = 230;

/// Returns the page and its last line. The last line contains the report's size and names the folded sections; it is empty for a command's output.
pub fn write(document: &Document, screen: Screen) -> (String, String) {
    let mut parts = Vec::new();
    let mut folded = Vec::new();
    for section in &document.sections {
        let page = screen.blocks(&section.blocks);
        if page.is_empty() {
            continue;
        }
        if section.depth == Depth::Detail && !screen.shows_all {
            folded.push(section.heading.to_lowercase());
        } else {
            let heading = Some(section.heading.to_string()).filter(|heading| !heading.is_empty());
            parts.push(heading.into_iter().chain([page]).collect::<Vec<_>>().join("\n"));
        }
    }
    let mut last = document.summary.clone();
    if !folded.is_empty() {
        last += &format!("\n`--all` adds evidence, advice, {}", folded.join(", "));
    }
    (parts.join("\n\n"), last)
}

impl Screen {
    /// The text of blocks. A heading has no empty line after it.
    fn blocks(self, blocks: &[Block]) -> String {
        let mut page = String::new();
        for block in blocks {
            page += &self.block(block);
            let gap = if matches!(block, Block::Heading(_)) { "\n" } else { "\n\n" };
            page += if page.is_empty() || page.ends_with('\n') { "" } else { gap };
        }
        page.trim_end().into()
    }

    fn block(self, block: &Block) -> String {
        match block {
            Block::Heading(says) | Block::Sentence(says) => says.clone(),
            Block::Verdict(kind, says) => {
                let says = says.join("\n");
                let (head, rest) = says.split_at(says.find(':').map_or(0, |index| index + 1));
                format!("{}{rest}", text::answer_head(*kind, head))
            }
            Block::Facts(facts) => {
                let rows =
                    facts.iter().map(|fact| (fact.name.as_str(), fact.value.replace(STEP, "\n")));
                text::rows(&rows.collect::<Vec<_>>())
            }
            Block::List { first, items } => {
                let lines = items.iter().enumerate().map(|(index, item)| match first {
                    Some(first) => self.item(&format!("{:>3}.  ", first + index), item),
                    None => self.item("  ", item),
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            Block::Table(table) => {
                let lines = text::report_table(table, self.columns);
                [table.title.as_str(), &lines].join("\n").trim_start_matches('\n').into()
            }
            Block::Figures(_) => String::new(),
            Block::Commands(commands) => {
                let lines = commands.iter().map(|command| format!("  {command}"));
                lines.collect::<Vec<_>>().join("\n")
            }
            Block::Fold(summary, _) if !self.shows_all => format!("     and {summary}: `--all`"),
            Block::Fold(summary, blocks) => {
                format!("{summary}\n{}", self.blocks(blocks))
            }
        }
    }

    /// The numbers of an item's runs, if its evidence is not shown: ` (runs 1 to 4, 7)`.
    fn numbers(self, item: &Item) -> String {
        let runs = item.details.iter().flat_map(|detail| detail.runs.iter().copied());
        let runs: Vec<usize> = runs.collect::<BTreeSet<_>>().into_iter().collect();
        if self.shows_all || runs.is_empty() {
            return String::new();
        }
        format!(" ({})", run_numbers(&runs))
    }

    fn item(self, mark: &str, item: &Item) -> String {
        let sentence =
            if self.shows_all { item.says.clone() } else { text::clauses(&item.says, ITEM_MAX) };
        // Sentences on open questions begin with their badge.
        let badge = item.badge.filter(|(_, badge)| !item.says.contains(badge));
        let badge = badge.map(|(class, badge)| format!(" ({})", text::badge(class, badge)));
        let is_numbered = !mark.trim().is_empty();
        let note = if is_numbered || item.note.is_empty() {
            String::new()
        } else {
            format!(", {}{}", item.note, self.numbers(item))
        };
        let mut lines = format!("{mark}{sentence}{}{note}", badge.unwrap_or_default());
        if self.shows_all {
            for detail in &item.details {
                lines += &format!("\n       {}{}", detail_prefix(detail), detail.text);
            }
            if !item.advice.is_empty() {
                lines += &format!("\n       advice: {}", item.advice);
            }
        }
        lines
    }
}
