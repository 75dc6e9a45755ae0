//! Sample content, file formats, storages, and the datasets made of them.
//!
//! Formats and storages do not depend on each other: a format states which byte ranges it needs, and a storage serves
//! ranges. Nothing in this crate reads a clock.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

pub mod content;
mod piece;
mod folder;
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
