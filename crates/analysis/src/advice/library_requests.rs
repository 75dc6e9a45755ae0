//! Advises reading whole files in large requests if the library of their format makes small requests and each waits for the latency of the
//! storage.

use super::case::ReadLimit;
use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::PIECE_BYTES;

/// Smallest ratio of the numbers of requests for which the change is proposed.
const FEWER_MIN: f64 = 2.0;

pub(super) static RULE: Rule = Rule {
    name: "library_requests",
    source: "requests of numpy, Pillow and h5py under strace",
    sees: "the library of the format makes many requests for a sample",
    proposes: "`reader.requests=large`: in the job, read each file in one call and decode it from memory, or use another format, such as npy instead of npz",
    change: "",
    why: "{library} reads a sample in {reads_per_sample:.0} requests, and each of them takes {read_s}; large requests (read each file in one call, decode it from memory) would be {large_reads:.0}",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::small_library_requests,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let sample = case.sample()?;
    let loader = &case.plan().loader;
    let library = loader.library?;
    let bytes = case.derived.io.read_bytes as f64 / case.derived.io.samples.max(1) as f64;
    let library_reads =
        loader.payload_reads(bytes) + loader.opening_reads(bytes) as f64 * sample.opens;
    let other_reads = (sample.reads - library_reads).max(0.0);
    let large_reads = other_reads + (bytes / PIECE_BYTES as f64).ceil();
    let waits_per_read = case.read_limit() != ReadLimit::Bandwidth;
    (waits_per_read && FEWER_MIN * large_reads <= sample.reads).then(|| {
        let evidence = Facts::new()
            .with("library", library.requests().library)
            .with("reads_per_sample", sample.reads)
            .with("large_reads", large_reads)
            .with("read_s", sample.read_s / sample.reads);
        let overrides = ["reader.requests=large".to_string()];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
