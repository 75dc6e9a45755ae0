//! Invented runs and an invented state of a study for the tests of plots. Tests nothing itself.

use crate::draw::figure::Figure;
use crate::plot::data::Data;
use crate::plot::{Missing, Plot};
use feedrate_analysis::design::{DeclaredFactors, designs};
use feedrate_measure::doubt::{Bias, Doubt, Severity};
use feedrate_measure::example::simple;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, BARRIER_S, COMPUTE_S, DELIVERED_WHOLE, LOAD_S, Metric,
    Provenance, SAMPLES_WHOLE, STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ, Value,
};
use feedrate_measure::phase::{GpuPhase, Phase, PhaseKind};
use feedrate_measure::record::timeline::{GpuSample, Sample, Timeline};
use feedrate_measure::record::{CheckpointKind, CheckpointRecord, Record};
use feedrate_results::overview::{ModelCounts, Overview, StatusCounts};
use feedrate_results::run::{Activity, Run};

/// Processes, workers and format of a run.
pub(in crate::plot) type Setting<'a> = (f64, f64, &'a str);

/// The data of runs with their design.
pub(in crate::plot) fn data_of(runs: Vec<Run>) -> Data {
    let settings: Vec<_> = runs.iter().map(|run| &run.settings).collect();
    let designs = designs(&settings, &DeclaredFactors::default());
    Data { runs, designs, ..Data::default() }
}

/// Replicates of a design of processes, workers and formats, of a workload of this name.
pub(in crate::plot) fn runs(workload: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    for processes in [1.0, 2.0, 4.0, 8.0_f64] {
        for workers in [1.0, 4.0_f64] {
            for (format, factor) in [("npz", 1.0), ("hdf5", 2.7)] {
                for replicate in [0.0, 1.0, 2.0] {
                    let au = 90.0 / processes.sqrt() + replicate;
                    let rate = 3e6
                        * factor
                        * processes.powf(0.8)
                        * (1.0 + 0.01 * replicate + 0.1 * workers);
                    runs.push(run(workload, (processes, workers, format), au, rate));
                }
            }
        }
    }
    runs
}

pub(in crate::plot) fn set_metric(run: &mut Run, metric: &Metric, number: f64) {
    run.values.insert(metric.id, Value { number, provenance: Provenance::Measured });
}

pub(in crate::plot) fn run(workload: &str, setting: Setting, au: f64, rate: f64) -> Run {
    let (processes, workers, format) = setting;
    let settings = [
        ("workload", workload.to_string()),
        ("accelerators", processes.to_string()),
        ("loader.workers", workers.to_string()),
        ("dataset.format", format.to_string()),
        ("dataset.files_train", "64".into()),
    ];
    let phases = [
        (PhaseKind::Epoch, 0.0),
        (PhaseKind::BeforeCheckpoint, 0.0),
        (PhaseKind::Checkpoint, 2e8),
        (PhaseKind::AfterCheckpoint, 1e6),
    ];
    let doubt = Doubt {
        name: "too_few_steps".into(),
        severity: Severity::Warning,
        bias: Bias::Either,
        evidence: String::new(),
        advice: String::new(),
        facts: Facts::new(),
    };
    let mut run = Run {
        path: "results/a/1".into(),
        workload: workload.into(),
        accelerators: Some(processes as u32),
        activity: Activity::Training,
        steps: 40,
        settings: settings.map(|(key, value)| (key.to_string(), value)).into(),
        phases: phases.map(|(kind, written)| phase(kind, au, rate, written)).to_vec(),
        series: [(&AU_ALL_STEPS, au), (&SAMPLES_WHOLE, rate / 1e5)]
            .map(|(metric, middle)| {
                (metric.id, vec![Some(0.8 * middle), Some(middle), Some(middle)])
            })
            .into(),
        doubts: vec![doubt],
        record: Some(Box::new(record())),
        ..Run::default()
    };
    for (metric, number) in [
        (&AU_ALL_STEPS, au),
        (&AU_WINDOWED, au + 4.0),
        (&AU_SUSTAINED, au - 2.0),
        (&DELIVERED_WHOLE, rate),
        (&SAMPLES_WHOLE, rate / 1e6),
        (&COMPUTE_S, 1.0),
        (&LOAD_S, 0.95),
        (&STALL_OPEN, 0.1),
        (&STALL_READ, 0.6),
        (&STALL_DECODE, 0.2),
        (&STALL_QUEUE, 0.05),
        (&BARRIER_S, 0.05),
    ] {
        set_metric(&mut run, metric, number);
    }
    run
}

