//! Contract.
