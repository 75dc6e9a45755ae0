//! Advises a binary, uncompressed format if the accelerators wait while text is parsed or data is decompressed, or if at least
//! two bytes are read for each byte of samples.

use super::case::{ReadLimit, TINY_BYTES};
use super::{Case, Cost, Proposal, Risk, Rule, has_effect};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::AMPLIFICATION;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::shape::Compression;

/// Override for a format with uncompressed binary samples that can be read individually. It is not proposed if the dataset has this
/// format already.
const INDIVIDUAL: &str = "dataset.format=hdf5";
/// Override for a format with short samples, of which one request reads many.
const SEQUENTIAL: &str = "dataset.format=tfrecord";
/// Read amplification above which a file probably holds numbers as text, which takes several bytes for each byte of the sample.
const TEXT_AMPLIFICATION_MIN: f64 = 1.5;
/// Read amplification above which reading fewer bytes is worth rewriting the dataset.
const AMPLIFICATION_MIN: f64 = 2.0;
/// Largest decoding rate of text or compressed data. Checksums and copies are faster.
const DECODED_BYTES_PER_SECOND_MAX: f64 = 4e8;

pub(super) static RULE: Rule = Rule {
    name: "binary_format",
    source: "I/O analysis of candle_nt3 with Darshan: 4.4 bytes of text to one; Plumber",
    sees: "decoding is slower than 400 MB/s, or two bytes are read for each byte of samples",
    proposes: "`dataset.format=hdf5`, `tfrecord` for many short samples in a file, or no compression",
    change: "",
    why: "[decoding a sample of {format} takes {decode_s}, {decoded_bytes_per_second}|files of {format} hold more than samples][; {amplification:.1} bytes are read for each byte of payload]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::text_files,
};

fn propose(case: &Case) -> Option<Proposal> {
    match case.lost_s(&[WaitCause::Decode]) {
        Some(lost_s) => propose_faster_decoding(case, lost_s),
        None => propose_fewer_bytes(case, case.lost_s(&[WaitCause::Read])?),
    }
}

/// Returns the override for the binary format that fits the size of the samples.
fn binary_format(case: &Case) -> String {
    let has_short_samples =
        case.sample_bytes() <= TINY_BYTES && 1 < case.plan().dataset.samples_per_file;
    if has_short_samples { SEQUENTIAL.into() } else { INDIVIDUAL.into() }
}

fn is_compressed(case: &Case) -> bool {
    case.plan().dataset.encoding.compression != Compression::None
}

/// Proposes another format if reading a sample reads many more bytes than it has.
fn propose_fewer_bytes(case: &Case, lost_s: f64) -> Option<Proposal> {
    let dataset = &case.plan().dataset;
    let amplification = case.derived.value(&AMPLIFICATION)?;
    // In a chunked file, the extra bytes belong to the sample's chunk; the rule `chunk_is_sample` covers this case.
    let is_chunked = !dataset.encoding.chunk_dims.is_empty();
    // If reads wait for latency, fewer bytes per request save no time.
    let read_bytes = amplification * case.sample_bytes();
    let waits_per_read = matches!(case.read_limit(), ReadLimit::Latency | ReadLimit::Concurrency);
    let saves_time = !waits_per_read || TINY_BYTES <= read_bytes;
    (!is_chunked && saves_time && AMPLIFICATION_MIN <= amplification).then(|| {
        let evidence = Facts::new()
            .with("amplification", amplification)
            .with("format", dataset.format.as_str());
        let saved_s = lost_s * (1.0 - 1.0 / amplification);
        let proposal = RULE.proposal(&[binary_format(case)], saved_s, evidence);
        Proposal { cost: Cost::Dataset, ..proposal }
    })
}

/// Proposes a format that is faster to decode, or no compression.
fn propose_faster_decoding(case: &Case, lost_s: f64) -> Option<Proposal> {
    let plan = case.plan();
    let sample = case.sample()?;
    // The configured preprocessing of a sample takes the same time with any format.
    let format_s = sample.decode_s - plan.loader.preprocess.mean_s();
    let bytes_per_sample = case.derived.io.read_bytes as f64 / case.derived.io.samples as f64;
    let decoded_bytes_per_second = bytes_per_sample / format_s;
    let is_slow_format =
        format_s > sample.decode_s / 2.0 && decoded_bytes_per_second < DECODED_BYTES_PER_SECOND_MAX;
    let amplification = case.derived.value(&AMPLIFICATION);
    let is_text = amplification.is_some_and(|ratio| TEXT_AMPLIFICATION_MIN <= ratio);
    if !is_slow_format {
        return None;
    }
    let binary = [binary_format(case)];
    let overrides = if is_compressed(case) && (!is_text || !has_effect(plan, &binary)) {
        ["dataset.compression=none".to_string()]
    } else {
        binary
    };
    let evidence = Facts::new()
        .with_known("amplification", amplification)
        .with("decode_s", format_s)
        .with("decoded_bytes_per_second", decoded_bytes_per_second)
        .with("format", plan.dataset.format.as_str());
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::None, ..proposal })
}
