//! The content of a page, as blocks in reading order. Outputs decide how a block looks; they change neither content nor order.
//!
//! Long because it has the order of all blocks.

use crate::advice;
use crate::experiment::experiments;
use crate::grid::{table_of_checkpoints, table_of_experiments, table_of_runs, tables_over_time};
use crate::report::{
    FigureUse, FindingFigure, FindingText, OpeningLine, Report, ReportFigure, SeenDoubt, Support,
};
use crate::table::ReportTable;
use crate::words;
use crate::words::number::{list, quoted};
use feedrate_analysis::answer::AnswerKind;
use feedrate_measure::doubt::Severity;
use feedrate_spec::escape::bash_word;
use feedrate_spec::units;

/// The content of a page, a file or a command's output. Words in backticks are names.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Title of the page; empty for a command's output.
    pub title: String,
    /// Summary of the report's size.
    pub summary: String,
    /// Sections that have blocks.
    pub sections: Vec<Section>,
    /// Program and version.
    pub program: String,
}

/// Blocks under a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading; empty for the first section.
    pub heading: &'static str,
    /// Importance, which decides where the section is folded.
    pub depth: Depth,
    /// Non-empty blocks in reading order.
    pub blocks: Vec<Block>,
}

/// Importance of a section, which decides where it is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Open everywhere.
    #[default]
    Answer,
    /// Folded on a page, open in a terminal.
    Evidence,
    /// Folded everywhere.
    Detail,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading below the section's heading.
    Heading(String),
    /// A paragraph.
    Sentence(String),
    /// The answer of one run.
    Verdict(AnswerKind, Vec<String>),
    /// Named values.
    Facts(Vec<FindingFigure>),
    /// A list of items.
    List {
        /// Number of the first item; `None` without numbers.
        first: Option<usize>,
        /// Items in reading order.
        items: Vec<Item>,
    },
    /// A table with its title as caption.
    Table(ReportTable),
    /// Pictures side by side.
    Figures(Vec<ReportFigure>),
    /// Shell commands.
    Commands(Vec<String>),
    /// Blocks under a summary, shown on request.
    Fold(String, Vec<Block>),
}

/// An item of a list.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// Anchor of a link; empty without one.
    pub id: String,
    /// The item in one sentence.
    pub says: String,
    /// Class and word of a label.
    pub badge: Option<(&'static str, &'static str)>,
    /// Amount of evidence: `6 runs, 2 numbers`.
    pub note: String,
    /// Evidence.
    pub details: Vec<Detail>,
    /// Remedy; empty without one.
    pub advice: String,
}

/// Evidence of an item.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Name of the evidence; may be empty.
    pub name: String,
    /// Runs behind the evidence, as indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    /// The evidence with figures; may be empty.
    pub text: String,
}

impl Block {
    /// A list without numbers, with a sentence for each item.
    pub fn sentences(says: impl IntoIterator<Item = String>) -> Self {
        let items = says.into_iter().map(|says| Item { says, ..Item::default() }).collect();
        Block::List { first: None, items }
    }

    /// Named values from rows.
    pub fn facts<N: Into<String>>(rows: impl IntoIterator<Item = (N, String)>) -> Self {
        let rows = rows.into_iter();
        Block::Facts(rows.map(|(name, value)| FindingFigure { name: name.into(), value }).collect())
    }

    /// The number of the block's parts, and the noun for them.
    fn size(&self) -> (usize, &'static str) {
        match self {
            Block::Heading(_) | Block::Sentence(_) | Block::Verdict(..) => (1, ""),
            Block::Facts(facts) => (facts.len(), "part"),
            Block::List { items, .. } => (items.len(), "item"),
            Block::Table(table) => (table.rows.len(), "row"),
            Block::Figures(figures) => (figures.len(), "figure"),
            Block::Commands(commands) => (commands.len(), "line"),
            Block::Fold(_, blocks) => blocks.first().map_or((0, ""), Block::size),
        }
    }
}

