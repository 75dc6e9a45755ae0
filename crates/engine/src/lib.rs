//! Emulates training: decides when each worker reads which sample, when a batch is delivered, and when a step begins and ends.
//!
//! State machines make these decisions, without clocks, threads, files or system calls. A driver executes their actions: `feedrate-run`
//! has the driver for the real machine, [`simulated`] the driver for virtual time.

pub mod durations;
pub mod loader;
pub mod reader;
pub mod sink;
pub mod job;
pub mod client;
pub mod requests;
pub mod stepper;
pub mod effects;
mod virtual_time;
pub mod simulated;
#[cfg(test)]
mod tests;
