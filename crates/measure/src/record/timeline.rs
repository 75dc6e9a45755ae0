//! Timeline of a run: one row for each 100 ms of a run, kept in columns of differences. No clock, no file.
//!
//! Epochs, evaluations, checkpoints and the waits of accelerators are not in it: the record has their exact times.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A sample is taken so often at first.
pub const INTERVAL_NS: u64 = 100_000_000;
/// A run that would keep more has its samples merged two by two.
pub const SAMPLES_MAX: usize = 36_000;

/// One quantity, a value for each sample. `None`: not known, or not over the whole run.
pub type Column = Option<Vec<u64>>;

/// A timeline with a column, and a sample with a value, for each quantity.
macro_rules! quantities {
    ($($(#[$meaning:meta])* $quantity:ident,)*) => {
        /// The samples of a run, one after another without gaps. Quantities are what was added since the sample before.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Timeline {
            /// When the first sample began, from the start of the run.
            pub start_ns: u64,
            /// How far apart samples are meant to be; some are shorter, as one ends wherever an epoch or a checkpoint begins or ends.
            pub interval_ns: u64,
            /// How long each lasted.
            pub duration_ns: Vec<u64>,
            $($(#[$meaning])* pub $quantity: Column,)*
            /// The GPUs of the machine; `None` where there are none, or none that tell.
            pub gpus: Option<Vec<GpuTimeline>>,
            /// Reason why no GPU is known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpus_unknown_because: Option<String>,
        }

        /// One row of a timeline.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Sample {
            /// How long it lasted.
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
            /// Each of its quantities put together with that of `other`.
            pub fn with(
                self,
                other: Sample,
                put: fn(Option<u64>, Option<u64>) -> Option<u64>,
            ) -> Sample {
                Sample { $($quantity: put(self.$quantity, other.$quantity),)* ..self }
            }

            /// In the order of the columns.
            fn values(&self) -> [Option<u64>; QUANTITIES] {
                [$(self.$quantity),*]
            }
        }
    };
}

const QUANTITIES: usize = 10;
/// The first column that does not add up.
const CACHED: usize = 9;
/// Columns that are about a process, not its machine.
const OF_PROCESS: [usize; 5] = [0, 1, 2, 3, 8];

quantities! {
    /// Bytes that read calls of the workers returned.
    read_bytes,
    /// Open and read calls of the workers, counted when their task is done.
    operations,
    /// Bytes given to write calls by this process: checkpoints, and results that are saved meanwhile.
    written_bytes,
    /// Bytes that this process caused to be fetched from storage.
    process_device_read_bytes,
    /// Bytes read from the block device under the dataset, by anybody.
    device_read_bytes,
    /// Bytes written to it.
    device_written_bytes,
    /// Time of all cores that was not idle, in ticks of the kernel.
    cpu_busy_ticks,
    /// Time of all cores.
    cpu_ticks,
    /// CPU time of this process.
    process_cpu_ns,
    /// The page cache at the sample's end.
    cached_bytes,
}

/// One GPU. A value is `None` where it was not known at that sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTimeline {
    /// Its model.
    pub name: String,
    /// Share of the time in which a kernel ran.
    pub utilisation_percent: Vec<Option<u64>>,
    /// Memory in use, by anybody.
    pub memory_bytes: Vec<Option<u64>>,
    /// Power drawn.
    pub power_mw: Vec<Option<u64>>,
}

/// State of one GPU at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `GpuTimeline`")]
pub struct GpuSample {
    pub utilisation_percent: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub power_mw: Option<u64>,
}

impl Timeline {
    /// Without samples, from `start_ns`.
    pub fn new(start_ns: u64) -> Self {
        Timeline { start_ns, interval_ns: INTERVAL_NS, ..Timeline::default() }
    }

    /// Samples kept.
    pub fn len(&self) -> usize {
        self.duration_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.duration_ns.is_empty()
    }

    /// When each sample ended, from the start of the run.
    pub fn ends_ns(&self) -> Vec<u64> {
        let mut at_ns = self.start_ns;
        let ends = self.duration_ns.iter().map(|duration_ns| {
            at_ns += duration_ns;
            at_ns
        });
        ends.collect()
    }

    /// The middle of each sample, from the start of the run.
    pub fn middles_ns(&self) -> Vec<u64> {
        let ends = self.ends_ns().into_iter().zip(&self.duration_ns);
        ends.map(|(end_ns, duration_ns)| end_ns - duration_ns / 2).collect()
    }

    /// The mean of a GPU's column over the time of those of these samples whose value is known.
    pub fn mean(&self, values: &[Option<u64>], samples: Range<usize>) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (value, &duration_ns) in values[samples.clone()].iter().zip(&self.duration_ns[samples])
        {
            if let Some(value) = *value {
                sum += value as f64 * duration_ns as f64;
                weights += duration_ns as f64;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }

    /// From now on there are GPUs of these names; nothing is known of them before.
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

    /// Add a sample; `gpus` in the order of their names, unknown where it is shorter.
    pub fn push(&mut self, sample: &Sample, gpus: &[GpuSample]) {
        let first = self.is_empty();
        self.duration_ns.push(sample.duration_ns);
        let values = sample.values();
        for (column, value) in self.columns_mut().into_iter().zip(values) {
            if first {
                *column = value.map(|_| Vec::new());
            }
            match (column.as_mut(), value) {
                (Some(kept), Some(value)) => kept.push(value),
                _ => *column = None,
            }
        }
        for (i, gpu) in self.gpus.iter_mut().flatten().enumerate() {
            let shown = gpus.get(i).copied().unwrap_or_default();
            gpu.utilisation_percent.push(shown.utilisation_percent);
            gpu.memory_bytes.push(shown.memory_bytes);
            gpu.power_mw.push(shown.power_mw);
        }
        if self.len() >= SAMPLES_MAX {
            self.merge();
        }
    }

    /// Make one of each two neighbours. What is added up stays the same; a GPU's utilisation and power become means over time.
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
            gpu.memory_bytes = pairs.map(|pair| pair.iter().rev().find_map(|one| *one)).collect();
        }
    }

    /// Whether every column has a value for every sample.
    pub(super) fn is_even(&self) -> bool {
        let samples = self.len();
        let gpus = self.gpus.iter().flatten().all(|gpu| {
            [&gpu.utilisation_percent, &gpu.memory_bytes, &gpu.power_mw]
                .iter()
                .all(|column| column.len() == samples)
        });
        gpus && self.columns().into_iter().flatten().all(|column| column.len() == samples)
    }

    /// Count what another process did too, spread over the samples here; with the first process of another machine, what that
    /// machine did. Its samples need not begin and end where these do.
    pub fn add(&mut self, other: &Timeline, is_of_other_machine: bool) {
        let ends_ns = self.ends_ns();
        let theirs_ns: Vec<u64> = std::iter::once(other.start_ns).chain(other.ends_ns()).collect();
        for (i, (mine, theirs)) in self.columns_mut().into_iter().zip(other.columns()).enumerate() {
            if !(OF_PROCESS.contains(&i) || is_of_other_machine) {
                continue;
            }
            match (mine.as_mut(), theirs) {
                // What several page caches hold at a moment is not told by samples of different moments.
                (Some(mine), Some(theirs)) if i < CACHED => {
                    spread(mine, &ends_ns, theirs, &theirs_ns);
                }
                _ => *mine = None,
            }
        }
    }
}

