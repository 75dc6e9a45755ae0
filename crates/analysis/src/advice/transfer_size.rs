//! Advises larger requests if requests are smaller than samples and each request waits for the latency of the storage.

use super::case::{ReadLimit, TINY_BYTES};
use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::CONSECUTIVE;
use feedrate_measure::waits::WaitCause;

/// Largest request size that is proposed. Larger requests gain little on any storage.
const PROPOSED_MAX_BYTES: u64 = 4 << 20;

pub(super) static RULE: Rule = Rule {
    name: "transfer_size",
    source: "drishti P05 and dfanalyzer, small reads; I/O analyses of imagenet_cnn and bert_mrpc",
    sees: "requests are shorter than samples",
    proposes: "`reader.transfer_size`",
    change: "",
    why: "a sample takes {reads_per_sample:.1} requests of {request_bytes}, and each of them {read_s}",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::small_requests,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let request_bytes = case.request_bytes()?;
    let sample = case.sample()?;
    let piece_bytes = case.plan().loader.piece_bytes;
    let is_consecutive = case.derived.value(&CONSECUTIVE).is_some_and(|share| 0.5 <= share);
    let proposed_bytes = if is_consecutive && sample.opens < 0.5 {
        PROPOSED_MAX_BYTES
    } else {
        (case.sample_bytes() as u64).next_power_of_two().min(PROPOSED_MAX_BYTES)
    };
    let waits_per_read = case.read_limit() != ReadLimit::Bandwidth || request_bytes <= TINY_BYTES;
    // The requests of a library do not depend on the key.
    let has_size = case.plan().loader.library.is_none();
    let is_larger = 2 * piece_bytes <= proposed_bytes;
    (has_size && case.is_limited_by_transfer_size() && waits_per_read && is_larger).then(|| {
        let evidence = Facts::new()
            .with("request_bytes", request_bytes as u64)
            .with("reads", case.derived.io.reads)
            .with("reads_per_sample", sample.reads)
            .with("read_s", sample.read_s / sample.reads);
        let overrides = [format!("reader.transfer_size={}", size_text(proposed_bytes))];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}

/// Formats a size for a workload file: `4MiB`.
fn size_text(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{}KiB", bytes >> 10) } else { format!("{}MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{advised_rules, limited_concurrency};

    #[test]
    fn larger_requests_are_advised_if_the_storage_serves_few_at_a_time() {
        let advised = advised_rules(limited_concurrency);
        assert!(advised.contains(&"transfer_size"), "{advised:?}");
        assert!(!advised.contains(&"read_threads"), "{advised:?}");
    }
}
