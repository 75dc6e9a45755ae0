//! Every target: a program called as its format.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| feedrate_fuzz::hold(env!("CARGO_BIN_NAME"), input));
