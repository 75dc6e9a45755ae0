//! DLIO's checkpoints are tiny because the config does not set their size.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "checkpoint_too_small",
        severity: Severity::Note,
        bias: Bias::Checkpoints,
        meaning: "The config sets model.model_size, but DLIO uses model.model_size_bytes. Checkpoints therefore have 10 KiB for every model, and their rates are those of such small files.",
        evidence: "a checkpoint has {checkpoint_bytes}, the model {model_bytes}",
        advice: "set model.model_size_bytes; draw no conclusions about checkpoints from these runs",
    },
    check: Check::Import(|_, imported| {
        let model_bytes = imported.config.number(&["model.model_size"])?;
        let written_gib = imported.reported.as_ref()?.metric("checkpoint_size_GB")?;
        let checkpoint_bytes = written_gib * f64::from(1 << 30);
        if imported.config.has("model.model_size_bytes") || 0.5 * model_bytes < checkpoint_bytes {
            return None;
        }
        let facts = Facts::new().with("checkpoint_bytes", checkpoint_bytes);
        Some(facts.with("model_bytes", model_bytes))
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_good_run(
            root,
            "summary.json",
            "\"metric\": {",
            "\"metric\": {\"checkpoint_size_GB\": 9.5e-06, ",
        )
    },
};
