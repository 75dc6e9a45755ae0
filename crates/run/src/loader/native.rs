//! Our own loader: every worker takes the next sample of the epoch, whatever batch it belongs to, so that all
//! of them read as long as anything may be read. Batches are delivered in order.

use super::{Claim, Loader, Queue, Task, Wakes, WorkerState};
use feedrate_spec::catalog::{LoaderEntry, Member};

static MEMBER: Member = Member {
    name: "native",
    summary: "feedrate's own: workers share the samples of all open batches, delivered in order",
    abilities: &[],
};

/// The member.
#[derive(Debug)]
pub(super) struct Native;

impl Loader for Native {
    fn entry(&self) -> LoaderEntry {
        LoaderEntry { member: &MEMBER, stock_batches }
    }

    fn claim(&self, queue: &Queue, _worker: &mut WorkerState) -> Claim {
        match queue.draw_sample(u64::MAX) {
            Some((batch, sample)) => Claim::Task(Task { batch, samples: sample..sample + 1 }),
            None => Claim::Wait,
        }
    }

    fn wakes(&self, _queue: &Queue, _batch: u64) -> Wakes {
        Wakes::Any
    }

    fn claims_per_batch(&self, batch_size: u64) -> u64 {
        batch_size
    }
}

/// Enough open batches that all workers read even where a batch is one sample.
fn stock_batches(read_threads: u32, prefetch_size: u32, _batch_size: u64) -> u32 {
    prefetch_size.max(read_threads.max(1).saturating_add(1))
}
