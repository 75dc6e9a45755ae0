//! More than twice as fast on twice as many accelerators.

use super::{Check, Doubt, Severity, found};
use crate::case::Case;

/// Share above proportional.
const ABOVE_MAX: f64 = 1.1;

pub(super) static DOUBT: Doubt = Doubt {
    name: "superlinear_scaling",
    severity: Severity::Warning,
    meaning: "A rate grows by over a tenth more than the accelerators do: a cache, a window that shrinks with the steps, or different settings, not the storage.",
    check: Check::OfSet(|set, index| {
        let case = &set.cases[index];
        let own =
            case.accelerators.filter(|_| case.is_result() && case.parameter == "processes")?;
        let fewer = |other: &&Case| {
            let is_fewer = other.accelerators.is_some_and(|count| count < own);
            is_fewer && other.parameter == "processes" && is_comparable(case, other)
        };
        // What read another dataset, or is wrong otherwise, is no base.
        let sound = set.study(index).iter().filter(|other| set.is_sound(**other));
        let others = sound.map(|other| &set.cases[*other]);
        let base = others.filter(fewer).max_by_key(|other| other.accelerators)?;
        let grown = f64::from(own) / f64::from(base.accelerators?);
        let reported = ratio(case, base, |case| case.throughput.reported_samples_per_second);
        let whole = ratio(case, base, |case| case.throughput.whole_samples_per_second);
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
fn is_comparable(a: &Case, b: &Case) -> bool {
    let of =
        |case: &Case| (case.files, case.samples_per_file, case.batch_size, case.format.clone());
    of(a) == of(b) && a.record_length_bytes == b.record_length_bytes
}

fn ratio(a: &Case, b: &Case, of: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
    Some(of(a)? / of(b).filter(|rate| *rate > 0.0)?)
}
