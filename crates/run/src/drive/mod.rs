//! Drivers: they carry out what the state machines decide, on the real machine or in simulated time.

mod job;
mod conduct;
mod sink;
mod gate;
mod memory;
mod touched;
mod shared;
mod worker;
mod real;
mod simulated;
#[cfg(test)]
mod tests;

pub use job::{Job, RunError};
pub use real::{Live, Progress, RealDriver, Signals};
pub use simulated::{SimulatedDriver, SimulatedStorage};

use crate::engine::Training;
use feedrate_measure::record::AcceleratorEpoch;

/// What an epoch was: fewer steps than asked for where it was interrupted or failed.
#[derive(Debug)]
pub struct Epoch {
    /// What each accelerator did.
    pub accelerators: Vec<AcceleratorEpoch>,
    /// Why it ended early, if something broke.
    pub failure: Option<RunError>,
}

/// What is done between two blocks of an epoch.
pub type Pause<'p> = dyn FnMut(u64) -> Result<(), RunError> + 'p;

/// Carries out one epoch after another.
pub trait Driver {
    /// Run `steps` steps of the next epoch. Between its blocks all accelerators wait while `pause` is called with the steps done.
    fn epoch(&mut self, training: &mut Training, steps: u64, pause: &mut Pause<'_>) -> Epoch;

    /// Time since the start of the run.
    fn now_ns(&self) -> u64;
}
