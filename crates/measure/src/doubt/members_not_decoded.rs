//! Pictures inside containers came as they lie there, and cost no decoding.

use super::{DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::record::IoCounters;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "members_not_decoded",
        severity: Severity::Warning,
        meaning: "Samples are encoded in a way that is not known, or are broken, and were not decoded: a framework's reader is slower, or stops.",
        evidence: "{undecoded_samples} of {read_samples} were not decoded: {kinds}",
        advice: "believe what is said of reading alone, or convert them to jpeg, png or npy; `reader.decode=false` reads without decoding",
    },
    needs_loader: false,
    check: Some(|derived| {
        let epochs = derived.record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
        let mut all = IoCounters::default();
        epochs.for_each(|accelerator| all.add(&accelerator.io));
        if all.undecoded.is_empty() {
            return None;
        }
        all.undecoded.sort_by_key(|known| std::cmp::Reverse(known.samples));
        let kinds = all.undecoded.iter().map(|known| format!("{} {}", known.samples, known.kind));
        let samples: u64 = all.undecoded.iter().map(|known| known.samples).sum();
        let facts = Facts::new().with("undecoded_samples", samples);
        Some(
            facts
                .with("read_samples", all.access.samples_read)
                .with("kinds", kinds.collect::<Vec<_>>()),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("3 samples of 40 samples were not decoded: 2 webp; 1 jpeg", |r| {
            let accelerators = &mut r.epochs[1].accelerators;
            for kind in ["jpeg", "webp"] {
                accelerators[0].io.count_undecoded(Some(kind));
            }
            accelerators[1].io.count_undecoded(Some("webp"));
            for _ in 0..40 {
                accelerators[1].io.access.sample(None);
            }
        }),
        super::tests::silent(|r| r.epochs[1].accelerators[0].io.count_undecoded(None)),
    ],
};
