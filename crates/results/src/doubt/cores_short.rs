//! DLIO warned that reading threads share too few cores.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "cores_short",
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "DLIO's log warns that a rank had more reading threads than cores. The threads wait for each other, so a low AU may be caused by the machine instead of the storage.",
        evidence: "a rank had {read_threads} reading threads and {cores}",
        advice: "give each rank one core per reading thread and some more for the framework; draw no conclusions about read_threads from these runs",
    },
    check: Check::Import(|_, imported| {
        let [threads, cores] = imported.log.cores_short?;
        Some(Facts::new().with("read_threads", threads).with("cores", cores))
    }),
    #[cfg(test)]
    fires: |root| {
        let warning = "[WARNING] Running DLIO with 4 threads for I/O but core available 1 are insufficient and can lead to lower performance.\n";
        tests::add_log_line(root, warning);
    },
};
