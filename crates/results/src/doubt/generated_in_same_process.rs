//! The run generated its dataset in the process that trained.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_measure::metric::NOMINAL_WINDOWED;
use feedrate_spec::units::MIB;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "generated_in_same_process",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "The run generated its dataset and then trained on it. The data was just written and may be in the page cache, and DLIO of 2025 and later computes MB/s with a record length of 1.",
        evidence: "`workflow.generate_data` is set[; {reported_mib_per_second:.4} MiB/s are reported][; {windowed_mib_per_second:.1} MiB/s follow from the steps]",
        advice: "generate the dataset in a separate run, and empty the page cache before training",
    },
    check: Check::Import(|run, imported| {
        if !imported.trains() || !imported.generates() || run.steps == 0 {
            return None;
        }
        let windowed = run.metric(&NOMINAL_WINDOWED).map(|rate| rate / MIB);
        let facts = Facts::new().with_known("windowed_mib_per_second", windowed);
        Some(facts.with_known("reported_mib_per_second", run.reported_mib_per_second()))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::Fake { generate: true, ..tests::good_run() }.write(root, "w/4/a")),
};
