//! Measures: records, metrics, doubts, verdicts, and DLIO's result files.
//!
//! A metric is a function of a [`record::Record`]; it can be recomputed years later from the file.
//! Nothing here has a clock, and only `record::file` touches the disk.

pub mod stats;
pub mod histogram;
pub mod record;
pub mod window;
pub mod metric;
pub mod phase;
pub mod plot_data;
pub mod derived;
pub mod facts;
pub mod doubt;
pub mod checkpoints;
pub mod waits;
pub mod verdict;
pub mod supply;
pub mod access;
pub mod summary;
pub mod dlio;
#[cfg(any(test, feature = "example"))]
mod tests;
#[cfg(any(test, feature = "example"))]
pub use tests::example;
