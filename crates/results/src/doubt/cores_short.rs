//! Reading threads share too few cores, by DLIO's own word.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "cores_short",
        severity: Severity::Warning,
        meaning: "DLIO's log warns that a rank had more reading threads than cores: they wait for each other, and a low AU may be the machine's and not the storage's.",
        evidence: "a rank had {read_threads} reading threads and {cores}",
        advice: "bind ranks to as many cores as they have reading threads, and some for the framework; say nothing about read_threads from these runs",
    },
    check: Check::OfImport(|_, imported| {
        let [threads, cores] = imported.log.cores_short?;
        Some(Facts::new().with("read_threads", threads).with("cores", cores))
    }),
    #[cfg(test)]
    fires: |root| {
        let warning = "[WARNING] Running DLIO with 4 threads for I/O but core available 1 are insufficient and can lead to lower performance.\n";
        tests::warn_good(root, warning);
    },
};
