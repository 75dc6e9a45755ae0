//! Two ranks have the same load times.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Imported;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of different load times. Fewer may be equal by chance.
const DIFFERENT_MIN: usize = 3;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "identical_ranks",
        severity: Severity::Invalid,
        meaning: "Files of two ranks contain the same load times to the nanosecond: one is a copy, and the steps of its rank are lost.",
        evidence: "all load times are equal: {copies:.4}",
        advice: "copy the folder again from where it was written",
    },
    check: Check::Import(|_, imported| Facts::from_list("copies", copies(imported))),
    #[cfg(test)]
    fires: |root| {
        let run = tests::varied_run().write(root, "w/4/a");
        std::fs::copy(run.join("1_output.json"), run.join("2_output.json")).unwrap();
    },
};

/// Lists the ranks whose load times equal those of a lower rank.
fn copies(imported: &Imported) -> Vec<String> {
    let mut originals: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
    let mut copies = Vec::new();
    for (position, &rank) in imported.ranks.iter().enumerate() {
        let epochs = imported.epochs().iter();
        let accelerators = epochs.filter_map(|epoch| epoch.accelerators.get(position));
        let blocks = accelerators.flat_map(|accelerator| &accelerator.blocks);
        let loads_ns: Vec<u64> = blocks.flat_map(|block| &block.load_ns).copied().collect();
        if loads_ns.iter().collect::<BTreeSet<_>>().len() < DIFFERENT_MIN {
            continue;
        }
        match originals.get(&loads_ns) {
            Some(original) => copies.push(format!("ranks {original} and {rank}")),
            None => {
                originals.insert(loads_ns, rank);
            }
        }
    }
    copies
}
