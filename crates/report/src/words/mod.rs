//! The words of findings and doubts, made once for all outputs. Decides nothing.

mod number;
mod inconclusive;
pub mod finding;
#[cfg(test)]
mod tests;