impl Section {
    fn new(heading: &'static str, depth: Depth, mut blocks: Vec<Block>) -> Self {
        blocks.retain(|block| block.size().0 > 0);
        Section { heading, depth, blocks }
    }

    /// The anchor of links to the section.
    pub fn id(&self) -> String {
        if self.heading.is_empty() { "answer".into() } else { slug(self.heading) }
    }

    /// The size of the section's content: `12 rows`.
    pub fn note(&self) -> String {
        let sizes = self.blocks.iter().map(Block::size).find(|(_, noun)| !noun.is_empty());
        sizes.map_or(String::new(), |(count, noun)| counted(count, noun))
    }
}

impl From<Vec<Block>> for Document {
    fn from(blocks: Vec<Block>) -> Self {
        let sections = vec![Section::new("", Depth::Answer, blocks)];
        Document { sections, ..Document::default() }
    }
}

impl Item {
    fn new(says: String, advice: &str) -> Self {
        Item { says, advice: advice.into(), ..Item::default() }
    }

    /// A doubt with its evidence.
    pub(crate) fn doubt(
        name: &str,
        severity: Severity,
        evidence: Vec<Detail>,
        advice: &str,
    ) -> Self {
        // Names of severities are their classes.
        let badge = severity.name();
        Item { badge: Some((badge, badge)), details: evidence, ..Item::new(quoted(name), advice) }
    }
}

impl Detail {
    pub(crate) fn new(name: &str, runs: &[usize], text: &str) -> Self {
        Detail { name: name.into(), runs: runs.into(), text: text.into() }
    }
}

