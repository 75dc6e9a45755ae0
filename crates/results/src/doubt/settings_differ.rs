//! Runs that are compared differ in more than what is varied.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

/// The weightiest first.
const SECTIONS: [&str; 6] =
    ["dataset.", "train.", "reader.", "data_reader.", "model.", "checkpoint."];

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "settings_differ",
        severity: Severity::Warning,
        meaning: "The config differs from most runs of its workload in keys that no override of the run names: an effect that it is compared for has other causes too.",
        evidence: "{differs:.6}",
        advice: "compare only runs that differ in one thing: repeat the run with the config of the others",
    },
    check: Check::AmongRuns(|relations, index| {
        let run = &relations.runs[index];
        let usual = relations.usual(index)?;
        if !run.is_result() {
            return None;
        }
        let mut differs = Vec::new();
        for (key, own) in &run.dataset_use.asked {
            if let Some((other, count)) = usual.get(key.as_str())
                && own.as_str() != *other
                && 1 < *count
                && !run.dataset_use.overridden.contains(key)
            {
                differs.push(format!("{key} {own}, and {other} in {count} others"));
            }
        }
        differs.sort_by_key(|text| SECTIONS.iter().position(|section| text.starts_with(section)));
        Facts::listed("differs", differs)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::Fake { files: 28, batch: 1, compute_s: 0.05, ..tests::good() }.write(root, "w/4/a");
        for over in ["reader.transfer_size=1", "reader.transfer_size=2", "reader.transfer_size=3"] {
            let fake = tests::Fake { overrides: vec![over], slower: 1.1, ..tests::good() };
            fake.write(root, &format!("w/{over}/a"));
        }
    },
};