/// The samples whose middle lies in a span of time.
pub fn samples_in(middles_ns: &[u64], span: Range<u64>) -> Range<usize> {
    let [first, end] = [span.start, span.end]
        .map(|bound_ns| middles_ns.partition_point(|middle_ns| *middle_ns < bound_ns));
    first..end
}

/// Add to `mine`, whose samples end at `ends_ns`, what is in `theirs`, whose samples lie between the times of `bounds_ns`. What lies
/// outside counts for the first or the last.
fn spread(mine: &mut [u64], ends_ns: &[u64], theirs: &[u64], bounds_ns: &[u64]) {
    let total: u64 = theirs.iter().sum();
    let (mut at, mut whole, mut told) = (0, 0u64, 0u64);
    let last = mine.len().saturating_sub(1);
    for (i, (mine, &end_ns)) in mine.iter_mut().zip(ends_ns).enumerate() {
        while at < theirs.len() && bounds_ns[at + 1] <= end_ns {
            whole += theirs[at];
            at += 1;
        }
        let mut until = whole;
        if at < theirs.len() && bounds_ns[at] < end_ns {
            let length_ns = u128::from(bounds_ns[at + 1] - bounds_ns[at]);
            let inside_ns = u128::from(end_ns - bounds_ns[at]);
            until += (u128::from(theirs[at]) * inside_ns / length_ns.max(1)) as u64;
        }
        if i == last {
            until = total;
        }
        *mine += until - told;
        told = until;
    }
}

/// Weighted mean of what is known; `None` where nothing is.
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
    fn merging_keeps_sums_and_bounds() {
        let mut timeline = Timeline::new(7);
        let count = 2 * SAMPLES_MAX as u64 + 11;
        for i in 0..count {
            timeline.push(&sample(i), &[]);
        }
        assert!(timeline.len() < SAMPLES_MAX && timeline.is_even());
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
    fn means_are_weighted_and_what_is_unknown_stays_unknown() {
        let mut timeline = Timeline::new(0);
        timeline.push(&sample(0), &[]);
        timeline.set_gpus(&["A".into()]);
        timeline.push(&sample(1), &gpu(40));
        timeline.push(&Sample { duration_ns: 3 * INTERVAL_NS, ..sample(2) }, &gpu(80));
        timeline.push(&Sample { read_bytes: None, ..sample(3) }, &gpu(40));
        timeline.push(&sample(4), &[]);
        timeline.merge();
        let shown = &timeline.gpus.as_ref().unwrap()[0];
        assert_eq!(shown.utilisation_percent, [Some(40), Some(70), None]);
        assert_eq!(shown.memory_bytes, [Some(40), Some(40), None]);
        assert_eq!(shown.power_mw, [None, None, None]);
        assert_eq!(timeline.read_bytes, None, "not known over the whole run");
        assert_eq!(timeline.operations, Some(vec![2, 2, 1]));
    }

    #[test]
    fn what_other_processes_did_is_spread_over_the_samples() {
        let mut timeline = Timeline::new(1000);
        let mut other = Timeline::new(1500);
        for i in 0..3 {
            timeline.push(&Sample { duration_ns: 1000, ..sample(10) }, &[]);
            let theirs = Sample { cpu_ticks: Some(7), ..sample(100 * i) };
            other.push(&Sample { duration_ns: 1000, ..theirs }, &[]);
        }
        let before = timeline.clone();
        timeline.add(&other, false);
        // [0, 100, 200] from 1500, 2500, 3500: half of the second and of the third lie in the last sample, and what is beyond it.
        assert_eq!(timeline.read_bytes, Some(vec![10, 10 + 50, 10 + 250]));
        assert_eq!(timeline.cached_bytes, before.cached_bytes, "the machine's, which is counted");
        assert_eq!(timeline.cpu_ticks, None);
        let mut machine = before.clone();
        machine.add(&other, true);
        assert_eq!(machine.cached_bytes, None);
        other.read_bytes = None;
        timeline.add(&other, false);
        assert_eq!(timeline.read_bytes, None, "not known of one is not known");
    }
}
