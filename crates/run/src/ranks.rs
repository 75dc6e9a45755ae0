//! The processes of a run and the division of its accelerators among them.

use crate::clock::Clock;
use crate::comm::{Comm, CommError, RankNode, Solo};
use feedrate_measure::record::Process;
use feedrate_spec::plan::StoragePlan;
use feedrate_spec::plan::order::shard;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::Arc;

/// One process's view of all processes of a run.
#[derive(Clone)]
pub struct Ranks {
    /// Communication between the processes.
    pub comm: Arc<dyn Comm>,
    /// Accelerators of this process, numbered over all processes.
    pub local: Range<u32>,
    /// Number of accelerators of all processes.
    accelerators: u32,
}

impl Ranks {
    /// Divides `accelerators` evenly among the processes, in contiguous ranges.
    pub fn new(comm: Arc<dyn Comm>, accelerators: u32) -> Self {
        let local = shard(accelerators.into(), comm.size(), comm.rank());
        Ranks { local: local.start as u32..local.end as u32, comm, accelerators }
    }

    /// Describes a run with all accelerators in this process.
    pub fn single_process(accelerators: u32) -> Self {
        Ranks::new(Arc::new(Solo), accelerators)
    }

    /// Whether this is rank 0, which keeps the record.
    pub fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// Whether this is the first process on its machine, which does the work that is needed once per machine.
    pub fn is_first_of_node(&self) -> bool {
        self.comm.node().local_rank == 0
    }

    /// Whether the run's last accelerator is in this process.
    pub fn has_last(&self) -> bool {
        self.local.end == self.accelerators
    }

    /// Whether the run has more than one process.
    pub fn is_distributed(&self) -> bool {
        self.comm.size() > 1
    }

    /// Returns the storage plan of this process, which reads for the accelerators `served`. The limits of throughput and concurrency
    /// apply to the whole run and are divided among its accelerators. Every process that reads has a concurrency of at least one.
    pub fn storage_share(&self, plan: &StoragePlan, served: &Range<u64>) -> StoragePlan {
        let mut local_plan = plan.clone();
        if served.is_empty() {
            local_plan.throttle_bytes_per_second = None;
            local_plan.throttle_concurrency = None;
            return local_plan;
        }
        let accelerators = u64::from(self.accelerators.max(1));
        let share = (served.end - served.start) as f64 / accelerators as f64;
        local_plan.throttle_bytes_per_second =
            plan.throttle_bytes_per_second.map(|rate| rate * share);
        local_plan.throttle_concurrency = plan.throttle_concurrency.map(|concurrency| {
            let slots_before =
                |accelerator: u64| (u64::from(concurrency) * accelerator).div_ceil(accelerators);
            (slots_before(served.end) - slots_before(served.start)).max(1) as u32
        });
        local_plan
    }

    /// Gathers the values of all processes on rank 0, in the order of ranks. Returns an empty list on the other ranks.
    ///
    /// # Errors
    /// See [`CommError`].
    pub fn gather<T: Serialize + DeserializeOwned + Clone>(
        &self,
        value: &T,
    ) -> Result<Vec<T>, CommError> {
        if !self.is_distributed() {
            return Ok(vec![value.clone()]);
        }
        let all = self.comm.gather(&encode(value)?)?;
        all.iter().map(|bytes| decode(bytes)).collect()
    }

    /// Synchronises `clock` with the clock of rank 0 and gathers the description of every process on rank 0. Returns an empty list on the
    /// other ranks, and in a run of one process.
    ///
    /// # Errors
    /// See [`CommError`].
    pub fn processes(&self, clock: &mut Clock) -> Result<Vec<Process>, CommError> {
        if !self.is_distributed() {
            return Ok(Vec::new());
        }
        let unshifted = *clock;
        let offset = self.comm.clock_offset(&|| unshifted.now_ns())?;
        clock.shift(offset.offset_ns);
        let RankNode { node, .. } = self.comm.node();
        self.gather(&Process {
            node,
            id: std::process::id(),
            accelerators: self.local.len() as u32,
            clock_offset_ns: offset.offset_ns,
            clock_error_ns: offset.error_ns,
        })
    }
}

/// Sends `value` from rank 0 to all other ranks.
///
/// # Errors
/// See [`CommError`].
pub fn broadcast<T: Serialize>(comm: &dyn Comm, value: &T) -> Result<(), CommError> {
    comm.broadcast(&encode(value)?).map(drop)
}

/// Receives the value that rank 0 broadcasts.
///
/// # Errors
/// See [`CommError`].
pub fn receive<T: DeserializeOwned>(comm: &dyn Comm) -> Result<T, CommError> {
    decode(&comm.broadcast(&[])?)
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CommError> {
    serde_json::to_vec(value).map_err(unreadable)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CommError> {
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// Creates the error for a message that cannot be encoded or decoded, such as between ranks of different versions.
fn unreadable(error: serde_json::Error) -> CommError {
    CommError::Library { call: "a message between ranks", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::served_accelerators;

    /// Returns the concurrency of each process under a limit of `reads` for the run.
    fn concurrencies(
        reads: u32,
        accelerators: u32,
        processes: u32,
        group: u32,
    ) -> Vec<Option<u32>> {
        let ranks = Ranks::single_process(accelerators);
        let plan = StoragePlan { throttle_concurrency: Some(reads), ..StoragePlan::default() };
        let concurrency_of_rank = |rank| {
            let served = served_accelerators(rank, processes, accelerators, group);
            ranks.storage_share(&plan, &served).throttle_concurrency
        };
        (0..processes).map(concurrency_of_rank).collect()
    }

    #[test]
    fn processes_divide_the_concurrency() {
        assert_eq!(concurrencies(7, 2, 2, 1), [Some(4), Some(3)]);
        assert_eq!(concurrencies(5, 4, 4, 1), [2, 1, 1, 1].map(Some));
        assert_eq!(concurrencies(8, 3, 2, 1), [3, 5].map(Some));
        assert_eq!(concurrencies(2, 4, 4, 1), [Some(1); 4], "each has at least one");
        assert_eq!(concurrencies(3, 4, 4, 2), [Some(2), None, Some(1), None]);
    }
}
