//! Workloads (what is asked) and plans (what is decided), with units, problems and the catalog of plug-ins.
//!
//! Everything here is a function of its arguments. No file, clock, environment variable, rank or
//! random source is read, so the same workload and catalog give the same plan everywhere.

mod names;
pub mod escape;
pub mod units;
pub mod part;
pub mod problem;
pub mod shape;
pub mod catalog;
pub mod mlperf;
pub mod workload;
pub mod plan;
pub mod refusal;
pub mod listener;
