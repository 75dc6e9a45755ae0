//! Formats numbers for tables, in the units of their headings. Unknown values are dashes.

use feedrate_analysis::design::UNSET;
use feedrate_spec::units;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// All integers below this number are exact as 64-bit floats.
const EXACT_BELOW: f64 = (1u64 << 53) as f64;

/// The text of an unknown value.
pub(crate) const UNKNOWN: &str = "–";

/// A percentage with one decimal: `99.7`.
pub(super) fn percent(value: Option<f64>) -> String {
    decimals(value, 1)
}

/// Bytes per second, as MB/s: `146.6`.
pub(super) fn megabytes(value: Option<f64>) -> String {
    significant(value.map(|rate| rate / 1e6))
}

/// A number with about three significant digits.
pub(super) fn significant(value: Option<f64>) -> String {
    let places = match value.map(f64::abs) {
        Some(size) if size >= 100.0 => 1,
        Some(size) if size >= 1.0 || size == 0.0 => 2,
        Some(size) if size > 1e-9 => (2.0 - size.log10().floor()).max(4.0) as usize,
        _ => 4,
    };
    decimals(value, places)
}

fn decimals(value: Option<f64>, places: usize) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or(UNKNOWN.into(), |value| format!("{value:.places$}"))
}

/// An estimate with the ends of its interval, if any: `96.9 % [95.5 %, 98.2 %]`.
pub fn with_interval(
    middle: f64,
    ends: Option<(f64, f64)>,
    text: impl Fn(f64) -> String,
) -> String {
    let ends = ends.map(|(low, high)| format!(" [{}, {}]", text(low), text(high)));
    text(middle) + &ends.unwrap_or_default()
}

/// A level of a setting for display, with a unit if the key implies a unit.
pub(super) fn level(key: &str, level: &str) -> String {
    match level.parse::<f64>() {
        Ok(value) if !value.is_finite() => level.into(),
        Ok(value) if key.ends_with("bytes_per_second") => units::bytes_per_second(value),
        Ok(value) if key.ends_with("bytes") => units::bytes(value as u64),
        Ok(value) if value.abs() < EXACT_BELOW => value.to_string(),
        // Without the format of checkpoints there are none.
        Err(_) if level == UNSET && key.ends_with(".format") => "none".into(),
        _ => level.into(),
    }
}

/// The distinct names with their counts, most frequent first.
pub(super) fn count_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

/// Consecutive numbers of runs in their report, which begin at 1.
#[derive(Clone, Copy)]
pub(crate) struct RunRange {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// The noun for a number of runs.
pub(crate) fn run_noun(runs: usize) -> &'static str {
    if runs == 1 { "run" } else { "runs" }
}

/// The numbers of runs from their indexes. Two consecutive runs are not joined.
pub(crate) fn run_ranges(indexes: &[usize]) -> Vec<RunRange> {
    let numbers: BTreeSet<usize> = indexes.iter().map(|index| index + 1).collect();
    let mut joined: Vec<RunRange> = Vec::new();
    for number in numbers {
        match joined.last_mut() {
            Some(range) if range.last + 1 == number => range.last = number,
            _ => joined.push(RunRange { first: number, last: number }),
        }
    }
    let split = joined.into_iter().flat_map(|RunRange { first, last }| match last - first {
        1 => vec![RunRange { first, last: first }, RunRange { first: last, last }],
        _ => vec![RunRange { first, last }],
    });
    split.collect()
}

/// The numbers of runs from their indexes: `runs 1 to 4, 7`.
pub(crate) fn run_numbers(indexes: &[usize]) -> String {
    let ranges = run_ranges(indexes).into_iter().map(|RunRange { first, last }| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    });
    format!("{} {}", run_noun(indexes.len()), ranges.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_runs_are_joined_to_ranges() {
        let cases: [(&[usize], &str); 4] = [
            (&[2], "run 3"),
            (&[0, 1], "runs 1, 2"),
            (&[0, 1, 2, 6], "runs 1 to 3, 7"),
            (&[4, 1, 3, 5], "runs 2, 4 to 6"),
        ];
        for (indexes, expected) in cases {
            assert_eq!(run_numbers(indexes), expected);
        }
    }

    #[test]
    fn numbers_have_their_significant_digits() {
        for (value, expected) in [
            (Some(1234.56), "1234.6"),
            (Some(12.345), "12.35"),
            (Some(0.012345), "0.0123"),
            (Some(-0.000_012_345), "-0.0000123"),
            (Some(0.0), "0.00"),
            (Some(f64::NAN), UNKNOWN),
            (None, UNKNOWN),
        ] {
            assert_eq!(significant(value), expected);
        }
        assert_eq!(percent(Some(99.96)), "100.0");
        assert_eq!(megabytes(Some(146_600_628.0)), "146.6");
    }

    #[test]
    fn levels_have_units_and_the_commonest_names_come_first() {
        for (key, text, expected) in [
            ("dataset.record_length_bytes", "2000000", "2 MB"),
            ("storage.throttle_bytes_per_second", "4e8", "400 MB/s"),
            ("reader.read_threads", "8", "8"),
            ("dataset.format", "npz", "npz"),
            ("train.seed", "9007199254740993", "9007199254740993"),
            ("dataset.record_length_bytes", "nan", "nan"),
        ] {
            assert_eq!(level(key, text), expected);
        }
        assert_eq!(count_names(["b", "c", "a", "b"]), [("b", 2), ("a", 1), ("c", 1)]);
    }
}
