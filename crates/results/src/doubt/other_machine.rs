//! Runs that are compared ran on different machines.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "other_machine",
        severity: Severity::Warning,
        meaning: "The run was on another machine than most runs of its workload in the same source: a difference may be the machine's.",
        evidence: "it ran on `{hostname}`, {usual_runs:.0} of {runs} on `{usual_hostname}`",
        advice: "compare runs of one machine, or of nodes that were shown to be alike",
    },
    check: Check::AmongRuns(|relations, index| {
        let run = &relations.runs[index];
        let own = run.hostname.as_deref()?;
        let study = relations.study(index)?;
        let (usual, count) = study.machine?;
        let facts = Facts::new().with("hostname", own).with("usual_hostname", usual);
        let facts = facts.with("usual_runs", count).with("runs", study.members.len());
        (run.is_result() && usual != own).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        for (ranks, hostname) in [(1, "node1"), (2, "node1"), (4, "node2")] {
            let fake = tests::Fake { ranks, hostname, ..tests::good() };
            fake.write(root, &format!("w/{ranks}/a"));
        }
    },
};
