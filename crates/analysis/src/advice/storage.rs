//! Reports how much faster the storage would have to be: the missing bandwidth and requests per second, or the target time of reads or
//! opens.

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
    sees: "bandwidth, requests or opens per second are lacking",
    proposes: "other storage",
    change: "[{lacks} more: reads in {wanted_read_s} instead of {read_s}|opens in {wanted_open_s} instead of {open_s}|{lacks} more storage]",
    why: "the storage lacks [{lacks_files_per_second:.0} opens/s|{lacks_bytes_per_second}, {lacks_reads_per_second:.0} reads/s]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::slow_disk,
};

/// Rates to try, as multiples of the needed one. With latencies and limits that remain, the needed rate itself may not suffice.
const RATES: [f64; 7] = [1.0, 1.25, 1.6, 2.0, 3.0, 5.0, 8.0];

/// Points by which a rate must exceed the required utilisation, since a prediction of exactly that would be missed half of the time.
const MARGIN_POINTS: f64 = 1.0;

fn propose(case: &Case) -> Option<Proposal> {
    let answer = case.answer;
    let (needed, delivered) =
        answer.needed_bytes_per_second.zip(answer.delivered_bytes_per_second)?;
    if needed <= delivered {
        return None;
    }
    let needed_proposal = propose_rate(case, needed, delivered)?;
    // No storage makes more than 100 % of the time compute.
    let sufficient_percent = (answer.required_percent + MARGIN_POINTS).min(100.0);
    for factor in RATES {
        let proposal = propose_rate(case, factor * needed, delivered)?;
        // A record without a pipeline predicts nothing.
        let Some(outcome) = case.predict(case.plan(), &proposal.changes) else { break };
        if outcome.is_ok_and(|predicted| sufficient_percent <= predicted.au_percent) {
            return Some(proposal);
        }
    }
    Some(needed_proposal)
}

/// Proposes a storage that delivers `wanted` instead of `delivered` bytes per second.
fn propose_rate(case: &Case, wanted: f64, delivered: f64) -> Option<Proposal> {
    let io = &case.derived.io;
    let missing = wanted - delivered;
    // Operations per second for reading the missing bytes.
    let missing_per_second = |count: u64| missing * count as f64 / io.read_bytes as f64;
    let (lost_s, change, evidence) = if let Some(lost_s) = case.lost_s(&[WaitCause::Open]) {
        let open_s = io.open_ns as f64 / 1e9 / io.opens.max(1) as f64;
        let wanted_s = open_s * delivered / wanted;
        let evidence = Facts::new()
            .with("lacks_files_per_second", missing_per_second(io.opens))
            .with("open_s", open_s)
            .with("wanted_open_s", wanted_s);
        (lost_s, PipelineChange::OpenLatency(Scale::Value(wanted_s)), evidence)
    } else {
        let lost_s = case.lost_s(&[WaitCause::Read])?;
        let read_s = io.read_ns as f64 / 1e9 / io.reads.max(1) as f64;
        let evidence = Facts::new()
            .with("lacks_bytes_per_second", missing)
            .with("lacks", units::bytes_per_second_rounded(missing))
            .with("lacks_reads_per_second", missing_per_second(io.reads))
            .with("read_s", read_s);
        let wanted_s = read_s * delivered / wanted;
        let latency = match case.read_limit() {
            ReadLimit::Latency => Some(Scale::Value(wanted_s)),
            // Most of a read's time is the wait until the storage serves it, not latency.
            ReadLimit::Concurrency => Some(Scale::Times(delivered / wanted)),
            _ => None,
        };
        match latency.map(PipelineChange::Latency) {
            Some(change) => (lost_s, change, evidence.with("wanted_read_s", wanted_s)),
            None => (lost_s, PipelineChange::Bandwidth(Scale::Value(wanted)), evidence),
        }
    };
    let proposal = RULE.proposal(&[], lost_s, evidence);
    Some(Proposal { changes: vec![change], cost: Cost::Hardware, ..proposal })
}
