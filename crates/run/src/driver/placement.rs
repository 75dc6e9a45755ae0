//! Maps worker threads to the accelerators they read for. A place is the number of a worker thread within the process. A group of
//! accelerators that share a reader may begin or end in other processes.

use feedrate_engine::job::ReadJob;
use std::ops::Range;

/// The worker threads of a process and their accelerators.
pub(super) struct Placement {
    accelerators: u32,
    workers: u32,
    group: u32,
    /// Accelerators of the first local group that are in earlier processes.
    before: u32,
}

impl Placement {
    pub(super) fn new(job: &ReadJob) -> Self {
        let group = job.plan.loader.group_accelerators.max(1);
        Placement {
            accelerators: job.accelerators(),
            workers: job.workers(),
            group,
            before: job.local.start % group,
        }
    }

    /// Returns the number of groups with accelerators in this process.
    pub(super) fn groups(&self) -> usize {
        (self.before + self.accelerators).div_ceil(self.group) as usize
    }

    /// Returns the number of worker threads of this process.
    pub(super) fn places(&self) -> usize {
        self.groups() * self.workers as usize
    }

    /// Returns the number of a worker within its group.
    pub(super) fn worker_of(&self, place: usize) -> u32 {
        place as u32 % self.workers
    }

    /// Returns the number of a worker's group within this process.
    pub(super) fn group_of(&self, place: usize) -> usize {
        place / self.workers as usize
    }

    /// Returns the places of the workers that read for `accelerator`.
    pub(super) fn places_of(&self, accelerator: u32) -> Range<u32> {
        let first = (self.before + accelerator) / self.group * self.workers;
        first..first + self.workers
    }

    /// Returns the local accelerators that the worker at `place` reads for.
    pub(super) fn accelerators_of(&self, place: usize) -> Range<u32> {
        let first = self.group_of(place) as u32 * self.group;
        let end = (first + self.group).saturating_sub(self.before);
        first.saturating_sub(self.before)..end.min(self.accelerators)
    }
}
