//! What the accelerators do next: the training loop as a state machine, and what it writes down.

mod training;
mod recorder;

pub use recorder::{Recorder, StepTimes};
pub use training::{Action, Event, Training};
