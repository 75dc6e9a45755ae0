//! Reads results: any folder of results as a run, whoever wrote it; the index of runs; a study's CSV and which of its rows have a result. Starts nothing, concludes nothing.

pub mod setting;
pub mod row;
pub mod experiment;
mod cells;
pub mod table;
pub mod hook;
pub mod file_kind;
pub mod place;
pub mod import;
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
pub mod logs;
pub mod index;
pub mod groups;

pub use import::load_run;
