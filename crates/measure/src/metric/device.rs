//! Metrics of devices: the storage device under the dataset, and GPUs.

use super::{
    Basis, COMPOSED, DEVICE_BYTES, DURATION_S, Fold, Formula, Metric, MetricId, Unit, mean,
};
use crate::record::timeline::{Timeline, samples_in};
use crate::window::Scope;

/// Bytes per second that came from storage.
pub static DEVICE_PER_SECOND: Metric = Metric {
    id: MetricId("device_bytes_per_second"),
    title: "throughput of the device",
    unit: Unit::BytesPerSecond,
    definition: "Bytes that this process caused to be fetched from storage during the epochs ÷ their length",
    source: "read_bytes of /proc/self/io, proc(5)",
    path: "throughput.device_bytes_per_second",
    formula: Formula::FromMetrics(|_, value| {
        let length_s = value(&DURATION_S).filter(|length_s| *length_s > 0.0)?;
        Some(value(&DEVICE_BYTES)? / length_s)
    }),
    ..DEVICE
};

/// Utilisation of GPUs. Unknown if there is no GPU or if it could not be sampled.
pub static GPU_UTILISATION: Metric = Metric {
    id: MetricId("gpu_utilisation_percent"),
    title: "GPU utilisation",
    unit: Unit::Percent,
    definition: "Utilisation that a GPU reports, averaged over the time of the timeline's samples whose middle is in the epoch; then the mean over GPUs and epochs",
    path: "gpu_utilisation_percent",
    formula: Formula::PerEpoch(|scope| gpu_percent(scope, scope.timeline?), Fold::Mean),
    ..DEVICE
};

const DEVICE: Metric = Metric { basis: &[Basis::Steps, Basis::Host], ..COMPOSED };

fn gpu_percent(scope: Scope, timeline: &Timeline) -> Option<f64> {
    let samples = samples_in(&timeline.middles_ns(), scope.epoch.start_ns..scope.epoch.end_ns);
    let gpus = timeline.gpus.as_ref()?.iter();
    let known = gpus.filter_map(|gpu| timeline.mean(&gpu.utilisation_percent, samples.clone()));
    mean(&known.collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;
    use crate::record::timeline::{GpuSample, Sample};

    #[test]
    fn gpu_utilisation_is_weighted_by_the_durations_of_samples_in_the_epoch() {
        // Four steps of 200 ms. The first two samples are in the epoch; the third is not.
        let mut record = simple(&[(100, 100, 0, 1000); 4]);
        assert_eq!(GPU_UTILISATION.run_value(&record), None, "no timeline, no GPU");
        let mut timeline = Timeline::new(0);
        timeline.set_gpus(&["A".into(), "B".into()]);
        for (ms, a, b) in [(200, Some(80), None), (600, Some(40), None), (500, Some(0), Some(9))] {
            let sample = Sample { duration_ns: ms * 1_000_000, ..Sample::default() };
            let gpu =
                |utilisation_percent| GpuSample { utilisation_percent, ..GpuSample::default() };
            timeline.push(&sample, &[gpu(a), gpu(b)]);
        }
        record.timeline = Some(timeline);
        // The second GPU has no value during the epoch.
        assert_eq!(GPU_UTILISATION.run_value(&record), Some((80.0 + 3.0 * 40.0) / 4.0));
    }

    #[test]
    fn device_throughput_is_relative_to_the_length_of_the_epochs() {
        let mut record = simple(&[(100, 100, 0, 1000); 4]);
        assert_eq!(DEVICE_PER_SECOND.run_value(&record), None, "the kernel reported nothing");
        record.epochs[0].host.process_device_read_bytes = Some(1600);
        assert_eq!(DEVICE_PER_SECOND.run_value(&record), Some(2000.0));
        assert_eq!(DEVICE_PER_SECOND.epoch_values(&record), [Some(2000.0)]);
    }
}
