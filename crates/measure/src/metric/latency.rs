//! How long single opens, reads and samples took: quantiles of the merged histograms.

use super::{Basis, Better, METRIC, Metric, MetricId, Shown, Unit};
use crate::histogram::Histogram;
use crate::record::{AcceleratorEpoch, IoCounters, Record};
use crate::window::{Scope, seconds};
use serde::Serialize;

/// A latency: its quantiles, and as a metric its 99th percentile.
pub struct LatencyMetric {
    /// The row.
    pub metric: Metric,
    histogram: fn(&IoCounters) -> &Histogram,
}

/// Open calls.
pub static OPEN_LATENCY: LatencyMetric = LatencyMetric {
    metric: Metric {
        id: MetricId("open_latency_p99_s"),
        title: "99th percentile of open latency",
        unit: Unit::Seconds,
        better: Better::Lower,
        definition: "99 % of open calls took no longer, to one sixteenth, over accelerators and epochs",
        source: "feedrate; p50, p90, p99.9 and max stand beside it",
        path: "latency.open.p99_s",
        basis: &[Basis::Reads],
        shown: Shown::Composed,
        of_accelerator: |_, accelerator| p99(&accelerator.io.open_latency),
        of_epoch: |scope| OPEN_LATENCY.of_epoch(scope).p99_s,
        of_run: |record| OPEN_LATENCY.of_run(record).p99_s,
        ..METRIC
    },
    histogram: |io| &io.open_latency,
};

/// Read calls.
pub static READ_LATENCY: LatencyMetric = LatencyMetric {
    metric: Metric {
        id: MetricId("read_latency_p99_s"),
        title: "99th percentile of read latency",
        unit: Unit::Seconds,
        better: Better::Lower,
        definition: "99 % of read calls took no longer, to one sixteenth, over accelerators and epochs",
        source: "feedrate; p50, p90, p99.9 and max stand beside it",
        path: "latency.read.p99_s",
        basis: &[Basis::Reads],
        shown: Shown::Composed,
        of_accelerator: |_, accelerator| p99(&accelerator.io.read_latency),
        of_epoch: |scope| READ_LATENCY.of_epoch(scope).p99_s,
        of_run: |record| READ_LATENCY.of_run(record).p99_s,
        ..METRIC
    },
    histogram: |io| &io.read_latency,
};

/// Whole samples: open, reads, decoding.
pub static SAMPLE_LATENCY: LatencyMetric = LatencyMetric {
    metric: Metric {
        id: MetricId("sample_latency_p99_s"),
        title: "99th percentile of sample latency",
        unit: Unit::Seconds,
        better: Better::Lower,
        definition: "99 % of samples were read and decoded in no longer, to one sixteenth, over accelerators and epochs",
        source: "feedrate; p50, p90, p99.9 and max stand beside it",
        path: "latency.sample.p99_s",
        basis: &[Basis::Reads],
        shown: Shown::Composed,
        of_accelerator: |_, accelerator| p99(&accelerator.io.sample_latency),
        of_epoch: |scope| SAMPLE_LATENCY.of_epoch(scope).p99_s,
        of_run: |record| SAMPLE_LATENCY.of_run(record).p99_s,
        ..METRIC
    },
    histogram: |io| &io.sample_latency,
};

/// Quantiles in seconds; `None` where nothing was counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are the quantiles")]
pub struct Quantiles {
    pub count: u64,
    pub p50_s: Option<f64>,
    pub p90_s: Option<f64>,
    pub p99_s: Option<f64>,
    #[serde(rename = "p99_9_s")]
    pub p999_s: Option<f64>,
    pub max_s: Option<f64>,
}

impl LatencyMetric {
    /// Over the accelerators of an epoch.
    pub fn of_epoch(&self, scope: Scope) -> Quantiles {
        let whole = [scope].into_iter().filter(|scope| scope.is_whole());
        self.merged(whole.flat_map(|scope| &scope.epoch.accelerators))
    }

    /// Over the run.
    pub fn of_run(&self, record: &Record) -> Quantiles {
        self.merged(Scope::all(record).flat_map(|scope| &scope.epoch.accelerators))
    }

    fn merged<'a>(
        &self,
        accelerators: impl IntoIterator<Item = &'a AcceleratorEpoch>,
    ) -> Quantiles {
        let mut merged = Histogram::default();
        for accelerator in accelerators {
            merged.merge((self.histogram)(&accelerator.io));
        }
        Quantiles {
            count: merged.count(),
            p50_s: merged.quantile(0.5).map(seconds),
            p90_s: merged.quantile(0.9).map(seconds),
            p99_s: p99(&merged),
            p999_s: merged.quantile(0.999).map(seconds),
            max_s: merged.max().map(seconds),
        }
    }
}

fn p99(histogram: &Histogram) -> Option<f64> {
    histogram.quantile(0.99).map(seconds)
}
