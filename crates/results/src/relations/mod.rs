//! Many runs side by side: which belong together, which may have read the dataset of another, which are copies. Indexed once, so that thousands of runs are judged in no time.

mod stale_dataset;
#[cfg(test)]
mod tests;

pub use stale_dataset::{SettingDifference, StaleDataset};

use crate::run::{ExperimentKey, Run, StudyKey, grouped};
use feedrate_measure::doubt::Severity;
use std::collections::{BTreeMap, HashMap};

/// All runs of an analysis.
pub struct Relations<'a> {
    /// The runs.
    pub runs: &'a [Run],
    experiments: BTreeMap<ExperimentKey<'a>, Vec<usize>>,
    usual: BTreeMap<StudyKey<'a>, Usual<'a>>,
    stale: Vec<Option<StaleDataset>>,
    copies: HashMap<u64, usize>,
}

/// Settings that most runs of the same source and workload were given, and how many were, by key. Runs that override a key do not
/// count for it.
pub type Usual<'a> = BTreeMap<&'a str, (&'a str, usize)>;

impl<'a> Relations<'a> {
    /// Relate `runs`, in any order.
    pub fn new(runs: &'a [Run]) -> Self {
        let studies = grouped(runs, Run::is_result, Run::study_key).into_iter();
        let usual = studies.map(|(study, members)| (study, usual_settings(runs, &members)));
        let mut copies: HashMap<u64, usize> = HashMap::new();
        for (index, run) in runs.iter().enumerate() {
            let Some(fingerprint) = run.dataset_use.fingerprint else { continue };
            let first = copies.entry(fingerprint).or_insert(index);
            if copied(run) < copied(&runs[*first]) {
                *first = index;
            }
        }
        Relations {
            runs,
            experiments: grouped(runs, Run::is_result, Run::experiment_key),
            usual: usual.collect(),
            stale: stale_dataset::stale_datasets(runs),
            copies,
        }
    }

    /// Runs of the same experiment that count, this one among them.
    pub fn replicates(&self, index: usize) -> &[usize] {
        self.experiments.get(&self.runs[index].experiment_key()).map_or(&[], Vec::as_slice)
    }

    /// Usual settings among the runs of the same source and workload.
    pub fn usual(&self, index: usize) -> Option<&Usual<'a>> {
        self.usual.get(&self.runs[index].study_key())
    }

    /// The dataset of another that the run may have read.
    pub fn stale(&self, index: usize) -> Option<&StaleDataset> {
        self.stale[index].as_ref()
    }

    /// The original of those with the same times of all steps, where that is another.
    pub fn copy_of(&self, index: usize) -> Option<&Run> {
        let first = *self.copies.get(&self.runs[index].dataset_use.fingerprint?)?;
        (first != index).then(|| &self.runs[first])
    }
}

/// The least is the original: that which has a summary; of these that which began first; of those that began at once, that which fits its folder and is not put aside.
fn copied(run: &Run) -> (bool, bool, Option<i64>, bool, bool) {
    let started_us = run.dataset_use.started_us;
    let has_none = !run.is_own() && run.reported.is_empty();
    (has_none, started_us.is_none(), started_us, is_invalid(run), run.put_aside.is_some())
}

fn is_invalid(run: &Run) -> bool {
    run.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
}

/// By key, the value that most of `members` have without having asked for it.
fn usual_settings<'a>(runs: &'a [Run], members: &[usize]) -> Usual<'a> {
    let mut counts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for run in members.iter().map(|index| &runs[*index]).filter(|c| !c.is_own()) {
        for (key, value) in &run.dataset_use.asked {
            if !run.dataset_use.overridden.contains(key) {
                counts.entry(key).or_default().push(value);
            }
        }
    }
    let common = counts.into_iter().map(|(key, values)| (key, most_common(values.into_iter())));
    common.filter_map(|(key, common)| Some((key, common?))).collect()
}

/// The first of those that come most often, and how often.
pub(crate) fn most_common<'a>(values: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for (place, value) in values.enumerate() {
        counts.entry(value).or_insert((0, place)).0 += 1;
    }
    let best = counts.into_iter().max_by_key(|(_, (count, place))| (*count, usize::MAX - place));
    best.map(|(value, (count, _))| (value, count))
}
