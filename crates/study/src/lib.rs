//! Studies: designs of runs, running what is pending, and comparing what came of it. Starts processes and reads records; never links the engine.

pub mod setting;
pub mod row;
pub mod experiment;
mod cells;
pub mod table;
mod random;
pub mod factor;
pub mod hook;
pub mod keys;
pub mod design;
pub mod arrange;
pub mod design_file;
pub mod blueprint;
pub mod bash;
pub mod launch;
pub mod supervise;
pub mod import;
pub mod response;
pub mod precision;
pub mod state;
pub mod datasets;
pub mod runner;
pub mod overview;
pub mod search;
pub mod runs;
pub mod case;
pub mod set;
pub mod doubt;
pub mod analysis;
pub mod compare;
pub mod findings;
pub mod draw;
pub mod plot;
pub mod report;

pub use import::load_run;
