//! Trials: results of running changes of a workload against the unchanged workload, as stored in the folder of the trials.

use crate::place::{folder_and_entries, read_json};
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Name of the file in the folder of trials.
pub const TRIALS_FILE: &str = "advice.json";
/// Prefix of the names of folders of trials.
pub const TRIALS_FOLDER: &str = "advise-";
/// Maximum number of folders above a run, including its own, that are searched for trials.
const LEVELS_MAX: usize = 4;

/// Name of the combination of the two best changes.
pub const COMBINATION: &str = "combination";
/// Name of a change that the user requested.
pub const REQUESTED: &str = "asked";

names! {
    /// Conclusion from comparing the runs of a change with the baseline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// The utilisation is significantly higher.
        Helps = "helps",
        /// The effect is significantly smaller than any relevant effect.
        NoEffect = "no effect",
        /// The utilisation is significantly lower.
        Hurts = "hurts",
        /// There are too few runs or there is too much noise.
        NotDecided = "not decided",
        /// The change was not run.
        NotTried = "not tried",
    }
}

/// Result of trials: the baseline and the tried changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialsResult {
    /// Name of the workload.
    pub workload: String,
    /// The workload or run that was changed, and its overrides.
    #[serde(rename = "asked")]
    pub base: Vec<String>,
    /// Plan of the baseline; `None` in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub plan: Option<Plan>,
    /// Goal for which settings were tried, `au` or `throughput`; `null` for trials of advice.
    #[serde(default)]
    pub goal: Option<String>,
    /// Overrides of the best change; `null` if no change helps significantly.
    #[serde(default)]
    pub best: Option<Vec<String>>,
    /// Runs without changes.
    pub baseline: Option<TrialRuns>,
    /// Changes, the best first, followed by the combination of the best two.
    pub advice: Vec<TriedAdvice>,
    /// Reason why a change is not decided; `null` if all are decided.
    pub stopped: Option<String>,
    /// Number of runs.
    pub runs: u64,
    /// Duration of all trials in seconds.
    pub took_s: f64,
    /// Local time at which the oldest run started; `null` in results of older versions.
    #[serde(default)]
    pub oldest_run: Option<String>,
    /// Folder of the runs.
    pub results: String,
}

/// A change with its prediction and its runs. All percentages are utilisation over all steps of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedAdvice {
    /// Name of the advice rule, or [`COMBINATION`].
    pub name: String,
    /// Overrides that make the change.
    pub overrides: Vec<String>,
    /// The overrides, or a description of the change if no key makes it.
    #[serde(default)]
    pub change: String,
    /// Predicted utilisation; `null` if the record does not allow a prediction.
    pub predicted_percent: Option<f64>,
    /// Range of the prediction.
    pub interval: Option<[f64; 2]>,
    /// Runs of the change; `null` if it was not run.
    pub tried: Option<TrialRuns>,
    /// Whether the measured utilisation is outside of `interval`; `null` if the change was not predicted or not run.
    #[serde(default, rename = "mispredicted")]
    pub is_mispredicted: Option<bool>,
    /// Conclusion from the runs.
    pub outcome: Outcome,
    /// Reason why the change was not tried or is not decided.
    pub reason: Option<String>,
    /// Smallest number of epochs for which copying the dataset saves time, according to the runs; `null` if the change makes no copy.
    #[serde(default)]
    pub break_even_epochs: Option<f64>,
    /// Command that runs the changed workload; `null` if no key makes the change.
    pub command: Option<String>,
}

/// Runs of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Tried")]
pub struct TrialRuns {
    /// Mean utilisation.
    pub mean_percent: f64,
    /// The 95 % interval of the mean; `null` for a single run.
    pub interval: Option<[f64; 2]>,
    /// Number of runs.
    pub n: u64,
}

impl TriedAdvice {
    /// Returns whether the runs refute the advice: the change has no effect or hurts.
    pub fn is_withdrawn(&self) -> bool {
        matches!(self.outcome, Outcome::NoEffect | Outcome::Hurts)
    }
}

impl TrialsResult {
    /// Reads the result in a folder; `None` if it is missing or from an incompatible version.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(TRIALS_FILE))
    }

    /// Finds the trials that belong to runs with these folders and plans, sorted by folder: trials to which one of the runs belongs, and trials of
    /// the same plan in the folders above a run. `results` is set to the folder where the trials were found.
    pub fn find<'a>(runs: impl Iterator<Item = (&'a Path, Option<&'a Plan>)>) -> Vec<Self> {
        let runs: Vec<_> = runs.collect();
        let ancestors: BTreeSet<&Path> =
            runs.iter().flat_map(|(path, _)| path.ancestors().take(LEVELS_MAX)).collect();
        let folders: BTreeSet<PathBuf> = ancestors
            .into_iter()
            .flat_map(|ancestor| folder_and_entries(ancestor, TRIALS_FOLDER))
            .collect();
        let mut found = Vec::new();
        for folder in folders {
            let Some(trials) = TrialsResult::read(&folder) else { continue };
            let has_plan = |plan: Option<&Plan>| plan.is_some() && plan == trials.plan.as_ref();
            if runs.iter().any(|(path, plan)| path.starts_with(&folder) || has_plan(*plan)) {
                found.push(TrialsResult { results: folder.display().to_string(), ..trials });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::plan;

    #[test]
    fn trials_are_found_for_their_runs_and_for_runs_of_their_plan() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("results");
        let mut trials = TrialsResult {
            workload: "w".into(),
            base: vec!["w".into()],
            plan: Some(plan(2, 8)),
            goal: None,
            best: None,
            baseline: None,
            advice: Vec::new(),
            stopped: None,
            runs: 0,
            took_s: 0.0,
            oldest_run: None,
            results: "elsewhere".into(),
        };
        for (name, baseline) in [("advise-1", Some(plan(2, 8))), ("advise-2", None)] {
            std::fs::create_dir_all(root.join(name)).unwrap();
            trials.plan = baseline;
            let text = serde_json::to_string(&trials).unwrap();
            std::fs::write(root.join(name).join(TRIALS_FILE), text).unwrap();
        }
        let check = |run: &str, plan: Option<Plan>, expected: &[&str]| {
            let run = root.join(run);
            let found = TrialsResult::find([(run.as_path(), plan.as_ref())].into_iter());
            let found: Vec<String> = found.into_iter().map(|trials| trials.results).collect();
            let expected: Vec<String> =
                expected.iter().map(|name| root.join(name).display().to_string()).collect();
            assert_eq!(found, expected, "{}", run.display());
        };
        check("w/2026", Some(plan(2, 8)), &["advise-1"]);
        check("w/2026", Some(plan(4, 8)), &[]);
        check("w/2026", None, &[]);
        check("advise-2/w/2026", None, &["advise-2"]);
        check("advise-2/w/2026", Some(plan(2, 8)), &["advise-1", "advise-2"]);
    }
}
