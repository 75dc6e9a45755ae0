//! Sentences whose words in backticks are names, and what is said of a report as a whole.

use crate::report::{Report, SeenDoubt};
use feedrate_spec::units;

/// A stretch of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Plain(&'a str),
    /// A key, a name, a command.
    Name(&'a str),
}

/// A sentence in stretches. A backtick without a partner is itself.
pub(super) fn words(sentence: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = sentence;
    while let Some((before, name, after)) = cut(rest) {
        words.extend((!before.is_empty()).then_some(Word::Plain(before)));
        words.push(Word::Name(name));
        rest = after;
    }
    words.extend((!rest.is_empty()).then_some(Word::Plain(rest)));
    words
}

fn cut(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (name, after) = rest.split_once('`')?;
    Some((before, name, after))
}

/// How much there is, and how much of it is doubted.
pub(super) fn glance(report: &Report) -> String {
    let count = |n: usize, what: &str| units::counted(n as u64, what);
    let mut parts = vec![
        count(report.runs.len(), "run"),
        count(crate::experiment::experiments(report).len(), "experiment"),
        count(report.findings.len(), "finding"),
        format!("{} with doubts", count(report.doubted_runs(), "run")),
    ];
    if !report.left_out.is_empty() {
        parts.push(format!("{} left out", report.left_out.len()));
    }
    parts.join(", ")
}

/// Evidence of a doubt, each with its runs: the same words once.
pub(super) fn seen(doubt: &SeenDoubt) -> Vec<(Vec<usize>, &str)> {
    let mut found: Vec<(Vec<usize>, &str)> = Vec::new();
    for seen in &doubt.seen {
        match found.iter_mut().find(|(_, evidence)| *evidence == seen.evidence) {
            Some((runs, _)) => runs.extend(seen.run),
            None => found.push((seen.run.into_iter().collect(), &seen.evidence)),
        }
    }
    found
}

/// The number that a run goes by in this report.
pub(super) fn run_number(index: usize) -> String {
    format!("run {}", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_words() {
        use Word::{Name, Plain};
        for (sentence, expected) in [
            ("`a` is `b c`.", vec![Name("a"), Plain(" is "), Name("b c"), Plain(".")]),
            ("no name", vec![Plain("no name")]),
            ("one ` alone", vec![Plain("one ` alone")]),
            ("", vec![]),
        ] {
            assert_eq!(words(sentence), expected);
        }
    }
}
