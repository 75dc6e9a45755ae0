//! Code that all fuzz targets share. There is one target per format.

#[path = "../../crates/data/tests/corpus/contract.rs"]
mod contract;

/// Checks that the reader of the format called `name` keeps its contract on `input`.
pub fn check(name: &str, input: &[u8]) {
    if let Some(format) = feedrate_data::format::find(name) {
        contract::hold(format, input);
    } else {
        panic!("there is no format `{name}`");
    }
}
