//! Runs that read the dataset of another: DLIO looks for files by their extension, and reads what the last generation left.
//!
//! Two kinds of evidence, either is enough. *Generation*: the last run that made files of this format in this folder before, made them with
//! other settings. *Results*: an earlier run of another sample size, all else that matters the same, waited as long at each step,
//! while both mostly waited; that cannot be where sizes differ. Where steps contradict what generations say, a dataset was made in between: they are like those
//! of the run's own dataset, or unlike those of the other, or the waits for first batches follow the sizes that DLIO draws for its own.

use crate::case::{Activity, Case};
use feedrate_spec::workload::KEYS;
use std::collections::{BTreeSet, HashMap};

/// What a run read instead of its own dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Stale {
    /// The run whose dataset it was, as an index.
    pub of: usize,
    /// Key of `dataset`, what this run says, what the files are.
    pub differs: Vec<(String, String, String)>,
    /// What it rests on.
    pub evidence: Evidence,
    /// A run of that dataset whose steps waited as long, and by which share they differ.
    pub like: Option<(usize, f64)>,
    /// How far waits for first batches miss the bytes of the run's own dataset, and of the other, as shares.
    pub fits: Option<(f64, f64)>,
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
/// Where it differs by more, it was not.
const UNLIKE_MIN: f64 = 0.25;
/// Ranks from which waits for first batches tell.
const FIT_RANKS_MIN: usize = 4;
/// Sample sizes further apart than this are told apart by waiting.
const SIZES_APART: f64 = 1.25;
/// Of the time, what was waited for data at least.
const WAITED_MIN_PERCENT: f64 = 20.0;
/// An accelerator would wait visibly for so much more.
const MORE_MIN_BYTES_PER_SECOND: f64 = 1e8;
/// Changes what a reader hands on, not the files.
const NOT_IN_FILES: &str = "record_length_bytes_resize";

/// For each case, what speaks for it.
pub(super) fn of(cases: &[Case]) -> Vec<Option<Stale>> {
    let mut stores: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, case) in cases.iter().enumerate() {
        if let (Some(store), Some(format), Some(_)) =
            (&case.origin.store, &case.format, case.origin.started_us)
        {
            stores.entry((store, format)).or_default().push(index);
        }
    }
    let mut found = vec![None; cases.len()];
    for mut members in stores.into_values() {
        members.sort_by_key(|index| cases[*index].origin.started_us);
        let mut store = Store { cases, made: Vec::new(), by_shape: HashMap::new() };
        for index in members {
            found[index] = store.next(index, &found);
        }
    }
    found
}

/// One folder and format, as time goes on.
struct Store<'a> {
    cases: &'a [Case],
    /// The runs that made what lies there, in the order of time.
    made: Vec<usize>,
    /// Earlier runs that can be compared, by what must be the same: of each dataset the last one.
    by_shape: HashMap<Shape, Vec<usize>>,
}

/// Accelerators, batch, threads, files, samples in each, steps.
type Shape = (Option<u32>, Option<u64>, Option<u32>, Option<u64>, Option<u64>, u64);

fn shape(case: &Case) -> Shape {
    (
        case.accelerators,
        case.batch_size,
        case.read_threads,
        case.files,
        case.samples_per_file,
        case.steps,
    )
}

/// Generations that are looked back at for one of the same place.
const LOOKED_AT_MAX: usize = 1000;
/// Datasets that are remembered for each shape, at most.
const REMEMBERED_MAX: usize = 64;

impl<'a> Store<'a> {
    fn next(&mut self, index: usize, found: &[Option<Stale>]) -> Option<Stale> {
        let case = &self.cases[index];
        if case.origin.generated_us.is_some() {
            self.made.push(index);
        }
        if case.activity != Activity::Training || case.steps == 0 {
            return None;
        }
        let stale = if self.made.last() == Some(&index) { None } else { self.judge(index) };
        let known = self.by_shape.entry(shape(case)).or_default();
        let read =
            |index: usize| &self.cases[found[index].as_ref().map_or(index, |s: &Stale| s.of)];
        // Those that read something else than they say are no measure for others.
        if stale.is_none() {
            known.retain(|other| !differs(read(*other), case).is_empty());
            known.push(index);
            if REMEMBERED_MAX < known.len() {
                known.remove(0);
            }
        }
        stale
    }

    fn judge(&self, index: usize) -> Option<Stale> {
        let case = &self.cases[index];
        let known = self.by_shape.get(&shape(case)).map_or(&[][..], Vec::as_slice);
        let here = |other: &&usize| is_one_place(case, &self.cases[**other]);
        let Some(&made_by) = self.made.iter().rev().take(LOOKED_AT_MAX).find(here) else {
            return self.by_results(index, known, None);
        };
        let maker = &self.cases[made_by];
        let differs = differs(case, maker);
        if differs.is_empty() {
            // A generation since then may have left nothing.
            return self.by_results(index, known, maker.origin.generated_us);
        }
        let (of_own, of_other) =
            (self.nearest(case, case, known), self.nearest(case, maker, known));
        let is_like = |near: Option<(usize, f64)>| near.filter(|(_, apart)| *apart <= SAME_MAX);
        let is_unlike = of_other.is_some_and(|(_, apart)| UNLIKE_MIN < apart);
        let like = is_like(of_other);
        let fits = fits(case, maker);
        let is_own = is_like(of_own).is_some() || is_unlike || fits.is_some_and(fits_own);
        if like.is_none() && is_own {
            return None;
        }
        Some(Stale { of: made_by, differs, evidence: Evidence::Generation, like, fits })
    }

