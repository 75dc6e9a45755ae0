//! Sentences whose words in backticks are names, and what is said of a report as a whole.

use crate::report::{Report, SeenDoubt};
use feedrate_spec::units;

/// A stretch of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch<'a> {
    Plain(&'a str),
    /// A key, a name, a command.
    Name(&'a str),
}

/// A sentence in stretches. A backtick without a partner is itself.
pub(super) fn stretches(sentence: &str) -> Vec<Stretch<'_>> {
    let mut stretches = Vec::new();
    let mut rest = sentence;
    while let Some((before, (name, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        stretches.extend([Stretch::Plain(before), Stretch::Name(name)]);
        rest = after;
    }
    stretches.push(Stretch::Plain(rest));
    stretches.retain(|stretch| *stretch != Stretch::Plain(""));
    stretches
}

/// A sentence whose stretches are written so.
pub(super) fn written(text: &str, plain: fn(&str) -> String, name: fn(&str) -> String) -> String {
    let mut written = String::new();
    for stretch in stretches(text) {
        written += &match stretch {
            Stretch::Plain(text) => plain(text),
            Stretch::Name(text) => name(text),
        };
    }
    written
}

/// How much there is, and how much of it is doubted.
pub(super) fn glance(report: &Report) -> String {
    let counts = [
        (report.runs.len(), "run"),
        (crate::experiment::experiments(report).len(), "experiment"),
        (report.findings.len(), "finding"),
        (report.doubted_runs(), "run"),
    ];
    let mut text = counts.map(|(count, what)| units::counted(count as u64, what)).join(", ");
    text += " with doubts";
    if !report.left_out.is_empty() {
        text += &format!(", {} left out", report.left_out.len());
    }
    text
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
        use Stretch::{Name, Plain};
        for (sentence, expected) in [
            ("`a` is `b c`.", vec![Name("a"), Plain(" is "), Name("b c"), Plain(".")]),
            ("no name", vec![Plain("no name")]),
            ("one ` alone", vec![Plain("one ` alone")]),
            ("", vec![]),
        ] {
            assert_eq!(stretches(sentence), expected);
        }
    }
}
