//! feedrate's own loader: every worker takes the next sample of any open batch, so that all workers read as long as a sample may be read.
//! Batches are delivered in order.

use super::{Loader, Queue, Task, WorkerState};
use feedrate_spec::catalog::{LoaderEntry, Member};

static MEMBER: Member = Member {
    name: "native",
    summary: "feedrate's own: workers share the samples of all open batches, delivered in order",
    abilities: &[],
};

/// The `native` loader.
#[derive(Debug)]
pub(super) struct Native;

impl Loader for Native {
    fn entry(&self) -> LoaderEntry {
        LoaderEntry { member: &MEMBER, batches_in_flight }
    }

    fn claim(&self, queue: &Queue, _worker: &mut WorkerState) -> Option<Task> {
        let (batch, sample) = queue.draw_sample(u64::MAX)?;
        Some(Task { batch, samples: sample..sample + 1, position: None })
    }
}

/// Opens enough batches that all workers read even if a batch is one sample.
fn batches_in_flight(read_threads: u32, prefetch_size: u32, _batch_size: u64) -> u32 {
    prefetch_size.max(read_threads.max(1).saturating_add(1))
}
