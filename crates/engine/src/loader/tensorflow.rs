//! `tf.data` as DLIO uses it (`tf_data_loader.py`, `tf_reader.py`). `interleave` reads as many files in parallel as there are threads and
//! takes one record of each file in turn (`cycle_length` = `num_parallel_calls` = `read_threads`, deterministic). `shuffle` keeps a buffer
//! of `shuffle_size` records, which must be full before the first record is delivered. `batch(drop_remainder)` makes batches, `prefetch`
//! keeps `prefetch_size` of them ready, and parsing runs in `computation_threads`.
//!
//! A shuffle buffer changes the order in which records are delivered, but not the order in which they are read.

use super::{Loader, Queue, Task, WorkerState};
use feedrate_spec::catalog::{Ability, LoaderEntry, Member};

static MEMBER: Member = Member {
    name: "tensorflow",
    summary: "tf.data: each thread reads its file of an interleave, a shuffle buffer is filled first, batches are prefetched",
    abilities: &[
        Ability::Interleaves,
        Ability::ShuffleBuffer,
        Ability::DecodeThreads,
        Ability::CallsLibrary,
    ],
};

/// The `tensorflow` loader.
#[derive(Debug)]
pub(super) struct TensorFlow;

impl Loader for TensorFlow {
    fn entry(&self) -> LoaderEntry {
        LoaderEntry { member: &MEMBER, batches_in_flight }
    }

    fn claim(&self, queue: &Queue, worker: &mut WorkerState) -> Option<Task> {
        let batch_size = queue.batch_size();
        let sample = queue.next_in_stride(worker.last, worker.worker, batch_size)?;
        let batch = sample / batch_size;
        let sample_of_batch = sample % batch_size;
        if batch >= queue.open_until() {
            return None;
        }
        worker.last = Some(sample);
        Some(Task { batch, samples: sample_of_batch..sample_of_batch + 1, position: None })
    }
}

/// Returns the number of prefetched batches plus the batches that hold one further record of each thread.
fn batches_in_flight(read_threads: u32, prefetch_size: u32, batch_size: u64) -> u32 {
    let ahead = u64::from(read_threads).div_ceil(batch_size.max(1));
    u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(prefetch_size).max(1)
}
