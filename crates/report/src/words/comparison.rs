//! Renders comparisons of two sides as sentences.

use crate::number::count_names;
use crate::words::number::list;
use feedrate_analysis::answer::UnknownBecause;
use feedrate_analysis::compare::{ComparedResponse, Note, VerdictReason};
use feedrate_measure::metric::{Metric, Unit};
use feedrate_spec::units::counted;

/// The verdict of a comparison, with its reason if it is inconclusive.
pub fn verdict(compared: &ComparedResponse) -> String {
    let why = match &compared.reason {
        VerdictReason::Within(margin) => return format!("same within {}", percent(*margin)),
        VerdictReason::Equal(value) => {
            let text = Metric::find(compared.response).map(|metric| metric.unit.text(*value));
            let text = text.map_or(String::new(), |value| format!(": {value}"));
            return format!("equal in all runs{text}");
        }
        VerdictReason::NotWorseBy(margin) => {
            return format!("not worse by more than {}", percent(*margin));
        }
        VerdictReason::Differs { is_better, size: distance } => {
            let word = if *is_better { "better" } else { "worse" };
            let is_percent =
                Metric::find(compared.response).is_ok_and(|metric| metric.unit == Unit::Percent);
            let distance =
                if is_percent { format!("{distance:.2} points") } else { percent(*distance) };
            return format!("differs: B is {word} by {distance}");
        }
        VerdictReason::InvalidRuns { a, b } => [("A", a), ("B", b)]
            .into_iter()
            .filter(|(_, runs)| **runs > 0)
            .map(|(side, runs)| format!("{} of {side} invalid", counted(*runs as u64, "run")))
            .collect::<Vec<_>>()
            .join(", "),
        VerdictReason::NotComparable { differs, unknown } => {
            [("differ in", differs), ("are not known to be alike in", unknown)]
                .into_iter()
                .filter(|(_, keys)| !keys.is_empty())
                .map(|(verb, keys)| format!("A and B {verb} {}", keys.join(", ")))
                .collect::<Vec<_>>()
                .join("; ")
                + "; `--across KEY` compares across that difference"
        }
        VerdictReason::TooNoisy { runs } => {
            let more = runs.map(|runs| format!("; about {runs} runs of each are needed"));
            format!("the noise is too large for so few runs{}", more.unwrap_or_default())
        }
        VerdictReason::FewRuns { a, b } => [("A", a), ("B", b)]
            .map(|(side, n)| match n {
                0 => format!("{side} has no {}", compared.response),
                n => format!("n = {n} in {side}"),
            })
            .join(", "),
        VerdictReason::UnequalCounts { a, b } => {
            format!("{a} runs of A cannot be paired with {b} runs of B")
        }
        VerdictReason::DifferentReplicates => "their replicates or blocks differ".into(),
        VerdictReason::MissingValues => {
            "runs without a value leave others without a partner".into()
        }
        VerdictReason::NotPositive => "a value is not positive, so there is no ratio".into(),
        VerdictReason::Distorted { a, b } => distortion(a, b),
        VerdictReason::ComputeStretched { a, b } => {
            let sides = [("A", a), ("B", b)].into_iter().filter(|(_, stretch)| **stretch != 1.0);
            let sides =
                list(sides.map(|(side, stretch)| format!("{} in {side}", percent(stretch - 1.0))));
            format!(
                "emulated compute took longer than configured, by {sides}, which could change the verdict; run again while the cores are free"
            )
        }
    };
    format!("inconclusive: {why}")
}

/// Runs whose values are not those of the storage: `5 runs of B are cpu-saturated, so their values are not those of the storage; …`.
fn distortion(a: &[UnknownBecause], b: &[UnknownBecause]) -> String {
    let runs = [("A", a), ("B", b)].into_iter().flat_map(|(side, causes)| {
        let counts = count_names(causes.iter().map(|because| because.name())).into_iter();
        counts.map(move |(name, count)| {
            let verb = if count == 1 { "is" } else { "are" };
            format!("{} of {side} {verb} {name}", counted(count as u64, "run"))
        })
    });
    let runs = list(runs);
    let has = |because| a.contains(&because) || b.contains(&because);
    let mut advice = Vec::new();
    if has(UnknownBecause::CpuSaturated) {
        advice.push("while the cores are free");
    }
    if has(UnknownBecause::CacheFed) {
        advice.push("with `--cold`");
    }
    format!("{runs}, which does not show the storage's speed; run again {}", list(advice))
}

/// A note on another possible cause of a difference.
pub fn note(note: &Note) -> String {
    match note {
        Note::Differs(difference) => {
            let a = difference.a.as_deref().unwrap_or("unknown");
            let b = difference.b.as_deref().unwrap_or("unknown");
            format!("not the same {}: `{a}` in A, `{b}` in B", difference.setting)
        }
        Note::Varies { side, setting } => {
            format!("runs of {side} are not all of the same {setting}")
        }
    }
}

/// A share as a percentage with at most two decimals: `2 %`, `11.14 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}
