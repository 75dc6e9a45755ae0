//! The timeline of a run: a row for each 100 ms, stored in columns of increments. This module reads no clock and no file.
//!
//! Epochs, evaluations, checkpoints and waits of accelerators are not in the timeline, as the record has their exact times.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Initial interval between samples.
pub const INTERVAL_NS: u64 = 100_000_000;
/// Maximum number of samples. When it is reached, samples are merged in pairs.
pub const SAMPLES_MAX: usize = 36_000;

/// Values of a quantity, one per sample; `None` if any of them is unknown.
pub type Column = Option<Vec<u64>>;

/// Defines the columns of a timeline and the values of a sample, one for each quantity.
macro_rules! quantities {
    ($($(#[$meaning:meta])* $quantity:ident,)*) => {
        /// The samples of a run, without gaps. Quantities are increments since the previous sample.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Timeline {
            /// Start of the first sample, from the start of the run.
            pub start_ns: u64,
            /// Intended interval between samples. Some samples are shorter, as a sample also ends where an epoch or a checkpoint starts or ends.
            pub interval_ns: u64,
            /// Duration of each sample.
            pub duration_ns: Vec<u64>,
            $($(#[$meaning])* pub $quantity: Column,)*
            /// The GPUs of the machine; `None` if there are none or they could not be sampled.
            pub gpus: Option<Vec<GpuTimeline>>,
            /// Reason why no GPU could be sampled.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpus_unknown_because: Option<String>,
        }

        /// One row of a timeline.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Sample {
            /// Duration of the sample.
            pub duration_ns: u64,
            $($(#[$meaning])* pub $quantity: Option<u64>,)*
        }

        impl Timeline {
            fn columns(&self) -> [&Column; QUANTITIES] {
                [$(&self.$quantity),*]
            }

            fn columns_mut(&mut self) -> [&mut Column; QUANTITIES] {
                [$(&mut self.$quantity),*]
            }
        }

        impl Sample {
            /// Combines each quantity with the same quantity of `other`.
            pub fn combine_with(
                self,
                other: Sample,
                combine: fn(Option<u64>, Option<u64>) -> Option<u64>,
            ) -> Sample {
                Sample { $($quantity: combine(self.$quantity, other.$quantity),)* ..self }
            }

            /// Values in the order of the columns.
            fn values(&self) -> [Option<u64>; QUANTITIES] {
                [$(self.$quantity),*]
            }
        }
    };
}

const QUANTITIES: usize = 10;
/// Index of `cached_bytes`, the only column that is not an increment. It is the last one.
const CACHED: usize = 9;
/// Indices of the columns that describe a process. The others describe its machine.
const PROCESS_COLUMNS: [usize; 5] = [0, 1, 2, 3, 8];

quantities! {
    /// Bytes that read calls of the workers returned.
    read_bytes,
    /// Number of open and read calls of the workers, counted when their task is done.
    operations,
    /// Bytes that this process passed to write calls, for checkpoints and results.
    written_bytes,
    /// Bytes that this process caused to be fetched from storage.
    process_device_read_bytes,
    /// Bytes read from the block device under the dataset, by all processes.
    device_read_bytes,
    /// Bytes written to the block device under the dataset, by all processes.
    device_written_bytes,
    /// Busy time of all cores, in ticks of the kernel.
    cpu_busy_ticks,
    /// Total time of all cores, in ticks of the kernel.
    cpu_ticks,
    /// CPU time of this process.
    process_cpu_ns,
    /// Size of the page cache at the end of the sample.
    cached_bytes,
}

/// Samples of one GPU. A value is `None` if it was unknown at that sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTimeline {
    /// Model of the GPU.
    pub name: String,
    /// Share of the time in which a kernel ran.
    pub utilisation_percent: Vec<Option<u64>>,
    /// Memory in use, by all processes.
    pub memory_bytes: Vec<Option<u64>>,
    /// Power drawn.
    pub power_mw: Vec<Option<u64>>,
}

/// State of one GPU at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `GpuTimeline`")]
pub struct GpuSample {
    pub utilisation_percent: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub power_mw: Option<u64>,
}

impl Timeline {
    /// An empty timeline that starts at `start_ns`.
    pub fn new(start_ns: u64) -> Self {
        Timeline { start_ns, interval_ns: INTERVAL_NS, ..Timeline::default() }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.duration_ns.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.duration_ns.is_empty()
    }

    /// End of each sample, from the start of the run.
    pub fn ends_ns(&self) -> Vec<u64> {
        let mut end_ns = self.start_ns;
        let ends = self.duration_ns.iter().map(|duration_ns| {
            end_ns += duration_ns;
            end_ns
        });
        ends.collect()
    }

    /// Middle of each sample, from the start of the run.
    pub fn middles_ns(&self) -> Vec<u64> {
        let ends = self.ends_ns().into_iter().zip(&self.duration_ns);
        ends.map(|(end_ns, duration_ns)| end_ns - duration_ns / 2).collect()
    }

    /// Mean of a GPU's column over a range of samples, weighted by their durations. Unknown values are ignored.
    pub fn mean(&self, values: &[Option<u64>], samples: Range<usize>) -> Option<f64> {
        let mut sum = 0.0;
        let mut weights = 0.0;
        for (value, &duration_ns) in values[samples.clone()].iter().zip(&self.duration_ns[samples])
        {
            if let Some(value) = *value {
                sum += value as f64 * duration_ns as f64;
                weights += duration_ns as f64;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }

    /// Adds GPUs with these names. Their values at earlier samples are unknown.
    pub fn set_gpus(&mut self, names: &[String]) {
        let unknown = vec![None; self.len()];
        let gpus = names.iter().map(|name| GpuTimeline {
            name: name.clone(),
            utilisation_percent: unknown.clone(),
            memory_bytes: unknown.clone(),
            power_mw: unknown.clone(),
        });
        self.gpus = Some(gpus.collect());
        self.gpus_unknown_because = None;
    }

    /// Appends a sample. `gpus` is in the order of the names; the values of missing GPUs are unknown.
    pub fn push(&mut self, sample: &Sample, gpus: &[GpuSample]) {
        let is_first = self.is_empty();
        self.duration_ns.push(sample.duration_ns);
        let values = sample.values();
        for (column, value) in self.columns_mut().into_iter().zip(values) {
            if is_first {
                *column = value.map(|_| Vec::new());
            }
            match (column.as_mut(), value) {
                (Some(values), Some(value)) => values.push(value),
                _ => *column = None,
            }
        }
        for (i, gpu) in self.gpus.iter_mut().flatten().enumerate() {
            let state = gpus.get(i).copied().unwrap_or_default();
            gpu.utilisation_percent.push(state.utilisation_percent);
            gpu.memory_bytes.push(state.memory_bytes);
            gpu.power_mw.push(state.power_mw);
        }
        if self.len() >= SAMPLES_MAX {
            self.merge();
        }
    }

    /// Merges neighbouring samples in pairs. Increments are added; utilisation and power of GPUs become means over time.
    pub fn merge(&mut self) {
        self.interval_ns *= 2;
        let durations = std::mem::take(&mut self.duration_ns);
        self.duration_ns = durations.chunks(2).map(|pair| pair.iter().sum()).collect();
        if let Some(cached) = &mut self.cached_bytes {
            *cached = cached.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        }
        for column in self.columns_mut().into_iter().take(CACHED).flatten() {
            *column = column.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        for gpu in self.gpus.iter_mut().flatten() {
            for column in [&mut gpu.utilisation_percent, &mut gpu.power_mw] {
                let pairs = column.chunks(2).zip(durations.chunks(2));
                *column = pairs.map(|(pair, weights)| mean(pair, weights)).collect();
            }
            let pairs = gpu.memory_bytes.chunks(2);
            gpu.memory_bytes =
                pairs.map(|pair| pair.iter().rev().find_map(|bytes| *bytes)).collect();
        }
    }

    /// Whether all columns have a value for each sample.
    pub(super) fn is_rectangular(&self) -> bool {
        let samples = self.len();
        let gpus = self.gpus.iter().flatten().all(|gpu| {
            [&gpu.utilisation_percent, &gpu.memory_bytes, &gpu.power_mw]
                .iter()
                .all(|column| column.len() == samples)
        });
        gpus && self.columns().into_iter().flatten().all(|column| column.len() == samples)
    }

    /// Adds the increments of another process, distributed over the samples of this timeline. If that process is the first of another
    /// machine, the figures of the machine are added too. Samples of both timelines need not coincide.
    pub fn add(&mut self, other: &Timeline, is_of_other_machine: bool) {
        let ends_ns = self.ends_ns();
        let other_bounds_ns: Vec<u64> =
            std::iter::once(other.start_ns).chain(other.ends_ns()).collect();
        let columns = self.columns_mut().into_iter().zip(other.columns());
        for (i, (column, other_column)) in columns.enumerate() {
            if !(PROCESS_COLUMNS.contains(&i) || is_of_other_machine) {
                continue;
            }
            match (column.as_mut(), other_column) {
                // Sizes of page caches at different times cannot be added.
                (Some(values), Some(other_values)) if i < CACHED => {
                    add_distributed(values, &ends_ns, other_values, &other_bounds_ns);
                }
                _ => *column = None,
            }
        }
    }
}

/// The samples whose middle is in a time span.
pub fn samples_in(middles_ns: &[u64], span: Range<u64>) -> Range<usize> {
    let samples_before =
        |bound_ns: u64| middles_ns.partition_point(|middle_ns| *middle_ns < bound_ns);
    samples_before(span.start)..samples_before(span.end)
}

/// Adds increments of other samples to `values`, in proportion to the time that samples share.
///
/// The samples of `values` end at `ends_ns`; other sample `i` is between `other_bounds_ns[i]` and `other_bounds_ns[i + 1]`. Increments
/// before the first sample are added to the first sample, and increments after the last sample to the last.
fn add_distributed(
    values: &mut [u64],
    ends_ns: &[u64],
    other_values: &[u64],
    other_bounds_ns: &[u64],
) {
    let total: u64 = other_values.iter().sum();
    let mut next = 0;
    let mut sum_of_ended = 0u64;
    let mut sum_added = 0u64;
    let last = values.len().saturating_sub(1);
    for (i, (value, &end_ns)) in values.iter_mut().zip(ends_ns).enumerate() {
        while next < other_values.len() && other_bounds_ns[next + 1] <= end_ns {
            sum_of_ended += other_values[next];
            next += 1;
        }
        let mut sum_until_end = sum_of_ended;
        if next < other_values.len() && other_bounds_ns[next] < end_ns {
            let length_ns = u128::from(other_bounds_ns[next + 1] - other_bounds_ns[next]);
            let inside_ns = u128::from(end_ns - other_bounds_ns[next]);
            let inside = u128::from(other_values[next]) * inside_ns / length_ns.max(1);
            sum_until_end += inside as u64;
        }
        if i == last {
            sum_until_end = total;
        }
        *value += sum_until_end - sum_added;
        sum_added = sum_until_end;
    }
}

/// Weighted mean of the known values; `None` if there are none.
fn mean(values: &[Option<u64>], weights: &[u64]) -> Option<u64> {
    let known =
        || values.iter().zip(weights).filter_map(|(value, weight)| Some(((*value)?, *weight)));
    let weight: u128 = known().map(|(_, weight)| u128::from(weight)).sum();
    let sum: u128 = known().map(|(value, weight)| u128::from(value) * u128::from(weight)).sum();
    (weight > 0).then(|| ((sum + weight / 2) / weight) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(i: u64) -> Sample {
        Sample {
            duration_ns: INTERVAL_NS,
            read_bytes: Some(i),
            operations: Some(1),
            cached_bytes: Some(1000 + i),
            ..Sample::default()
        }
    }

    fn gpu(percent: u64) -> [GpuSample; 1] {
        [GpuSample {
            utilisation_percent: Some(percent),
            memory_bytes: Some(percent),
            power_mw: None,
        }]
    }

    #[test]
    fn merging_keeps_sums_and_limits_the_number_of_samples() {
        let mut timeline = Timeline::new(7);
        let count = 2 * SAMPLES_MAX as u64 + 11;
        for i in 0..count {
            timeline.push(&sample(i), &[]);
        }
        assert!(timeline.len() < SAMPLES_MAX && timeline.is_rectangular());
        assert_eq!(timeline.interval_ns, 8 * INTERVAL_NS);
        assert_eq!(timeline.duration_ns.iter().sum::<u64>(), count * INTERVAL_NS);
        let read = timeline.read_bytes.as_ref().unwrap();
        assert_eq!(read.iter().sum::<u64>(), count * (count - 1) / 2);
        assert_eq!(timeline.operations.as_ref().unwrap()[0], 8);
        assert_eq!(timeline.cached_bytes.as_ref().unwrap()[0], 1007);
        assert_eq!(timeline.ends_ns().last(), Some(&(7 + count * INTERVAL_NS)));
        assert_eq!(timeline.device_read_bytes, None);
    }

    #[test]
    fn means_are_weighted_and_unknown_values_stay_unknown() {
        let mut timeline = Timeline::new(0);
        timeline.push(&sample(0), &[]);
        timeline.set_gpus(&["A".into()]);
        timeline.push(&sample(1), &gpu(40));
        timeline.push(&Sample { duration_ns: 3 * INTERVAL_NS, ..sample(2) }, &gpu(80));
        timeline.push(&Sample { read_bytes: None, ..sample(3) }, &gpu(40));
        timeline.push(&sample(4), &[]);
        timeline.merge();
        let gpu = &timeline.gpus.as_ref().unwrap()[0];
        assert_eq!(gpu.utilisation_percent, [Some(40), Some(70), None]);
        assert_eq!(gpu.memory_bytes, [Some(40), Some(40), None]);
        assert_eq!(gpu.power_mw, [None, None, None]);
        assert_eq!(timeline.read_bytes, None, "unknown for one sample");
        assert_eq!(timeline.operations, Some(vec![2, 2, 1]));
    }

    #[test]
    fn increments_of_other_processes_are_distributed_over_the_samples() {
        let mut timeline = Timeline::new(1000);
        let mut other = Timeline::new(1500);
        for i in 0..3 {
            timeline.push(&Sample { duration_ns: 1000, ..sample(10) }, &[]);
            let other_sample = Sample { cpu_ticks: Some(7), ..sample(100 * i) };
            other.push(&Sample { duration_ns: 1000, ..other_sample }, &[]);
        }
        let before = timeline.clone();
        timeline.add(&other, false);
        // The other samples [0, 100, 200] start at 1500, 2500 and 3500. Half of the second one is in the middle sample; the rest is in the
        // last sample or after it.
        assert_eq!(timeline.read_bytes, Some(vec![10, 10 + 50, 10 + 250]));
        assert_eq!(timeline.cached_bytes, before.cached_bytes, "counted once per machine");
        assert_eq!(timeline.cpu_ticks, None);
        let mut machine = before.clone();
        machine.add(&other, true);
        assert_eq!(machine.cached_bytes, None);
        other.read_bytes = None;
        timeline.add(&other, false);
        assert_eq!(timeline.read_bytes, None, "unknown for one process");
    }
}
