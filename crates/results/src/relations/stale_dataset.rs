//! Runs that read the dataset of another: DLIO looks for files by their extension, and reads what the last generation left.
//!
//! Two kinds of evidence, either is enough. *Generation*: the last run that made files of this format in this folder before, made them with
//! other settings. *Results*: see `pair.rs`. Where steps contradict what generations say, a dataset was made in between: they are those
//! of the run's own dataset and not of the other, or the waits for first batches follow the sizes that DLIO draws for its own. That they are unlike the other's is not enough: a cache makes them so, too.

use super::ambiguous::{Pair, Unsure};
use super::asked::{self, Asked};
use super::similarity::{
    EXPECTED_MAX, SAME_MAX, Shape, apart, differs, fits, is_better, shape, waits, would_show,
};
use super::store::{Near, near};
use crate::run::{Activity, Run};
use std::collections::{BTreeMap, HashMap};

/// The dataset that a run read instead of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Stale {
    /// The run whose dataset it was, as an index.
    pub of: usize,
    /// Key of `dataset`, what this run says, what the files are.
    pub differs: Vec<(String, String, String)>,
    /// The kind of evidence.
    pub evidence: Evidence,
    /// The run of that dataset whose steps waited most alike.
    pub like: Option<Like>,
    /// By results: a run whose waiting fits that of the other by their bytes, and not this one's.
    pub unlike: Option<usize>,
    /// How far waits for first batches miss the bytes of the run's own dataset, and of the other, as shares.
    pub fits: Option<(f64, f64)>,
    /// Whether it has no config, so that its name and runs beside it told what it asks for.
    pub is_assumed: bool,
}

/// A run, and by which share its waits differ, step by step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Like {
    /// The run, as an index.
    pub of: usize,
    /// By which share.
    pub apart: f64,
}

impl Like {
    /// Whether they differ by no more than where the same was read.
    pub fn is_same(&self) -> bool {
        self.apart <= SAME_MAX
    }
}

/// The kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The last generation made other files.
    Generation,
    /// A run of another sample size waited as long.
    Results,
}

/// A run that waited alike outweighs one whose waits are so many times as far apart.
const NEARER: f64 = 2.0;
/// Generations that are looked back at for one of the same place.
const LOOKED_AT_MAX: usize = 1000;
/// Datasets that are remembered for each shape, at most.
const REMEMBERED_MAX: usize = 64;

/// Judgements on each run.
pub(super) struct Judged {
    /// Evidence that it read the dataset of another.
    pub(super) stale: Vec<Option<Stale>>,
    /// Signs that it may have, where that cannot be told.
    pub(super) unsure: Vec<Option<Unsure>>,
    /// Whether what was made last before it is its own dataset.
    pub(super) has_own: Vec<bool>,
}

pub(super) fn judged(runs: &[Run]) -> Judged {
    let asked = asked::asked(runs);
    let mut stores: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, asked) in asked.iter().enumerate() {
        if let (Some(asked), Some(_)) = (asked, runs[index].dataset_use.started_us) {
            stores.entry((&asked.format, &asked.subfolders)).or_default().push(index);
        }
    }
    let mut judged = Judged {
        stale: vec![None; runs.len()],
        unsure: vec![None; runs.len()],
        has_own: vec![false; runs.len()],
    };
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
            judged.has_own[index] = store.has_own(index);
            judged.stale[index] = store.next(index);
        }
        // Which of two is wrong may be told by a run that came later.
        store.pairs.iter().for_each(|pair| store.tell(pair, &mut judged));
    }
    judged
}

/// Files of one format, as time goes on.
pub(super) struct Store<'a> {
    pub(super) runs: &'a [Run],
    asked: &'a [Option<Asked>],
    /// Runs that made files or removed them, in the order of time.
    changed: Vec<Change>,
    /// Runs that can be compared, by what must be the same: of those of one dataset that waited about as long, the last one.
    by_shape: HashMap<Shape<'a>, Vec<usize>>,
    /// Runs that waited alike for samples of different size.
    pairs: Vec<Pair>,
}

/// A change of a folder.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// This run made files.
    Made(usize),
    /// This run removed them at its end.
    Removed(usize),
    /// This run read its own dataset, though another was made last that is known: somebody had made its own again.
    Read(usize),
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

