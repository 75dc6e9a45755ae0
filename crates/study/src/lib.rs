//! Studies: reading records back, and comparing runs. Knows records only, never the engine.

mod import;

pub use import::load_run;
