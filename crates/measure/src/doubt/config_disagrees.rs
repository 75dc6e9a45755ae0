//! The files of a run contradict each other.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
#[cfg(test)]
use crate::record::Contradiction;

/// Name of the doubt.
pub const NAME: &str = "config_disagrees";

/// Name, severity and texts, also for results of DLIO.
pub const KIND: DoubtKind = DoubtKind {
    name: NAME,
    severity: Severity::Invalid,
    bias: Bias::Either,
    meaning: "Config, folder name, result files and record contradict each other, or result files name different machines: the results may belong to another config, or were edited.",
    evidence: "{contradictions:.5}",
    advice: "find out which of them is right before using any number; folders may have been mixed up. Repeat the run if that is unknown",
};

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: KIND,
    needs_loader: false,
    check: Some(|derived| {
        let found = derived.record.contradictions.iter();
        Facts::from_list("contradictions", found.map(|found| found.text.clone()).collect())
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("`a`: `1` in x, `2` in y", |r| {
            let text = "`a`: `1` in x, `2` in y".into();
            r.contradictions = vec![Contradiction { key: None, text }];
        }),
        super::tests::silent(|r| r.contradictions.clear()),
    ],
};
