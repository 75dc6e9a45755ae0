//! Shows what results say: plots, tables, the page of a report. Decides nothing about what a number means.

pub mod table;
pub mod words;
pub mod draw;
pub mod plot;
pub mod report;
