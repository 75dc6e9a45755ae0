//! Hosts that disagree about the time.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

/// Time services keep clocks nearer.
const APART_MAX_NS: i64 = 1_000_000_000;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "clocks_differ",
        severity: Severity::Warning,
        meaning: "Ranks that wait for each other in every step begin and end all blocks over a second apart, by the same time: their hosts' clocks differ. Whole epochs are taken on the clock of the first rank.",
        evidence: "[the clock of {one_rank:.0} of {ranks} is|the clocks of {several_ranks:.0} of {ranks} are] {ahead} s from that of rank {first_rank:.0}",
        advice: "keep the clocks of hosts together by a time service; beginnings and ends of different ranks cannot be compared as they stand in the files",
    },
    check: Check::OfImport(|_, imported| {
        let offsets_ns = &imported.clock_offsets_ns;
        if offsets_ns.iter().max()? - offsets_ns.iter().min()? <= APART_MAX_NS {
            return None;
        }
        let others: Vec<i64> = offsets_ns.iter().copied().filter(|ns| *ns != 0).collect();
        let ends_ns = [*others.iter().min()?, *others.iter().max()?];
        let [from, to] = ends_ns.map(|ns| format!("{:+.2}", ns as f64 / 1e9));
        let count = others.len();
        let facts = Facts::new().with_known("one_rank", (count == 1).then_some(count));
        let facts = facts.with_known("several_ranks", (1 < count).then_some(count));
        let facts =
            facts.with("ranks", offsets_ns.len()).with("first_rank", *imported.ranks.first()?);
        Some(facts.with("ahead", if from == to { from } else { format!("{from} to {to}") }))
    }),
    #[cfg(test)]
    fires: |root| tests::edit_good(root, "1_per_epoch_stats.json", "T10:", "T11:"),
};
