//! The words of findings and doubts, made once for all outputs. Decides nothing.

pub(crate) mod number;
mod terms;
mod inconclusive;
pub mod finding;
pub mod comparison;
pub mod answer;
pub mod search;
#[cfg(test)]
mod tests;
