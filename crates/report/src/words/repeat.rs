//! Renders the answer of several runs of one plan. Decides nothing.

use crate::number::count_names;
use crate::words::answer::percent_near_target;
use crate::words::number::list;
use feedrate_analysis::answer::{AnswerKind, AnsweredSummary};
use feedrate_analysis::repeat::{CHECKPOINT_RATES, RepeatedAnswer, RepeatedValue};
use feedrate_measure::metric::{DELIVERED_WHOLE, SAMPLES_WHOLE, Unit};
use feedrate_measure::stats::{OUTLIER_VALUES_MIN, modified_z_scores};
use feedrate_spec::units;

/// The answer, such as `NO: 3 runs: 54 % ± 2 AU, target 90 %, storage-bound`; the rates; and the outliers.
pub fn lines(answer: &RepeatedAnswer, runs: &[AnsweredSummary]) -> Vec<String> {
    let probably = if answer.is_open { "PROBABLY " } else { "" };
    let head = answer.kind.to_uppercase();
    let count = units::counted(answer.runs, "run");
    let mut lines = vec![format!("{probably}{head}: {count}: {}", says(answer, runs))];
    lines.extend(rates(answer));
    lines.extend(outliers(answer));
    lines
}

/// A value with half of its interval: `54 % ± 2`, `19.8 MB/s ± 310 kB/s`.
pub fn plus_minus(value: &RepeatedValue) -> String {
    with_half_width(value, &value.unit().text(value.mean))
}

fn with_half_width(value: &RepeatedValue, mean: &str) -> String {
    let Some(half) = value.half_width() else { return mean.into() };
    match value.unit() {
        Unit::Percent => format!("{mean} ± {half:.*}", usize::from(half < 1.0)),
        unit => format!("{mean} ± {}", unit.text(half)),
    }
}

fn says(answer: &RepeatedAnswer, runs: &[AnsweredSummary]) -> String {
    let value = |name: &str| answer.value(name).map(plus_minus);
    match answer.kind() {
        AnswerKind::Yes | AnswerKind::No => {
            let target = answer.required_percent;
            let au = answer.utilisation().map_or_else(String::new, |au| {
                let mean = percent_near_target(au.mean, target);
                with_half_width(au, &format!("{mean} %"))
            });
            format!("{au} AU, target {target} %, {}", verdicts(runs))
        }
        AnswerKind::Unknown => {
            let unknown = runs.iter().filter(|run| run.answer.kind == AnswerKind::Unknown);
            let reasons =
                unknown.filter_map(|run| run.answer.unknown_because).map(|why| why.name());
            let reasons = count_names(reasons);
            if reasons.is_empty() {
                return "their answers are of different kinds".into();
            }
            let reasons = reasons.iter().map(|(why, count)| format!("{count} {why}"));
            list(reasons)
        }
        AnswerKind::Rate => {
            let rates = [DELIVERED_WHOLE.id, SAMPLES_WHOLE.id].map(|id| value(id.name()));
            let memory = if answer.is_memory_served { " possibly from memory" } else { "" };
            let rates = Vec::from_iter(rates.into_iter().flatten()).join(", ");
            format!("{rates}{memory}; without compute there is no AU")
        }
        AnswerKind::Checkpoints => {
            let [written, read] = CHECKPOINT_RATES.map(value);
            let written = written.map(|rate| format!("written at {rate}"));
            let read = read.map(|rate| format!("read at {rate}"));
            Vec::from_iter(written.into_iter().chain(read)).join("; ")
        }
    }
}

/// `storage-bound`, or `2 storage-bound, 1 decode-bound`.
fn verdicts(runs: &[AnsweredSummary]) -> String {
    let counts = count_names(runs.iter().map(|run| run.answer.verdict.name()));
    match counts[..] {
        [(only, _)] => only.into(),
        _ => {
            let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
            Vec::from_iter(counts).join(", ")
        }
    }
}

/// `Needs 26 MB/s, gets 19.8 MB/s ± 310 kB/s`.
fn rates(answer: &RepeatedAnswer) -> Option<String> {
    answer.fed?;
    let gets = plus_minus(answer.value(DELIVERED_WHOLE.id.name())?);
    let needs = units::bytes_per_second_rounded(answer.needed_bytes_per_second?);
    Some(format!("Needs {needs}, gets {gets}"))
}

/// `Outliers: run 7 (31.0 %)`; unknown if too many values are equal; `None` for too few runs.
fn outliers(answer: &RepeatedAnswer) -> Option<String> {
    let decides = answer.value(answer.decides.as_deref()?)?;
    if decides.values.len() < OUTLIER_VALUES_MIN {
        return None;
    }
    let unit = decides.unit();
    let outliers = answer.outliers.iter();
    let outliers: Vec<String> =
        outliers.map(|run| format!("run {} ({})", run.run, unit.text(run.value))).collect();
    Some(if modified_z_scores(&decides.values).is_none() {
        "Outliers: unknown, since most runs have the same value".into()
    } else if outliers.is_empty() {
        "Outliers: none".into()
    } else {
        format!("Outliers: {}", list(outliers))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::simple;

    /// Checks the first and the last line for runs whose steps compute for 500 ms.
    #[track_caller]
    fn check(load_ms: &[u64], first: &str, last: &str) {
        let run =
            |&load_ms: &u64| AnsweredSummary::new(&simple(&[(load_ms, 500, 0, 1_000_000); 20]));
        let runs: Vec<AnsweredSummary> = load_ms.iter().map(run).collect();
        let lines = lines(&RepeatedAnswer::new(&runs), &runs);
        assert_eq!(lines[0], first);
        assert!(lines[lines.len() - 1].starts_with(last), "{lines:?}");
    }

    #[test]
    fn the_mean_has_its_interval_and_outliers_are_named_from_ten_runs_on() {
        let three = "NO: 3 runs: 50 % ± 2 AU, target 90 %, storage-bound";
        check(&[500, 480, 520], three, "Needs 2 MB/s, gets ");
        let one = "PROBABLY NO: 1 run: 50 % AU, target 90 %, storage-bound";
        check(&[500], one, "Needs 2 MB/s, gets ");
        let ten = "NO: 10 runs: 47 % ± 7 AU, target 90 %, storage-bound";
        let outlier = "Outliers: run 9 (20.0 %)";
        check(&[500, 501, 502, 503, 504, 505, 506, 507, 2000, 500], ten, outlier);
        let equal = "NO: 10 runs: 50 % ± 0.0 AU, target 90 %, storage-bound";
        check(&[500; 10], equal, "Outliers: unknown, ");
    }
}
