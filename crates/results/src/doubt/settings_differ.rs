//! Runs that are compared differ in more than what is varied.

use super::{Check, Doubt, Severity, found, some_of};

/// What weighs most first.
const SECTIONS: [&str; 6] =
    ["dataset.", "train.", "reader.", "data_reader.", "model.", "checkpoint."];

pub(super) static DOUBT: Doubt = Doubt {
    name: "settings_differ",
    severity: Severity::Warning,
    meaning: "The config differs from most runs of its workload in keys that no override of the run names: an effect that it is compared for has other causes too.",
    check: Check::OfSet(|relations, index| {
        let run = &relations.runs[index];
        let usual = relations.usual(index).filter(|_| run.is_result())?;
        let used = &run.dataset_use;
        let differs: Vec<String> = used
            .asked
            .iter()
            .filter(|(key, _)| !used.overridden.contains(key))
            .filter_map(|(key, own)| {
                let (other, count) = usual.get(key.as_str())?;
                let is_other = *other != own.as_str() && 1 < *count;
                is_other.then(|| format!("{key} {own}, and {other} in {count} others"))
            })
            .collect();
        let mut differs = differs;
        differs.sort_by_key(|text| SECTIONS.iter().position(|section| text.starts_with(section)));
        if differs.is_empty() {
            return None;
        }
        found(
            some_of(&differs, 6),
            "compare only runs that differ in one thing: run this one again with the config of the others",
        )
    }),
};
