//! Samples were not decoded, so decoding took no time.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::record::IoCounters;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "members_not_decoded",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "Samples with an unknown encoding or damaged content were not decoded: a framework's reader would be slower, or would fail.",
        evidence: "read but not decoded: {undecoded_samples} of {read_samples} ({kinds})",
        advice: "use only the read metrics, or remove damaged files and convert others to jpeg, png or npy; `reader.decode=false` reads without decoding",
    },
    needs_loader: false,
    check: Some(|derived| {
        let accelerators = derived.record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
        let mut total = IoCounters::default();
        accelerators.for_each(|accelerator| total.add(&accelerator.io));
        if total.undecoded.is_empty() {
            return None;
        }
        total.undecoded.sort_by_key(|row| std::cmp::Reverse(row.samples));
        let kinds = total.undecoded.iter().map(|row| {
            let file =
                if row.file.is_empty() { String::new() } else { format!(" (`{}`)", row.file) };
            format!("{} {}{file}", row.samples, row.kind)
        });
        let samples: u64 = total.undecoded.iter().map(|row| row.samples).sum();
        let facts = Facts::new().with("undecoded_samples", samples);
        Some(
            facts
                .with("read_samples", total.access.samples_read)
                .with("kinds", kinds.collect::<Vec<_>>()),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "read but not decoded: 3 samples of 40 samples (2 webp (`w/0.tar`); 1 jpeg)",
            |r| {
                let accelerators = &mut r.epochs[1].accelerators;
                for (kind, file) in [("jpeg", ""), ("webp", "w/0.tar")] {
                    accelerators[0].io.count_undecoded(Some(kind), 1, file);
                }
                accelerators[1].io.count_undecoded(Some("webp"), 1, "w/1.tar");
                for _ in 0..40 {
                    accelerators[1].io.access.count_sample(None);
                }
            },
        ),
        super::tests::silent(|r| r.epochs[1].accelerators[0].io.count_undecoded(None, 1, "a")),
    ],
};
