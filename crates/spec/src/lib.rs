//! Workloads (a user's request) and plans (the decisions made from it), with units, problems and the catalog of plug-ins.
//!
//! Everything here is a function of its arguments. No file, clock, environment variable, rank or
//! random source is read, so the same workload and catalog give the same plan on every machine.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

mod names;
pub mod units;
pub mod histogram;
pub mod transfers;
pub mod object_url;
pub mod escape;
pub mod part;
pub mod problem;
pub mod shape;
pub mod library;
pub mod catalog;
pub mod workload;
pub mod bundled;
pub mod mlperf;
pub mod plan;
pub mod refusal;
pub mod listener;
