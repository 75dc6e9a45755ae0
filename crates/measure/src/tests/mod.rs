//! Fixtures for the tests of this crate and of crates that depend on it.

pub mod example;
