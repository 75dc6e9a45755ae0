//! Runs that read the dataset of another: DLIO looks for files by their extension, and reads what the last generation left.
//!
//! Two kinds of evidence, either is enough. *Generation*: the last run that made files of this format in this folder before, made them with
//! other settings. *Results*: an earlier run of another sample size, all else that matters the same, waited as long at each step,
//! while both mostly waited; that cannot be where sizes differ. Where steps contradict what generations say, a dataset was made in between: they are those
//! of the run's own dataset and not of the other, or the waits for first batches follow the sizes that DLIO draws for its own. That they are unlike the other's is not enough: a cache makes them so, too.

use super::alike::{Shape, apart, bytes, differs, fits, is_better, shape, waits, would_show};
use super::asked::{self, Asked};
use super::place::{Near, near};
use crate::case::{Activity, Case};
use std::collections::{BTreeMap, HashMap};

/// What a run read instead of its own dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Stale {
    /// The run whose dataset it was, as an index.
    pub of: usize,
    /// Key of `dataset`, what this run says, what the files are.
    pub differs: Vec<(String, String, String)>,
    /// What it rests on.
    pub evidence: Evidence,
    /// Of the runs of that dataset, the one whose steps waited most alike, and by which share they differ.
    pub like: Option<(usize, f64)>,
    /// How far waits for first batches miss the bytes of the run's own dataset, and of the other, as shares.
    pub fits: Option<(f64, f64)>,
    /// Whether it has no config, so that its name and runs beside it told what it asks for.
    pub is_assumed: bool,
}

/// What it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The last generation made other files.
    Generation,
    /// A run of another sample size waited as long.
    Results,
}

/// Waiting by step differs by no more than this share where the same was read.
const SAME_MAX: f64 = 0.05;
/// Waiting of an epoch misses what is expected by no more than this share.
const EXPECTED_MAX: f64 = 0.25;
/// Generations that are looked back at for one of the same place.
const LOOKED_AT_MAX: usize = 1000;
/// Datasets that are remembered for each shape, at most.
const REMEMBERED_MAX: usize = 64;

/// For each case, what speaks for it.
pub(super) fn of(cases: &[Case]) -> Vec<Option<Stale>> {
    let asked = asked::of(cases);
    let mut stores: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, asked) in asked.iter().enumerate() {
        if let (Some(asked), Some(_)) = (asked, cases[index].origin.started_us) {
            stores.entry((&asked.format, &asked.subfolders)).or_default().push(index);
        }
    }
    let mut found = vec![None; cases.len()];
    for mut members in stores.into_values() {
        members.sort_by_key(|index| cases[*index].origin.started_us);
        let mut store =
            Store { cases, asked: &asked, changed: Vec::new(), by_shape: HashMap::new() };
        for index in members {
            found[index] = store.next(index, &found);
        }
    }
    found
}

/// Files of one format, as time goes on.
struct Store<'a> {
    cases: &'a [Case],
    asked: &'a [Option<Asked>],
    /// What made files or removed them, in the order of time.
    changed: Vec<Change>,
    /// Earlier runs that can be compared, by what must be the same: of each dataset the last one.
    by_shape: HashMap<Shape<'a>, Vec<usize>>,
}

/// A run that can be compared, and by which share its waits differ.
type Twin = (usize, f64);

/// What became of a folder.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// This run made files.
    Made(usize),
    /// This run removed them at its end.
    Removed(usize),
}

/// The last that is known of a run's folder.
struct Last {
    /// The run that made what lies there; `None` where nothing is known of it.
    maker: Option<usize>,
    /// Since when results of the same folder are of the same files.
    since_us: Option<i64>,
    /// Whether it is not certain that these are all the files that the run read: another host made them that may have a folder of its own, or they are too few.
    is_weak: bool,
}

