//! Many runs side by side: which belong together, which read the dataset of another, which are copies. Indexed once, so that thousands of runs are judged in no time.

mod asked;
mod similarity;
mod store;
mod ambiguous;
mod stale_dataset;
#[cfg(test)]
mod tests;

pub use ambiguous::Unsure;
pub use stale_dataset::{Evidence, Like, Stale};

use crate::import::Origin;
use crate::run::Run;
use feedrate_measure::doubt::Severity;
use stale_dataset::Judged;
use std::collections::{BTreeMap, HashMap};

/// All runs of an analysis.
pub struct Relations<'a> {
    /// The runs.
    pub runs: &'a [Run],
    experiments: HashMap<Experiment<'a>, Vec<usize>>,
    studies: HashMap<Study<'a>, Vec<usize>>,
    usual: HashMap<Study<'a>, Usual<'a>>,
    machines: HashMap<Study<'a>, (&'a str, usize)>,
    judged: Judged,
    copies: HashMap<u64, usize>,
}

/// Key that replicates share: source, workload, accelerators, parameter, value.
type Experiment<'a> = (&'a str, &'a str, Option<u32>, &'a str, &'a str);

/// Source and workload.
type Study<'a> = (&'a str, &'a str);

/// By key, what most runs were asked for, and how many.
pub type Usual<'a> = BTreeMap<&'a str, (&'a str, usize)>;

fn experiment_of(run: &Run) -> Experiment<'_> {
    (&run.source, &run.workload, run.accelerators, &run.parameter, &run.value)
}

fn study_of(run: &Run) -> (&str, &str) {
    (&run.source, &run.workload)
}

impl<'a> Relations<'a> {
    /// Relate `runs`, in any order.
    pub fn new(runs: &'a [Run]) -> Self {
        let mut relations = Relations {
            runs,
            experiments: HashMap::new(),
            studies: HashMap::new(),
            usual: HashMap::new(),
            machines: HashMap::new(),
            judged: stale_dataset::judged(runs),
            copies: HashMap::new(),
        };
        for (index, run) in runs.iter().enumerate() {
            if run.is_result() {
                relations.experiments.entry(experiment_of(run)).or_default().push(index);
                relations.studies.entry(study_of(run)).or_default().push(index);
            }
            if let Some(fingerprint) = run.dataset_use.fingerprint {
                let first = relations.copies.entry(fingerprint).or_insert(index);
                if copied(run) < copied(&runs[*first]) {
                    *first = index;
                }
            }
        }
        for (study, members) in &relations.studies {
            relations.usual.insert(*study, usual(runs, members));
            let hosts = members.iter().filter_map(|index| runs[*index].hostname.as_deref());
            let most = most_common(hosts).filter(|(_, count)| members.len() < 2 * count);
            relations.machines.extend(most.map(|host| (*study, host)));
        }
        relations
    }

    /// Runs of the same experiment that count, this one among them.
    pub fn replicates(&self, index: usize) -> &[usize] {
        self.experiments.get(&experiment_of(&self.runs[index])).map_or(&[], Vec::as_slice)
    }

    /// Runs of the same source and workload that count.
    pub fn study(&self, index: usize) -> &[usize] {
        self.studies.get(&study_of(&self.runs[index])).map_or(&[], Vec::as_slice)
    }

    /// Settings of most runs of the same study, by key, and of how many: runs that override a key have no say in it.
    pub fn usual(&self, index: usize) -> Option<&Usual<'a>> {
        self.usual.get(&study_of(&self.runs[index]))
    }

    /// The machine of most runs of the same study, and of how many.
    pub fn usual_machine(&self, index: usize) -> Option<(&'a str, usize)> {
        self.machines.get(&study_of(&self.runs[index])).copied()
    }

    /// Evidence that the run read the dataset of another.
    pub fn stale(&self, index: usize) -> Option<&Stale> {
        self.judged.stale[index].as_ref()
    }

    /// Whether what was made last before the run, as far as is known, is its own dataset.
    pub fn has_own_dataset(&self, index: usize) -> bool {
        self.judged.has_own[index]
    }

    /// Signs that the run may have read the dataset of another, where that cannot be told.
    pub fn unsure(&self, index: usize) -> Option<&Unsure> {
        let is_told =
            |unsure: &Unsure| unsure.unlike.is_none() && self.stale(unsure.like.of).is_some();
        let unsure = self.judged.unsure[index].as_ref();
        unsure.filter(|unsure| self.stale(index).is_none() && !is_told(unsure))
    }

    /// Whether nothing speaks against taking the run as a measure for others.
    pub fn is_sound(&self, index: usize) -> bool {
        let is_own = self.stale(index).is_none() && self.copy_of(index).is_none();
        is_own && !is_invalid(&self.runs[index])
    }

    /// The run that began first of those with the same times of all steps, where that is another.
    pub fn copy_of(&self, index: usize) -> Option<&Run> {
        let first = *self.copies.get(&self.runs[index].dataset_use.fingerprint?)?;
        (first != index).then(|| &self.runs[first])
    }
}

/// The least is the original: that which began first; of those that began at once, that which fits its folder and is not put aside.
fn copied(run: &Run) -> (bool, Option<i64>, bool, bool) {
    let started_us = run.dataset_use.started_us;
    (started_us.is_none(), started_us, is_invalid(run), run.put_aside.is_some())
}

fn is_invalid(run: &Run) -> bool {
    run.doubts.iter().any(|doubt| doubt.severity == Severity::Invalid)
}

/// By key, the value that most of `members` have without having asked for it.
fn usual<'a>(runs: &'a [Run], members: &[usize]) -> Usual<'a> {
    let mut counts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for run in members.iter().map(|index| &runs[*index]).filter(|c| c.origin != Origin::Feedrate) {
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
fn most_common<'a>(values: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for (place, value) in values.enumerate() {
        counts.entry(value).or_insert((0, place)).0 += 1;
    }
    let best = counts.into_iter().max_by_key(|(_, (count, place))| (*count, usize::MAX - place));
    best.map(|(value, (count, _))| (value, count))
}
