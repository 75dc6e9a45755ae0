//! Results are written to the measured device.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "results_on_device_under_test",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "Results are written to the device under the dataset; they are small, and written between epochs.",
        evidence: "both are on `{source}` ({device}), mounted at `{mount_point}`",
        advice: "set `--results` to a folder on another device",
    },
    needs_loader: false,
    check: Some(|derived| {
        let system = &derived.record.system;
        let data = system.data_mount.as_ref()?;
        let results = system.results_mount.as_ref()?;
        if data.device.is_empty() || data.device != results.device {
            return None;
        }
        let facts = Facts::new()
            .with("source", data.source.as_str())
            .with("device", data.device.as_str())
            .with("mount_point", data.point.as_str());
        Some(facts)
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("8:1", |r| {
            r.system.results_mount.clone_from(&r.system.data_mount);
        }),
        super::tests::silent(|r| r.system.results_mount = None),
        super::tests::silent(|r| {
            r.system.results_mount = Some(crate::record::Mount::default());
            r.system.data_mount = Some(crate::record::Mount::default());
        }),
    ],
};
