//! feedrate's own loader: every worker takes the next unclaimed sample of the open batches, so that no worker is idle while an open batch
//! has such a sample. Batches are delivered in order.

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
        let (batch, sample) = queue.claim_sample(u64::MAX)?;
        Some(Task { batch, samples: sample..sample + 1, position: None })
    }
}

/// Returns a number of batches that keeps all workers busy even if a batch is one sample.
fn batches_in_flight(read_threads: u32, prefetch_size: u32, _batch_size: u64) -> u32 {
    prefetch_size.max(read_threads.max(1).saturating_add(1))
}