/// A name as the anchor of a link: other characters than letters and digits become hyphens.
pub fn slug(name: &str) -> String {
    name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

impl Report {
    /// The report's content. `figure_use` selects the parts of figures that the output shows.
    pub fn document(&self, figure_use: FigureUse) -> Document {
        let mut sections = self.sections(figure_use);
        sections.retain(|section| !section.blocks.is_empty());
        let title = self.title.clone();
        Document { title, summary: self.summary(), sections, program: self.program.clone() }
    }

    /// All sections in reading order.
    fn sections(&self, figure_use: FigureUse) -> Vec<Section> {
        use Depth::{Answer, Detail, Evidence};
        let is_lead = |figure: &ReportFigure| figure.is_lead && figure_use == FigureUse::Pictures;
        let figures = self.figures_with_commands().into_iter();
        let (leads, figures): (Vec<_>, Vec<_>) = figures.partition(is_lead);
        let figures_heading = if leads.is_empty() { "Figures" } else { "More figures" };
        let tables = |tables: Vec<ReportTable>| tables.into_iter().map(Block::Table).collect();
        let experiments = vec![table_of_experiments(self), table_of_checkpoints(self)];
        let setup = self.setups.iter().chain([&self.configuration]).cloned().collect();
        vec![
            Section::new("", Answer, self.answer_blocks(leads)),
            Section::new("Findings", Answer, self.finding_blocks()),
            Section::new("Notes", Answer, self.note_blocks()),
            Section::new(
                "Comparison",
                Evidence,
                self.comparison_blocks(|rows| COMPARED_MAX < rows),
            ),
            Section::new("Recommendation", Detail, self.recommendation_blocks()),
            Section::new("Advice", Evidence, self.advice_blocks(false)),
            Section::new("Doubts", Evidence, self.doubt_blocks()),
            Section::new(figures_heading, Detail, self.figure_blocks(figures)),
            Section::new("Experiments", Evidence, tables(experiments)),
            Section::new("Over time", Detail, tables(tables_over_time(self))),
            Section::new("Runs", Detail, tables(vec![table_of_runs(self)])),
            Section::new("Methods", Detail, self.method_blocks()),
            Section::new("Setup", Detail, tables(setup)),
        ]
    }

    fn answer_blocks(&self, leads: Vec<ReportFigure>) -> Vec<Block> {
        let verdict = self.answer.iter();
        let verdict = verdict.map(|answer| Block::Verdict(answer.answer.kind, answer.says.clone()));
        let facts = self.opening_facts();
        let opening = facts.into_iter().take(self.opening_max()).collect();
        let mut blocks: Vec<Block> = verdict.chain([Block::Facts(opening)]).collect();
        blocks.extend(self.comparison_blocks(|rows| rows <= COMPARED_MAX));
        blocks.extend(self.advice_blocks(true));
        blocks.push(Block::Figures(leads));
        blocks
    }

    /// The opening lines that no unfolded finding repeats.
    fn opening_facts(&self) -> Vec<FindingFigure> {
        let is_repeated = |line: &&OpeningLine| {
            !line.findings.is_empty() && line.findings.iter().all(|&index| index < FINDINGS_MAX)
        };
        let lines = self.opening.iter().filter(|line| !is_repeated(line));
        let facts =
            lines.map(|line| FindingFigure { name: line.name.clone(), value: line.value.clone() });
        facts.collect()
    }

    /// The opening lines that do not fit above the findings.
    fn note_blocks(&self) -> Vec<Block> {
        vec![Block::Facts(self.opening_facts().into_iter().skip(self.opening_max()).collect())]
    }

    /// The number of opening lines above the findings. A submission has a line for each workload, in addition to the others.
    fn opening_max(&self) -> usize {
        let lines = self.opening.iter();
        OPENING_MAX + lines.take_while(|line| line.name == words::mlperf::NAME).count()
    }

    fn comparison_blocks(&self, fits: fn(usize) -> bool) -> Vec<Block> {
        let tables = self.comparison.iter().map(|comparison| &comparison.table);
        tables.filter(|table| fits(table.rows.len())).cloned().map(Block::Table).collect()
    }

    fn advice_blocks(&self, is_tried: bool) -> Vec<Block> {
        let advice = self.advice.iter().filter(|advice| advice.trials.is_some() == is_tried);
        let blocks = advice.flat_map(|advice| {
            let commands = advice.commands().into_iter().map(str::to_string).collect();
            // Sentences on trials are in the opening.
            let says = advice.says.iter().filter(|_| !is_tried).cloned();
            let commands = vec![Block::Commands(commands)];
            let table = Block::Table(advice::table(advice));
            [Block::sentences(says), table, Block::Fold("Commands".into(), commands)]
        });
        blocks.collect()
    }

    fn figure_blocks(&self, figures: Vec<ReportFigure>) -> Vec<Block> {
        let not_drawn = self.not_drawn.iter();
        let items = not_drawn
            .map(|figure| {
                Item::new(format!("{}: {}.", quoted(&figure.name), figure.why), &figure.hint)
            })
            .collect();
        let not_drawn = vec![Block::List { first: None, items }];
        vec![Block::Figures(figures), Block::Fold("Not drawn".into(), not_drawn)]
    }

    /// The report's size: `18 runs from `a` and `b`, 6 experiments, 3 findings, 2 doubts in 18 runs`. Doubts that could not change an answer
    /// do not count.
    fn summary(&self) -> String {
        let sources = self.sources.iter().filter(|_| self.has_several_sources());
        let sources = sources
            .map(|source| format!("{} ({})", quoted(&source.path), counted(source.runs, "run")));
        let sources = list(sources);
        let from = if sources.is_empty() { sources } else { format!(" from {sources}") };
        let mut text = format!(
            "{}{from}, {}, {}, {} in {}",
            counted(self.runs.len(), "run"),
            counted(experiments(self).len(), "experiment"),
            counted(self.findings.len(), "finding"),
            counted(self.doubts.iter().filter(|doubt| doubt.is_relevant).count(), "doubt"),
            counted(self.doubted_runs(), "run"),
        );
        let rows = self.left_out.iter().filter(|entry| entry.is_row()).count();
        let folders = self.left_out.len() - rows;
        if folders > 0 {
            text += &format!(", {folders} left out");
        }
        if rows > 0 {
            text += &format!(", {} of a CSV without a run", counted(rows, "row"));
        }
        text + "."
    }

    fn figures_with_commands(&self) -> Vec<ReportFigure> {
        let sources = self.sources.iter().map(|source| bash_word(&source.path));
        let sources = sources.collect::<Vec<_>>().join(" ");
        let figures = self.figures.iter().map(|figure| ReportFigure {
            command: format!("feedrate plot {} {sources}", figure.name),
            ..figure.clone()
        });
        figures.collect()
    }

    fn finding_blocks(&self) -> Vec<Block> {
        let mut items: Vec<Item> = self.findings.iter().map(finding).collect();
        if items.is_empty() {
            return vec![Block::Sentence("There are no findings on these runs.".into())];
        }
        let more = items.split_off(items.len().min(FINDINGS_MAX));
        let summary = counted(more.len(), "more finding");
        let more = Block::List { first: Some(FINDINGS_MAX + 1), items: more };
        vec![Block::List { first: Some(1), items }, Block::Fold(summary, vec![more])]
    }

    fn recommendation_blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        for group in &self.recommendations {
            blocks
                .push(Block::Heading(format!("{}: the best tested combinations", group.heading())));
            blocks.push(Block::sentences(group.says.clone()));
        }
        blocks
    }

    fn doubt_blocks(&self) -> Vec<Block> {
        // `feedrate show` prints this document for a run of another program, so it has all doubts.
        let is_foreign_run = matches!(&self.runs[..], [only] if !only.run.is_from_feedrate());
        let is_relevant = |index: &usize| is_foreign_run || self.doubts[*index].is_relevant;
        let relevant = (0..self.doubts.len()).filter(is_relevant);
        let doubts: Vec<Item> = relevant.map(|index| self.doubt(index)).collect();
        let others = self.doubts.len() - doubts.len();
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|entry| {
            let prefix = if entry.is_row() { "no run matches" } else { "left out" };
            format!("{prefix}: {}: {}", quoted(&entry.path.display().to_string()), entry.why)
        });
        let mut blocks =
            vec![Block::List { first: None, items: doubts }, Block::sentences(left_out)];
        if others > 0 {
            blocks.push(Block::Sentence(format!(
                "{} could not change any answer; `feedrate show RUN` and the JSON list them.",
                counted(others, if others < self.doubts.len() { "other doubt" } else { "doubt" }),
            )));
        }
        if self.doubts.is_empty() && self.left_out.is_empty() {
            blocks.push(Block::Sentence(
                "There are no doubts. This does not prove that the numbers are right.".into(),
            ));
        }
        blocks
    }

    fn doubt(&self, index: usize) -> Item {
        let doubt = &self.doubts[index];
        let advice = doubt.seen.first().map_or("", |seen| seen.advice.as_str());
        Item {
            id: self.doubt_id(index),
            note: self.seen_in(doubt),
            ..Item::doubt(&doubt.name, doubt.severity, evidence_of(doubt), advice)
        }
    }

    fn seen_in(&self, doubt: &SeenDoubt) -> String {
        let relevant = self.relevant_seen(doubt).count();
        let seen_in = format!("seen in {}", counted(doubt.seen.len(), "run"));
        if relevant == doubt.seen.len() {
            seen_in
        } else {
            format!("{seen_in}; could change the answers of {relevant}")
        }
    }

    /// The anchor of a doubt: its name, with a number if an earlier doubt has the same name.
    pub(crate) fn doubt_id(&self, index: usize) -> String {
        let name = slug(&self.doubts[index].name);
        match self.doubts[..index].iter().filter(|before| slug(&before.name) == name).count() {
            0 => format!("doubt-{name}"),
            before => format!("doubt-{name}-{}", before + 1),
        }
    }

    fn method_blocks(&self) -> Vec<Block> {
        let methods = self.methods.iter();
        let facts = methods.clone().map(|method| (&method.name, method.says.clone()));
        let commands = methods.clone().flat_map(|method| method.commands.clone());
        vec![Block::facts(facts), Block::Commands(commands.collect())]
    }
}

