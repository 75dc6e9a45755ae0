//! Drivers: they carry out what the state machines decide, on the real machine or in simulated time.

mod job;
mod conduct;
mod sink;
mod worker;
mod real;
mod simulated;
#[cfg(test)]
mod tests;

pub use job::{Job, RunError};
pub use real::{Live, RealDriver};
pub use simulated::{SimulatedDriver, SimulatedStorage};

use crate::engine::Training;
use feedrate_measure::record::AcceleratorEpoch;

/// Carries out one epoch after another.
pub trait Driver {
    /// Run `steps` steps of the next epoch. Fewer are in the result where the run was interrupted.
    ///
    /// # Errors
    /// A sample could not be read.
    fn epoch(
        &mut self,
        training: &mut Training,
        steps: u64,
    ) -> Result<Vec<AcceleratorEpoch>, RunError>;

    /// Time since the start of the run.
    fn now_ns(&self) -> u64;
}
