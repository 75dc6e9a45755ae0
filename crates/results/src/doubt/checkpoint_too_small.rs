//! Checkpoints of nothing.

use super::{Check, Doubt, Severity, found};
use feedrate_spec::units;

pub(super) static DOUBT: Doubt = Doubt {
    name: "checkpoint_too_small",
    severity: Severity::Note,
    meaning: "DLIO reads model.model_size_bytes, and the config gives model.model_size: checkpoints are 10 KiB whatever the model, and their rates are of that.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let model = imported.config.number(&["model.model_size"])?;
        let written_gib = imported.reported.as_ref()?.metric("checkpoint_size_GB")?;
        let written = written_gib * f64::from(1 << 30);
        if imported.config.has("model.model_size_bytes") || 0.5 * model < written {
            return None;
        }
        found(
            format!(
                "a checkpoint has {}, the model {}",
                units::bytes(written as u64),
                units::bytes(model as u64)
            ),
            "give model.model_size_bytes; say nothing about checkpoints from these runs",
        )
    }),
};
