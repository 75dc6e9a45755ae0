//! Advises a larger prefetch buffer if accelerators wait while reading threads are idle because the buffer is full.
//!
//! If the threads are always busy or the storage is saturated, a larger buffer does not help.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

/// Share of busy time above which threads have no time to fill a larger buffer.
const BUSY_SHARE_MAX: f64 = 0.8;

pub(super) static RULE: Rule = Rule {
    name: "prefetch",
    source: "tf.data; I/O analyses of imagenet_cnn and cosmoflow, where it does nothing for one busy thread",
    sees: "accelerators wait while threads are idle",
    proposes: "`reader.prefetch_size`",
    change: "",
    why: "the reading threads are busy {busy_percent:.0} % of the time and otherwise wait for space in the buffer: at most {in_flight_batches} are in flight",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::full_buffer,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open, WaitCause::Decode])?;
    let loader = &case.plan().loader;
    let busy_share = case.busy_share()?;
    let has_idle_threads = busy_share <= BUSY_SHARE_MAX && loader.workers > 0;
    (has_idle_threads && case.gains_from_more_reads()).then(|| {
        let prefetch_size = (4 * loader.prefetch_size).max(4 * loader.workers);
        let evidence = Facts::new()
            .with("busy_percent", 100.0 * busy_share)
            .with("in_flight_batches", loader.batches_in_flight);
        let overrides = [format!("reader.prefetch_size={prefetch_size}")];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
