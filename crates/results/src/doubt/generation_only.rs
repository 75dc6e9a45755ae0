//! No training, no figures of it.

use super::{Check, Doubt, Severity, found};
use crate::run::Activity;

pub(super) static DOUBT: Doubt = Doubt {
    name: "generation_only",
    severity: Severity::Note,
    meaning: "The run trained nothing: it made a dataset or checkpoints, and has no utilisation or throughput of training.",
    check: Check::OfRun(|loaded| {
        let what = match loaded.run.activity {
            Activity::Training => return None,
            Activity::Generation => "it made a dataset",
            Activity::Checkpoints => "it wrote or read checkpoints",
            Activity::Unknown => "its files do not tell what it did",
        };
        let of = |text: &str| if text.is_empty() { "" } else { ", " };
        let dataset = loaded.run.format.as_deref().unwrap_or_default();
        let size =
            loaded.run.record_length_bytes.map(|bytes| format!(" of {bytes:.0} bytes a sample"));
        found(
            format!("{what}{}{dataset}{}", of(dataset), size.unwrap_or_default()),
            "leave it out of comparisons; it says which dataset the runs after it read",
        )
    }),
};