/// Maximum number of opening lines above the findings.
const OPENING_MAX: usize = 4;
/// Maximum number of findings that are shown unfolded.
const FINDINGS_MAX: usize = 10;
/// Maximum number of rows of a comparison that is shown below the answer.
const COMPARED_MAX: usize = 6;

fn counted(count: usize, noun: &str) -> String {
    units::counted(count as u64, noun)
}

fn finding(finding: &FindingText) -> Item {
    let class = match finding.support {
        Support::Shown => "shown",
        Support::Doubted => "doubted",
        Support::Described => "described",
        Support::CannotBeTold => "undecided",
    };
    let counts = [
        (finding.runs.len(), "run"),
        (finding.figures.len(), "number"),
        (finding.doubts.len(), "doubt"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, noun)| counted(count, noun)).collect();
    let numbers = finding.figures.iter().map(|fact| Detail::new(&fact.name, &[], &fact.value));
    let doubts = finding.doubts.iter().map(|doubt| Detail::new("doubt", &[], doubt));
    let rests_on = Detail::new("rests on", &finding.runs, "");
    let rests_on = (!finding.runs.is_empty()).then_some(rests_on);
    Item {
        badge: Some((class, finding.support.text())),
        note: counts.join(", "),
        details: numbers.chain(doubts).chain(rests_on).collect(),
        ..Item::new(finding.says.clone(), "")
    }
}

