//! Advises chunks of one sample if a sample spans several chunks that are read separately, or if a chunk holds several samples and
//! reading one sample reads the entire chunk.

use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::AMPLIFICATION;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::layout::Layout;

/// Read amplification above which a smaller chunk is proposed.
const AMPLIFICATION_MIN: f64 = 2.0;

pub(super) static RULE: Rule = Rule {
    name: "chunk_is_sample",
    source: "I/O analysis of cosmic_tagger with Darshan; drishti for HDF5",
    sees: "HDF5 chunks hold half a sample or less, or two samples or more",
    proposes: "`dataset.hdf5.chunk_dims`",
    change: "",
    why: "a sample of {sample_bytes} is stored in chunks of {chunk_bytes} and takes {reads_per_sample:.1} reads[; {amplification:.1} bytes are read for each byte of samples]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::small_chunks,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Decode])?;
    let dataset = &case.plan().dataset;
    let chunk_elements: u64 = dataset.encoding.chunk_dims.iter().product();
    let chunk_bytes = chunk_elements * dataset.element.bytes();
    let sample = case.sample()?;
    let is_split = !dataset.encoding.chunk_dims.is_empty()
        && (2 * chunk_bytes) as f64 <= case.sample_bytes()
        && 2.0 <= sample.reads;
    let amplification = case.derived.value(&AMPLIFICATION);
    let is_shared = case.sample_bytes() * 2.0 <= chunk_bytes as f64
        && amplification.is_some_and(|ratio| AMPLIFICATION_MIN <= ratio);
    if !is_split && !is_shared {
        return None;
    }
    let dims = Layout::new(dataset).shape(0).dims;
    let dims: Vec<String> = dims.as_slice().iter().map(u64::to_string).collect();
    let overrides = [format!("dataset.hdf5.chunk_dims=[1,{}]", dims.join(","))];
    let evidence = Facts::new()
        .with("chunk_bytes", chunk_bytes)
        .with("sample_bytes", case.sample_bytes() as u64)
        .with("reads_per_sample", sample.reads)
        .with_known("amplification", if is_shared { amplification } else { None });
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::Amplification, ..proposal })
}
