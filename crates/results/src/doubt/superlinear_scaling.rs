//! More than twice as fast on twice as many accelerators.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::run::Run;
use feedrate_measure::metric::SAMPLES_WHOLE;

/// Times the growth of the accelerators.
const ABOVE_MAX: f64 = 1.1;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "superlinear_scaling",
        severity: Severity::Warning,
        meaning: "A rate grows by over a tenth more than the accelerators do: a cache, a window that shrinks with the steps, or different settings, not the storage.",
        evidence: "from {fewer_accelerators:.0} to {accelerators} ({growth:.2} times) the reported samples/s are [{reported_growth:.2} times|not known], those of whole epochs [{whole_growth:.2} times|not known]",
        advice: "believe whole epochs; keep the steps of an epoch the same by adding files with accelerators, and empty the page cache",
    },
    check: Check::AmongRuns(|relations, index| {
        let run = &relations.runs[index];
        let own = run.accelerators?;
        if !run.is_result() || run.parameter != "processes" {
            return None;
        }
        // What read another dataset, or is wrong otherwise, is no base.
        let sound =
            relations.study(index)?.members.iter().filter(|other| relations.is_sound(**other));
        let fewer = sound.map(|other| &relations.runs[*other]).filter(|other| {
            let is_fewer = other.accelerators.is_some_and(|count| count < own);
            is_fewer && other.parameter == "processes" && is_comparable(run, other)
        });
        let base = fewer.max_by_key(|other| other.accelerators)?;
        let growth = f64::from(own) / f64::from(base.accelerators?);
        let reported = ratio(run.reported_samples_per_second(), base.reported_samples_per_second());
        let whole = ratio(run.metric(&SAMPLES_WHOLE), base.metric(&SAMPLES_WHOLE));
        let facts = Facts::new().with("fewer_accelerators", base.accelerators?);
        let facts = facts.with("accelerators", own).with("growth", growth);
        let facts = facts.with_known("reported_growth", reported).with_known("whole_growth", whole);
        let mut grown = [reported, whole].into_iter().flatten();
        grown.any(|ratio| growth * ABOVE_MAX < ratio).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::Fake { ranks: 2, slower: 4.0, ..tests::good() }.write(root, "w/2/a");
        tests::good().write(root, "w/4/a");
    },
};

/// The same dataset and batch.
fn is_comparable(a: &Run, b: &Run) -> bool {
    (a.files, a.samples_per_file, a.batch_size) == (b.files, b.samples_per_file, b.batch_size)
        && a.format == b.format
        && a.record_length_bytes == b.record_length_bytes
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b.filter(|rate| *rate > 0.0)?)
}
