//! Sums over accelerators and epochs: portions of times, and counters.

use crate::record::{AcceleratorEpoch, IoCounters, Record};
use crate::window::Scope;

/// A time and the part of it that counts.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    pub(super) part_ns: u64,
    pub(super) whole_ns: u64,
}

impl Portion {
    pub(super) fn add(self, other: Portion) -> Portion {
        Portion { part_ns: self.part_ns + other.part_ns, whole_ns: self.whole_ns + other.whole_ns }
    }

    /// Adds the portions of all accelerators of an epoch; `None` unless all are known.
    pub(super) fn sum_epoch(
        scope: Scope,
        portion: fn(&AcceleratorEpoch) -> Option<Portion>,
    ) -> Option<Self> {
        let portions: Option<Vec<Portion>> = scope.epoch.accelerators.iter().map(portion).collect();
        portions?.into_iter().reduce(Portion::add)
    }

    pub(super) fn percent(self) -> f64 {
        self.part_ns as f64 / self.whole_ns as f64 * 100.0
    }
}

/// Counters of all accelerators, added over the whole epochs of a run.
pub fn counters_of_run(record: &Record) -> IoCounters {
    counters(Scope::whole_epochs(record))
}

/// Counters of all accelerators, added over some epochs.
pub(crate) fn counters<'a>(epochs: impl IntoIterator<Item = Scope<'a>>) -> IoCounters {
    let mut sum = IoCounters::default();
    for scope in epochs {
        scope.epoch.accelerators.iter().for_each(|accelerator| sum.add(&accelerator.io));
    }
    sum
}
