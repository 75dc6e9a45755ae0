//! Runs that read the dataset of another: DLIO looks for files by their extension, and reads what the last generation left.
//!
//! Two kinds of evidence, either is enough. *Generation*: the last run that made files of this format in this folder before, made them with
//! other settings. *Results*: see `ambiguous.rs`. Where steps contradict what generations say, a dataset was made in between: they are those
//! of the run's own dataset and not of the other, or the waits for first batches follow the sizes that DLIO draws for its own. That they are unlike the other's is not enough: a cache makes them so, too.

use super::asked::{self, AskedFiles};
use super::similarity::{EXPECTED_MAX, differs, fits, is_better, mostly_waited, shape, would_show};
use super::store::{Evidence, FolderChange, Judgement, Like, Near, Stale, Store};
use crate::run::{Activity, Run};
use std::collections::{BTreeSet, HashMap};

/// A run that waited alike outweighs one whose waits are so many times as far apart.
const NEARER: f64 = 2.0;
/// Generations that are looked back at for one of the same place.
const LOOKED_AT_MAX: usize = 1000;
/// Datasets that are remembered for each shape, at most.
const REMEMBERED_MAX: usize = 64;

/// Judge each run.
pub(super) fn judged(runs: &[Run]) -> Vec<Judgement> {
    let asked = asked::asked(runs);
    let mut stores: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, asked) in asked.iter().enumerate() {
        if let (Some(asked), Some(_)) = (asked, runs[index].dataset_use.started_us) {
            stores.entry((&asked.format, &asked.subfolders)).or_default().push(index);
        }
    }
    let mut judged = vec![Judgement::default(); runs.len()];
    for mut members in stores.into_values() {
        members.sort_by_key(|index| runs[*index].dataset_use.started_us);
        let mut store = Store {
            runs,
            asked: &asked,
            changed: Vec::new(),
            by_shape: HashMap::new(),
            pairs: Vec::new(),
        };
        for index in members {
            judged[index].has_own = store.has_own(index);
            judged[index].stale = store.next(index);
        }
        // Which of two is wrong may be told by a run that came later.
        for (later, earlier) in &store.pairs {
            store.tell(*later, *earlier, &mut judged);
        }
    }
    judged
}

/// The last that is known of a run's folder.
struct Last {
    /// The run that made what lies there; `None` where nothing is known of it.
    maker: Option<usize>,
    /// Since when results of the same folder are of the same files.
    since_us: Option<i64>,
    /// Whether it is not certain that these are the files that the run read: another host made them that may have a folder of its own, they are too few, or
    /// a run has read others since.
    is_weak: bool,
}