    /// Of the runs of one dataset, the one that waited most alike, and how far apart.
    fn nearest(&self, case: &Case, dataset: &Case, known: &[usize]) -> Option<(usize, f64)> {
        let same = known.iter().filter(|one| differs(&self.cases[**one], dataset).is_empty());
        let near = same.filter_map(|one| Some((*one, apart(case, &self.cases[*one])?)));
        near.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// By runs since the last generation that is known of.
    fn by_results(&self, index: usize, known: &[usize], since_us: Option<i64>) -> Option<Stale> {
        let case = &self.cases[index];
        let candidates = known.iter().copied().filter(|other| {
            let other = &self.cases[*other];
            since_us <= other.origin.started_us && would_show(case, other)
        });
        let near = candidates.filter_map(|other| Some((other, apart(case, &self.cases[other])?)));
        let (other, apart) =
            near.filter(|(_, apart)| *apart <= SAME_MAX).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let fits = fits(case, &self.cases[other]);
        if fits.is_some_and(fits_own) {
            return None;
        }
        Some(Stale {
            of: other,
            differs: differs(case, &self.cases[other]),
            evidence: Evidence::Results,
            like: Some((other, apart)),
            fits,
        })
    }
}

/// Whether two runs, in one place, would have waited differently for samples of their own sizes: both mostly waited, and for bytes, not for files to be found.
fn would_show(a: &Case, b: &Case) -> bool {
    let size = |case: &Case| case.mean_sample_bytes.or(case.record_length_bytes);
    let waits = |case: &Case| case.stall.load_percent.is_some_and(|p| WAITED_MIN_PERCENT <= p);
    let (Some(a_bytes), Some(b_bytes)) = (size(a), size(b)) else { return false };
    let samples = a.batch_size.unwrap_or(0) as f64 * a.steps as f64;
    let more = (a_bytes - b_bytes).abs() * samples / a.origin.waited_s();
    let is_apart = SIZES_APART <= (a_bytes / b_bytes).max(b_bytes / a_bytes);
    is_one_place(a, b) && waits(a) && waits(b) && is_apart && MORE_MIN_BYTES_PER_SECOND <= more
}

/// How far waits for the first batches are from being proportional to the bytes of these batches in the run's own dataset, and in the other's: deviation over ranks, of the mean.
fn fits(case: &Case, other: &Case) -> Option<(f64, f64)> {
    let waits = &case.origin.first_waits_s;
    let miss = |of: &Case| {
        let bytes = &of.origin.first_batch_bytes;
        let is_told = FIT_RANKS_MIN <= bytes.len() && bytes.len() == waits.len() && case.epochs > 1;
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            bytes.iter().zip(waits).map(|(bytes, wait)| of(*bytes, *wait)).sum()
        };
        let slope = sum(&|bytes, wait| bytes * wait) / sum(&|bytes, _| bytes * bytes);
        let squares = sum(&|bytes, wait| (wait - slope * bytes).powi(2)) / waits.len() as f64;
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        Some(squares.sqrt() / mean).filter(|miss| is_told && miss.is_finite())
    };
    Some((miss(case)?, miss(other)?))
}

/// Whether the own dataset fits clearly better.
fn fits_own((own, other): (f64, f64)) -> bool {
    2.0 * own < other
}

/// Whether two runs may have used the same folder: what is not known of one does not tell them apart in one source.
fn is_one_place(a: &Case, b: &Case) -> bool {
    let mut parts = a.origin.place.iter().zip(&b.origin.place);
    parts.all(|parts| match parts {
        (Some(a), Some(b)) => a == b,
        _ => a.source == b.source,
    })
}

/// By which share the waiting of two runs differs, summed over steps; `None` where steps differ.
fn apart(a: &Case, b: &Case) -> Option<f64> {
    let (a, b) = (&a.origin.waits_s, &b.origin.waits_s);
    let most = a.iter().sum::<f64>().max(b.iter().sum());
    if a.len() != b.len() || most <= 0.0 {
        return None;
    }
    Some(a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / most)
}

/// Settings of the datasets that differ, as both have them; DLIO's default where it is not given.
fn differs(a: &Case, b: &Case) -> Vec<(String, String, String)> {
    let (a, b) = (&a.origin.dataset, &b.origin.dataset);
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &std::collections::BTreeMap<String, String>, key: &str| {
        of.get(key).cloned().unwrap_or_else(|| default(key))
    };
    let both = keys
        .into_iter()
        .filter(|key| *key != NOT_IN_FILES)
        .map(|key| (key.clone(), value(a, key), value(b, key)));
    both.filter(|(_, a, b)| a != b).collect()
}

fn default(key: &str) -> String {
    let found = KEYS.iter().find(|known| known.path.strip_prefix("dataset.") == Some(key));
    found.map_or_else(|| "not given".into(), |known| known.default.to_string())
}
