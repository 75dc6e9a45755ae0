//! DALI's CPU pipeline as DLIO uses it (`dali_data_loader.py`): `num_threads` threads together read one batch after another, and a queue
//! holds up to `prefetch_queue_depth` complete batches (DALI's documentation, “Pipeline”, executor and prefetching).

use super::{Loader, Queue, Task, WorkerState};
use feedrate_spec::catalog::{LoaderEntry, Member};

static MEMBER: Member = Member {
    name: "dali",
    summary: "DALI: threads share the samples of one batch at a time, whole batches wait in a queue",
    abilities: &[],
};

/// The `dali` loader.
#[derive(Debug)]
pub(super) struct Dali;

impl Loader for Dali {
    fn entry(&self) -> LoaderEntry {
        LoaderEntry { member: &MEMBER, batches_in_flight }
    }

    fn claim(&self, queue: &Queue, _worker: &mut WorkerState) -> Option<Task> {
        let (batch, sample) = queue.claim_sample(queue.completed() + 1)?;
        Some(Task { batch, samples: sample..sample + 1, position: None })
    }

    fn waits_for_complete(&self) -> bool {
        true
    }
}

/// Returns the depth of DALI's queue, which is at least 1.
fn batches_in_flight(_read_threads: u32, prefetch_size: u32, _batch_size: u64) -> u32 {
    prefetch_size.max(1)
}
