//! The engine: loaders, training, drivers, clocks. The only crate that knows the time.
//!
//! What happens next is decided by two state machines without clock, thread or I/O ([`loader`],
//! [`engine`]); a driver carries it out, on the real machine or in simulated time ([`drive`]).

pub mod clock;
pub mod comm;
pub mod ranks;
pub mod buffer;
pub mod times;
pub mod wrap;
pub mod compute;
pub mod checkpoint;
pub mod loader;
pub mod reader;
pub mod engine;
pub mod drive;
pub mod system;
pub mod alone;
pub mod session;
