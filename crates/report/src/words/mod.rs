//! Renders results as sentences, once for all outputs: findings, answers, advice, comparisons. Decides nothing.

pub mod number;
mod terms;
pub(crate) mod inconclusive;
mod over_time;
pub mod finding;
pub mod comparison;
pub mod access_pattern;
pub mod recommendation;
pub mod schedule;
pub mod advice;
pub mod answer;
pub mod repeat;
pub mod io_answer;
pub mod client;
pub mod mlperf;
pub mod mlperf_class;
pub mod trials;
pub mod unpredicted;
#[cfg(test)]
mod tests;
