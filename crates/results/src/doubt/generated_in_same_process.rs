//! DLIO forgets the record length where it makes data and trains in one process.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "generated_in_same_process",
    severity: Severity::Warning,
    meaning: "The run made its dataset and trained on it: what it read was just written and may lie in the page cache, and DLIO of 2025 and later computes MB/s with a record length of 1.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported.as_ref()?;
        if !imported.trains() || !imported.generates() || loaded.case.steps == 0 {
            return None;
        }
        let rates = &loaded.case.throughput;
        let told = rates.reported_mib_per_second.map(|mib| format!("{mib:.4} MiB/s are reported"));
        let right = rates
            .windowed_mib_per_second
            .map(|mib| format!("{mib:.1} MiB/s follow from the steps"));
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
