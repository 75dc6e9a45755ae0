//! DLIO reports bytes from the configured record length instead of the actual file sizes.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_spec::units::MIB;

/// Name of the doubt.
pub(crate) const NAME: &str = "nominal_bytes";
/// Maximum relative difference between the mean sample size and the configured record length.
const DIFFERENCE_MAX_SHARE: f64 = 0.05;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Unaffected,
        meaning: "DLIO computes its MB/s from record_length_bytes. Its generator draws file sizes at random, clamps sizes below 1, and does not scale the standard deviation with the length, so that the mean size of the files is different.",
        evidence: "samples of DLIO's generator have {mean_sample_bytes} on average, {ratio:.2} times the configured {record_length_bytes}[; the reported {reported_mib_per_second} are {read_mib_per_second} of these samples]",
        advice: "scale record_length_bytes_stdev with record_length_bytes, or use the rate in bytes read",
    },
    check: Check::Run(|run| {
        let nominal = run.record_length_bytes?;
        let mean = run.mean_sample_bytes?;
        if !run.is_result() || (mean / nominal - 1.0).abs() <= DIFFERENCE_MAX_SHARE {
            return None;
        }
        // DLIO reports negative rates for too few steps.
        let rates = run
            .reported_mib_per_second()
            .zip(run.reported_samples_per_second())
            .filter(|(mib, samples)| 0.0 < *mib && 0.0 < *samples);
        let facts = Facts::new()
            .with("mean_sample_bytes", mean)
            .with("record_length_bytes", nominal)
            .with("ratio", mean / nominal)
            .with_known("reported_mib_per_second", rates.map(|(mib, _)| mib));
        let read = rates.map(|(_, samples)| samples * mean / MIB);
        Some(facts.with_known("read_mib_per_second", read))
    }),
    #[cfg(test)]
    fires: |root| {
        let drawn =
            tests::Fake { record_length: 10_485_760, stdev: 68_341_808, ..tests::Fake::default() };
        drawn.write(root, "w/4/a");
    },
};
