//! All accelerators read the same bytes: one of them may read for all.

use super::case::ReadLimit;
use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{OVERLAP, UNIQUE_BYTES};
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::FileAccess;

/// Share of the bytes that were read.
const OVERLAP_SHARE_MIN: f64 = 0.9;

pub(super) static RULE: Rule = Rule {
    name: "broadcast",
    source: "I/O analysis of cosmic_tagger with Darshan; NoPFS (SC'21)",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::all_read_the_same,
};

fn propose(case: &Case) -> Option<Proposal> {
    let (plan, loader) = (case.plan(), &case.plan().loader);
    // Each accelerator's client is burnt by workers of its own.
    let is_own = loader.is_broadcast() || loader.client.is_some();
    let is_same = loader.file_access == FileAccess::Same && !is_own;
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let overlap = case.derived.value(&OVERLAP)?;
    // Who waits for latency waits as long when he reads for all.
    let is_shared = case.read_limit() != ReadLimit::Latency;
    let fits = is_same && is_shared && plan.accelerators > 1 && !loader.in_memory;
    (fits && OVERLAP_SHARE_MIN <= overlap).then(|| {
        let evidence = Facts::new()
            .with("all_accelerators", plan.accelerators)
            .with("overlap_percent", 100.0 * overlap)
            .with("read_bytes", case.derived.io.read_bytes)
            .with_known(
                "unique_bytes",
                case.derived.value(&UNIQUE_BYTES).map(|bytes| bytes as u64),
            );
        let overrides = ["reader.file_access=broadcast".into()];
        Proposal { risk: Risk::OneReader, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
