//! Reported bytes are not those that were read.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_spec::units::MIB;

pub(crate) const NAME: &str = "nominal_bytes";
const DIFFERENCE_MAX_SHARE: f64 = 0.05;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        meaning: "DLIO reports samples × record_length_bytes; its generator draws sizes, cuts draws below 1, and keeps the deviation whatever the length, so that files are of another size in the mean.",
        evidence: "a sample has {mean_sample_bytes} in the mean of the files that DLIO's generator draws, {record_length_bytes} are configured: {ratio:.2} times[; {reported_mib_per_second} are reported, which are {read_mib_per_second} of that]",
        advice: "scale record_length_bytes_stdev with record_length_bytes, or use the rate in bytes read",
    },
    check: Check::OfRun(|run| {
        let (nominal, mean) = (run.record_length_bytes?, run.mean_sample_bytes?);
        if !run.is_result() || (mean / nominal - 1.0).abs() <= DIFFERENCE_MAX_SHARE {
            return None;
        }
        let rates = run.reported_mib_per_second().zip(run.reported_samples_per_second());
        // Of too few steps DLIO reports negative rates.
        let rates = rates.filter(|(mib, samples)| 0.0 < *mib && 0.0 < *samples);
        let facts = Facts::new().with("mean_sample_bytes", mean);
        let facts = facts.with("record_length_bytes", nominal).with("ratio", mean / nominal);
        let facts = facts.with_known("reported_mib_per_second", rates.map(|(mib, _)| mib));
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
