//! Turning the bytes of files into samples takes the time: text, or compression. Or files hold more bytes than their samples, or must be read
//! as a whole for each.

use super::case::{ReadLimit, TINY_BYTES};
use super::{Case, Cost, Proposal, Risk, Rule, changes_format};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::AMPLIFICATION;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::shape::Compression;

/// Uncompressed binary samples that can be read one by one. Without effect on a dataset of that format, and then not proposed.
const BINARY: &str = "dataset.format=hdf5";
/// Numbers as text take several bytes to one.
const TEXT_BYTES_MIN: f64 = 1.5;
/// Bytes read to one of samples, from which on reading fewer is worth other files.
const AMPLIFICATION_MIN: f64 = 2.0;
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
    case.lost_s(&[WaitCause::Decode]).map_or_else(
        || fewer_bytes(case, case.lost_s(&[WaitCause::Read])?),
        |lost_s| decoded_sooner(case, lost_s),
    )
}

fn is_compressed(case: &Case) -> bool {
    case.plan().dataset.encoding.compression != Compression::None
}

/// Files of which a sample takes more bytes than it has.
fn fewer_bytes(case: &Case, lost_s: f64) -> Option<Proposal> {
    let dataset = &case.plan().dataset;
    let amplification = case.derived.value(&AMPLIFICATION)?;
    // What is read beside a sample there is of its chunk.
    let is_chunked = !dataset.encoding.chunk_dims.is_empty();
    // Where each request waits, those of few bytes wait as long.
    let read_bytes = amplification * case.sample_bytes();
    let are_reads = matches!(case.read_limit(), ReadLimit::Latency | ReadLimit::Places);
    let are_bytes = !are_reads || TINY_BYTES <= read_bytes;
    (!is_chunked && are_bytes && AMPLIFICATION_MIN <= amplification).then(|| {
        let evidence = Facts::new()
            .with("amplification", amplification)
            .with("format", dataset.format.as_str());
        let lost_s = lost_s * (1.0 - 1.0 / amplification);
        let proposal = RULE.proposal(&[BINARY.to_string()], lost_s, evidence);
        Proposal { cost: Cost::Dataset, ..proposal }
    })
}

fn decoded_sooner(case: &Case, lost_s: f64) -> Option<Proposal> {
    let (plan, sample) = (case.plan(), case.sample()?);
    let own_s = sample.decode_s - plan.loader.preprocess.mean_s();
    let decoded = case.derived.io.read_bytes as f64 / case.derived.io.samples as f64 / own_s;
    // What is asked for as work on each sample stays, whatever the format.
    let is_formats = own_s > sample.decode_s / 2.0 && decoded < DECODED_BYTES_PER_SECOND_MAX;
    let amplification = case.derived.value(&AMPLIFICATION);
    let is_text = amplification.is_some_and(|ratio| TEXT_BYTES_MIN <= ratio);
    if !is_formats {
        return None;
    }
    let binary = [BINARY.to_string()];
    let overrides = if is_compressed(case) && (!is_text || !changes_format(plan, &binary)) {
        ["dataset.compression=none".to_string()]
    } else {
        binary
    };
    let evidence = Facts::new()
        .with_known("amplification", amplification)
        .with("decode_s", own_s)
        .with("decoded_bytes_per_second", decoded)
        .with("format", plan.dataset.format.as_str());
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::None, ..proposal })
}
