//! Samples, the files that hold them, and the places files lie in.
//!
//! Formats and storages never import each other: a format says which byte ranges it needs, a
//! storage serves ranges. Nothing here knows the time.

pub mod content;
mod piece;
pub mod zip;
pub mod storage;
pub mod format;
pub mod walk;
mod sink;
pub mod error;
pub mod manifest;
pub mod names;
pub mod lock;
mod foreign;
pub mod file_index;
pub mod listing;
pub mod removal;
pub mod stage;
pub mod generate;
pub mod verify;

#[cfg(test)]
mod tests;
