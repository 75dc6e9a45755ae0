//! Between the processes of a run: one file per way, one row in [`COMMS`].
//!
//! Accelerators within a process need none of this: the engine counts them in. To add a way: copy
//! `solo.rs`, implement [`Comm`], add its `mod` line and its row; the contract suite runs on it.

mod solo;
mod threads;
#[cfg(test)]
mod tests;

pub use solo::Solo;
pub use threads::Threads;

use feedrate_spec::catalog::Member;

/// Collective operations. Every rank calls the same ones in the same order.
pub trait Comm: Send + Sync {
    /// This process, from 0.
    fn rank(&self) -> u32;
    /// Processes.
    fn size(&self) -> u32;
    /// Wait for all.
    fn barrier(&self);
    /// The sum over all ranks, on all ranks.
    fn sum(&self, value: f64) -> f64;
    /// Each rank's bytes in rank order, on rank 0; nothing elsewhere.
    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;
}

/// Every way, in the order docs show them.
pub static COMMS: &[&Member] = &[&solo::MEMBER, &threads::MEMBER];
