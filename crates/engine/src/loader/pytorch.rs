//! `torch.utils.data.DataLoader` with worker processes (`torch/utils/data/dataloader.py`, `_MultiProcessingDataLoaderIter`): worker
//! k mod n builds batch k, and `prefetch_factor` × n batches are outstanding. When a batch is taken, a new batch is assigned. Batches are
//! delivered in order.
//!
//! DLIO sets `prefetch_factor = ceil(prefetch_size / read_threads)`, or 2 if that is 0 (`torch_data_loader.py`). Without workers the
//! training thread reads, and reading does not overlap with training.

use super::{Loader, Queue, Task, WakeTarget, WorkerState};
use feedrate_spec::catalog::{Ability, LoaderEntry, Member};

static MEMBER: Member = Member {
    name: "pytorch",
    summary: "torch DataLoader: each worker builds whole batches, prefetch_factor × workers outstanding, delivered in order",
    abilities: &[Ability::OwnBatches, Ability::CallsLibrary],
};

/// The `pytorch` loader.
#[derive(Debug)]
pub(super) struct PyTorch;

impl Loader for PyTorch {
    fn entry(&self) -> LoaderEntry {
        LoaderEntry { member: &MEMBER, batches_in_flight }
    }

    fn claim(&self, queue: &Queue, worker: &mut WorkerState) -> Option<Task> {
        let batch = queue.next_in_stride(worker.last, worker.worker, 1)?;
        if batch >= queue.claimable_until(worker) {
            return None;
        }
        worker.last = Some(batch);
        Some(Task { batch, samples: 0..queue.batch_size(), position: None })
    }

    fn workers_to_wake(&self, queue: &Queue, batch: u64) -> WakeTarget {
        WakeTarget::One((queue.step_of(batch) % u64::from(queue.workers())) as u32)
    }

    fn claims_per_batch(&self, _batch_size: u64) -> u64 {
        1
    }
}

fn batches_in_flight(read_threads: u32, prefetch_size: u32, _batch_size: u64) -> u32 {
    if read_threads == 0 {
        return 0;
    }
    let factor = match prefetch_size.div_ceil(read_threads) {
        0 => 2,
        factor => factor,
    };
    factor.saturating_mul(read_threads)
}
