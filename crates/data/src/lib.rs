//! Samples, the files that hold them, and the places files lie in.
//!
//! Formats and storages never import each other: a format says which byte ranges it needs, a
//! storage serves ranges. Nothing here knows the time.

pub mod content;
pub mod storage;
pub mod format;
pub mod manifest;
pub mod generate;
pub mod verify;
