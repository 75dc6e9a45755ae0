//! Turning the bytes of files into samples takes the time: text, or compression.

use super::{Case, Cost, Proposal, Risk, Rule};
use feedrate_measure::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::AMPLIFICATION;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::shape::Compression;

/// Numbers as text take several bytes to one.
const TEXT_BYTES_MIN: f64 = 1.5;
/// Checksums and copies are faster than this; whatever is slower parses or decompresses.
const DECODED_BYTES_PER_SECOND_MAX: f64 = 4e8;

pub(super) static RULE: Rule = Rule {
    name: "binary_format",
    source: "I/O analysis of candle_nt3 with Darshan: 4.4 bytes of text to one; Plumber",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::text,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Decode])?;
    let (plan, sample) = (case.plan(), case.sample()?);
    let own_s = sample.decode_s - plan.loader.preprocess.mean_s();
    let decoded = case.derived.io.read_bytes as f64 / case.derived.io.samples as f64 / own_s;
    // What is asked for as work on each sample stays, whatever the format.
    let is_formats = own_s > sample.decode_s / 2.0 && decoded < DECODED_BYTES_PER_SECOND_MAX;
    let amplification = case.derived.value(&AMPLIFICATION);
    let is_text = amplification.is_some_and(|ratio| TEXT_BYTES_MIN <= ratio);
    let is_compressed = plan.dataset.encoding.compression != Compression::None;
    if !is_formats {
        return None;
    }
    let overrides = if is_compressed && !is_text {
        ["dataset.compression=none".to_string()]
    } else {
        ["dataset.format=hdf5".to_string()]
    };
    let evidence = Facts::new()
        .with_known("amplification", amplification)
        .with("decode_s", own_s)
        .with("decoded_bytes_per_second", decoded)
        .with("format", plan.dataset.format.as_str());
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::None, ..proposal })
}
