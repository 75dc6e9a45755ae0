//! What tests begin with, those of crates above too.

pub mod example;
