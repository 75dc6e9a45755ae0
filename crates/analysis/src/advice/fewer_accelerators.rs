//! Advises reducing the number of accelerators to the number that the delivered rate can feed.

use super::case::{ReadLimit, TINY_BYTES};
use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::AU_SUSTAINED;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "fewer_accelerators",
    source: "feedrate; MLPerf Storage counts the accelerators that are fed",
    sees: "the bandwidth feeds fewer accelerators",
    proposes: "`accelerators`",
    change: "",
    why: "{delivered_bytes_per_second} are delivered, and {instead_of} accelerators need {needed_bytes_per_second}",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::slow_disk,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let answer = case.answer;
    let (needed, delivered) =
        answer.needed_bytes_per_second.zip(answer.delivered_bytes_per_second)?;
    let instead_of = case.plan().accelerators;
    let fed_accelerators = (f64::from(instead_of) * delivered / needed) as u32;
    // Accelerators that wait for latency do not compete. Without the sustained utilisation, the rate includes filling the prefetch
    // buffers.
    let compete_for_rate =
        case.read_limit() != ReadLimit::Latency && answer.au_kind == Some(AU_SUSTAINED.id.name());
    // Larger requests should be tried first.
    let has_small_requests =
        case.is_limited_by_transfer_size() && case.request_bytes()? <= TINY_BYTES;
    (compete_for_rate && !has_small_requests && (1..instead_of).contains(&fed_accelerators)).then(
        || {
            let evidence = Facts::new()
                .with("fed_accelerators", fed_accelerators)
                .with("instead_of", instead_of)
                .with("delivered_bytes_per_second", delivered)
                .with("needed_bytes_per_second", needed);
            let overrides = [format!("accelerators={fed_accelerators}")];
            Proposal { cost: Cost::Accelerators, ..RULE.proposal(&overrides, lost_s, evidence) }
        },
    )
}