impl Store<'_> {
    /// Whether what was made last before the run is its own dataset, or it makes that itself.
    fn has_own(&self, index: usize) -> bool {
        let Last { maker, is_weak, .. } = self.last(index);
        self.runs[index].dataset_use.generated_us.is_some()
            || (!is_weak && maker.is_some_and(|of| self.is_of_one_dataset(index, of)))
    }

    fn next(&mut self, index: usize) -> Option<Stale> {
        let (run, asked) = (&self.runs[index], self.asked(index)?);
        let is_maker = run.dataset_use.generated_us.is_some();
        if is_maker {
            self.changed.push(FolderChange::Made(index));
        }
        // It removes them when all else is done.
        if !asked.keeps_files && run.ended.is_some() {
            self.changed.push(FolderChange::Removed(index));
        }
        if run.activity != Activity::Training || run.steps == 0 {
            return None;
        }
        let stale = if is_maker { None } else { self.judge(index) };
        // Those that read something else than they say are no measure for others.
        if stale.is_none() {
            let twins = self.likes(index).filter(|like| {
                like.apart <= EXPECTED_MAX
                    && self.near(index, like.of).is_some()
                    && self.is_of_one_dataset(index, like.of)
            });
            let twins: BTreeSet<usize> = twins.map(|like| like.of).collect();
            let known = self.by_shape.entry(shape(run, asked)).or_default();
            known.retain(|other| !twins.contains(other));
            known.push(index);
            if REMEMBERED_MAX < known.len() {
                known.remove(0);
            }
        }
        stale
    }

    fn judge(&mut self, index: usize) -> Option<Stale> {
        let (run, asked) = (&self.runs[index], self.asked(index)?);
        let last = self.last(index);
        let maker = last.maker.and_then(|of| Some((of, self.asked(of)?)));
        let maker = maker.map(|(of, maker)| (of, maker, differs(asked, maker)));
        // A generation since then may have left nothing.
        let Some((of, maker, differs)) = maker.filter(|(.., differs)| !differs.is_empty()) else {
            let pairs = self.pairs(index, asked, last.since_us);
            self.pairs.extend(pairs.into_iter().map(|earlier| (index, earlier)));
            return None;
        };
        let own = self.nearest(index, asked);
        let other = self.nearest(index, maker);
        // Of two that are alike the much nearer one counts.
        let is_like = other.is_some_and(|other| {
            other.is_same() && own.is_none_or(|own| other.apart < NEARER * own.apart)
        });
        let mut others = [Some(of), other.map(|one| one.of)].into_iter().flatten();
        let fits = others.find_map(|other| fits(run, &self.runs[other]));
        let is_other = is_like || fits.is_some_and(|(own, other)| is_better(other, own));
        // A short wait tells as well where the other's is another.
        let is_told = mostly_waited(run) || other.is_some_and(|other| EXPECTED_MAX < other.apart);
        let is_own = is_told
            && !is_other
            && (own.is_some_and(|own| own.is_same())
                || fits.is_some_and(|(own, other)| is_better(own, other))
                || self.is_as_expected(run, &self.runs[of], own, other));
        if is_own {
            self.changed.push(FolderChange::Read(index));
        }
        if is_own || (last.is_weak && !is_other) {
            return None;
        }
        Some(Stale {
            of,
            differs,
            evidence: Evidence::Generation,
            like: other,
            unlike: None,
            fits,
            is_assumed: asked.is_assumed,
        })
    }

    /// Whether the waiting is as long as that of a run of its own dataset, or of the other's by their bytes, and not as long as that of the other's.
    fn is_as_expected(
        &self,
        run: &Run,
        maker: &Run,
        own: Option<Like>,
        other: Option<Like>,
    ) -> bool {
        let [own, other] =
            [own, other].map(|like| Some(self.runs[like?.of].dataset_use.waited_s()));
        let ratio = run.sample_bytes().zip(maker.sample_bytes()).map(|(own, other)| own / other);
        let expected = [
            own.or_else(|| Some(other? * ratio?)),
            // The other's.
            other.or_else(|| Some(own? / ratio?)),
        ];
        let waited_s = run.dataset_use.waited_s();
        let is_near =
            expected.map(|expected_s| Some((waited_s / expected_s? - 1.0).abs() <= EXPECTED_MAX));
        is_near == [Some(true), Some(false)]
    }

    /// The folder's last known state before the run.
    fn last(&self, index: usize) -> Last {
        let run = &self.runs[index];
        let mut maker: Option<(usize, Near)> = None;
        let mut removed_us = None;
        // Files of each number of them have names of their own.
        let mut lie_there: BTreeSet<Option<u64>> = BTreeSet::new();
        let mut made_its_own: BTreeSet<Near> = BTreeSet::new();
        let mut is_unsure = false;
        for change in self.changed.iter().rev().take(LOOKED_AT_MAX) {
            let (FolderChange::Made(by) | FolderChange::Removed(by) | FolderChange::Read(by)) =
                *change;
            let (Some(how), user) = (self.near(index, by), &self.runs[by]) else { continue };
            if run.dataset_use.started_us < user.dataset_use.generated_us {
                // It was still at it.
                continue;
            }
            let is_own = self.is_of_one_dataset(index, by);
            match change {
                FolderChange::Removed(_) => {
                    removed_us = user.dataset_use.ended_us;
                    break;
                }
                FolderChange::Read(_) if maker.is_none() && is_own => {
                    let since_us = user.dataset_use.started_us;
                    return Last { maker: Some(by), since_us, is_weak: false };
                }
                // What was made before it need not lie there any more.
                FolderChange::Read(_) => is_unsure |= maker.is_none(),
                FolderChange::Made(_) => {
                    let (_, nearest) = *maker.get_or_insert((by, how));
                    lie_there.insert(user.files);
                    made_its_own.extend(is_own.then_some(how));
                    if nearest == Near::Same && is_enough(run, &lie_there) {
                        break;
                    }
                }
            }
        }
        let Some((of, how)) = maker else {
            return Last { maker: None, since_us: removed_us, is_weak: false };
        };
        // Hosts that make the same each for itself may share nothing but the path.
        let is_elsewhere = how == Near::OtherHost && made_its_own.len() == 2;
        Last {
            maker: Some(of),
            since_us: self.runs[of].dataset_use.generated_us,
            is_weak: is_unsure || is_elsewhere || !is_enough(run, &lie_there),
        }
    }

    /// The run of one dataset that waited most alike.
    fn nearest(&self, index: usize, dataset: &AskedFiles) -> Option<Like> {
        let likes = self.likes(index).filter(|one| {
            self.asked(one.of).is_some_and(|asked| differs(asked, dataset).is_empty())
        });
        likes.min_by(|a, b| a.apart.total_cmp(&b.apart))
    }

    /// Runs since the last generation that waited about alike, for samples of another size.
    fn pairs(&self, later: usize, asked: &AskedFiles, since_us: Option<i64>) -> Vec<Like> {
        let pairs = self.likes(later).filter(|earlier| {
            let other = &self.runs[earlier.of];
            // Work on samples takes as long for small ones.
            !asked.preprocesses
                && self.near(later, earlier.of).is_some()
                && !self.is_of_one_dataset(later, earlier.of)
                && earlier.apart <= EXPECTED_MAX
                && would_show(&self.runs[later], other)
                && since_us <= other.dataset_use.started_us
        });
        pairs.collect()
    }
}

/// Whether as many files lie there as the run read.
fn is_enough(run: &Run, lie_there: &BTreeSet<Option<u64>>) -> bool {
    let there = lie_there.iter().flatten().fold(0, |sum: u64, files| sum.saturating_add(*files));
    lie_there.contains(&None) || run.files.is_none_or(|files| files <= there)
}
