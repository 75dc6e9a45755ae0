//! The real `feedrate`, run as users run it, in folders of its own.

mod harness;
/// Runs and what they leave.
mod run;
/// Bad input: each its own error, no panic.
mod bad_input;
/// Plans, lists, descriptions.
mod describe;
/// What happens to datasets.
mod data;
