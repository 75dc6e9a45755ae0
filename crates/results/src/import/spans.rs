//! Compares the start and end times in a file `per_epoch_stats.json` with each other, and collects the durations of checkpoints.

use super::json::{self, Fields, text};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::CheckpointKind;
use feedrate_spec::units;
use serde_json::{Map, Value};

/// Time by which a block may begin before its epoch, or end after it. Other calls of the clock measure them.
const NESTING_MAX_US: i64 = 100_000;
/// Share and time by which a duration may differ from the time between start and end. Older DLIO rounds durations to 10 ms.
const DURATION_SHARE: f64 = 0.02;
const DURATION_MAX_S: f64 = 0.01;

/// A checkpoint on one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointSpan {
    pub(crate) rank: u32,
    pub(crate) kind: CheckpointKind,
    /// Time from its start to its end.
    pub(crate) length_s: f64,
    /// Rate that DLIO reported.
    pub(crate) gib_per_second: Option<f64>,
}

/// Lists times that contradict each other: a block or checkpoint outside its epoch, an evaluation that begins before it, a duration other than the
/// time from start to end, and an epoch that begins before the end of the previous one. `file` names the file in the sentences.
pub(super) fn contradictions(file: &str, stats: &Fields) -> Vec<String> {
    let mut found = Vec::new();
    let mut epochs: Vec<(u32, &Map<String, Value>)> = stats
        .iter()
        .filter_map(|(key, epoch)| Some((key.parse().ok()?, epoch.as_object()?)))
        .collect();
    epochs.sort_unstable_by_key(|(number, _)| *number);
    let mut previous = None;
    for (number, epoch) in epochs {
        let start_us = time_us(epoch, "start");
        let end_us = time_us(epoch, "end");
        if let Some((previous, previous_end_us)) = previous
            && let Some(time) = excess(previous_end_us, start_us)
        {
            found.push(format!(
                "epoch {number} began {time} before the end of epoch {previous}, in `{file}`"
            ));
        }
        for (name, span) in epoch {
            let Some(span) = span.as_object() else { continue };
            if let Some(time) = excess(start_us, time_us(span, "start")) {
                found.push(format!("epoch {number} began {time} after its `{name}`, in `{file}`"));
            }
            // Older results of feedrate end an epoch before its evaluation.
            let ends_in_epoch = name != "eval";
            if let Some(time) = excess(time_us(span, "end"), end_us).filter(|_| ends_in_epoch) {
                found.push(format!("epoch {number} ended {time} before its `{name}`, in `{file}`"));
            }
        }
        found.extend(epoch.iter().filter_map(|(name, span)| {
            let [stated, measured] = different_durations(span.as_object()?)?.map(units::seconds);
            Some(format!(
                "`{name}` of epoch {number} lasted {measured} from start to end, but its duration is {stated}, in `{file}`"
            ))
        }));
        previous = Some((number, end_us));
    }
    found
}

/// Formats the time from `earlier_us` back to `later_us`, if the order of the two is clearly wrong.
fn excess(earlier_us: Option<i64>, later_us: Option<i64>) -> Option<String> {
    let excess_us = earlier_us?.checked_sub(later_us?)?;
    (NESTING_MAX_US < excess_us).then(|| units::seconds(excess_us as f64 / 1e6))
}

/// Returns the stated duration and the time from start to end in seconds, if they differ. Clocks that run backwards are reported elsewhere.
fn different_durations(span: &Map<String, Value>) -> Option<[f64; 2]> {
    let measured_s = length_s(span)?;
    let stated_s = json::number(span.get("duration")?);
    let differs = DURATION_SHARE * measured_s + DURATION_MAX_S < (stated_s - measured_s).abs();
    differs.then_some([stated_s, measured_s])
}

/// Collects the checkpoints of one rank.
pub(super) fn checkpoints(rank: u32, stats: &Fields) -> Vec<CheckpointSpan> {
    let epochs = stats.values().filter_map(Value::as_object);
    let spans = epochs.flat_map(|epoch| epoch.iter()).filter_map(|(name, span)| {
        let (kind, _) = name.split_once("ckpt")?;
        let span = span.as_object()?;
        let kind = if kind == "load_" { CheckpointKind::Load } else { CheckpointKind::Save };
        let rate = span.get("throughput").map(json::number);
        let gib_per_second = rate.filter(|rate| rate.is_finite());
        Some(CheckpointSpan { rank, kind, length_s: length_s(span)?, gib_per_second })
    });
    spans.collect()
}

/// Returns the time from start to end; `None` if it is unknown or negative.
fn length_s(span: &Map<String, Value>) -> Option<f64> {
    let length_us = time_us(span, "end")?.checked_sub(time_us(span, "start")?)?;
    (0 <= length_us).then_some(length_us as f64 / 1e6)
}

fn time_us(span: &Map<String, Value>, key: &str) -> Option<i64> {
    span.get(key).and_then(text).as_deref().and_then(micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks the contradictions in an epoch from 10 s to 20 s with a block from 11 s to 19 s and a later evaluation, of which one entry is replaced.
    fn check(path: &[&str], value: Value, expected: &[&str]) {
        let time = |s: u32| format!("2025-11-30T10:00:{s}.000000");
        let mut stats = json!({
            "1": {
                "start": time(10), "end": time(20), "duration": "9.80",
                "block1": {"start": time(11), "end": time(19), "duration": "8.00"},
                "save_ckpt1": {"start": time(19), "end": time(20), "duration": 1.0},
                "eval": {"start": time(20), "end": time(25), "duration": "5.00"},
            },
            "2": {"start": time(25), "end": time(35)},
        });
        let mut entry = &mut stats;
        for key in path {
            entry = &mut entry[*key];
        }
        *entry = value;
        let found = contradictions("x", stats.as_object().unwrap());
        assert_eq!(found, expected, "{path:?}");
    }

    #[test]
    fn times_that_contradict_each_other_are_listed() {
        let time = |s: &str| json!(format!("2025-11-30T10:00:{s}"));
        check(&["1", "duration"], json!("9.00"), &[]);
        check(&["1", "start"], time("11.050000"), &[]);
        check(
            &["1", "start"],
            time("14.000000"),
            &["epoch 1 began 3 s after its `block1`, in `x`"],
        );
        check(
            &["1", "end"],
            time("19.500000"),
            &["epoch 1 ended 500 ms before its `save_ckpt1`, in `x`"],
        );
        check(
            &["2", "start"],
            time("15.000000"),
            &["epoch 2 began 5 s before the end of epoch 1, in `x`"],
        );
        check(&["1", "eval"], json!({"start": time("10.000000"), "end": time("25.000000")}), &[]);
        check(
            &["1", "eval"],
            json!({"start": time("09.000000"), "end": time("25.000000")}),
            &["epoch 1 began 1 s after its `eval`, in `x`"],
        );
        check(&["1", "block1", "duration"], json!("8.01"), &[]);
        check(
            &["1", "block1", "duration"],
            json!("4.00"),
            &["`block1` of epoch 1 lasted 8 s from start to end, but its duration is 4 s, in `x`"],
        );
        check(
            &["1", "save_ckpt1", "duration"],
            json!(0.5),
            &[
                "`save_ckpt1` of epoch 1 lasted 1 s from start to end, but its duration is 500 ms, in `x`",
            ],
        );
        check(&["1", "block1"], json!("hostile"), &[]);
        check(&["1"], json!([1]), &[]);
    }
}