fn phase(phase: PhaseKind, au: f64, rate: f64, written: f64) -> Phase {
    let is_epoch = phase == PhaseKind::Epoch;
    let gpu = GpuPhase { utilisation_percent: Some(31.0), memory_bytes: None, power_w: None };
    Phase {
        phase,
        epoch: 1,
        checkpoint: (!is_epoch).then_some(CheckpointKind::Save),
        after_step: None,
        start_s: 0.0,
        duration_s: 1.0,
        steps: 10,
        steps_needed: None,
        shared_steps: 10.0,
        samples_per_second: Some(rate / 1e6),
        delivered_bytes_per_second: Some(rate),
        device_bytes_per_second: None,
        written_bytes: None,
        written_bytes_per_second: Some(written),
        device_written_bytes_per_second: None,
        au_percent: Some(au),
        stall_share: None,
        cpu_busy_share: None,
        gpus: Some(vec![gpu]),
    }
}

/// A timeline of four seconds with a checkpoint, and latencies of calls.
fn record() -> Record {
    let mut record = simple(&[(1000, 1000, 0, 1_000_000); 2]);
    let mut timeline = Timeline::new(0);
    timeline.set_gpus(&["a".into()]);
    for i in 0..40 {
        let written = if i == 20 { 100_000_000 } else { 0 };
        let sample = Sample {
            duration_ns: 100_000_000,
            read_bytes: Some(i % 7 * 1_000_000),
            written_bytes: Some(written),
            ..Sample::default()
        };
        let utilisation_percent = (i > 3).then_some(50);
        timeline.push(&sample, &[GpuSample { utilisation_percent, ..GpuSample::default() }]);
    }
    record.timeline = Some(timeline);
    let epoch = &mut record.epochs[0];
    let saved = feedrate_measure::example::checkpoint(2000, 2100, 100_000_000, 1);
    let loaded = CheckpointRecord { kind: CheckpointKind::Load, ..saved.clone() };
    epoch.checkpoints =
        vec![saved.clone(), CheckpointRecord { bytes: 2 * saved.bytes, ..saved }, loaded];
    let io = &mut epoch.accelerators[0].io;
    for latency in [&mut io.open_latency, &mut io.read_latency, &mut io.sample_latency] {
        for (ns, count) in [(10_000, 10), (100_000, 70), (2_000_000, 20), (500_000_000, 1)] {
            (0..count).for_each(|_| latency.record(ns));
        }
    }
    record
}

fn overview(models: &[&str]) -> Overview {
    let counts = StatusCounts { done: 3, running: 1, pending: 2, failed: 1 };
    let cell = |model: &str, processes| ModelCounts { model: model.into(), processes, counts };
    let matrix = models.iter().flat_map(|model| [1, 2, 4].map(|processes| cell(model, processes)));
    Overview { counts, done_elsewhere: 0, factors: Vec::new(), matrix: matrix.collect() }
}

/// Data for a plot of these runs: one run for a timeline, one number of processes if there would be too many lines.
pub(in crate::plot) fn data_for(plot: &Plot, workload: &str) -> Data {
    let mut runs = runs(workload);
    match plot.name {
        "timeline" | "checkpoint_rates" => runs.truncate(1),
        "latency" | "phases" => runs.retain(|run| run.accelerators == Some(2)),
        _ => {}
    }
    let overview = Some(overview(&[workload, "cosmoflow_h100"]));
    let diagnoses = vec![crate::ceilings::example(workload)];
    Data { overview, diagnoses, ..data_of(runs) }
}

pub(in crate::plot) fn figure(plot: &Plot, data: &Data) -> Result<Figure, Missing> {
    plot.figure(data, None)
}

/// A baseline of 2 processes, 1 worker, npz, and one run that differs in each; png on 8 processes alone.
pub(in crate::plot) fn one_at_a_time() -> Vec<Run> {
    let mut runs = Vec::new();
    for (setting, rate) in [
        ((2.0, 1.0, "npz"), 10e6),
        ((2.0, 4.0, "npz"), 20e6),
        ((2.0, 1.0, "hdf5"), 30e6),
        ((4.0, 1.0, "npz"), 40e6),
        ((8.0, 1.0, "png"), 900e6),
    ] {
        runs.push(run("a", setting, 50.0, rate));
    }
    runs
}
