//! Draws conclusions from runs: designs, effects, findings, comparisons, answers, predictions and advice.
//!
//! Everything here returns data. Sentences, figures and printing belong to `report` and the binary.

pub mod design;
pub mod precision;
pub mod throughput;
pub mod trial;
pub mod finding;
pub mod estimate;
pub mod answer;
pub mod compare;
pub mod access_pattern;
pub mod findings;
pub mod predict;
pub mod repeat;
pub mod recommendation;
pub mod advice;
pub mod watched_client;
