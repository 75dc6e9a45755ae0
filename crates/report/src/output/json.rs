//! The whole report as an object, but for the pictures.

use super::ReportOutput;
use crate::experiment::experiments;
use crate::report::Report;
use feedrate_spec::escape;
use serde_json::{Value, json};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "json",
    extension: "json",
    summary: "Everything but the pictures, as one object.",
    write,
};

/// Version of all objects that `--json` prints: raised when a key goes or changes its meaning.
const SCHEMA: u64 = 1;

/// The object, with the version of what `--json` prints as its first key.
#[must_use]
pub fn with_schema(mut object: Value) -> Value {
    if let Some(keys) = object.as_object_mut() {
        keys.shift_insert(0, "schema".into(), SCHEMA.into());
    }
    object
}

fn write(report: &Report) -> String {
    let mut object = json!(report);
    object["experiments"] = json!(experiments(report));
    format!("{}\n", escape::in_json(&with_schema(object).to_string()))
}
