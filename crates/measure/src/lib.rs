//! Records of runs and everything computed from them: metrics, doubts, verdicts, and DLIO's result files.
//!
//! Every metric is a function of a [`record::Record`], so it can be recomputed from a stored record at any time.
//! This crate reads no clock, and only `record::file` accesses the disk.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

pub mod stats;
pub use feedrate_spec::histogram;
pub mod file_system;
pub mod record;
pub mod window;
pub mod metric;
pub mod phase;
pub mod plot_data;
pub mod data_origin;
pub mod derived;
pub mod transfers;
pub mod noise;
pub mod facts;
pub mod checkpoints;
pub mod doubt;
pub mod waits;
pub mod slow_accelerators;
pub mod budget;
pub mod verdict;
pub mod io_problem;
pub mod watched_io;
pub mod supply;
pub mod access;
pub mod summary;
pub mod dlio;
#[cfg(any(test, feature = "example"))]
mod tests;
#[cfg(any(test, feature = "example"))]
pub use tests::example;
