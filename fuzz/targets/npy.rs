#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| feedrate_fuzz::hold("npy", input));
