//! Studies: designs of runs, running what is pending, and comparing what came of it. Starts processes and reads records; never links the engine.

pub mod setting;
pub mod row;
pub mod experiment;
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
mod import;
pub mod response;
pub mod precision;
pub mod state;
pub mod datasets;
pub mod runner;
pub mod overview;
pub mod search;
pub mod runs;
pub mod compare;
pub mod draw;
pub mod plot;

pub use import::load_run;
