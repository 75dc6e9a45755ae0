//! One line on whether runs keep MLPerf Storage's rules.

use super::answer::range;
use super::number::{list, quoted, two_digits};
use feedrate_results::run::{MlperfCheck, Run};
use feedrate_spec::mlperf::{MEMORY_TIMES_MIN, STEPS_PER_EPOCH_MIN};
use feedrate_spec::units::count;
use std::collections::BTreeSet;

/// Name of the line.
pub const NAME: &str = "MLPerf rules";

/// `None` where no run is of one of its workloads.
pub fn line<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    says(&runs.filter_map(Run::mlperf).collect::<Vec<_>>())
}

fn says(all: &[MlperfCheck]) -> Option<String> {
    let first = all.first()?;
    let of = |keeps: Option<bool>| all.iter().filter(|one| one.keeps == keeps).count();
    let [yes, no, unknown] = [Some(true), Some(false), None].map(of);
    let head = match (all.len(), yes, no) {
        (1, 1, _) => "kept".into(),
        (1, _, 1) => "not kept".into(),
        (1, ..) => "unknown".into(),
        (several, 0, no) if no == several => format!("none of {several} runs keeps them"),
        (several, ..) if unknown > 0 => {
            format!("kept by {yes} of {several} runs, unknown of {unknown}")
        }
        (several, ..) => format!("kept by {yes} of {several} runs"),
    };
    let times = told(all, |one| one.dataset_to_memory, two_digits);
    let steps = told(all, |one| one.steps_per_epoch.map(|of| of as f64), |of| count(of as u64));
    let au = told(all, |one| one.au_percent, |au| format!("{:.1} %", (au * 10.0).floor() / 10.0));
    let asked =
        range(all.iter().map(|one| (one.au_min_percent, format!("{:.0}", one.au_min_percent))));
    let asked = asked.unwrap_or_else(|| format!("{:.0}", first.au_min_percent));
    Some(format!(
        "{head}: dataset ÷ memory {times} (asked: {MEMORY_TIMES_MIN}), steps an epoch {steps} ({STEPS_PER_EPOCH_MIN}), windowed AU {au} ({asked}), {}",
        changed(all)
    ))
}

/// The range of what is known.
fn told(
    all: &[MlperfCheck],
    of: impl Fn(&MlperfCheck) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> String {
    let known = range(all.iter().filter_map(&of).map(|value| (value, text(value))));
    let unknown = all.iter().filter(|one| of(one).is_none()).count();
    match (known, unknown) {
        (None, _) => "unknown".into(),
        (Some(known), 0) => known,
        (Some(known), unknown) => format!("{known}, {unknown} unknown"),
    }
}

fn changed(all: &[MlperfCheck]) -> String {
    let known: Vec<_> = all.iter().filter_map(|one| one.changed.as_ref()).collect();
    let keys: BTreeSet<_> = known.iter().copied().flatten().collect();
    let names = keys.iter().map(|of| {
        let name = of.key.rsplit('.').next().unwrap_or(&of.key);
        format!("{}{}", quoted(name), if of.is_open { " (open only)" } else { "" })
    });
    let names: Vec<String> = names.collect();
    let unknown = if known.len() < all.len() { ", else unknown" } else { "" };
    match (known.len(), names.as_slice()) {
        (0, _) => "changed settings unknown".into(),
        (_, []) => format!("no fixed setting changed{unknown}"),
        (_, names) => format!("changed: {}{unknown}", list(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::run::Changed;

    fn check(all: &[MlperfCheck], expected: &str) {
        assert_eq!(says(all).as_deref(), Some(expected));
    }

    #[test]
    fn rules_are_told_in_a_line_and_what_is_not_known_is_unknown() {
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
            "kept: dataset ÷ memory 5.2 (asked: 5), steps an epoch 1,500 (500), windowed AU 93.2 % (90), no fixed setting changed",
        );
        let nearly = MlperfCheck { dataset_to_memory: Some(4.951), ..kept.clone() };
        check(
            &[nearly],
            "kept: dataset ÷ memory 5 (asked: 5), steps an epoch 1,500 (500), windowed AU 93.2 % (90), no fixed setting changed",
        );
        let key = |key: &str, is_open| Changed { key: key.into(), is_open };
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
            "unknown: dataset ÷ memory unknown (asked: 5), steps an epoch 1,500 (500), windowed AU unknown (90), changed settings unknown",
        );
        check(
            &[broken, kept, unknown],
            "kept by 1 of 3 runs, unknown of 1: dataset ÷ memory 0.02 to 5.2, 1 unknown (asked: 5), steps an epoch 3 to 1,500 (500), windowed AU 93.2 %, 1 unknown (90), changed: `format` (open only) and `batch_size`, else unknown",
        );
        assert_eq!(says(&[]), None);
    }
}
