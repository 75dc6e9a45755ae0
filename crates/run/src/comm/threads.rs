//! Ranks as threads of one process: what MPI does, without MPI.

use super::Comm;
use feedrate_spec::catalog::Member;
use std::sync::{Arc, Barrier, Mutex, PoisonError};

pub(super) static MEMBER: Member = Member {
    name: "threads",
    summary: "ranks are threads of one process; stands in for MPI",
    abilities: &[],
};

/// One rank of a group of threads.
#[derive(Debug)]
pub struct Threads {
    rank: u32,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    barrier: Barrier,
    parts: Mutex<Vec<Vec<u8>>>,
}

impl Threads {
    /// A group of `size` ranks, one for each thread.
    pub fn group(size: u32) -> Vec<Threads> {
        let shared = Arc::new(Shared {
            barrier: Barrier::new(size as usize),
            parts: Mutex::new(vec![Vec::new(); size as usize]),
        });
        (0..size).map(|rank| Threads { rank, shared: Arc::clone(&shared) }).collect()
    }

    /// Every rank's bytes, on every rank.
    fn exchange(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let parts = || self.shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts()[self.rank as usize] = bytes.to_vec();
        self.barrier();
        let all = parts().clone();
        self.barrier();
        all
    }
}

impl Comm for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.shared.parts.lock().unwrap_or_else(PoisonError::into_inner).len() as u32
    }

    fn barrier(&self) {
        self.shared.barrier.wait();
    }

    fn sum(&self, value: f64) -> f64 {
        self.exchange(&value.to_le_bytes())
            .iter()
            .filter_map(|bytes| Some(f64::from_le_bytes(bytes.as_slice().try_into().ok()?)))
            .sum()
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let all = self.exchange(bytes);
        if self.rank == 0 { all } else { Vec::new() }
    }
}
