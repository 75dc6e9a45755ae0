//! Settings of the reader that may be the best for a goal, as predicted from the record of the unchanged workload.

use feedrate_analysis::predict::{Pipeline, Prediction};
use feedrate_measure::record::Record;
use feedrate_results::replan::Replan;
use feedrate_session::catalog;
use feedrate_session::template::RunTemplate;
use feedrate_spec::plan::Plan;

/// Keys that a record predicts, with their levels.
const LEVELS: [(&str, &[&str]); 3] = [
    ("reader.read_threads", &["1", "2", "4", "8", "16", "32", "64"]),
    ("reader.prefetch_size", &["2", "4", "8"]),
    ("reader.transfer_size", &["256KiB", "1MiB", "4MiB"]),
];
/// Most settings that are tried.
const SETTINGS_MAX: usize = 4;
/// A setting that costs more is tried if it promises this much more.
const GAIN_MIN_SHARE: f64 = 0.005;

/// The cost of a change; fields compare in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeCost {
    /// The dataset has to be generated anew.
    pub is_other_dataset: bool,
    /// Threads that read, over all accelerators.
    pub threads: u64,
    /// Keys that are set.
    pub keys: usize,
    /// Memory of the loaders, in bytes.
    pub memory_bytes: u64,
}

impl ChangeCost {
    /// The cost of `plan` instead of the `current` one, by a change of `keys` keys.
    pub fn new(plan: &Plan, current: &Plan, keys: usize) -> Self {
        ChangeCost {
            is_other_dataset: plan.dataset != current.dataset,
            threads: u64::from(plan.loader.workers) * u64::from(plan.accelerators),
            keys,
            memory_bytes: catalog::estimate(plan).loader_memory_bytes as u64,
        }
    }
}

/// The most promising settings, each with its overrides: none that costs more than one which promises as much.
pub fn promising(
    template: &RunTemplate,
    record: &Record,
    promise: fn(&Prediction) -> f64,
) -> Vec<Vec<String>> {
    let Ok(pipeline) = Pipeline::new(record) else { return Vec::new() };
    let current = &template.unchanged.plan;
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for (key, levels) in LEVELS {
        let more = combinations.iter().flat_map(|before| {
            levels.iter().map(|level| [before.clone(), vec![format!("{key}={level}")]].concat())
        });
        let more: Vec<_> = more.collect();
        combinations.extend(more);
    }
    let mut loaders = vec![current.loader.clone()];
    let mut settings = Vec::new();
    for overrides in combinations {
        let Some(plan) = template.plan(&overrides) else { continue };
        if loaders.contains(&plan.loader) {
            continue;
        }
        loaders.push(plan.loader.clone());
        let predicted = pipeline.predict(&plan, &[]).ok();
        let cost = ChangeCost::new(&plan, current, overrides.len());
        settings.extend(predicted.map(|predicted| (cost, overrides, promise(&predicted))));
    }
    settings.sort_by_key(|(cost, ..)| *cost);
    let unchanged = pipeline.predict(current, &[]).ok();
    let most = unchanged.map_or(f64::NEG_INFINITY, |predicted| promise(&predicted));
    frontier(settings.into_iter().map(|(_, overrides, promise)| (overrides, promise)), most)
}

/// Those of `settings`, the cheapest first, that promise more than `most` and than all cheaper ones, the best of them.
fn frontier<T>(settings: impl Iterator<Item = (T, f64)>, mut most: f64) -> Vec<T> {
    let mut kept = Vec::new();
    for (setting, promise) in settings {
        if most * (1.0 + GAIN_MIN_SHARE) < promise {
            kept.push((setting, promise));
        }
        most = most.max(promise);
    }
    kept.sort_by(|first, second| second.1.total_cmp(&first.1));
    kept.truncate(SETTINGS_MAX);
    kept.into_iter().map(|(setting, _)| setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_costs_more_and_promises_no_more_is_not_tried() {
        let settings = [(1, 31.0), (2, 60.0), (4, 97.0), (8, 97.2)];
        let threads = |most: f64| frontier(settings.into_iter(), most);
        assert_eq!(threads(f64::NEG_INFINITY), [4, 2, 1]);
        assert_eq!(threads(31.0), [4, 2]);
        assert!(threads(97.0).is_empty());
    }
}
