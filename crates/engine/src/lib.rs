//! Emulates training: decides which worker reads which sample when, when a batch is delivered, and when a step begins and ends.
//!
//! These decisions are state machines, without clocks, threads, files or system calls. A driver executes their actions: the driver of
//! `feedrate-run` on the real machine, the [`simulated`] driver in virtual time.

pub mod durations;
pub mod client;
pub mod loader;
pub mod reader;
pub mod sink;
pub mod job;
pub mod stepper;
pub mod effects;
mod virtual_time;
pub mod simulated;
#[cfg(test)]
mod tests;