impl<'a> Store<'a> {
    fn asked(&self, index: usize) -> Option<&'a Asked> {
        self.asked[index].as_ref()
    }

    fn next(&mut self, index: usize, found: &[Option<Stale>]) -> Option<Stale> {
        let (case, asked) = (&self.cases[index], self.asked(index)?);
        let is_maker = case.origin.generated_us.is_some();
        if is_maker {
            self.changed.push(Change::Made(index));
        }
        // It removes them when all else is done.
        if !asked.keeps_files && case.ended.is_some() {
            self.changed.push(Change::Removed(index));
        }
        if case.activity != Activity::Training || case.steps == 0 {
            return None;
        }
        let stale = if is_maker { None } else { self.judge(index) };
        // Those that read something else than they say are no measure for others.
        if stale.is_none() {
            let (cases, all) = (self.cases, self.asked);
            let known = self.by_shape.entry(shape(case, asked)).or_default();
            known.retain(|other| {
                let read = found[*other].as_ref().map_or(*other, |stale: &Stale| stale.of);
                let other = all[*other].as_ref().map(|asked| (&cases[*other], asked));
                let is_here = other.is_some_and(|other| near(other, (case, asked)).is_some());
                !is_here || all[read].as_ref().is_none_or(|read| !differs(read, asked).is_empty())
            });
            known.push(index);
            if REMEMBERED_MAX < known.len() {
                known.remove(0);
            }
        }
        stale
    }

    fn judge(&self, index: usize) -> Option<Stale> {
        let (case, asked) = (&self.cases[index], self.asked(index)?);
        let known = self.by_shape.get(&shape(case, asked)).map_or(&[][..], Vec::as_slice);
        let last = self.last(index)?;
        let Some((of, maker)) = last.maker.and_then(|of| Some((of, self.asked(of)?))) else {
            return self.by_results(index, known, last.since_us);
        };
        let differs = differs(asked, maker);
        if differs.is_empty() {
            // A generation since then may have left nothing.
            return self.by_results(index, known, last.since_us);
        }
        let own = self.nearest(case, asked, known);
        let other = self.nearest(case, maker, known);
        let is_like = other.is_some_and(|(_, apart)| apart <= SAME_MAX);
        let of_other = self.cases[of..=of].iter().chain(other.map(|(one, _)| &self.cases[one]));
        let fits = of_other.filter_map(|other| fits(case, other)).next();
        let fits_other = fits.is_some_and(|(own, other)| is_better((other, own)));
        let is_other = is_like || fits_other;
        let is_own = waits(case)
            && !is_other
            && (own.is_some_and(|(_, apart)| apart <= SAME_MAX)
                || fits.is_some_and(is_better)
                || self.is_as_expected(case, &self.cases[of], (own, other)));
        if is_own || (last.is_weak && !is_other) {
            return None;
        }
        let is_assumed = asked.is_assumed;
        let like = other;
        Some(Stale { of, differs, evidence: Evidence::Generation, like, fits, is_assumed })
    }

    /// Whether the waiting is as long as that of a run of its own dataset, or of the other's by their bytes, and not as long as that of the other's.
    fn is_as_expected(
        &self,
        case: &Case,
        maker: &Case,
        (own, other): (Option<Twin>, Option<Twin>),
    ) -> bool {
        let waited = |run: Option<Twin>| Some(self.cases[run?.0].origin.waited_s());
        let ratio = bytes(case).zip(bytes(maker)).map(|(own, other)| own / other);
        let of_other = waited(other).or_else(|| Some(waited(own)? / ratio?));
        let of_own = waited(own).or_else(|| Some(waited(other)? * ratio?));
        let is = |expected: f64| (case.origin.waited_s() / expected - 1.0).abs() <= EXPECTED_MAX;
        of_own.is_some_and(is) && of_other.is_some_and(|expected| !is(expected))
    }

    /// What is known of the folder before the run.
    fn last(&self, index: usize) -> Option<Last> {
        let (case, asked) = (&self.cases[index], self.asked(index)?);
        let mut maker: Option<(usize, Near)> = None;
        let mut removed = None;
        // Files of each number of them have names of their own.
        let mut lie_there: BTreeMap<Option<u64>, usize> = BTreeMap::new();
        let mut made_its_own = (false, false);
        for change in self.changed.iter().rev().take(LOOKED_AT_MAX) {
            let (Change::Made(by) | Change::Removed(by)) = *change;
            let how = self.asked(by).and_then(|by_asked| {
                near((case, asked), (&self.cases[by], by_asked)).map(|how| (by_asked, how))
            });
            let Some((by_asked, how)) = how else { continue };
            if case.origin.started_us < self.cases[by].origin.generated_us {
                // It was still at it.
                continue;
            }
            if *change == Change::Removed(by) {
                removed = Some(by);
                break;
            }
            maker = maker.or(Some((by, how)));
            lie_there.entry(self.cases[by].files).or_insert(by);
            if differs(asked, by_asked).is_empty() {
                made_its_own.0 |= how == Near::Same;
                made_its_own.1 |= how == Near::OtherHost;
            }
            if maker.is_some_and(|(_, how)| how == Near::Same) && self.is_enough(case, &lie_there) {
                break;
            }
        }
        let removed_us = removed.and_then(|by: usize| self.cases[by].origin.ended_us);
        let Some((of, how)) = maker else {
            return Some(Last { maker: None, since_us: removed_us, is_weak: false });
        };
        // Hosts that make the same each for itself may share nothing but the path.
        let is_elsewhere = how == Near::OtherHost && made_its_own == (true, true);
        Some(Last {
            maker: Some(of),
            since_us: self.cases[of].origin.generated_us,
            is_weak: is_elsewhere || !self.is_enough(case, &lie_there),
        })
    }

    /// Whether as many files lie there as the run read.
    fn is_enough(&self, case: &Case, lie_there: &BTreeMap<Option<u64>, usize>) -> bool {
        let there: u64 =
            lie_there.keys().flatten().fold(0, |sum, files| sum.saturating_add(*files));
        lie_there.contains_key(&None) || case.files.is_none_or(|files| files <= there)
    }

    /// Of the runs of one dataset, the one that waited most alike, and how far apart.
    fn nearest(&self, case: &Case, dataset: &Asked, known: &[usize]) -> Option<Twin> {
        let is_of =
            |one: &&usize| self.asked(**one).is_some_and(|one| differs(one, dataset).is_empty());
        let same = known.iter().filter(is_of);
        let near = same.filter_map(|one| Some((*one, apart(case, &self.cases[*one])?)));
        near.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// By runs since the last generation that is known of.
    fn by_results(&self, index: usize, known: &[usize], since_us: Option<i64>) -> Option<Stale> {
        let (case, asked) = (&self.cases[index], self.asked(index)?);
        let candidates = known.iter().copied().filter(|&one| {
            let other = &self.cases[one];
            let is_here = self
                .asked(one)
                .is_some_and(|other_asked| near((case, asked), (other, other_asked)).is_some());
            is_here && since_us <= other.origin.started_us && would_show(case, other)
        });
        // Work on samples takes as long for small ones.
        let near = candidates
            .filter(|_| !asked.preprocesses)
            .filter_map(|other| Some((other, apart(case, &self.cases[other])?)));
        let (other, apart) =
            near.filter(|(_, apart)| *apart <= SAME_MAX).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let differs = differs(asked, self.asked(other)?);
        let fits = fits(case, &self.cases[other]);
        if differs.is_empty() || fits.is_some_and(is_better) {
            return None;
        }
        Some(Stale {
            of: other,
            differs,
            evidence: Evidence::Results,
            like: Some((other, apart)),
            fits,
            is_assumed: asked.is_assumed,
        })
    }
}
