//! The whole report as an object, but for the pictures.

use super::ReportOutput;
use crate::experiment::experiments;
use crate::report::Report;
use serde_json::json;

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "json",
    extension: "json",
    summary: "Everything but the pictures, as one object.",
    write,
};

fn write(report: &Report) -> String {
    let mut object = json!(report);
    object["experiments"] = json!(experiments(report));
    format!("{object}\n")
}
