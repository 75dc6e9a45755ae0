//! What studies and comparisons look at: one number a run, by name. Epochs are repeated measures within a run, so a run has one value, never
//! one an epoch. The numbers are those of the summary; none is computed anew.

use crate::run::{DURATION_S, MetricId, Run, STALL_PERCENT};
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, NOMINAL_WHOLE, SAMPLES_WHOLE,
};
use feedrate_measure::stats::{self, Interval};
use feedrate_measure::summary::Summary;
use feedrate_spec::units;

/// Every response, in the order that help shows them.
pub static RESPONSES: &[Response] = &[
    Response {
        name: "au_all_steps_percent",
        title: "utilisation over all steps",
        unit: Unit::Percent,
        better: Better::Higher,
        metric: MetricId(AU_ALL_STEPS.name),
        of: |run| run.au.all_steps_percent,
    },
    Response {
        name: "au_windowed_percent",
        title: "windowed utilisation",
        unit: Unit::Percent,
        better: Better::Higher,
        metric: MetricId(AU_WINDOWED.name),
        of: |run| run.au.windowed_percent,
    },
    Response {
        name: "au_sustained_percent",
        title: "sustained utilisation",
        unit: Unit::Percent,
        better: Better::Higher,
        metric: MetricId(AU_SUSTAINED.name),
        of: |run| run.au.sustained_percent,
    },
    Response {
        name: "samples_per_second",
        title: "samples per second",
        unit: Unit::SamplesPerSecond,
        better: Better::Higher,
        metric: MetricId(SAMPLES_WHOLE.name),
        of: |run| run.throughput.samples_per_second.whole,
    },
    Response {
        name: "delivered_bytes_per_second",
        title: "throughput",
        unit: Unit::BytesPerSecond,
        better: Better::Higher,
        metric: MetricId(DELIVERED_WHOLE.name),
        of: |run| run.throughput.delivered_bytes_per_second.whole,
    },
    Response {
        name: "nominal_bytes_per_second",
        title: "nominal throughput",
        unit: Unit::BytesPerSecond,
        better: Better::Higher,
        metric: MetricId(NOMINAL_WHOLE.name),
        of: |run| run.throughput.nominal_bytes_per_second.whole,
    },
    Response {
        name: "stall_percent",
        title: "stall",
        unit: Unit::Percent,
        better: Better::Lower,
        metric: STALL_PERCENT,
        of: stall_percent,
    },
    Response {
        name: "duration_s",
        title: "duration",
        unit: Unit::Seconds,
        better: Better::Lower,
        metric: DURATION_S,
        of: |run| {
            let durations = run.per_epoch.iter().map(|epoch| epoch.duration_s);
            durations.sum::<Option<f64>>().filter(|&s| s > 0.0)
        },
    },
];

/// One of [`RESPONSES`]. Rates are over whole epochs; `duration_s` is that of all epochs, `stall_percent` the share of it that an accelerator
/// waited for data.
#[derive(Debug)]
pub struct Response {
    /// Stable name with its unit.
    pub name: &'static str,
    /// What sentences call it.
    pub title: &'static str,
    /// How values are written, and how they vary.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
    /// Of a run; `None` where it cannot be known.
    pub of: fn(&Summary) -> Option<f64>,
    /// The metric of runs that it is.
    pub metric: MetricId,
}

/// What a response is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Percent,
    SamplesPerSecond,
    BytesPerSecond,
    Seconds,
}

impl Unit {
    /// A value as people read it.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Percent => format!("{value:.1} %"),
            Unit::SamplesPerSecond => units::per_second(value, "samples"),
            Unit::BytesPerSecond => units::bytes_per_second(value),
            Unit::Seconds => units::seconds(value),
        }
    }
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Better {
    Higher,
    Lower,
}

impl Response {
    /// Of a run, whoever made it.
    pub fn of_run(&self, run: &Run) -> Option<f64> {
        run.number(self.metric)
    }

    /// By its name, with or without `_percent`.
    ///
    /// # Errors
    /// There is none: what there is.
    pub fn find(name: &str) -> Result<&'static Response, UnknownResponse> {
        let is = |known: &str| known == name || known.strip_suffix("_percent") == Some(name);
        let found = RESPONSES.iter().find(|response| is(response.name));
        found.ok_or_else(|| UnknownResponse(name.into()))
    }

    /// The middle of several runs, and its interval: the mean of percentages, the geometric mean of rates and durations, which vary by
    /// factors. `None` of fewer than two runs.
    pub fn middle(&self, values: &[f64], confidence: f64) -> Option<Interval> {
        match self.unit {
            Unit::Percent => stats::percent_interval(values, confidence),
            _ => stats::geometric_mean_interval(values, confidence),
        }
    }
}

/// No response has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no response `{0}`")]
pub struct UnknownResponse(pub String);

impl UnknownResponse {
    /// What there is.
    pub fn hint(&self) -> String {
        let names: Vec<&str> = RESPONSES.iter().map(|response| response.name).collect();
        format!("one of {}", names.join(", "))
    }
}

fn stall_percent(run: &Summary) -> Option<f64> {
    let load_s = run.time.load_s?;
    let all_s = load_s + run.time.compute_s? + run.time.barrier_s?;
    (all_s > 0.0).then(|| 100.0 * load_s / all_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{block, epoch, plan, record, simple};

    #[test]
    fn a_response_is_found_by_its_name() {
        for (name, expected) in [
            ("au_sustained_percent", Some("au_sustained_percent")),
            ("au_sustained", Some("au_sustained_percent")),
            ("duration_s", Some("duration_s")),
            ("au", None),
        ] {
            assert_eq!(Response::find(name).ok().map(|found| found.name), expected, "{name}");
        }
        assert!(Response::find("au").unwrap_err().hint().contains("au_all_steps_percent, "));
    }

    /// Two epochs of two steps: load 1 s, compute 3 s, one sample of 1 MB each.
    #[test]
    fn a_run_of_two_epochs_has_one_value() {
        let blocks = |at_ms| vec![vec![block(at_ms, &[(1000, 3000, 0, 1_000_000); 2])]];
        let run = record(plan(1, 2), vec![epoch(1, blocks(0)), epoch(2, blocks(8000))]);
        let summary = Summary::of(&run);
        for (name, expected) in [
            ("au_all_steps", Some(75.0)),
            ("au_sustained", None),
            ("samples_per_second", Some(0.25)),
            ("delivered_bytes_per_second", Some(250_000.0)),
            ("stall", Some(25.0)),
            ("duration_s", Some(16.0)),
        ] {
            assert_eq!((Response::find(name).unwrap().of)(&summary), expected, "{name}");
        }
    }

    #[test]
    fn a_run_that_measured_nothing_has_no_value() {
        let mut summary = Summary::of(&simple(&[]));
        (summary.time.load_s, summary.time.compute_s, summary.time.barrier_s) =
            (Some(0.0), Some(0.0), Some(0.0));
        summary.per_epoch.clear();
        assert_eq!(
            (stall_percent(&summary), (Response::find("duration_s").unwrap().of)(&summary)),
            (None, None)
        );
    }

    #[test]
    fn rates_have_a_geometric_middle() {
        let middle = |name: &str| Response::find(name).unwrap().middle(&[50.0, 200.0], 0.95);
        assert_eq!(middle("au_all_steps").unwrap().estimate, 125.0);
        assert!((middle("samples_per_second").unwrap().estimate - 100.0).abs() < 1e-9);
        assert_eq!(Response::find("duration_s").unwrap().middle(&[50.0], 0.95), None);
    }
}
