//! The samples of a timeline within a time span. Samples that reach beyond the span count by the share of their time within it.

use super::{GpuPhase, TimeRange, overlap_ns};
use crate::record::timeline::{Column, Timeline};
use crate::window::seconds;

/// Longest time between the boundary of a phase and that of the sample which ends there.
const TOLERANCE_NS: u64 = 1_000_000;

/// A timeline with the ends of its samples.
pub(super) struct SampleEdges<'a> {
    timeline: &'a Timeline,
    ends_ns: Vec<u64>,
}

impl<'a> SampleEdges<'a> {
    pub(super) fn new(timeline: &'a Timeline) -> Self {
        SampleEdges { timeline, ends_ns: timeline.ends_ns() }
    }
}

/// The samples within a phase; none if there is no timeline.
pub(super) struct PhaseSamples<'a> {
    timeline: Option<&'a Timeline>,
    samples: Vec<SampleShare>,
}

/// A sample by its index, and the share of its time in the phase.
struct SampleShare {
    index: usize,
    share: f64,
}

impl<'a> PhaseSamples<'a> {
    pub(super) fn new(edges: Option<&SampleEdges<'a>>, span: TimeRange) -> Self {
        let Some(&SampleEdges { timeline, ref ends_ns }) = edges else {
            return PhaseSamples { timeline: None, samples: Vec::new() };
        };
        let first = ends_ns.partition_point(|end_ns| *end_ns <= span.start_ns);
        let samples = (first..ends_ns.len())
            .map(|index| {
                let end_ns = ends_ns[index];
                (index, TimeRange { start_ns: end_ns - timeline.duration_ns[index], end_ns })
            })
            .take_while(|(_, sample)| sample.start_ns < span.end_ns)
            .map(|(index, sample)| SampleShare { index, share: time_share(sample, span) })
            .filter(|sample| sample.share > 0.0);
        PhaseSamples { timeline: Some(timeline), samples: samples.collect() }
    }

    /// Sum of a column; `None` if it is unknown or the phase has no sample.
    pub(super) fn sum(&self, column: fn(&Timeline) -> &Column) -> Option<f64> {
        let values = column(self.timeline?).as_ref()?;
        let parts = self.samples.iter().map(|sample| values[sample.index] as f64 * sample.share);
        (!self.samples.is_empty()).then(|| parts.sum())
    }

    pub(super) fn per_second(&self, column: fn(&Timeline) -> &Column) -> Option<f64> {
        let duration_s: f64 = self.samples.iter().map(|sample| self.duration_s(sample)).sum();
        let sum = self.sum(column)?;
        (duration_s > 0.0).then(|| sum / duration_s)
    }

    pub(super) fn cpu_busy_share(&self) -> Option<f64> {
        let busy = self.sum(|timeline| &timeline.cpu_busy_ticks)?;
        let all = self.sum(|timeline| &timeline.cpu_ticks)?;
        (all > 0.0).then(|| busy / all)
    }

    pub(super) fn gpus(&self) -> Option<Vec<GpuPhase>> {
        let phases = self.timeline?.gpus.as_ref()?.iter().map(|gpu| GpuPhase {
            utilisation_percent: self.mean(&gpu.utilisation_percent),
            memory_bytes: self.mean(&gpu.memory_bytes),
            power_w: self.mean(&gpu.power_mw).map(|mw| mw / 1000.0),
        });
        Some(phases.collect())
    }

    /// Mean of a GPU's column, weighted by time. Unknown values are ignored.
    fn mean(&self, values: &[Option<u64>]) -> Option<f64> {
        // Updating the mean instead of a sum keeps the mean of equal values exact.
        let mut mean = 0.0;
        let mut known_s = 0.0;
        for sample in &self.samples {
            let duration_s = self.duration_s(sample);
            if let Some(value) = values[sample.index].filter(|_| duration_s > 0.0) {
                known_s += duration_s;
                mean += (value as f64 - mean) * (duration_s / known_s);
            }
        }
        (known_s > 0.0).then_some(mean)
    }

    /// Time of a sample within the phase.
    fn duration_s(&self, sample: &SampleShare) -> f64 {
        let duration_ns = self.timeline.map_or(0, |timeline| timeline.duration_ns[sample.index]);
        seconds(duration_ns) * sample.share
    }
}

/// Share of a sample's time within `span`. The thread that takes samples is not exactly on time, so a sample that ends at a boundary of the
/// phase belongs to one side of it.
fn time_share(sample: TimeRange, span: TimeRange) -> f64 {
    let within_ns = overlap_ns(sample, span);
    let outside_ns = sample.duration_ns() - within_ns;
    match (within_ns, outside_ns) {
        _ if outside_ns <= TOLERANCE_NS && outside_ns < within_ns => 1.0,
        _ if within_ns <= TOLERANCE_NS => 0.0,
        _ => within_ns as f64 / sample.duration_ns() as f64,
    }
}
