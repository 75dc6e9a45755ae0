//! Two runs that waited alike, step by step, for samples of different size, all else that matters the same, while both mostly waited: one of them read the files of
//! the other. Tells which, or that it cannot be told; whoever came first.

use super::similarity::{EXPECTED_MAX, apart, differs, fits, is_as_by_bytes, is_better};
use super::stale_dataset::{Evidence, Judged, Like, Stale, Store};

/// See the fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) later: usize,
    pub(super) earlier: Like,
}

/// A run that may have read the dataset of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsure {
    /// The run of another sample size that waited alike.
    pub like: Like,
    /// A run whose waiting fits that of the other by their bytes, and not this one's; without one it may as well be the other that read the wrong files.
    pub unlike: Option<usize>,
}

/// Evidence for and against one of the two.
struct Side {
    index: usize,
    /// The other.
    like: Like,
    /// How far waits for first batches miss the bytes of the run's own dataset, and of the other.
    fits: Option<(f64, f64)>,
    /// A run that waited otherwise than both, as the other by their bytes and not as this one.
    unlike: Option<usize>,
}

impl Side {
    fn is_right(&self) -> bool {
        self.fits.is_some_and(|(own, other)| is_better(own, other))
    }

    fn is_wrong(&self) -> bool {
        let fits_other = self.fits.is_some_and(|(own, other)| is_better(other, own));
        !self.is_right() && (fits_other || self.unlike.is_some())
    }
}

impl Store<'_> {
    /// Say which of the two is wrong.
    pub(super) fn tell(&self, pair: &Pair, judged: &mut Judged) {
        let Pair { later, earlier } = *pair;
        if [later, earlier.of].iter().any(|index| judged.stale[*index].is_some()) {
            return;
        }
        let later = self.side(later, earlier, judged);
        let earlier = self.side(earlier.of, Like { of: later.index, ..earlier }, judged);
        let is_same = later.like.is_same();
        let is_told = later.is_wrong() != earlier.is_wrong();
        for side in [later, earlier] {
            let Side { index, like, unlike, .. } = side;
            match (is_told, is_same) {
                (true, true) if side.is_wrong() => judged.stale[index] = self.stale(&side),
                (true, false) if side.is_wrong() => {
                    doubt(&mut judged.unsure[index], Unsure { like, unlike });
                }
                (false, true) if !side.is_right() => {
                    doubt(&mut judged.unsure[index], Unsure { like, unlike: None });
                }
                // Waits of different sizes may come near each other.
                _ => {}
            }
        }
    }

    fn side(&self, index: usize, like: Like, judged: &Judged) -> Side {
        let (run, other) = (&self.runs[index], &self.runs[like.of]);
        let tells = |third: &&usize| {
            let third_case = &self.runs[**third];
            judged.stale[**third].is_none()
                && self.is_near(index, **third)
                && apart(run, third_case).is_some_and(|apart| EXPECTED_MAX < apart)
                && is_as_by_bytes(third_case, other)
                && !is_as_by_bytes(third_case, run)
        };
        let unlike = self.known(index).iter().find(tells).copied();
        Side { index, like, fits: fits(run, other), unlike }
    }

    fn stale(&self, side: &Side) -> Option<Stale> {
        let (asked, other) = (self.asked(side.index)?, self.asked(side.like.of)?);
        Some(Stale {
            of: side.like.of,
            differs: differs(asked, other),
            evidence: Evidence::Results,
            like: Some(side.like),
            unlike: side.unlike,
            fits: side.fits,
            is_assumed: asked.is_assumed,
        })
    }
}

/// Keep the nearest of several.
fn doubt(known: &mut Option<Unsure>, found: Unsure) {
    if known.is_none_or(|known| found.like.apart < known.like.apart) {
        *known = Some(found);
    }
}
