//! Maps worker threads to the accelerators that they read for. The worker threads of the process have consecutive indices; a worker that
//! keeps several requests outstanding has as many threads. A group of accelerators that share a reader may begin or end in other processes.

use feedrate_engine::job::ReadJob;
use std::ops::Range;

/// The worker threads of a process and their accelerators.
pub(super) struct Placement {
    accelerators: u32,
    /// Number of worker threads of a group.
    threads: u32,
    group: u32,
    /// Number of accelerators of the first local group that are in earlier processes.
    earlier_accelerators: u32,
}

impl Placement {
    pub(super) fn new(job: &ReadJob) -> Self {
        let group = job.plan.loader.group_accelerators.max(1);
        Placement {
            accelerators: job.accelerators(),
            threads: job.plan.loader.threads(),
            group,
            earlier_accelerators: job.local.start % group,
        }
    }

    /// Returns the number of groups with accelerators in this process.
    pub(super) fn groups(&self) -> usize {
        (self.earlier_accelerators + self.accelerators).div_ceil(self.group) as usize
    }

    /// Returns the number of worker threads of this process.
    pub(super) fn worker_threads(&self) -> usize {
        self.groups() * self.threads as usize
    }

    /// Returns the number of a thread within its group.
    pub(super) fn thread_of(&self, index: usize) -> u32 {
        index as u32 % self.threads
    }

    /// Returns the number of a worker's group within this process.
    pub(super) fn group_of(&self, index: usize) -> usize {
        index / self.threads as usize
    }

    /// Returns the indices of the threads that read for `accelerator`.
    pub(super) fn workers_of(&self, accelerator: u32) -> Range<u32> {
        let first = (self.earlier_accelerators + accelerator) / self.group * self.threads;
        first..first + self.threads
    }

    /// Returns the local accelerators that a worker reads for.
    pub(super) fn accelerators_of(&self, index: usize) -> Range<u32> {
        let first = self.group_of(index) as u32 * self.group;
        let end = (first + self.group).saturating_sub(self.earlier_accelerators);
        first.saturating_sub(self.earlier_accelerators)..end.min(self.accelerators)
    }
}
