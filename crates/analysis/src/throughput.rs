//! Chooses the metric of throughput for sentences and figures about a set of runs.

use feedrate_measure::metric::{DELIVERED_WHOLE, Metric, Provenance, SAMPLES_WHOLE};
use feedrate_results::run::Run;
use std::collections::BTreeMap;

/// The metrics of throughput in the order of preference.
pub const THROUGHPUTS: [&Metric; 2] = [&DELIVERED_WHOLE, &SAMPLES_WHOLE];

/// Largest relative difference of bytes per sample at which bytes per second are comparable.
const SIZE_DIFFERENCE_MAX: f64 = 0.01;

/// Returns bytes per second if all runs counted bytes and the runs of each workload read equally many bytes per sample. Otherwise returns
/// samples per second, because reading more bytes for the same samples is no gain.
pub fn throughput<'r>(runs: impl IntoIterator<Item = &'r Run>) -> &'static Metric {
    // The smallest and the largest number of bytes per sample for each workload.
    let mut sizes: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for run in runs.into_iter().filter(|run| run.unusable.is_none()) {
        let Some(samples) = run.metric(&SAMPLES_WHOLE).filter(|rate| 0.0 < *rate) else { continue };
        let is_counted = run.provenance(&DELIVERED_WHOLE) == Some(Provenance::Measured);
        let counted = run.metric(&DELIVERED_WHOLE).filter(|rate| is_counted && 0.0 < *rate);
        let Some(bytes) = counted else { return &SAMPLES_WHOLE };
        let size = bytes / samples;
        let [smallest, largest] = sizes.entry(&run.workload).or_insert([size; 2]);
        *smallest = smallest.min(size);
        *largest = largest.max(size);
    }
    let are_equal = sizes
        .values()
        .all(|[smallest, largest]| *largest <= (1.0 + SIZE_DIFFERENCE_MAX) * smallest);
    if are_equal && !sizes.is_empty() { &DELIVERED_WHOLE } else { &SAMPLES_WHOLE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::metric::Value;

    fn run(samples: f64, bytes: Option<(f64, Provenance)>) -> Run {
        let mut run = Run { workload: "w".into(), ..Run::default() };
        let mut set = |metric: &Metric, number, provenance| {
            run.values.insert(metric.id, Value { number, provenance });
        };
        set(&SAMPLES_WHOLE, samples, Provenance::Measured);
        if let Some((number, provenance)) = bytes {
            set(&DELIVERED_WHOLE, number, provenance);
        }
        run
    }

    #[test]
    fn bytes_are_compared_if_they_were_counted_and_measure_the_same_work() {
        let measured = |samples, bytes| run(samples, Some((bytes, Provenance::Measured)));
        let check = |runs: &[Run], expected: &Metric| {
            assert_eq!(throughput(runs).id, expected.id, "{runs:?}");
        };
        let equal_sizes = [measured(10.0, 1000.0), measured(20.0, 2010.0)];
        check(&equal_sizes, &DELIVERED_WHOLE);
        let other_format = measured(10.0, 1500.0);
        check(&[equal_sizes[0].clone(), other_format.clone()], &SAMPLES_WHOLE);
        let other_workload = Run { workload: "v".into(), ..other_format.clone() };
        check(&[equal_sizes[0].clone(), other_workload], &DELIVERED_WHOLE);
        check(&[equal_sizes[0].clone(), run(10.0, None)], &SAMPLES_WHOLE);
        check(&[run(10.0, Some((1000.0, Provenance::Estimated)))], &SAMPLES_WHOLE);
        check(&[], &SAMPLES_WHOLE);
    }
}
