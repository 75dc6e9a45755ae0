//! Plots AU and throughput by epoch, and AU, throughput, bandwidth and GPU use by phase: epochs, evaluations, and around checkpoints.

use super::caption::intervals;
use super::data::{Data, samples};
use super::response::{MB, MB_PER_SECOND, VISIBLE_SHARE_MIN, estimate_note, label};
use super::together::{self, SharedMark};
use super::{Missing, Needs, Plot, epochs};
use crate::draw::figure::{
    Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Series, Spread, Style, Tone,
};
use feedrate_analysis::estimate::unweighted_mean;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::metric::DELIVERED_WHOLE;
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::CheckpointKind;
use feedrate_measure::stats::{self, Cell};
use feedrate_results::import::RunOrigin;
use feedrate_results::run::Run;

pub(super) static PLOT: Plot = Plot {
    name: "phases",
    aliases: &["by_epoch"],
    summary: "AU and throughput by epoch, with a line for each experiment (above seven, for each workload); and AU, throughput, bandwidth and GPU use in epochs, evaluations, and before, during and after checkpoints; for DLIO's results in epochs, first and later steps",
    needs: Needs::Summaries,
    responses: &[],
    has_factor_panels: false,
    make: |data, _| figure(data),
};

/// Headings of a phase's numbers: percentages, samples per second and bytes per second.
const COLUMNS: [&str; 6] = ["AU (%)", SAMPLES, READ, "Read from the device", "Written", GPUS];

/// The last column whose values the panels by epoch show.
const EPOCHS_UNTIL: usize = 2;

/// The columns of bytes per second.
const RATES: [usize; 3] = [2, 3, 4];

const SAMPLES: &str = "Throughput (samples/s)";

const READ: &str = "Read";

const GPUS: &str = "GPU use (%)";

/// Note on the use of GPUs in runs without devices.
pub(crate) const GPUS_OF_OTHERS: &str =
    "Computing was emulated by waiting, so any GPU use is by other programs";

/// The numbers of a phase.
struct PhaseNumbers {
    /// `epoch`, `before save`.
    name: String,
    /// By [`COLUMNS`]; GPU use is the mean over the machine's GPUs.
    values: [Option<f64>; COLUMNS.len()],
}

fn figure(data: &Data) -> Result<Figure, Missing> {
    let blocks = data.blocks();
    let marks = SharedMark::all(&blocks);
    let runs = marks.iter().flat_map(|mark| mark.experiments.iter().flatten());
    let all: Vec<PhaseNumbers> = runs.flat_map(|run| phases(run)).collect();
    let mut names: Vec<String> = Vec::new();
    for phase in &all {
        if !names.contains(&phase.name) {
            names.push(phase.name.clone());
        }
    }
    let estimated = estimate_note(&DELIVERED_WHOLE, data.used());
    let is_alone = matches!(marks.as_slice(), [mark] if mark.experiments.len() == 1);
    let mut panels = epochs::panels(data, &marks);
    let has_epochs = !panels.is_empty();
    let largest = |column: usize| {
        all.iter().filter_map(|phase| phase.values[column]).reduce(f64::max).unwrap_or(0.0)
    };
    let fastest = RATES.map(largest).into_iter().fold(0.0, f64::max);
    let mut columns = 0;
    for (column, heading) in COLUMNS.into_iter().enumerate() {
        let is_unknown = all.iter().all(|phase| phase.values[column].is_none());
        // A run that only reads also writes its few results.
        let is_negligible =
            RATES.contains(&column) && largest(column) < VISIBLE_SHARE_MIN * fastest;
        // The panels by epoch show the same.
        let is_repeated =
            has_epochs && column <= EPOCHS_UNTIL && names == [PhaseKind::Epoch.name()];
        if is_unknown || is_negligible || is_repeated {
            continue;
        }
        let has_value = |name: &&String| {
            all.iter().any(|phase| phase.name == **name && phase.values[column].is_some())
        };
        let names: Vec<String> = names.iter().filter(has_value).cloned().collect();
        columns += 1;
        let (x, unit) = axis(heading, estimated);
        for group in together::groups(&marks) {
            let layers = group.iter().enumerate();
            let layers = layers.flat_map(|(i, mark)| {
                mark_layers(mark, Tone::Hue(i), &names, is_alone, column, unit)
            });
            let y = Axis::categories("", names.clone());
            let axes = Axes { x: x.clone(), y, layers: layers.collect(), aspect: 1.0 };
            panels.push(Panel::from_axes(together::title(&marks, group), axes));
        }
    }
    if panels.is_empty() {
        return Err(Missing::new(
            "no run has epochs or phases",
            "runs of feedrate have them, as do results of DLIO with the times of steps and blocks",
        ));
    }
    let mut caption = caption(&marks, &names, has_epochs);
    caption += &if has_epochs {
        intervals(&panels, "means (of throughput by epoch, geometric means)")
    } else {
        intervals(&panels, "means")
    };
    if all.iter().all(|phase| phase.values[COLUMNS.len() - 1].is_none()) {
        caption.push_str(" No GPU was found.");
    } else if !data.used().any(|run| run.computes_on_devices) {
        caption += &format!(" {GPUS_OF_OTHERS}.");
    }
    let columns = match columns {
        _ if has_epochs => 2,
        5 | 6 => 3,
        fewer => fewer,
    };
    Ok(Figure { title: "Epochs and phases".into(), caption, panels, columns })
}