/// The evidence for a doubt; runs with the same evidence share one entry.
fn evidence_of(doubt: &SeenDoubt) -> Vec<Detail> {
    let mut details: Vec<Detail> = Vec::new();
    for seen in &doubt.seen {
        match details.iter_mut().find(|detail| detail.text == seen.evidence) {
            Some(known) => known.runs.extend(seen.run),
            None => details.push(Detail::new("", seen.run.as_slice(), &seen.evidence)),
        }
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportedRun, Seen};
    use feedrate_results::import::RunOrigin;
    use feedrate_results::run::Run;

    #[test]
    fn an_opening_line_is_left_out_if_all_its_findings_are_shown() {
        let line = |name: &str, findings: &[usize]| OpeningLine {
            name: name.into(),
            value: "x".into(),
            findings: findings.into(),
        };
        let opening = vec![line("none", &[]), line("shown", &[0, 9]), line("hidden", &[0, 10])];
        let blocks = Report { opening, ..Report::default() }.answer_blocks(Vec::new());
        let Some(Block::Facts(facts)) = blocks.first() else { panic!("{blocks:?}") };
        let names: Vec<&str> = facts.iter().map(|fact| fact.name.as_str()).collect();
        assert_eq!(names, ["none", "hidden"]);
    }

    #[test]
    fn a_single_run_of_another_program_has_all_doubts() {
        let shown = |origin| {
            let run = Run { origin, ..Run::default() };
            let seen = Seen { run: Some(0), evidence: "few steps".into(), advice: "more".into() };
            let name = "short".to_string();
            let (severity, seen) = (Severity::Note, vec![seen]);
            let [is_relevant, is_decisive] = [false; 2];
            let doubt = SeenDoubt { name, severity, is_relevant, is_decisive, seen };
            let runs = vec![ReportedRun { run, ..ReportedRun::default() }];
            let report = Report { runs, doubts: vec![doubt], ..Report::default() };
            report.doubt_blocks()
        };
        let hint = "1 doubt could not change any answer";
        let [foreign, own] =
            [RunOrigin::Dlio, RunOrigin::Feedrate].map(|origin| format!("{:?}", shown(origin)));
        assert!(foreign.contains("few steps") && !foreign.contains(hint) && own.contains(hint));
    }

    #[test]
    fn the_figures_section_says_more_only_if_figures_lead_the_page() {
        let figures = [true, false].map(|is_lead| ReportFigure { is_lead, ..Default::default() });
        let report = Report { figures: figures.into(), ..Report::default() };
        for (figure_use, expected) in
            [(FigureUse::Pictures, "More figures"), (FigureUse::Values, "Figures")]
        {
            let sections = report.document(figure_use).sections;
            assert!(sections.iter().any(|section| section.heading == expected), "{sections:?}");
        }
    }
}
