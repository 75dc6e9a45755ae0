//! The result of a search for the largest or smallest number at which a response holds, as its folder keeps it.

use crate::place::read_json;
use feedrate_measure::stats::Interval;
use feedrate_measure::verdict::Bound;
use feedrate_spec::names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The key of a search for a number of accelerators.
pub const ACCELERATORS: &str = "accelerators";

/// The file in the folder of a search.
pub const SEARCH_FILE: &str = "scale.json";

names! {
    /// The number that is looked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Find {
        /// The largest up to which the response holds.
        Largest = "largest",
        /// The smallest from which on it holds.
        Smallest = "smallest",
    }
}

names! {
    /// Conclusion from the values at a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Certainty {
        /// The response holds.
        Holds = "holds",
        /// It does not.
        Fails = "fails",
        /// Too few values, or too much noise.
        NotDecided = "not_decided",
    }
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The largest, or smallest, number at which the response holds for certain.
    pub certain: Option<u64>,
    /// First and last of the numbers beside it of which that is not known.
    pub not_decided: Option<(u64, u64)>,
    /// The nearest number beyond, at which it fails for certain.
    pub fails: Option<u64>,
}

/// A search that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The workload's name.
    pub workload: String,
    /// `accelerators`, or a key of the workload.
    pub key: String,
    /// Name of the metric.
    pub response: String,
    /// To be reached, or where low is good not to be exceeded.
    pub bound: f64,
    /// The number that was looked for.
    pub find: Find,
    /// The answer.
    #[serde(flatten)]
    pub found: Found,
    /// Bytes per second that a run at the number that fails needs beyond what it gets, where that is what it lacks.
    pub lacks_bytes_per_second: Option<f64>,
    /// Reason why it fails there, or why there is nothing beyond.
    pub why: String,
    /// Reason why something is not decided; `null` where all is.
    pub stopped: Option<String>,
    /// Runs that were made.
    pub runs: u64,
    /// How long they took.
    pub took_s: f64,
    /// The smallest number that could be tried.
    pub from: u64,
    /// The largest.
    pub max: u64,
    /// Each number that was tried.
    pub numbers: Vec<SearchedNumber>,
    /// Numbers above the edge that are on the lower side of it again.
    pub again: Vec<u64>,
    /// The dataset of the last runs; `null` where it lies in no folder, or others made it.
    pub dataset: Option<SearchedDataset>,
    /// Overrides beside the user's, in every run; that of the dataset's files grows in the course of the search.
    pub overrides: Vec<String>,
    /// Remarks on these for the user.
    pub notes: Vec<String>,
    /// The folder of the runs.
    pub results: String,
}

/// A dataset that was made for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedDataset {
    /// Files to train on.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files of the workload's own dataset.
    pub workload_files: u64,
}

/// All runs at one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchedNumber {
    /// The number.
    pub number: u64,
    /// Conclusion from them.
    pub state: Certainty,
    /// The response of each.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// The interval that decides; `null` of one run.
    pub interval: Option<Interval>,
    /// Verdict of the run that is nearest to the mean.
    pub verdict: String,
    /// Its evidence.
    pub evidence: String,
    /// Names of the doubts of any of its runs that are more than notes.
    pub doubts: Vec<String>,
    /// Folders of the runs.
    pub run_dirs: Vec<String>,
}

impl SearchResult {
    /// That of a folder; `None` of one that is of no search, or of one that another version wrote.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(SEARCH_FILE))
    }

    /// Whether it ends where the cores of the machine were busy, so that the storage may do for more.
    pub fn ends_at_busy_cores(&self) -> bool {
        self.at(self.found.fails).any(|of| of.verdict == Bound::CpuSaturated.name())
    }

    /// Doubts beside the runs that decide, with the numbers of these.
    pub fn doubts_at_edge(&self) -> BTreeMap<&str, Vec<u64>> {
        let mut doubts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for of in self.at(self.found.certain).chain(self.at(self.found.fails)) {
            for name in &of.doubts {
                doubts.entry(name).or_default().push(of.number);
            }
        }
        doubts
    }

    fn at(&self, number: Option<u64>) -> impl Iterator<Item = &SearchedNumber> {
        self.numbers.iter().filter(move |of| Some(of.number) == number)
    }
}
