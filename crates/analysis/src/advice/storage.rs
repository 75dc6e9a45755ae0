//! The storage lacks bytes or requests per second, or time of a read, or of an open.

use super::case::ReadLimit;
use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use crate::predict::{PipelineChange, Scale};
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::units;

pub(super) static RULE: Rule = Rule {
    name: "storage",
    source: "feedrate: the rate at which no accelerator would wait",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::slow_disk,
};

fn propose(case: &Case) -> Option<Proposal> {
    let answer = case.answer;
    let (needed, delivered) =
        answer.needed_bytes_per_second.zip(answer.delivered_bytes_per_second)?;
    let (io, lacks) = (&case.derived.io, needed - delivered);
    let of = |count: u64| lacks * count as f64 / io.read_bytes as f64;
    if lacks <= 0.0 {
        return None;
    }
    let (lost_s, change, evidence) = if let Some(lost_s) = case.lost_s(&[WaitCause::Open]) {
        let open_s = io.open_ns as f64 / 1e9 / io.opens.max(1) as f64;
        let wanted_s = open_s * delivered / needed;
        let evidence = Facts::new()
            .with("lacks_files_per_second", of(io.opens))
            .with("open_s", open_s)
            .with("wanted_open_s", wanted_s);
        (lost_s, PipelineChange::OpenLatency(Scale::Value(wanted_s)), evidence)
    } else {
        let lost_s = case.lost_s(&[WaitCause::Read])?;
        let read_s = io.read_ns as f64 / 1e9 / io.reads.max(1) as f64;
        let evidence = Facts::new()
            .with("lacks_bytes_per_second", lacks)
            .with("lacks", units::bytes_per_second_rounded(lacks))
            .with("lacks_reads_per_second", of(io.reads))
            .with("read_s", read_s);
        let wanted_s = read_s * delivered / needed;
        let latency = match case.read_limit() {
            ReadLimit::Latency => Some(Scale::Value(wanted_s)),
            // Most of what a read takes is the wait for a place.
            ReadLimit::Places => Some(Scale::Times(delivered / needed)),
            _ => None,
        };
        match latency.map(PipelineChange::Latency) {
            Some(change) => (lost_s, change, evidence.with("wanted_read_s", wanted_s)),
            None => (lost_s, PipelineChange::Bandwidth(Scale::Value(needed)), evidence),
        }
    };
    let proposal = RULE.proposal(&[], lost_s, evidence);
    Some(Proposal { changes: vec![change], cost: Cost::Hardware, ..proposal })
}
