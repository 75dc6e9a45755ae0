//! Each doubt where it fires and where it does not.
