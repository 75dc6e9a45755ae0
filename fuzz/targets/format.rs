//! The source of all targets. The name of the binary is the name of the format.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| feedrate_fuzz::check(env!("CARGO_BIN_NAME"), input));
