//! Two runs that waited alike, step by step, for samples of different size, all else that matters the same, while both mostly waited: one of them read the files of
//! the other. Tells which, or that it cannot be told; whoever came first.

use super::similarity::{EXPECTED_MAX, apart, differs, fits, is_as_by_bytes, is_better};
use super::store::{Evidence, Judgement, Like, Stale, Store, Unsure};

/// Evidence for and against one of the two.
struct PairSide {
    index: usize,
    /// The other.
    like: Like,
    /// How far waits for first batches miss the bytes of the run's own dataset, and of the other.
    fits: Option<(f64, f64)>,
    /// A run that waited otherwise than both, as the other by their bytes and not as this one.
    unlike: Option<usize>,
}

impl PairSide {
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
    pub(super) fn tell(&self, later: usize, earlier: Like, judged: &mut [Judgement]) {
        if [later, earlier.of].iter().any(|index| judged[*index].stale.is_some()) {
            return;
        }
        let back = Like { of: later, ..earlier };
        let sides =
            [(later, earlier), (earlier.of, back)].map(|(one, like)| self.side(one, like, judged));
        let is_told = sides[0].is_wrong() != sides[1].is_wrong();
        // What the earlier one was made for lay there last, as far as is known.
        let is_later = !is_told && !sides[0].is_right() && self.varies_files(earlier.of, later);
        if is_later && earlier.is_same() {
            judged[later].stale = self.stale(&sides[0]);
            return;
        }
        for side in sides {
            let PairSide { index, like, unlike, .. } = side;
            match (is_told, like.is_same()) {
                (true, true) if side.is_wrong() => judged[index].stale = self.stale(&side),
                (true, false) if side.is_wrong() => {
                    doubt(&mut judged[index].unsure, Unsure { like, unlike });
                }
                (false, true) if !side.is_right() => {
                    doubt(&mut judged[index].unsure, Unsure { like, unlike: None });
                }
                // Waits of different sizes may come near each other.
                _ => {}
            }
        }
    }

    /// Whether a run varies settings of its files, for which they must have been made, that the other leaves as they are and has otherwise.
    fn varies_files(&self, index: usize, other: usize) -> bool {
        let both = self.asked(index).zip(self.asked(other));
        let differing = both.map(|(one, two)| differs(one, two)).unwrap_or_default();
        let varies = |index: usize| {
            let mut varied = self.runs[index].parameter.split(',');
            varied.any(|name| differing.iter().any(|(key, ..)| key == name))
        };
        varies(index) && !varies(other)
    }

    fn side(&self, index: usize, like: Like, judged: &[Judgement]) -> PairSide {
        let (run, other) = (&self.runs[index], &self.runs[like.of]);
        let unlike = self.known(index).iter().copied().find(|&third| {
            let third_run = &self.runs[third];
            judged[third].stale.is_none()
                && self.near(index, third).is_some()
                && apart(run, third_run).is_some_and(|apart| EXPECTED_MAX < apart)
                && is_as_by_bytes(third_run, other)
                && !is_as_by_bytes(third_run, run)
        });
        PairSide { index, like, fits: fits(run, other), unlike }
    }

    fn stale(&self, side: &PairSide) -> Option<Stale> {
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
