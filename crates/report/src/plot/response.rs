//! The axes of responses and of processes. Draws nothing.

use super::block::PROCESSES_LABEL;
use super::data::{Data, processes};
use crate::draw::figure::{Axis, Range, Scale};
use feedrate_measure::metric::Provenance;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_results::run::Run;

/// An axis with a unit, and what values are divided by.
pub(super) struct ResponseAxis<'r> {
    pub(super) response: &'r Metric,
    pub(super) axis: Axis,
    pub(super) unit: f64,
}

impl<'r> ResponseAxis<'r> {
    pub(super) fn new(response: &'r Metric, data: &Data) -> Self {
        let largest = data.used().filter_map(|run| run.metric(response)).fold(0.0, f64::max);
        let (unit, name) = match response.unit {
            Unit::Percent => (1.0, "%".into()),
            Unit::SamplesPerSecond => (1.0, "samples/s".into()),
            Unit::Seconds => (1.0, "s".into()),
            Unit::BytesPerSecond | Unit::Bytes => {
                let (unit, name) = bytes_unit(largest);
                let each = if response.unit == Unit::Bytes { "" } else { "/s" };
                (unit, format!("{name}{each}"))
            }
            Unit::Files | Unit::Share | Unit::Ratio => (1.0, String::new()),
        };
        let estimated = estimated(response, data.used());
        let is_au = response.id.name().starts_with("au_");
        let range = if is_au { Range::AtLeast(0.0, 100.0) } else { Range::FromZero };
        let axis = Axis::linear(label(title(response), &name, estimated), range);
        ResponseAxis { response, axis, unit }
    }
}

/// The label of an axis: its name, with the unit and whether values are estimated in brackets.
pub(super) fn label(name: &str, unit: &str, estimated: &str) -> String {
    match (unit, estimated) {
        ("", "") => name.into(),
        (note, "") | ("", note) => format!("{name} ({note})"),
        _ => format!("{name} ({unit}, {estimated})"),
    }
}

/// The word for values of a response that were not measured but estimated; empty where none is.
pub(super) fn estimated<'r>(
    response: &Metric,
    runs: impl Iterator<Item = &'r Run>,
) -> &'static str {
    let all: Vec<bool> = runs
        .filter_map(|run| run.provenance(response))
        .map(|of| of == Provenance::Estimated)
        .collect();
    match (all.contains(&true), all.contains(&false)) {
        (true, false) => "estimated",
        (true, true) => "partly estimated",
        (false, _) => "",
    }
}

/// Whether an axis shows values that are estimated.
pub(super) fn is_estimated(axis: &Axis) -> bool {
    axis.label.ends_with("estimated)")
}

/// The name of a response on an axis.
pub(super) fn title(response: &Metric) -> &'static str {
    match response.id.name() {
        "au_all_steps_percent" => "AU, all steps",
        "au_windowed_percent" => "AU, windowed",
        "au_sustained_percent" => "AU, sustained",
        "samples_per_second" | "delivered_bytes_per_second" => "Throughput",
        "nominal_bytes_per_second" => "Nominal throughput",
        "stall_percent" => "Stall",
        "duration_s" => "Duration",
        _ => response.title,
    }
}

/// The kind of mean that the marks of a response are: see [`Metric::middle`].
pub(super) fn means(response: &Metric) -> &'static str {
    if response.unit == Unit::Percent { "means" } else { "geometric means" }
}

/// A unit in which the largest value has few digits: (bytes, name).
pub(super) fn bytes_unit(largest: f64) -> (f64, &'static str) {
    match largest {
        _ if largest >= 2e9 => (1e9, "GB"),
        _ if largest >= 2e6 => (1e6, "MB"),
        _ if largest >= 2e3 => (1e3, "kB"),
        _ => (1.0, "B"),
    }
}

/// An axis of the numbers of processes that runs had: even where the closest two are a sixteenth of it apart, so that their names have room.
pub(super) fn processes_axis(data: &Data) -> Axis {
    let numbers = numbers_of_processes(data);
    let closest = numbers.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let range = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
    let scale = if range <= 16.0 * closest { Scale::LinearAt } else { Scale::LogAt };
    Axis { label: PROCESSES_LABEL.into(), scale: scale(numbers), range: Range::Tight }
}

/// Ascending.
pub(super) fn numbers_of_processes(data: &Data) -> Vec<f64> {
    let mut numbers: Vec<f64> = data.used().filter_map(processes).map(f64::from).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}
