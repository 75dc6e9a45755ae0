//! Writes the report as a JSON object without pictures, and versions every object that `--json` prints.

use super::ReportOutput;
use crate::experiment::{ReportedExperiment, experiments};
use crate::report::{FigureUse, Report};
use feedrate_spec::{escape, names};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) static OUTPUT: ReportOutput = ReportOutput {
    name: "json",
    extension: "json",
    summary: "Everything but the pictures, as one object.",
    figures: FigureUse::Values,
    write,
};

names! {
    /// Type of an object that `--json` prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "each is named after its command")]
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
        Rehearsal = "rehearsal",
        Repeat = "repeat",
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
    /// The version. It increases when a key is removed or changes its meaning.
    const fn version(self) -> u64 {
        match self {
            Schema::Run => 4,
            Schema::Analyze | Schema::CompareLogs | Schema::Diagnose => 3,
            _ => 2,
        }
    }

    /// `run/2`: name and version.
    #[must_use]
    pub fn versioned(self) -> String {
        format!("{}/{}", self.name(), self.version())
    }

    /// The object as one line of JSON, after the version of the program, and name and version of the schema.
    ///
    /// # Errors
    /// The object cannot be written as JSON, because a map has keys that are not strings.
    pub fn text(self, object: &impl Serialize) -> serde_json::Result<String> {
        let schema = self.versioned();
        let versioned = Versioned { feedrate: env!("CARGO_PKG_VERSION"), schema, object };
        Ok(escape::escape_json(&serde_json::to_string(&versioned)?).into())
    }
}

/// An object whose keys are described elsewhere.
pub type OpenObject = serde_json::Map<String, serde_json::Value>;

#[derive(Serialize, JsonSchema)]
#[expect(missing_docs, reason = "its schema is that of the object")]
pub struct Versioned<T> {
    /// Version of the program.
    pub feedrate: &'static str,
    /// Name and version of this schema.
    pub schema: String,
    #[serde(flatten)]
    pub object: T,
}

/// A report as a JSON object; its schema follows from this type.
#[derive(Serialize, JsonSchema)]
pub struct ReportObject<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Experiments with means and intervals.
    experiments: Vec<ReportedExperiment>,
}

fn write(report: &Report) -> String {
    let report = ReportObject { report, experiments: experiments(report) };
    Schema::Report.text(&report).unwrap_or_default() + "\n"
}
