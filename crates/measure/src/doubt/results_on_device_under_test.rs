//! Results are written to the device that is measured.

use super::{Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "results_on_device_under_test",
    severity: Severity::Note,
    meaning: "Results are written to the device under the dataset; they are small, and written between epochs.",
    check: |facts| {
        let (data, results) =
            (facts.record.system.data_mount.as_ref()?, facts.record.system.results_mount.as_ref()?);
        if data.device.is_empty() || data.device != results.device {
            return None;
        }
        found(
            format!("both lie on `{}` ({}), mounted at `{}`", data.source, data.device, data.point),
            "give `--results` a folder on another device",
        )
    },
};
