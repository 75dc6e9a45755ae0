//! The whole report as an object, but for the pictures.

use super::ReportOutput;
use crate::experiment::experiments;
use crate::report::{FigureUse, Report};
use feedrate_spec::{escape, names};
use serde_json::{Value, json};

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "json",
    extension: "json",
    summary: "Everything but the pictures, as one object.",
    figures: FigureUse::Values,
    write,
};

names! {
    /// Kind of an object that `--json` prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "each is called after its command")]
    pub enum Schema {
        Advise = "advise",
        Analyze = "analyze",
        Bench = "bench",
        Calibrate = "calibrate",
        Clean = "clean",
        Compare = "compare",
        CompareLogs = "compare_logs",
        Describe = "describe",
        Diagnose = "diagnose",
        Generate = "generate",
        Import = "import",
        List = "list",
        Plan = "plan",
        Plot = "plot",
        Report = "report",
        Run = "run",
        Scale = "scale",
        ScaleDryRun = "scale_dry_run",
        Scan = "scan",
        StudyDryRun = "study_dry_run",
        StudyNew = "study_new",
        StudyRun = "study_run",
        StudyShow = "study_show",
        StudyStatus = "study_status",
        System = "system",
        Trials = "trials",
        Verify = "verify",
        Whatif = "whatif",
    }
}

impl Schema {
    /// Raised when a key goes or changes its meaning.
    const fn version(self) -> u64 {
        match self {
            Schema::CompareLogs | Schema::Diagnose | Schema::Run => 3,
            _ => 2,
        }
    }

    /// `run/2`: name and version.
    #[must_use]
    pub fn versioned(self) -> String {
        format!("{}/{}", self.name(), self.version())
    }

    /// The object, after the version of the program that made it, and name and version of what it is.
    #[must_use]
    pub fn object(self, mut object: Value) -> JsonObject {
        if let Some(keys) = object.as_object_mut() {
            keys.shift_insert(0, "feedrate".into(), env!("CARGO_PKG_VERSION").into());
            keys.shift_insert(1, "schema".into(), self.versioned().into());
        }
        JsonObject(escape::in_json(&object.to_string()).into())
    }
}

/// An object with its schema, as JSON.
pub struct JsonObject(String);

impl JsonObject {
    /// One line.
    pub fn text(&self) -> &str {
        &self.0
    }
}

fn write(report: &Report) -> String {
    let mut object = json!(report);
    object["experiments"] = json!(experiments(report));
    format!("{}\n", Schema::Report.object(object).text())
}
