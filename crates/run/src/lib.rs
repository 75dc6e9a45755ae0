//! Executes runs: carries out the engine's decisions on the real machine, in one process or several. This is the only crate below
//! `session` that reads the clock.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

pub mod clock;
pub mod live;
mod functions;
pub mod comm;
pub mod ranks;
pub mod buffer;
mod abandonable;
mod gate;
pub mod op_log;
pub mod new_file;
pub mod layers;
pub mod compute;
pub mod checkpoint;
pub mod driver;
pub mod trace;
pub mod probe;
pub mod system;
mod page_cache;
pub mod training;
mod checkpoint_only;
