//! Runs that are compared ran on different machines.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "other_machine",
    severity: Severity::Warning,
    meaning: "The run was on another machine than most runs of its workload in the same source: a difference may be the machine's.",
    check: Check::OfSet(|relations, index| {
        let run = &relations.runs[index];
        let own = run.hostname.as_deref().filter(|_| run.is_result())?;
        let (usual, count) = relations.usual_machine(index)?;
        if usual == own {
            return None;
        }
        found(
            format!(
                "it ran on `{own}`, {count} of {} runs on `{usual}`",
                relations.study(index).len()
            ),
            "compare runs of one machine, or of nodes that were shown to be alike",
        )
    }),
};