/// The axis of a column, and the divisor of its values.
fn axis(heading: &str, estimated: &str) -> (Axis, f64) {
    if heading.ends_with("(%)") {
        return (Axis::linear(heading, AxisRange::AtLeast(0.0, 100.0)), 1.0);
    }
    if heading == SAMPLES {
        return (Axis::linear(heading, AxisRange::FromZero), 1.0);
    }
    let estimated = if heading == READ { estimated } else { "" };
    let axis = Axis::linear(label(heading, MB_PER_SECOND, estimated), AxisRange::FromZero);
    (Axis { is_estimated: !estimated.is_empty(), ..axis }, MB)
}

fn caption(marks: &[SharedMark], names: &[String], has_epochs: bool) -> String {
    let by_epoch = if has_epochs { "AU and throughput by epoch. " } else { "" };
    let mut caption = format!(
        "{by_epoch}AU, throughput, bandwidth and GPU use by phase. A run counts as the mean of its phases"
    );
    caption += match marks {
        [mark] if mark.experiments.len() == 1 => ", which are the small dots. ",
        _ => ". ",
    };
    caption += together::caption(marks);
    caption.push_str("Phases in which nothing was computed, read or written have no mark. ");
    if names.iter().any(|name| name == FIRST) {
        caption.push_str("First and later steps of each block do not include the barrier, as DLIO's results do not show when it was. ");
    }
    caption
}

/// The means of experiments. If there is a single experiment, also its single phases.
fn mark_layers(
    mark: &SharedMark,
    tone: Tone,
    names: &[String],
    is_alone: bool,
    column: usize,
    unit: f64,
) -> Vec<Layer> {
    let mut dots = Vec::new();
    let mut means = Vec::new();
    for (row, name) in names.iter().enumerate() {
        let y = row as f64;
        let values_of = |run: &Run| -> Vec<f64> {
            let named = phases(run).into_iter().filter(|phase| phase.name == *name);
            named.filter_map(|phase| Some(phase.values[column]? / unit)).collect()
        };
        if is_alone {
            let all = mark.experiments.iter().flatten().flat_map(|run| values_of(run));
            dots.extend(all.map(|value| Point::new(value, y)));
        }
        let cells = mark.values(|run| stats::mean(&values_of(run))).into_iter();
        let cells: Vec<Cell> = cells.map(|values| Cell { levels: Vec::new(), values }).collect();
        if cells.is_empty() {
            continue;
        }
        let (mean, noise) = unweighted_mean(&cells);
        let interval = noise.and_then(|noise| noise.interval(CONFIDENCE));
        means.push(Point {
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            runs: Some(cells.iter().map(|cell| cell.values.len()).sum()),
            ..Point::new(mean, y)
        });
    }
    let all = [("", Style::Dots, dots), (&mark.label, Style::Marks, means)].into_iter();
    let drawn = all.filter(|(.., points)| !points.is_empty());
    let series = drawn.map(|(label, style, points)| {
        let label = label.to_string();
        Layer::Series(Series { label, tone, style, spread: Spread::X, points })
    });
    series.collect()
}

fn phases(run: &Run) -> Vec<PhaseNumbers> {
    match run.origin {
        RunOrigin::Feedrate => run.phases.iter().map(recorded_phase).collect(),
        RunOrigin::Dlio | RunOrigin::MlperfStorage => recomputed_phases(run),
    }
}

/// The numbers of a phase in a record. A phase without compute, reads or writes lacks the respective rate.
fn recorded_phase(phase: &Phase) -> PhaseNumbers {
    let kind = phase.phase.name();
    let name = match phase.checkpoint.map(CheckpointKind::name) {
        Some(done) => kind.replace("checkpoint", done).replace('_', " "),
        None => kind.into(),
    };
    let rates = [
        phase.au_percent,
        phase.samples_per_second,
        phase.delivered_bytes_per_second,
        phase.device_bytes_per_second,
        phase.written_bytes_per_second,
    ];
    let [au, samples, read, device, written] = rates.map(|rate| rate.filter(|rate| *rate > 0.0));
    PhaseNumbers { name, values: [au, samples, read, device, written, phase.gpu_percent()] }
}

const FIRST: &str = "first steps";

/// Each epoch, and the first step and the later steps of its blocks. The barrier is excluded, because DLIO does not record its time.
fn recomputed_phases(run: &Run) -> Vec<PhaseNumbers> {
    let mut all = Vec::new();
    for phase in &run.phases {
        if !matches!(phase.phase, PhaseKind::Epoch | PhaseKind::Evaluation) {
            continue;
        }
        let is_rate_known = phase.phase == PhaseKind::Epoch && phase.duration_s > 0.0;
        let size = if is_rate_known { run.mean_sample_bytes } else { None };
        let bytes = size.zip(samples(run, phase.steps));
        let read = bytes.map(|(size, samples)| size * samples / phase.duration_s);
        let values = [phase.au_percent, phase.samples_per_second, read, None, None, None];
        all.push(PhaseNumbers { name: phase.phase.name().into(), values });
    }
    let times = &run.step_times;
    for (first, later) in times.first_au_percent.iter().zip(&times.later_au_percent) {
        for (name, au_percent) in [(FIRST, *first), ("later steps", *later)] {
            if au_percent.is_some() {
                let values = [au_percent, None, None, None, None, None];
                all.push(PhaseNumbers { name: name.into(), values });
            }
        }
    }
    all
}
