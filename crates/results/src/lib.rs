//! Reads result folders and logs of any supported program into runs, indexes runs, and reads a study's CSV together with the results of its rows.
//! It starts no processes and draws no conclusions.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

pub mod setting;
pub mod row;
pub mod experiment;
mod cells;
pub mod table;
pub mod hook;
pub mod file_kind;
pub mod place;
pub mod import;
pub mod logs;
pub mod files;
pub mod state;
pub mod leftovers;
pub mod overview;
pub mod diagnosis;
pub mod conclusion;
pub mod trials;
pub mod run;
pub mod replan;
pub mod relations;
pub mod doubt;
pub mod index;
pub mod groups;
pub mod submissions;

pub use import::load_run;
