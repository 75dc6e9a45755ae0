//! Accelerators wait although threads have nothing to do: there is no room for what they would read. Where the threads are busy all the
//! time, or the storage gives all that it has, these are the limit, and more room helps nobody.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

/// Above it threads have no time to fill any more room.
const BUSY_SHARE_MAX: f64 = 0.8;

pub(super) static RULE: Rule = Rule {
    name: "prefetch",
    source: "tf.data; I/O analyses of imagenet_cnn and cosmoflow, where it does nothing for one busy thread",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::no_room,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open, WaitCause::Decode])?;
    let loader = &case.plan().loader;
    let busy = case.busy_share()?;
    (busy <= BUSY_SHARE_MAX && case.has_more() && loader.workers > 0).then(|| {
        let wanted = (4 * loader.prefetch_size).max(4 * loader.workers);
        let evidence = Facts::new()
            .with("busy_percent", 100.0 * busy)
            .with("in_flight_batches", loader.batches_in_flight);
        let overrides = [format!("reader.prefetch_size={wanted}")];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
