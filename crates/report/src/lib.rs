//! Shows what results say: plots, tables, the page of a report. Decides nothing about what a number means.

mod number;
pub mod table;
pub mod text;
pub mod draw;
pub mod ceilings;
pub mod report;
pub mod words;
pub mod plot;
pub mod experiment;
mod grid;
mod methods;
mod figures;
mod told;
mod advice;
mod comparison;
mod opening;
pub mod document;
pub mod gather;
pub mod output;
#[cfg(test)]
mod tests;
