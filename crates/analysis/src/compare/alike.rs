//! Settings that two sides must share for a difference between them to be one of their storage, unless it is what is compared. Says nothing of other settings.

use feedrate_results::run::{ROWS, Run};

/// One of these.
#[derive(Debug)]
pub struct AlikeKey {
    /// Its name as a factor.
    pub name: &'static str,
    /// Its value; `None` where it is not known.
    value: fn(&Run) -> Option<String>,
    /// Share by which numbers may differ: those that were measured do.
    tolerance: f64,
}

/// All of them.
pub static KEYS: [AlikeKey; 5] = [
    AlikeKey { name: "workload", value: workload, tolerance: 0.0 },
    AlikeKey { name: "processes", value: |run| text(run.accelerators), tolerance: 0.0 },
    AlikeKey { name: "batch_size", value: |run| text(run.batch_size), tolerance: 0.0 },
    AlikeKey { name: "record_length_bytes", value: |run| text(sample_bytes(run)), tolerance: 0.0 },
    AlikeKey { name: "computation_time", value: compute_s, tolerance: 0.05 },
];

impl AlikeKey {
    /// Whether it is named by its name as a factor, or by a key of a plan or of DLIO.
    pub fn is_named(&self, names: &[&str]) -> bool {
        let row = ROWS.iter().find(|(.., name)| *name == self.name);
        let own = row.map_or([self.name; 3], |&(_, plan, dlio, _)| [self.name, plan, dlio]);
        names.iter().any(|name| own.contains(name))
    }

    /// Whether all runs have the same; `None` where it is not known of one.
    pub(super) fn is_alike(&self, runs: &[&Run]) -> Option<bool> {
        let values: Option<Vec<String>> = runs.iter().map(|run| (self.value)(run)).collect();
        let values = values?;
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
