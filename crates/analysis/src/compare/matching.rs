//! The settings that must match on both sides of a comparison unless they are its subject. If they do not match, a difference says
//! nothing about the storage. Other settings are not considered here.

use feedrate_results::run::{ROWS, Run, factor};

/// A setting that must match.
#[derive(Debug)]
pub struct MatchingKey {
    /// The setting's name as a factor.
    pub name: &'static str,
    /// The value of a run; `None` if unknown.
    value: fn(&Run) -> Option<String>,
    /// The content that the value names. Runs with the same content match even if their values differ.
    content: fn(&Run) -> Option<String>,
    /// Largest relative difference of matching numbers. Measured numbers are never exactly equal.
    tolerance: f64,
}

/// All settings that must match.
pub static KEYS: [MatchingKey; 5] = [
    MatchingKey { content: dataset, ..key("workload", workload) },
    key("processes", |run| text(run.accelerators)),
    key("batch_size", |run| text(run.batch_size)),
    key("record_length_bytes", |run| text(sample_bytes(run))),
    MatchingKey { tolerance: 0.05, ..key("computation_time", compute_s) },
];

const fn key(name: &'static str, value: fn(&Run) -> Option<String>) -> MatchingKey {
    MatchingKey { name, value, content: |_| None, tolerance: 0.0 }
}

impl MatchingKey {
    /// Whether one of `names` is this setting: its name as a factor, or its key in a plan or in DLIO's workloads.
    pub fn is_named(&self, names: &[&str]) -> bool {
        let row = ROWS.iter().find(|(_, plan, _)| factor(plan) == self.name);
        let aliases = row.map_or([self.name; 3], |&(_, plan, dlio)| [self.name, plan, dlio]);
        names.iter().any(|name| aliases.contains(name))
    }

    /// Whether the setting matches in all runs; `None` if its value is unknown in one of them.
    pub(super) fn all_match(&self, runs: &[&Run]) -> Option<bool> {
        let all_values = |value: fn(&Run) -> Option<String>| {
            runs.iter().map(|run| value(run)).collect::<Option<Vec<String>>>()
        };
        let are_equal = |values: &[String]| values.iter().all(|value| *value == values[0]);
        if all_values(self.content).is_some_and(|contents| are_equal(&contents)) {
            return Some(true);
        }
        let values = all_values(self.value)?;
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
        let range = numbers.and_then(|numbers| {
            let lowest = numbers.iter().copied().reduce(f64::min)?;
            let highest = numbers.iter().copied().reduce(f64::max)?;
            Some((lowest, highest))
        });
        let is_within_tolerance =
            range.is_some_and(|(low, high)| high - low <= self.tolerance * high);
        Some(are_equal(&values) || is_within_tolerance)
    }
}

fn workload(run: &Run) -> Option<String> {
    run.is_workload_known().then(|| run.workload.clone())
}

/// All settings of the dataset, for runs of feedrate. Batch size, compute time and accelerators are separate keys.
fn dataset(run: &Run) -> Option<String> {
    let settings = run.settings.iter().filter(|(key, _)| key.starts_with("dataset."));
    let texts: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
    run.has_settings().then(|| texts.join(" "))
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn sample_bytes(run: &Run) -> Option<f64> {
    run.record_length_bytes.or(run.mean_sample_bytes)
}

/// The configured compute time of a step, or the measured time if none is configured.
fn compute_s(run: &Run) -> Option<String> {
    let configured = run.settings.get("train.compute.mean");
    configured.cloned().or_else(|| text(run.step_times.compute_s_per_step))
}
