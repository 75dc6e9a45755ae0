//! Comparisons in sentences.

use feedrate_analysis::compare::{ComparedResponse, Ground, Note};
use feedrate_measure::metric::{Metric, Unit};
use feedrate_spec::units::counted;

/// Say what two sides come to.
pub fn verdict(of: &ComparedResponse) -> String {
    let why = match &of.ground {
        Ground::Within(margin) => return format!("same within {}", percent(*margin)),
        Ground::Equal(value) => {
            let text = Metric::find(of.response).map(|of| of.unit.text(*value));
            let text = text.map_or(String::new(), |value| format!(": {value}"));
            return format!("equal in all runs{text}");
        }
        Ground::NotWorseBy(margin) => {
            return format!("not worse by more than {}", percent(*margin));
        }
        Ground::Differs { is_better, by } => {
            let word = if *is_better { "better" } else { "worse" };
            let is_percent = Metric::find(of.response).is_ok_and(|of| of.unit == Unit::Percent);
            let by = if is_percent { format!("{by:.2} points") } else { percent(*by) };
            return format!("differs: B is {word}, by {by}");
        }
        Ground::InvalidRuns { a, b } => [("A", a), ("B", b)]
            .into_iter()
            .filter(|(_, runs)| **runs > 0)
            .map(|(side, runs)| {
                format!("{} of {side} must not be used", counted(*runs as u64, "run"))
            })
            .collect::<Vec<_>>()
            .join(", "),
        Ground::NotComparable { differs, unknown } => {
            [("differ in", differs), ("are not known to be alike in", unknown)]
                .into_iter()
                .filter(|(_, keys)| !keys.is_empty())
                .map(|(verb, keys)| format!("A and B {verb} {}", keys.join(", ")))
                .collect::<Vec<_>>()
                .join("; ")
                + "; `--across KEY` takes that as what is compared"
        }
        Ground::TooNoisy { runs } => {
            let more = runs.map(|runs| format!("; about {runs} runs of each would tell"));
            format!("the noise is too large for so few runs{}", more.unwrap_or_default())
        }
        Ground::FewRuns { a, b } => [("A", a), ("B", b)]
            .map(|(side, n)| match n {
                0 => format!("{side} has no {}", of.response),
                n => format!("n = {n} in {side}"),
            })
            .join(", "),
        Ground::UnequalCounts { a, b } => format!("{a} runs of A and {b} of B are no pairs"),
        Ground::DifferentReplicates => "their replicates or blocks are not the same".into(),
        Ground::MissingValues => "runs without a value leave others without a partner".into(),
        Ground::NotPositive => "a value that is not positive has no ratio".into(),
    };
    format!("cannot be told: {why}")
}

/// Say what may be behind a difference.
pub fn note(of: &Note) -> String {
    match of {
        Note::Differs(of) => {
            let [a, b] = [&of.a, &of.b].map(|value| value.as_deref().unwrap_or("unknown"));
            format!("not the same {}: `{a}` in A, `{b}` in B", of.setting)
        }
        Note::Varies { side, what } => format!("runs of {side} are not all of the same {what}"),
    }
}

/// A share as people write it: `2 %`, `11.14 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}
