//! Advises letting one accelerator read for all accelerators if all of them read the same bytes.

use super::case::ReadLimit;
use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{OVERLAP, UNIQUE_BYTES};
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::FileAccess;

/// Minimum share of the bytes that several accelerators read.
const OVERLAP_SHARE_MIN: f64 = 0.9;

pub(super) static RULE: Rule = Rule {
    name: "broadcast",
    source: "I/O analysis of cosmic_tagger with Darshan; NoPFS (SC'21)",
    sees: "several accelerators read the same bytes",
    proposes: "`reader.file_access=broadcast`",
    change: "",
    why: "{overlap_percent:.0} % of the bytes are read by several of {all_accelerators}: {read_bytes} were read[, of which {unique_bytes} are distinct]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::shared_reads,
};

fn propose(case: &Case) -> Option<Proposal> {
    let plan = case.plan();
    let loader = &plan.loader;
    // A client's work is done by each accelerator's own workers, so it cannot be shared.
    let can_share = !loader.is_broadcast() && loader.client.is_none();
    let reads_same = loader.file_access == FileAccess::Same && can_share;
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let overlap = case.derived.value(&OVERLAP)?;
    // If reads wait for latency, a single reader waits as long as each of several readers.
    let saves_time = case.read_limit() != ReadLimit::Latency;
    let applies = reads_same && saves_time && plan.accelerators > 1 && !loader.in_memory;
    (applies && OVERLAP_SHARE_MIN <= overlap).then(|| {
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
