//! Advises reading whole files in large requests if the library of their format makes small requests and each waits for the latency of the
//! storage.

use super::case::ReadLimit;
use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::PIECE_BYTES;
use schemars::JsonSchema;
use serde::Serialize;

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

/// The requests for a sample that a library makes, and that large requests would take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LibraryRequests")]
pub struct SampleRequests {
    /// The library.
    pub library: &'static str,
    /// The format of the files.
    pub format: String,
    /// Mean number of requests for a sample.
    pub per_sample: f64,
    /// Number with `reader.requests=large`, from the sizes of samples.
    pub large_per_sample: f64,
}

impl SampleRequests {
    /// Returns the requests of a run whose accelerators wait for the latency of many more requests than large ones would be.
    pub fn if_they_matter(case: &Case) -> Option<Self> {
        let waits_for_latency = case.answer.kind == AnswerKind::No
            && case.answer.noise.is_none()
            && matches!(case.read_limit(), ReadLimit::Latency | ReadLimit::Concurrency);
        case.lost_s(&[WaitCause::Read])?;
        SampleRequests::new(case).filter(|requests| waits_for_latency && requests.are_many())
    }

    /// `None` if no library determines the requests.
    fn new(case: &Case) -> Option<Self> {
        let sample = case.sample()?;
        let loader = &case.plan().loader;
        let library = loader.library?.requests().library;
        let bytes = case.derived.io.read_bytes as f64 / case.derived.io.samples.max(1) as f64;
        let library_reads =
            loader.payload_reads(bytes) + loader.opening_reads(bytes) as f64 * sample.opens;
        let other_reads = (sample.reads - library_reads).max(0.0);
        let large_per_sample = other_reads + (bytes / PIECE_BYTES as f64).ceil();
        let format = case.plan().dataset.format.clone();
        Some(SampleRequests { library, format, per_sample: sample.reads, large_per_sample })
    }

    fn are_many(&self) -> bool {
        FEWER_MIN * self.large_per_sample <= self.per_sample
    }
}

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let sample = case.sample()?;
    let requests = SampleRequests::new(case)?;
    let may_wait_for_latency = case.read_limit() != ReadLimit::Bandwidth;
    (may_wait_for_latency && requests.are_many()).then(|| {
        let evidence = Facts::new()
            .with("library", requests.library)
            .with("reads_per_sample", requests.per_sample)
            .with("large_reads", requests.large_per_sample)
            .with("read_s", sample.read_s / sample.reads);
        let overrides = ["reader.requests=large".to_string()];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{slow_disk, small_library_requests, waiting_record, with_case};
    use super::*;
    use feedrate_measure::record::Record;

    #[test]
    fn requests_of_a_library_matter_if_each_waits_for_latency() {
        let found = |change: fn(&mut Record)| {
            let mut record = waiting_record();
            small_library_requests(&mut record);
            record.plan.storage.throttle_latency_s = 0.01;
            change(&mut record);
            with_case(&record, SampleRequests::if_they_matter)
        };
        let requests = found(|_| {}).unwrap();
        assert_eq!((requests.library, requests.format.as_str()), ("Pillow", "npy"));
        assert!(FEWER_MIN * requests.large_per_sample <= requests.per_sample, "{requests:?}");
        assert_eq!(found(slow_disk), None, "the bandwidth is the limit");
        assert_eq!(found(|record| record.plan.metric.au_target_percent = 1.0), None);
        assert_eq!(found(|record| record.plan.loader.library = None), None);
    }
}
