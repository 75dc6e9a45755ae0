//! Renders results as sentences, plots, tables and reports. Decides nothing about the meaning of a number.

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
mod conclusions;
mod advice;
mod comparison;
mod opening;
pub mod document;
pub mod output;
pub mod run_page;
pub mod gather;
#[cfg(test)]
mod tests;
