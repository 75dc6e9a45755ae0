//! Archives that other programs may have written.
