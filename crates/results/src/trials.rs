//! Changes of a workload that were tried against it, as the folder of the trials keeps them.

use crate::place::{read_json, with_entries};
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file in the folder of the trials.
pub const TRIALS_FILE: &str = "advice.json";
/// How the names of such folders begin.
pub const TRIALS_FOLDER: &str = "advise-";
/// So far above the folder of a run, at most, trials of its workload are looked for: beside the folders of the workload's own runs.
const LEVELS: usize = 4;

/// Name of the best two changes together.
pub const COMBINATION: &str = "combination";
/// Name of a change that the user asked for.
pub const ASKED: &str = "asked";

names! {
    /// Conclusion from the runs of a change, against those without it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// More utilisation for certain.
        Helps = "helps",
        /// None that matters, for certain.
        NoEffect = "no effect",
        /// Less for certain.
        Hurts = "hurts",
        /// Too few runs, or too much noise.
        NotDecided = "not decided",
        /// It was not run.
        NotTried = "not tried",
    }
}

/// Changes that were tried, and the workload without them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialsResult {
    /// The workload's name.
    pub workload: String,
    /// The workload, or the run, that was changed, and the overrides it had.
    pub asked: Vec<String>,
    /// Its plan without any change; `None` in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub plan: Option<Plan>,
    /// `au` or `throughput`, where settings were tried for a goal.
    #[serde(default)]
    pub goal: Option<String>,
    /// Overrides of the change to use; `null` where none helps for certain.
    #[serde(default)]
    pub best: Option<Vec<String>>,
    /// Without any change.
    pub baseline: Option<Tried>,
    /// Changes, the best first, and the best two together.
    pub advice: Vec<TriedAdvice>,
    /// Reason why something is not decided; `null` where all is.
    pub stopped: Option<String>,
    /// Runs that were made.
    pub runs: u64,
    /// How long it took.
    pub took_s: f64,
    /// Local start of the oldest of them; `None` in older results.
    #[serde(default)]
    pub oldest_run: Option<String>,
    /// The folder of the runs.
    pub results: String,
}

/// A change, the prediction for it, and what came of it. All percentages are utilisation over all steps of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedAdvice {
    /// Name of the rule that advised it, or [`COMBINATION`].
    pub name: String,
    /// Keys of the workload with their values.
    pub overrides: Vec<String>,
    /// The same, or in words what to do where no key does it.
    #[serde(default)]
    pub change: String,
    /// `null` where the record does not tell.
    pub predicted_percent: Option<f64>,
    /// Range of the prediction.
    pub interval: Option<[f64; 2]>,
    /// `null` where it was not run.
    pub tried: Option<Tried>,
    /// Conclusion.
    pub outcome: Outcome,
    /// Reason why it was not tried, or is not decided.
    pub reason: Option<String>,
    /// Epochs from which on the copy of the dataset that it makes is worth its time, by the runs; `null` where it makes none.
    #[serde(default)]
    pub break_even_epochs: Option<f64>,
    /// The command that runs it; `null` where no key does it.
    pub command: Option<String>,
}

/// Runs of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Mean of the runs.
    pub mean_percent: f64,
    /// The 95 % interval of the mean; `null` of one run.
    pub interval: Option<[f64; 2]>,
    /// Runs.
    pub n: u64,
}

impl TriedAdvice {
    /// Whether the runs take it back: it brings nothing, or less than nothing.
    pub fn is_withdrawn(&self) -> bool {
        matches!(self.outcome, Outcome::NoEffect | Outcome::Hurts)
    }
}

impl TrialsResult {
    /// That of a folder; `None` where there is none, or one that another version wrote.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(TRIALS_FILE))
    }

    /// All trials of what runs of these folders and plans ran, by the names of their folders: those that made such a run, and those of the
    /// same plan that lie in a folder above it. `results` is the folder as it was found.
    pub fn of_runs<'a>(runs: impl Iterator<Item = (&'a Path, Option<&'a Plan>)>) -> Vec<Self> {
        let runs: Vec<_> = runs.collect();
        let above = runs.iter().flat_map(|(path, _)| path.ancestors().take(LEVELS));
        let above: BTreeSet<&Path> = above.collect();
        let folders = above.into_iter().flat_map(|above| with_entries(above, TRIALS_FOLDER));
        let folders: BTreeSet<PathBuf> = folders.collect();
        let mut found = Vec::new();
        for folder in folders {
            let Some(of) = TrialsResult::read(&folder) else { continue };
            if runs.iter().any(|(path, plan)| {
                path.starts_with(&folder) || (plan.is_some() && *plan == of.plan.as_ref())
            }) {
                found.push(TrialsResult { results: folder.display().to_string(), ..of });
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
    fn trials_are_found_by_the_runs_they_made_and_by_those_of_their_plan() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("results");
        let mut of = TrialsResult {
            workload: "w".into(),
            asked: vec!["w".into()],
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
        for (name, own) in [("advise-1", Some(plan(2, 8))), ("advise-2", None)] {
            std::fs::create_dir_all(root.join(name)).unwrap();
            of.plan = own;
            let text = serde_json::to_string(&of).unwrap();
            std::fs::write(root.join(name).join(TRIALS_FILE), text).unwrap();
        }
        let check = |run: &str, plan: Option<Plan>, expected: &[&str]| {
            let run = root.join(run);
            let found = TrialsResult::of_runs([(run.as_path(), plan.as_ref())].into_iter());
            let found: Vec<String> = found.into_iter().map(|of| of.results).collect();
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
