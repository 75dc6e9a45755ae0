//! Predicts which reader settings are best for a goal, from the record of the unchanged workload. `advise --try` measures them.

use feedrate_analysis::predict::{Pipeline, Prediction};
use feedrate_measure::record::Record;
use feedrate_results::replan::Replan;
use feedrate_session::catalog;
use feedrate_session::template::RunTemplate;
use feedrate_spec::plan::Plan;

/// Keys whose effect can be predicted from a record, with the levels to predict.
const LEVELS: [(&str, &[&str]); 3] = [
    ("reader.read_threads", &["1", "2", "4", "8", "16", "32", "64"]),
    ("reader.prefetch_size", &["2", "4", "8"]),
    ("reader.transfer_size", &["256KiB", "1MiB", "4MiB"]),
];
/// Maximum number of settings to try.
const SETTINGS_MAX: usize = 4;
/// Minimum relative gain over all cheaper settings for which a setting is tried.
const GAIN_MIN_SHARE: f64 = 0.005;

/// The cost of a change. Costs are compared field by field, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeCost {
    /// Whether another dataset must be generated.
    pub is_other_dataset: bool,
    /// Reading threads of all accelerators.
    pub threads: u64,
    /// Number of changed keys.
    pub keys: usize,
    /// Memory of the loaders, in bytes.
    pub memory_bytes: u64,
}

impl ChangeCost {
    /// The cost of changing from `current` to `plan` with `keys` overrides.
    pub fn new(plan: &Plan, current: &Plan, keys: usize) -> Self {
        ChangeCost {
            is_other_dataset: plan.dataset != current.dataset,
            threads: u64::from(plan.loader.workers) * u64::from(plan.accelerators),
            keys,
            memory_bytes: catalog::estimate(plan).loader_memory_bytes as u64,
        }
    }
}

/// Returns the overrides of the most promising settings, the best first. Excludes a setting if a cheaper setting has an equal score. `score` returns the
/// predicted value of the goal; larger is better.
pub fn promising_settings(
    template: &RunTemplate,
    record: &Record,
    score: fn(&Prediction) -> f64,
) -> Vec<Vec<String>> {
    let Ok(pipeline) = Pipeline::new(record) else { return Vec::new() };
    let current = &template.unchanged.plan;
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for (key, levels) in LEVELS {
        let extended = combinations.iter().flat_map(|before| {
            levels.iter().map(|level| [before.clone(), vec![format!("{key}={level}")]].concat())
        });
        let extended: Vec<_> = extended.collect();
        combinations.extend(extended);
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
        settings.extend(predicted.map(|predicted| (cost, overrides, score(&predicted))));
    }
    settings.sort_by_key(|(cost, ..)| *cost);
    let unchanged = pipeline.predict(current, &[]).ok();
    let unchanged_score = unchanged.map_or(f64::NEG_INFINITY, |predicted| score(&predicted));
    frontier(settings.into_iter().map(|(_, overrides, score)| (overrides, score)), unchanged_score)
}

/// Returns the settings that score more than `unchanged` and than all cheaper settings, the best first, up to [`SETTINGS_MAX`]. `settings` start with
/// the cheapest.
fn frontier<T>(settings: impl Iterator<Item = (T, f64)>, unchanged: f64) -> Vec<T> {
    let mut highest = unchanged;
    let mut kept = Vec::new();
    for (setting, score) in settings {
        if highest * (1.0 + GAIN_MIN_SHARE) < score {
            kept.push((setting, score));
        }
        highest = highest.max(score);
    }
    kept.sort_by(|first, second| second.1.total_cmp(&first.1));
    kept.truncate(SETTINGS_MAX);
    kept.into_iter().map(|(setting, _)| setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_more_expensive_setting_without_a_gain_is_not_tried() {
        let settings = [(1, 31.0), (2, 60.0), (4, 97.0), (8, 97.2)];
        let threads = |unchanged: f64| frontier(settings.into_iter(), unchanged);
        assert_eq!(threads(f64::NEG_INFINITY), [4, 2, 1]);
        assert_eq!(threads(31.0), [4, 2]);
        assert!(threads(97.0).is_empty());
    }
}
