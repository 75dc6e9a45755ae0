//! Advises staging files in memory if small files are read in many small requests. Staging reads each file once in large requests.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::UNIQUE_BYTES;
use feedrate_measure::waits::WaitCause;

/// Largest size of a small file.
const FILE_BYTES_MAX: f64 = (4 << 20) as f64;
/// Minimum number of reads per open for which staging is proposed.
const READS_PER_OPEN_MIN: f64 = 8.0;

pub(super) static RULE: Rule = Rule {
    name: "whole_file",
    source: "I/O analysis of climate_segmentation with Darshan: 51 reads of 4.6 KB",
    sees: "a small file is read in many small reads",
    proposes: "`reader.stage=memory`",
    change: "",
    why: "a file of {file_bytes} is read in {reads_per_open:.0} requests of {request_bytes}",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::many_reads_of_a_small_file,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let io = &case.derived.io;
    let bytes = case.derived.value(&UNIQUE_BYTES).unwrap_or(case.derived.dataset_bytes as f64);
    let file_bytes = bytes / case.plan().dataset.files_train.max(1) as f64;
    let reads_per_open = io.reads as f64 / io.opens.max(1) as f64;
    let is_small = file_bytes <= FILE_BYTES_MAX && 2.0 * case.request_bytes()? <= file_bytes;
    // If the transfer size limits the requests, larger requests help without staging.
    let can_stage = case.plan().stage.is_none() && !case.is_limited_by_transfer_size();
    (can_stage && is_small && READS_PER_OPEN_MIN <= reads_per_open).then(|| {
        let evidence = Facts::new()
            .with("file_bytes", file_bytes as u64)
            .with("reads_per_open", reads_per_open)
            .with("request_bytes", case.request_bytes().unwrap_or(0.0) as u64);
        let overrides = ["reader.stage=memory".to_string()];
        Proposal { cost: Cost::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
