//! Code that the targets share: one program per format.

#[path = "../../crates/data/tests/corpus/contract.rs"]
mod contract;

/// Hold the reader of the format called `name` to its contract.
pub fn hold(name: &str, input: &[u8]) {
    if let Some(format) = feedrate_data::format::find(name) {
        contract::hold(format, input);
    } else {
        panic!("there is no format `{name}`");
    }
}
