//! More than twice as fast on twice as many accelerators.

use super::{Check, Doubt, Severity, found};
use crate::run::Run;
use feedrate_measure::metric::SAMPLES_WHOLE;

/// Share above proportional.
const ABOVE_MAX: f64 = 1.1;

pub(super) static DOUBT: Doubt = Doubt {
    name: "superlinear_scaling",
    severity: Severity::Warning,
    meaning: "A rate grows by over a tenth more than the accelerators do: a cache, a window that shrinks with the steps, or different settings, not the storage.",
    check: Check::OfSet(|relations, index| {
        let run = &relations.runs[index];
        let own = run.accelerators.filter(|_| run.is_result() && run.parameter == "processes")?;
        let fewer = |other: &&Run| {
            let is_fewer = other.accelerators.is_some_and(|count| count < own);
            is_fewer && other.parameter == "processes" && is_comparable(run, other)
        };
        // What read another dataset, or is wrong otherwise, is no base.
        let sound = relations.study(index).iter().filter(|other| relations.is_sound(**other));
        let others = sound.map(|other| &relations.runs[*other]);
        let base = others.filter(fewer).max_by_key(|other| other.accelerators)?;
        let grown = f64::from(own) / f64::from(base.accelerators?);
        let reported = ratio(run, base, |run| run.reported_samples_per_second());
        let whole = ratio(run, base, |run| run.metric(&SAMPLES_WHOLE));
        let above = |ratio: Option<f64>| ratio.is_some_and(|ratio| grown * ABOVE_MAX < ratio);
        if !above(reported) && !above(whole) {
            return None;
        }
        let text = |ratio: Option<f64>| {
            ratio.map_or("not known".into(), |ratio| format!("{ratio:.2} times"))
        };
        found(
            format!(
                "from {} to {own} accelerators ({grown:.2} times) the reported samples/s are {}, those of whole epochs {}",
                base.accelerators?,
                text(reported),
                text(whole)
            ),
            "believe whole epochs; keep the steps of an epoch the same by adding files with accelerators, and empty the page cache",
        )
    }),
};

/// The same dataset and batch.
fn is_comparable(a: &Run, b: &Run) -> bool {
    let of = |run: &Run| (run.files, run.samples_per_file, run.batch_size, run.format.clone());
    of(a) == of(b) && a.record_length_bytes == b.record_length_bytes
}

fn ratio(a: &Run, b: &Run, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    Some(of(a)? / of(b).filter(|rate| *rate > 0.0)?)
}
