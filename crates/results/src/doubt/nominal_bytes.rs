//! Reported bytes are not those that were read.

use super::{Check, Doubt, Severity, found};
use feedrate_spec::units::{self, MIB};

/// Share.
const DIFFERENCE_MAX: f64 = 0.05;

pub(super) static DOUBT: Doubt = Doubt {
    name: "nominal_bytes",
    severity: Severity::Warning,
    meaning: "DLIO reports samples × record_length_bytes; its generator draws sizes, cuts draws below 1, and keeps the deviation whatever the length, so that files are of another size in the mean.",
    check: Check::OfRun(|loaded| {
        let run = loaded.run;
        let (nominal, mean) = (run.record_length_bytes?, run.mean_sample_bytes?);
        if !run.is_result() || (mean / nominal - 1.0).abs() <= DIFFERENCE_MAX {
            return None;
        }
        let rates = run.reported_mib_per_second().zip(run.reported_samples_per_second());
        // Of too few steps DLIO reports negative rates.
        let rates = rates.filter(|(mib, samples)| 0.0 < *mib && 0.0 < *samples);
        let rate = rates.map_or_else(String::new, |(mib, samples)| {
            format!(
                "; {mib:.0} MiB/s are reported, which are {:.0} MiB/s of that",
                samples * mean / MIB
            )
        });
        found(
            format!(
                "a sample has {} in the mean of the files that DLIO's generator draws, {} are configured: {:.2} times{rate}",
                units::bytes(mean as u64),
                units::bytes(nominal as u64),
                mean / nominal
            ),
            "scale record_length_bytes_stdev with record_length_bytes, or use the rate in bytes read",
        )
    }),
};
