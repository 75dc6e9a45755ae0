//! Says which worker thread reads for which accelerators. A place is a worker thread, counted over the process; a group of
//! accelerators of which one reads for all may begin or end in other processes.

use feedrate_engine::job::ReadJob;
use std::ops::Range;

/// The worker threads of a process.
pub(super) struct Placement {
    accelerators: u32,
    workers: u32,
    group: u32,
    /// Accelerators of the first group that are in processes before this one.
    before: u32,
}

impl Placement {
    pub(super) fn new(job: &ReadJob) -> Self {
        let group = job.plan.loader.group_accelerators.max(1);
        Placement {
            accelerators: job.accelerators(),
            workers: job.workers(),
            group,
            before: job.own.start % group,
        }
    }

    /// Groups that have accelerators here. One reads for those of its group that are here.
    pub(super) fn groups(&self) -> usize {
        (self.before + self.accelerators).div_ceil(self.group) as usize
    }

    pub(super) fn places(&self) -> usize {
        self.groups() * self.workers as usize
    }

    /// Number of a place among the workers of its group.
    pub(super) fn worker_of(&self, place: usize) -> u32 {
        place as u32 % self.workers
    }

    pub(super) fn group_of(&self, place: usize) -> usize {
        place / self.workers as usize
    }

    /// The places that read for `accelerator`.
    pub(super) fn places_of(&self, accelerator: u32) -> Range<u32> {
        let first = (self.before + accelerator) / self.group * self.workers;
        first..first + self.workers
    }

    /// The accelerators that `place` reads for.
    pub(super) fn accelerators_of(&self, place: usize) -> Range<u32> {
        let first = self.group_of(place) as u32 * self.group;
        let end = (first + self.group).saturating_sub(self.before);
        first.saturating_sub(self.before)..end.min(self.accelerators)
    }
}
