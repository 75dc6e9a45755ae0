//! Settings that two sides must share for a difference between them to be one of their storage, unless it is what is compared. Says nothing of other settings.

use feedrate_results::run::{ROWS, Run, factor};

/// One of these.
#[derive(Debug)]
pub struct MatchingKey {
    /// Its name as a factor.
    pub name: &'static str,
    /// Its value; `None` where it is not known.
    value: fn(&Run) -> Option<String>,
    /// The content that it is a name of: where all have the same, they are alike under any name.
    content: fn(&Run) -> Option<String>,
    /// Share by which numbers may differ: those that were measured do.
    tolerance: f64,
}

/// All of them.
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
    /// Whether it is named by its name as a factor, or by a key of a plan or of DLIO.
    pub fn is_named(&self, names: &[&str]) -> bool {
        let row = ROWS.iter().find(|(_, plan, _)| factor(plan) == self.name);
        let own = row.map_or([self.name; 3], |&(_, plan, dlio)| [self.name, plan, dlio]);
        names.iter().any(|name| own.contains(name))
    }

    /// Whether all runs have the same; `None` where it is not known of one.
    pub(super) fn all_match(&self, runs: &[&Run]) -> Option<bool> {
        let of_all = |value: fn(&Run) -> Option<String>| {
            runs.iter().map(|run| value(run)).collect::<Option<Vec<String>>>()
        };
        if of_all(self.content).is_some_and(|all| all.iter().all(|one| *one == all[0])) {
            return Some(true);
        }
        let values = of_all(self.value)?;
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
        let is_same = values.iter().all(|value| *value == values[0]);
        let ends = numbers.and_then(|all| {
            Some((all.iter().copied().reduce(f64::min)?, all.iter().copied().reduce(f64::max)?))
        });
        Some(is_same || ends.is_some_and(|(low, high)| high - low <= self.tolerance * high))
    }
}

fn workload(run: &Run) -> Option<String> {
    run.is_workload_known().then(|| run.workload.clone())
}

/// All that is decided of the data of a run of ours; batch, compute and accelerators are keys of their own.
fn dataset(run: &Run) -> Option<String> {
    let own = run.settings.iter().filter(|(key, _)| key.starts_with("dataset."));
    let own: Vec<String> = own.map(|(key, value)| format!("{key}={value}")).collect();
    run.has_settings().then(|| own.join(" "))
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn sample_bytes(run: &Run) -> Option<f64> {
    run.record_length_bytes.or(run.mean_sample_bytes)
}

/// As configured, else as the steps took.
fn compute_s(run: &Run) -> Option<String> {
    let asked = run.settings.get("train.compute.mean");
    asked.cloned().or_else(|| text(run.step_times.compute_s_per_step))
}
