//! The real driver: carries out the engine's decisions with threads and blocking reads.

mod error;
mod memory;
mod memory_read;
mod touched;
mod placement;
mod client;
mod shared;
mod rest;
mod waiter;
mod worker;
mod requester;
mod receiver;
mod effects;
mod real;
#[cfg(test)]
mod tests;

pub use error::RunError;
pub use real::{DriverOptions, Epoch, Pause, RealDriver, WorkProgress};
