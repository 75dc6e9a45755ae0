//! The run differs from comparable runs in more settings than the varied ones.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

/// Sections of the config, the most important first.
const SECTIONS: [&str; 6] =
    ["dataset.", "train.", "reader.", "data_reader.", "model.", "checkpoint."];

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "settings_differ",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The config differs from more than half of the workload's runs in keys that neither overrides nor folder names vary. Effects found by comparing the run may have other causes.",
        evidence: "{differs:.6}",
        advice: "repeat the run with the config of the other runs, so that the compared runs differ in one setting",
    },
    check: Check::Set(|relations, index| {
        let run = &relations.runs[index];
        let usual = relations.usual_settings(index)?;
        if !run.is_result() {
            return None;
        }
        let mut differs = Vec::new();
        for (key, value) in &run.dataset_use.configured {
            if let Some((usual_value, count)) = usual.get(key.as_str())
                && value.as_str() != *usual_value
                && 1 < *count
            {
                differs.push(format!("{key} is {value}, but {usual_value} in {count} others"));
            }
        }
        differs.sort_by_key(|text| SECTIONS.iter().position(|section| text.starts_with(section)));
        Facts::from_list("differs", differs)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::Fake { files: 28, batch: 1, compute_s: 0.05, ..tests::good_run() }
            .write(root, "w/4/a");
        for size in ["reader.transfer_size=1", "reader.transfer_size=2", "reader.transfer_size=3"] {
            let fake = tests::Fake { overrides: vec![size], slower: 1.1, ..tests::good_run() };
            fake.write(root, &format!("w/{size}/a"));
        }
    },
};
