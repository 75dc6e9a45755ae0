//! A fixture that writes folders of DLIO runs, also for tests of other crates, and the tests of reading these folders.

pub mod fake;
#[cfg(test)]
mod folders;
#[cfg(test)]
mod published;
