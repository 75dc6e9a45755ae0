//! One run of what hosts made of it each for itself. In MLPerf Storage 0.5 a run on several hosts leaves a folder of each, as if each were a run: they begin
//! together, wait for none of the others, and their rates add up.

use crate::run::{ACCELERATORS, DatasetUse, Run, StepTimeSummary, grouped};
use feedrate_measure::doubt::Doubt;
use feedrate_measure::metric::{METRICS, MetricId, Unit, Value};
use feedrate_measure::stats::mean;
use std::collections::BTreeSet;
use std::path::Path;

/// Put one run in the place of the folders of its hosts, below `closed|open/…/RUN/HOST`; and where each run is after that.
pub(super) fn join(runs: &mut Vec<Run>) -> Vec<usize> {
    let parts = grouped(
        runs,
        |run| run.submission.is_some() && run.is_result() && !run.is_own(),
        |run| (run.path.parent().map(Path::to_path_buf), run.epochs, run.steps),
    );
    // The place of the run that each belongs to.
    let mut heads: Vec<usize> = (0..runs.len()).collect();
    for members in parts.into_values().collect::<Vec<_>>() {
        let parts: Vec<&Run> = members.iter().map(|&index| &runs[index]).collect();
        if is_one(&parts) {
            let joined = joined(&parts);
            members.iter().for_each(|&index| heads[index] = members[0]);
            runs[members[0]] = joined;
        }
    }
    let (mut places, mut count) = (vec![0; runs.len()], 0);
    for index in 0..runs.len() {
        if heads[index] == index {
            (places[index], count) = (count, count + 1);
        } else {
            places[index] = places[heads[index]];
        }
    }
    let mut index = 0..;
    runs.retain(|_| index.next().is_some_and(|index| heads[index] == index));
    places
}

/// Whether different hosts ran at the same time.
fn is_one(parts: &[&Run]) -> bool {
    let hosts: BTreeSet<_> = parts.iter().filter_map(|run| run.hostname.as_deref()).collect();
    let times = parts.iter().map(|run| run.dataset_use.started_us.zip(run.dataset_use.ended_us));
    let (starts, ends): (Vec<i64>, Vec<i64>) =
        times.collect::<Option<Vec<_>>>().unwrap_or_default().into_iter().unzip();
    1 < parts.len() && hosts.len() == parts.len() && starts.iter().max() < ends.iter().min()
}

/// A value of each host's part; `None` where one does not tell.
fn of_all(parts: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Option<Vec<f64>> {
    parts.iter().map(|part| value(part)).collect()
}

fn mean_of(parts: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    mean(&of_all(parts, value)?)
}

/// The value of a metric that hosts have together.
fn combined(id: MetricId, of: Option<Vec<f64>>) -> Option<f64> {
    match METRICS.iter().find(|metric| metric.id == id)?.unit {
        Unit::SamplesPerSecond | Unit::BytesPerSecond => Some(of?.iter().sum()),
        Unit::Bytes | Unit::Files => None,
        _ => mean(&of?),
    }
}

/// Rates of hosts add up, percentages and times are their mean. What only one host could tell of all is not known.
fn joined(parts: &[&Run]) -> Run {
    let first = parts[0];
    let values = first.values.iter().filter_map(|(&id, own)| {
        let number = combined(id, of_all(parts, |part| Some(part.values.get(&id)?.number)))?;
        Some((id, Value { number, ..*own }))
    });
    let series = first.series.iter().map(|(&id, own)| {
        let epochs = (0..own.len())
            .map(|at| combined(id, of_all(parts, |part| *part.series.get(&id)?.get(at)?)));
        (id, epochs.collect())
    });
    let reported = first.reported.keys().filter(|name| !name.contains("_stdev_"));
    let reported = reported.filter_map(|name| {
        let of = of_all(parts, |part| part.reported.get(name).copied())?;
        let number = if name.ends_with("_per_second") { of.iter().sum() } else { mean(&of)? };
        Some((name.clone(), number))
    });
    let memory = parts.iter().map(|part| part.memory_bytes).sum::<Option<u64>>();
    let accelerators = parts.iter().map(|part| part.accelerators).sum::<Option<u32>>();
    // A host may have lost its config.
    let fullest = parts.iter().max_by_key(|part| part.settings.len()).unwrap_or(&parts[0]);
    let mut settings = fullest.settings.clone();
    if let Some(accelerators) = accelerators {
        settings.insert(ACCELERATORS.into(), accelerators.to_string());
    }
    Run {
        path: first.path.parent().map_or_else(|| first.path.clone(), Path::to_path_buf),
        parts: parts.iter().map(|part| part.path.clone()).collect(),
        hosts: Some(parts.len() as u64),
        machines: parts.iter().flat_map(|part| part.machines.clone()).collect(),
        memory_bytes: memory,
        dataset_use: DatasetUse { memory_bytes: memory, ..first.dataset_use.clone() },
        accelerators,
        read_threads: fullest.read_threads,
        overrides: fullest.overrides.clone(),
        value: match (&*first.parameter, accelerators) {
            ("processes", Some(accelerators)) => accelerators.to_string(),
            _ => first.value.clone(),
        },
        settings,
        values: values.collect(),
        series: series.collect(),
        reported: reported.collect(),
        step_times: StepTimeSummary {
            load_s_per_step: mean_of(parts, |part| part.step_times.load_s_per_step),
            compute_s_per_step: mean_of(parts, |part| part.step_times.compute_s_per_step),
            load_percent: mean_of(parts, |part| part.step_times.load_percent),
            excluded_percent: mean_of(parts, |part| part.step_times.excluded_percent),
            barrier_percent: mean_of(parts, |part| part.step_times.barrier_percent),
            first_step_s: mean_of(parts, |part| part.step_times.first_step_s),
            ..StepTimeSummary::default()
        },
        phases: Vec::new(),
        doubts: doubts_of(parts),
        record: None,
        ..first.clone()
    }
}

/// Each once, as the first host that deserves it has it.
fn doubts_of(parts: &[&Run]) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for doubt in parts.iter().flat_map(|part| &part.doubts) {
        if doubts.iter().all(|other| other.name != doubt.name) {
            doubts.push(doubt.clone());
        }
    }
    doubts
}
