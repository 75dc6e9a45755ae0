//! The processes of a run, and which of its accelerators are this one's.

use crate::clock::Clock;
use crate::comm::{Comm, CommError, RankNode, Solo};
use feedrate_measure::record::Process;
use feedrate_spec::plan::StoragePlan;
use feedrate_spec::plan::order::shard;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::Arc;

/// This process among those of a run.
#[derive(Clone)]
pub struct Ranks {
    /// How they talk.
    pub comm: Arc<dyn Comm>,
    /// Accelerators of the run, numbered over all processes, that are here.
    pub own: Range<u32>,
    /// Over all processes.
    accelerators: u32,
}

impl Ranks {
    /// `accelerators` shared out evenly, those of a process side by side.
    pub fn new(comm: Arc<dyn Comm>, accelerators: u32) -> Self {
        let own = shard(accelerators.into(), comm.size(), comm.rank());
        Ranks { own: own.start as u32..own.end as u32, comm, accelerators }
    }

    /// All of them in this process.
    pub fn alone(accelerators: u32) -> Self {
        Ranks::new(Arc::new(Solo), accelerators)
    }

    /// Whether this is the process that keeps the record.
    pub fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// Whether this is the process that looks after its machine.
    pub fn is_first_of_node(&self) -> bool {
        self.comm.node().local_rank == 0
    }

    /// Whether the run's last accelerator is here.
    pub fn has_last(&self) -> bool {
        self.own.end == self.accelerators
    }

    /// Whether there are others.
    pub fn are_many(&self) -> bool {
        self.comm.size() > 1
    }

    /// The emulated storage of this process if it reads for these of the accelerators: a limit is over all of them. Each that reads
    /// has a place.
    pub fn storage(&self, plan: &StoragePlan, read_for: &Range<u64>) -> StoragePlan {
        let mut own = plan.clone();
        let all = u64::from(self.accelerators.max(1));
        let share = (read_for.end - read_for.start) as f64 / all as f64;
        // Who reads nothing has no limit to keep.
        let reads = !read_for.is_empty();
        let (rate, places) = if reads {
            (plan.throttle_bytes_per_second, plan.throttle_concurrency)
        } else {
            (None, None)
        };
        own.throttle_bytes_per_second = rate.map(|rate| rate * share);
        own.throttle_concurrency = places.map(|places| {
            let before = |accelerator: u64| (u64::from(places) * accelerator).div_ceil(all);
            (before(read_for.end) - before(read_for.start)).max(1) as u32
        });
        own
    }

    /// The values of all processes, in the order of ranks, on rank 0; nothing elsewhere.
    ///
    /// # Errors
    /// As of [`CommError`].
    pub fn gather<T: Serialize + DeserializeOwned + Clone>(
        &self,
        value: &T,
    ) -> Result<Vec<T>, CommError> {
        if !self.are_many() {
            return Ok(vec![value.clone()]);
        }
        let all = self.comm.gather(&encoded(value)?)?;
        all.iter().map(|bytes| decoded(bytes)).collect()
    }

    /// Every process of the run, on rank 0; nothing where there is one. Clocks of all are as `clock` of rank 0 from here on.
    ///
    /// # Errors
    /// As of [`CommError`].
    pub fn processes(&self, clock: &mut Clock) -> Result<Vec<Process>, CommError> {
        if !self.are_many() {
            return Ok(Vec::new());
        }
        let own_clock = *clock;
        let offset = self.comm.clock(&|| own_clock.now_ns())?;
        clock.shift(offset.offset_ns);
        let RankNode { node, .. } = self.comm.node();
        self.gather(&Process {
            node,
            id: std::process::id(),
            accelerators: self.own.len() as u32,
            clock_offset_ns: offset.offset_ns,
            clock_error_ns: offset.error_ns,
        })
    }
}

/// Send `value` from rank 0 to all others.
///
/// # Errors
/// As of [`CommError`].
pub fn broadcast<T: Serialize>(comm: &dyn Comm, value: &T) -> Result<(), CommError> {
    comm.broadcast(&encoded(value)?).map(drop)
}

/// The value that rank 0 broadcasts, on the others.
///
/// # Errors
/// As of [`CommError`].
pub fn receive<T: DeserializeOwned>(comm: &dyn Comm) -> Result<T, CommError> {
    decoded(&comm.broadcast(&[])?)
}

fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>, CommError> {
    serde_json::to_vec(value).map_err(unreadable)
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CommError> {
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// Ranks of other versions may understand each other no more than this.
fn unreadable(error: serde_json::Error) -> CommError {
    CommError::Library { call: "a message between ranks", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::read_for;

    fn places(reads: u32, accelerators: u32, processes: u32, group: u32) -> Vec<Option<u32>> {
        let ranks = Ranks::alone(accelerators);
        let plan = StoragePlan { throttle_concurrency: Some(reads), ..StoragePlan::default() };
        let of = |rank| {
            let read_for = read_for(rank, processes, accelerators, group);
            ranks.storage(&plan, &read_for).throttle_concurrency
        };
        (0..processes).map(of).collect()
    }

    #[test]
    fn processes_share_out_all_places() {
        assert_eq!(places(7, 2, 2, 1), [Some(4), Some(3)]);
        assert_eq!(places(5, 4, 4, 1), [2, 1, 1, 1].map(Some));
        assert_eq!(places(8, 3, 2, 1), [3, 5].map(Some));
        assert_eq!(places(2, 4, 4, 1), [Some(1); 4], "each has one");
        assert_eq!(places(3, 4, 4, 2), [Some(2), None, Some(1), None]);
    }
}
