//! Emulates training: who reads which sample when, when a batch is delivered, when a step begins and ends.
//!
//! State machines and what they need. A driver carries their actions out: that of `feedrate-run` on the real machine, the
//! [`simulated`] one in virtual time. Nothing here has a clock, a thread, a file or a system call of its own.

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
