//! States in one line whether runs keep the rules of MLPerf Storage.

use super::answer::range;
use super::number::{list, quoted, two_digits};
use feedrate_results::run::{MlperfCheck, Run};
use feedrate_spec::mlperf::{DATASET_TO_MEMORY_MIN, STEPS_PER_EPOCH_MIN};
use feedrate_spec::units::count;
use std::collections::BTreeSet;

/// The name of the line.
pub const NAME: &str = "MLPerf rules";

/// The line; `None` if no run has one of MLPerf's workloads.
pub fn line<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    says(&runs.filter_map(Run::mlperf).collect::<Vec<_>>())
}

fn says(checks: &[MlperfCheck]) -> Option<String> {
    let first = checks.first()?;
    let count_of = |keeps: Option<bool>| checks.iter().filter(|check| check.keeps == keeps).count();
    let yes = count_of(Some(true));
    let no = count_of(Some(false));
    let unknown = count_of(None);
    let head = match (checks.len(), yes, no) {
        (1, 1, _) => "kept".into(),
        (1, _, 1) => "not kept".into(),
        (1, ..) => "unknown".into(),
        (several, 0, no) if no == several => format!("none of {several} runs keeps them"),
        (several, ..) if unknown > 0 => {
            format!("kept by {yes} of {several} runs, unknown for {unknown}")
        }
        (several, ..) => format!("kept by {yes} of {several} runs"),
    };
    let times = range_of(checks, |check| check.dataset_to_memory, two_digits);
    let steps = range_of(
        checks,
        |check| check.steps_per_epoch.map(|steps| steps as f64),
        |steps| count(steps as u64),
    );
    let au = range_of(
        checks,
        |check| check.au_percent,
        |au| format!("{:.1} %", (au * 10.0).floor() / 10.0),
    );
    let required = checks.iter().map(|check| {
        let percent = check.au_min_percent;
        (percent, format!("{percent:.0}"))
    });
    let required = range(required).unwrap_or_else(|| format!("{:.0}", first.au_min_percent));
    Some(format!(
        "{head}: dataset ÷ memory {times} (required: {DATASET_TO_MEMORY_MIN}), steps per epoch {steps} (required: {STEPS_PER_EPOCH_MIN}), windowed AU {au} (required: {required} %), {}",
        changed_settings(checks)
    ))
}

/// The range of a property over all checks, and the number of checks where it is unknown.
fn range_of(
    checks: &[MlperfCheck],
    property: impl Fn(&MlperfCheck) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> String {
    let known = range(checks.iter().filter_map(&property).map(|value| (value, text(value))));
    let unknown = checks.iter().filter(|check| property(check).is_none()).count();
    match (known, unknown) {
        (None, _) => "unknown".into(),
        (Some(known), 0) => known,
        (Some(known), unknown) => format!("{known}, {unknown} unknown"),
    }
}

/// The fixed settings that were changed.
fn changed_settings(checks: &[MlperfCheck]) -> String {
    let known: Vec<_> = checks.iter().filter_map(|check| check.changed.as_ref()).collect();
    let keys: BTreeSet<_> = known.iter().copied().flatten().collect();
    let names = keys.iter().map(|setting| {
        let name = setting.key.rsplit('.').next().unwrap_or(&setting.key);
        format!("{}{}", quoted(name), if setting.is_open { " (open only)" } else { "" })
    });
    let names: Vec<String> = names.collect();
    let unknown = if known.len() < checks.len() { ", else unknown" } else { "" };
    match (known.len(), names.as_slice()) {
        (0, _) => "changed settings unknown".into(),
        (_, []) => format!("no fixed setting changed{unknown}"),
        (_, names) => format!("changed: {}{unknown}", list(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::run::ChangedSetting;

    fn check(all: &[MlperfCheck], expected: &str) {
        assert_eq!(says(all).as_deref(), Some(expected));
    }

    #[test]
    fn rules_fit_a_line_and_missing_numbers_are_unknown() {
        let kept = MlperfCheck {
            keeps: Some(true),
            dataset_to_memory: Some(5.2),
            steps_per_epoch: Some(1500),
            au_percent: Some(93.25),
            au_min_percent: 90.0,
            changed: Some(vec![]),
        };
        check(
            std::slice::from_ref(&kept),
            "kept: dataset ÷ memory 5.2 (required: 5), steps per epoch 1,500 (required: 500), windowed AU 93.2 % (required: 90 %), no fixed setting changed",
        );
        let nearly = MlperfCheck { dataset_to_memory: Some(4.951), ..kept.clone() };
        check(
            &[nearly],
            "kept: dataset ÷ memory 5 (required: 5), steps per epoch 1,500 (required: 500), windowed AU 93.2 % (required: 90 %), no fixed setting changed",
        );
        let key = |key: &str, is_open| ChangedSetting { key: key.into(), is_open };
        let broken = MlperfCheck {
            keeps: Some(false),
            dataset_to_memory: Some(0.02),
            steps_per_epoch: Some(3),
            changed: Some(vec![key("dataset.format", true), key("reader.batch_size", false)]),
            ..kept.clone()
        };
        let unknown = MlperfCheck {
            keeps: None,
            dataset_to_memory: None,
            au_percent: None,
            changed: None,
            ..kept.clone()
        };
        check(
            std::slice::from_ref(&unknown),
            "unknown: dataset ÷ memory unknown (required: 5), steps per epoch 1,500 (required: 500), windowed AU unknown (required: 90 %), changed settings unknown",
        );
        check(
            &[broken, kept, unknown],
            "kept by 1 of 3 runs, unknown for 1: dataset ÷ memory 0.02 to 5.2, 1 unknown (required: 5), steps per epoch 3 to 1,500 (required: 500), windowed AU 93.2 %, 1 unknown (required: 90 %), changed: `format` (open only) and `batch_size`, else unknown",
        );
        assert_eq!(says(&[]), None);
    }
}
