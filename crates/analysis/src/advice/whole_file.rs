//! A small file is read in many small reads: once, as a whole, would do.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::UNIQUE_BYTES;
use feedrate_measure::waits::WaitCause;

/// A file that one read takes in.
const FILE_BYTES_MAX: f64 = (4 << 20) as f64;
/// Reads of each open file.
const READS_MIN: f64 = 8.0;

pub(super) static RULE: Rule = Rule {
    name: "whole_file",
    source: "I/O analysis of climate_segmentation with Darshan: 51 reads of 4.6 KB",
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
    let reads_each = io.reads as f64 / io.opens.max(1) as f64;
    let is_small = file_bytes <= FILE_BYTES_MAX && 2.0 * case.request_bytes()? <= file_bytes;
    // Longer requests would do where they are as long as they may be.
    let is_new = case.plan().stage.is_none() && !case.is_cut();
    (is_new && is_small && READS_MIN <= reads_each).then(|| {
        let evidence = Facts::new()
            .with("file_bytes", file_bytes as u64)
            .with("reads_per_open", reads_each)
            .with("request_bytes", case.request_bytes().unwrap_or(0.0) as u64);
        // A copy is made by large reads, each file once.
        let overrides = ["reader.stage=memory".to_string()];
        Proposal { cost: Cost::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
