//! DLIO forgets the record length where it makes data and trains in one process.

use super::{Check, Doubt, Severity, found};
use feedrate_measure::metric::NOMINAL_WINDOWED;
use feedrate_spec::units::MIB;

pub(super) static DOUBT: Doubt = Doubt {
    name: "generated_in_same_process",
    severity: Severity::Warning,
    meaning: "The run made its dataset and trained on it: what it read was just written and may lie in the page cache, and DLIO of 2025 and later computes MB/s with a record length of 1.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        if !imported.trains() || !imported.generates() || loaded.run.steps == 0 {
            return None;
        }
        let told =
            loaded.run.reported_mib_per_second().map(|mib| format!("{mib:.4} MiB/s are reported"));
        let right = loaded.run.metric(&NOMINAL_WINDOWED);
        let right = right.map(|rate| format!("{:.1} MiB/s follow from the steps", rate / MIB));
        let parts: Vec<String> = ["`workflow.generate_data` is set".to_string()]
            .into_iter()
            .chain(told)
            .chain(right)
            .collect();
        found(
            parts.join("; "),
            "make the dataset in a run of its own, and empty the page cache before training",
        )
    }),
};
