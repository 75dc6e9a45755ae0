//! Folders of DLIO runs, for tests of crates above too, and what is read of them.

pub mod fake;
#[cfg(test)]
mod folders;
#[cfg(test)]
mod published;
