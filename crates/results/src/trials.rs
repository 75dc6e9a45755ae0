//! Changes of a workload that were tried against it, as the folder of the trials keeps them.

use crate::place::read_json;
use feedrate_spec::names;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the folder of the trials.
pub const TRIALS_FILE: &str = "advice.json";

/// Name of the best two changes together.
pub const COMBINATION: &str = "combination";

names! {
    /// Conclusion from the runs of a change, against those without it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialsResult {
    /// The workload's name.
    pub workload: String,
    /// The workload, or the run, that was changed, and the overrides it had.
    pub asked: Vec<String>,
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
    /// The folder of the runs.
    pub results: String,
}

/// A change, the prediction for it, and what came of it. All percentages are utilisation over all steps of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedAdvice {
    /// Name of the rule that advised it, or [`COMBINATION`].
    pub name: String,
    /// Keys of the workload with their values.
    pub overrides: Vec<String>,
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
    /// The command that runs it.
    pub command: String,
}

/// Runs of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Mean of the runs.
    pub mean_percent: f64,
    /// The 95 % interval of the mean; `null` of one run.
    pub interval: Option<[f64; 2]>,
    /// Runs.
    pub n: u64,
}

impl TrialsResult {
    /// That of a folder; `None` where there is none, or one that another version wrote.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(TRIALS_FILE))
    }
}