impl<'a> Store<'a> {
    pub(super) fn asked(&self, index: usize) -> Option<&'a Asked> {
        self.asked[index].as_ref()
    }

    /// Runs that can be compared with this one.
    pub(super) fn known(&self, index: usize) -> &[usize] {
        let shape = self.asked(index).map(|asked| shape(&self.runs[index], asked));
        shape.and_then(|shape| self.by_shape.get(&shape)).map_or(&[], Vec::as_slice)
    }

    /// Whether another run used the same folder.
    pub(super) fn is_near(&self, index: usize, other: usize) -> bool {
        let both = self.asked(index).zip(self.asked(other));
        both.is_some_and(|(one, two)| {
            near((&self.runs[index], one), (&self.runs[other], two)).is_some()
        })
    }

    fn is_of_one_dataset(&self, index: usize, other: usize) -> bool {
        let both = self.asked(index).zip(self.asked(other));
        both.is_some_and(|(one, two)| differs(one, two).is_empty())
    }

    /// Whether what was made last before the run is its own dataset, or it makes that itself.
    fn has_own(&self, index: usize) -> bool {
        let is_own = |last: Last| {
            !last.is_weak && last.maker.is_some_and(|of| self.is_of_one_dataset(index, of))
        };
        self.runs[index].dataset_use.generated_us.is_some() || self.last(index).is_some_and(is_own)
    }

    fn next(&mut self, index: usize) -> Option<Stale> {
        let (run, asked) = (&self.runs[index], self.asked(index)?);
        let is_maker = run.dataset_use.generated_us.is_some();
        if is_maker {
            self.changed.push(Change::Made(index));
        }
        // It removes them when all else is done.
        if !asked.keeps_files && run.ended.is_some() {
            self.changed.push(Change::Removed(index));
        }
        if run.activity != Activity::Training || run.steps == 0 {
            return None;
        }
        let stale = if is_maker { None } else { self.judge(index) };
        // Those that read something else than they say are no measure for others.
        if stale.is_none() {
            let mut known = self.known(index).to_vec();
            known.retain(|other| {
                let is_twin = self.is_near(index, *other) && self.is_of_one_dataset(index, *other);
                let apart = apart(run, &self.runs[*other]);
                !is_twin || apart.is_none_or(|apart| EXPECTED_MAX < apart)
            });
            known.push(index);
            if REMEMBERED_MAX < known.len() {
                known.remove(0);
            }
            self.by_shape.insert(shape(run, asked), known);
        }
        stale
    }

    fn judge(&mut self, index: usize) -> Option<Stale> {
        let (run, asked) = (&self.runs[index], self.asked(index)?);
        let last = self.last(index)?;
        let Some((of, maker)) = last.maker.and_then(|of| Some((of, self.asked(of)?))) else {
            self.pairs.extend(self.pairs(index, asked, last.since_us));
            return None;
        };
        let differs = differs(asked, maker);
        if differs.is_empty() {
            // A generation since then may have left nothing.
            self.pairs.extend(self.pairs(index, asked, last.since_us));
            return None;
        }
        let own = self.nearest(index, asked);
        let other = self.nearest(index, maker);
        // Of two that are alike the much nearer one counts.
        let is_like = other.is_some_and(|other| {
            other.is_same() && own.is_none_or(|own| other.apart < NEARER * own.apart)
        });
        let of_other = self.runs[of..=of].iter().chain(other.map(|one| &self.runs[one.of]));
        let fits = of_other.filter_map(|other| fits(run, other)).next();
        let fits_other = fits.is_some_and(|(own, other)| is_better(other, own));
        let is_other = is_like || fits_other;
        // A short wait tells as well where the other's is another.
        let is_told = waits(run) || other.is_some_and(|other| EXPECTED_MAX < other.apart);
        let is_own = is_told
            && !is_other
            && (own.is_some_and(|own| own.is_same())
                || fits.is_some_and(|(own, other)| is_better(own, other))
                || self.is_as_expected(run, &self.runs[of], (own, other)));
        if is_own {
            self.changed.push(Change::Read(index));
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
        (own, other): (Option<Like>, Option<Like>),
    ) -> bool {
        let waited = |run: Option<Like>| Some(self.runs[run?.of].dataset_use.waited_s());
        let ratio = run.sample_bytes().zip(maker.sample_bytes()).map(|(own, other)| own / other);
        let of_other = waited(other).or_else(|| Some(waited(own)? / ratio?));
        let of_own = waited(own).or_else(|| Some(waited(other)? * ratio?));
        let is =
            |expected: f64| (run.dataset_use.waited_s() / expected - 1.0).abs() <= EXPECTED_MAX;
        of_own.is_some_and(is) && of_other.is_some_and(|expected| !is(expected))
    }

    /// The folder's last known state before the run.
    fn last(&self, index: usize) -> Option<Last> {
        let (run, asked) = (&self.runs[index], self.asked(index)?);
        let mut maker: Option<(usize, Near)> = None;
        let mut removed = None;
        // Files of each number of them have names of their own.
        let mut lie_there: BTreeMap<Option<u64>, usize> = BTreeMap::new();
        let mut made_its_own = (false, false);
        let mut is_unsure = false;
        for change in self.changed.iter().rev().take(LOOKED_AT_MAX) {
            let (Change::Made(by) | Change::Removed(by) | Change::Read(by)) = *change;
            let how = self.asked(by).and_then(|by_asked| {
                near((run, asked), (&self.runs[by], by_asked)).map(|how| (by_asked, how))
            });
            let Some((by_asked, how)) = how else { continue };
            if run.dataset_use.started_us < self.runs[by].dataset_use.generated_us {
                // It was still at it.
                continue;
            }
            if *change == Change::Removed(by) {
                removed = Some(by);
                break;
            }
            if *change == Change::Read(by) {
                if maker.is_none() && differs(asked, by_asked).is_empty() {
                    let since_us = self.runs[by].dataset_use.started_us;
                    return Some(Last { maker: Some(by), since_us, is_weak: false });
                }
                // What was made before it need not lie there any more.
                is_unsure |= maker.is_none();
                continue;
            }
            maker = maker.or(Some((by, how)));
            lie_there.entry(self.runs[by].files).or_insert(by);
            if differs(asked, by_asked).is_empty() {
                made_its_own.0 |= how == Near::Same;
                made_its_own.1 |= how == Near::OtherHost;
            }
            if maker.is_some_and(|(_, how)| how == Near::Same) && self.is_enough(run, &lie_there) {
                break;
            }
        }
        let removed_us = removed.and_then(|by: usize| self.runs[by].dataset_use.ended_us);
        let Some((of, how)) = maker else {
            return Some(Last { maker: None, since_us: removed_us, is_weak: false });
        };
        // Hosts that make the same each for itself may share nothing but the path.
        let is_elsewhere = how == Near::OtherHost && made_its_own == (true, true);
        Some(Last {
            maker: Some(of),
            since_us: self.runs[of].dataset_use.generated_us,
            is_weak: is_unsure || is_elsewhere || !self.is_enough(run, &lie_there),
        })
    }

    /// Whether as many files lie there as the run read.
    fn is_enough(&self, run: &Run, lie_there: &BTreeMap<Option<u64>, usize>) -> bool {
        let there: u64 =
            lie_there.keys().flatten().fold(0, |sum, files| sum.saturating_add(*files));
        lie_there.contains_key(&None) || run.files.is_none_or(|files| files <= there)
    }

    /// The run of one dataset that waited most alike.
    fn nearest(&self, index: usize, dataset: &Asked) -> Option<Like> {
        let is_of =
            |one: &Like| self.asked(one.of).is_some_and(|one| differs(one, dataset).is_empty());
        self.likes(index).filter(is_of).min_by(|a, b| a.apart.total_cmp(&b.apart))
    }

    fn likes(&self, index: usize) -> impl Iterator<Item = Like> {
        let like = move |of: &usize| {
            let apart = apart(&self.runs[index], &self.runs[*of])?;
            Some(Like { of: *of, apart })
        };
        self.known(index).iter().filter_map(like)
    }

    /// With runs since the last generation that waited about alike, for samples of another size.
    fn pairs(&self, later: usize, asked: &Asked, since_us: Option<i64>) -> Vec<Pair> {
        // Work on samples takes as long for small ones.
        if asked.preprocesses {
            return Vec::new();
        }
        let pairs = self.likes(later).filter(|earlier| {
            let other = &self.runs[earlier.of];
            let is_other =
                self.is_near(later, earlier.of) && !self.is_of_one_dataset(later, earlier.of);
            let would_show = would_show(&self.runs[later], other);
            let is_about_alike = earlier.apart <= EXPECTED_MAX && would_show;
            is_other && is_about_alike && since_us <= other.dataset_use.started_us
        });
        pairs.map(|earlier| Pair { later, earlier }).collect()
    }
}
