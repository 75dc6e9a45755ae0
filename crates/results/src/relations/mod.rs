//! Relations between runs: replicates, copies, usual settings, and runs that may have read the dataset of another run. They are computed once for all
//! runs, so that queries are fast for thousands of runs.

mod stale_dataset;
mod varied;
#[cfg(test)]
mod tests;

pub use stale_dataset::{SettingDifference, StaleDataset};

use crate::run::{ExperimentKey, FolderNames, Run, StudyKey, group_runs};
use feedrate_measure::doubt::Severity;
use std::collections::{BTreeMap, HashMap};

/// The runs of an analysis and the relations between them.
pub struct Relations<'a> {
    /// All runs.
    pub runs: &'a [Run],
    experiments: BTreeMap<ExperimentKey<'a>, Vec<usize>>,
    usual: BTreeMap<StudyKey<'a>, UsualSettings<'a>>,
    stale: Vec<Option<StaleDataset>>,
    copies: HashMap<u64, usize>,
}

/// The value of each setting that more than half of the runs of a source and workload have, and the number of runs with it, by key. Settings
/// that the runs vary on purpose are left out.
pub type UsualSettings<'a> = BTreeMap<&'a str, (&'a str, usize)>;

impl<'a> Relations<'a> {
    /// Computes the relations of `runs`, in any order.
    pub fn new(runs: &'a [Run]) -> Self {
        let studies = group_runs(runs, Run::is_result, Run::study_key).into_iter();
        let usual = studies.map(|(study, members)| (study, usual_settings(runs, &members)));
        let mut copies: HashMap<u64, usize> = HashMap::new();
        for (index, run) in runs.iter().enumerate() {
            let Some(fingerprint) = run.dataset_use.fingerprint else { continue };
            let first = copies.entry(fingerprint).or_insert(index);
            if originality_key(run) < originality_key(&runs[*first]) {
                *first = index;
            }
        }
        Relations {
            runs,
            experiments: group_runs(runs, Run::is_result, Run::experiment_key),
            usual: usual.collect(),
            stale: stale_dataset::stale_datasets(runs),
            copies,
        }
    }

    /// Returns the results of the same experiment, including the run itself.
    pub fn replicates(&self, index: usize) -> &[usize] {
        self.experiments.get(&self.runs[index].experiment_key()).map_or(&[], Vec::as_slice)
    }

    /// Returns the usual settings of the run's source and workload.
    pub fn usual_settings(&self, index: usize) -> Option<&UsualSettings<'a>> {
        self.usual.get(&self.runs[index].study_key())
    }

    /// Returns the dataset of another run that the run may have read.
    pub fn stale_dataset(&self, index: usize) -> Option<&StaleDataset> {
        self.stale[index].as_ref()
    }

    /// Returns the original if the run is a copy, that is, if another run has the same step times.
    pub fn original_of(&self, index: usize) -> Option<&Run> {
        let first = *self.copies.get(&self.runs[index].dataset_use.fingerprint?)?;
        (first != index).then(|| &self.runs[first])
    }
}

/// Returns a sort key by which the original precedes its copies. The criteria are, in this order: the run has a summary, started
/// earlier, has no invalid doubts, was not put aside, is in a folder named by its number of accelerators.
fn originality_key(run: &Run) -> (bool, bool, Option<i64>, bool, bool, bool) {
    let started_us = run.dataset_use.started_us;
    let lacks_summary = !run.is_from_feedrate() && run.reported.is_empty();
    let is_put_aside = run.put_aside.is_some();
    let is_misplaced = FolderNames::new(&run.path).processes() != run.accelerators;
    (lacks_summary, started_us.is_none(), started_us, is_invalid(run), is_put_aside, is_misplaced)
}

fn is_invalid(run: &Run) -> bool {
    run.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
}

/// Computes the usual settings of the imported runs among `members`.
fn usual_settings<'a>(runs: &'a [Run], members: &[usize]) -> UsualSettings<'a> {
    let imported = members.iter().map(|index| &runs[*index]).filter(|run| !run.is_from_feedrate());
    let imported: Vec<&Run> = imported.collect();
    let mut values_by_key: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in imported.iter().flat_map(|run| &run.dataset_use.configured) {
        values_by_key.entry(key).or_default().push(value);
    }
    values_by_key.retain(|key, values| {
        values.iter().all(|value| value == &values[0]) || !varied::is_varied(key, &imported)
    });
    let usual = values_by_key.into_iter().filter_map(|(key, values)| {
        let (value, count) = most_common(values.iter().copied())?;
        (values.len() < 2 * count).then_some((key, (value, count)))
    });
    usual.collect()
}

/// Returns the most frequent value and its count. Among equally frequent values, the first wins.
pub(crate) fn most_common<'a>(values: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for (position, value) in values.enumerate() {
        counts.entry(value).or_insert((0, position)).0 += 1;
    }
    let best =
        counts.into_iter().max_by_key(|(_, (count, position))| (*count, usize::MAX - position));
    best.map(|(value, (count, _))| (value, count))
}
