//! Checks the contract of a format's reader on one input, for all fuzz targets. Each format has one target.

#[path = "../../crates/data/tests/corpus/contract.rs"]
mod contract;

/// Checks that the reader of the format `name` keeps its contract on `input`.
pub fn check(name: &str, input: &[u8]) {
    if let Some(format) = feedrate_data::format::find(name) {
        contract::check_contract(format, input);
    } else {
        panic!("there is no format `{name}`");
    }
}
