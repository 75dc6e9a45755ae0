//! Durations of single open calls, read calls and samples: quantiles of histograms merged over accelerators and epochs.

use super::{Basis, Better, COMPOSED, Formula, Metric, MetricId, Unit};
use crate::histogram::Histogram;
use crate::window::seconds;
use schemars::JsonSchema;
use serde::Serialize;

/// Duration of open calls.
pub static OPEN_LATENCY: Metric = Metric {
    id: MetricId("open_latency_p99_s"),
    title: "99th percentile of open latency",
    definition: "99 % of open calls took no longer, to one sixteenth, over accelerators and epochs",
    path: "latency.open.p99_s",
    formula: Formula::FromCounters(|io| Quantiles::new(&io.open_latency).p99_s),
    ..LATENCY
};

/// Duration of read calls.
pub static READ_LATENCY: Metric = Metric {
    id: MetricId("read_latency_p99_s"),
    title: "99th percentile of read latency",
    definition: "99 % of read calls took no longer, to one sixteenth, over accelerators and epochs",
    path: "latency.read.p99_s",
    formula: Formula::FromCounters(|io| Quantiles::new(&io.read_latency).p99_s),
    ..LATENCY
};

/// Duration of whole samples: open, reads and decoding.
pub static SAMPLE_LATENCY: Metric = Metric {
    id: MetricId("sample_latency_p99_s"),
    title: "99th percentile of sample latency",
    definition: "99 % of samples were read and decoded in no longer, to one sixteenth, over accelerators and epochs",
    path: "latency.sample.p99_s",
    formula: Formula::FromCounters(|io| Quantiles::new(&io.sample_latency).p99_s),
    ..LATENCY
};

const LATENCY: Metric = Metric {
    unit: Unit::Seconds,
    better: Better::Lower,
    source: "feedrate; p50, p90, p99.9, p99.99 and max are listed beside it",
    basis: &[Basis::Reads],
    ..COMPOSED
};

/// Quantiles in seconds; `None` if nothing was counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are the quantiles")]
pub struct Quantiles {
    pub count: u64,
    pub p50_s: Option<f64>,
    pub p90_s: Option<f64>,
    pub p99_s: Option<f64>,
    #[serde(rename = "p99_9_s")]
    pub p999_s: Option<f64>,
    #[serde(rename = "p99_99_s")]
    pub p9999_s: Option<f64>,
    pub max_s: Option<f64>,
    /// The durations between which the 99th percentile is, as its bucket has a width.
    #[serde(skip)]
    pub p99_range_s: Option<[f64; 2]>,
}

impl Quantiles {
    /// Computes the quantiles of a histogram.
    pub fn new(histogram: &Histogram) -> Self {
        let quantile_s = |share| histogram.quantile(share).map(seconds);
        Quantiles {
            count: histogram.count(),
            p50_s: quantile_s(0.5),
            p90_s: quantile_s(0.9),
            p99_s: quantile_s(0.99),
            p999_s: quantile_s(0.999),
            p9999_s: quantile_s(0.9999),
            max_s: histogram.max().map(seconds),
            p99_range_s: histogram
                .quantile_range(0.99)
                .map(|range| [range.low_ns, range.high_ns].map(seconds)),
        }
    }
}
