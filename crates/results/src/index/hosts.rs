//! Joins the folders of hosts that executed one run together. In MLPerf Storage 0.5, each host of a run writes a separate folder. The hosts start
//! together and do not wait for each other, and their rates add up.

use crate::run::{ACCELERATORS, DatasetUse, Run, StepTimeSummary, group_runs};
use feedrate_measure::doubt::Doubt;
use feedrate_measure::metric::{METRICS, MetricId, Unit, Value};
use feedrate_measure::stats::mean;
use std::collections::BTreeSet;
use std::path::Path;

/// Replaces the runs of hosts, in folders `closed|open/…/RUN/HOST`, by one joined run. Returns the new index of each run.
pub(super) fn join(runs: &mut Vec<Run>) -> Vec<usize> {
    let groups = group_runs(
        runs,
        |run| run.submission.is_some() && run.is_result() && !run.is_from_feedrate(),
        |run| (run.path.parent().map(Path::to_path_buf), run.epochs, run.steps),
    );
    // For each run, the index of the first run of its group.
    let mut heads: Vec<usize> = (0..runs.len()).collect();
    for members in groups.into_values().collect::<Vec<_>>() {
        let parts: Vec<&Run> = members.iter().map(|&index| &runs[index]).collect();
        if are_simultaneous(&parts) {
            let joined = join_parts(&parts);
            members.iter().for_each(|&index| heads[index] = members[0]);
            runs[members[0]] = joined;
        }
    }
    let mut new_indices = vec![0; runs.len()];
    let mut count = 0;
    for index in 0..runs.len() {
        if heads[index] == index {
            new_indices[index] = count;
            count += 1;
        } else {
            new_indices[index] = new_indices[heads[index]];
        }
    }
    let mut indices = 0..;
    runs.retain(|_| indices.next().is_some_and(|index| heads[index] == index));
    new_indices
}

/// Returns whether the runs are from different hosts and overlap in time.
fn are_simultaneous(parts: &[&Run]) -> bool {
    let hosts: BTreeSet<_> = parts.iter().filter_map(|run| run.hostname.as_deref()).collect();
    let times = parts.iter().map(|run| run.dataset_use.started_us.zip(run.dataset_use.ended_us));
    let (starts, ends): (Vec<i64>, Vec<i64>) =
        times.collect::<Option<Vec<_>>>().unwrap_or_default().into_iter().unzip();
    1 < parts.len() && hosts.len() == parts.len() && starts.iter().max() < ends.iter().min()
}

/// Returns the value of each host; `None` if a host lacks it.
fn host_values(parts: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Option<Vec<f64>> {
    parts.iter().map(|part| value(part)).collect()
}

fn host_mean(parts: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    mean(&host_values(parts, value)?)
}

/// Combines the hosts' values of a metric: rates are summed, sizes are left out, other values are averaged.
fn combine(id: MetricId, values: Option<Vec<f64>>) -> Option<f64> {
    match METRICS.iter().find(|metric| metric.id == id)?.unit {
        Unit::SamplesPerSecond | Unit::BytesPerSecond => Some(values?.iter().sum()),
        Unit::Bytes | Unit::Files => None,
        _ => mean(&values?),
    }
}

/// Joins the runs of hosts into one run.
fn join_parts(parts: &[&Run]) -> Run {
    let first = parts[0];
    let values = first.values.iter().filter_map(|(&id, value)| {
        let numbers = host_values(parts, |part| Some(part.values.get(&id)?.number));
        Some((id, Value { number: combine(id, numbers)?, ..*value }))
    });
    let series = first.series.iter().map(|(&id, epochs)| {
        let joined_epochs = (0..epochs.len()).map(|epoch| {
            combine(id, host_values(parts, |part| *part.series.get(&id)?.get(epoch)?))
        });
        (id, joined_epochs.collect())
    });
    let reported_names = first.reported.keys().filter(|name| !name.contains("_stdev_"));
    let reported = reported_names.filter_map(|name| {
        let numbers = host_values(parts, |part| part.reported.get(name).copied())?;
        let is_rate = name.ends_with("_per_second");
        let number = if is_rate { numbers.iter().sum() } else { mean(&numbers)? };
        Some((name.clone(), number))
    });
    let memory_bytes = parts.iter().map(|part| part.memory_bytes).sum::<Option<u64>>();
    let accelerators = parts.iter().map(|part| part.accelerators).sum::<Option<u32>>();
    // The config of some hosts may be missing.
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
        memory_bytes,
        memory_bytes_max: None,
        dataset_use: DatasetUse { memory_bytes, ..first.dataset_use.clone() },
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
            load_s_per_step: host_mean(parts, |part| part.step_times.load_s_per_step),
            compute_s_per_step: host_mean(parts, |part| part.step_times.compute_s_per_step),
            load_percent: host_mean(parts, |part| part.step_times.load_percent),
            excluded_percent: host_mean(parts, |part| part.step_times.excluded_percent),
            barrier_percent: host_mean(parts, |part| part.step_times.barrier_percent),
            first_step_s: host_mean(parts, |part| part.step_times.first_step_s),
            ..StepTimeSummary::default()
        },
        phases: Vec::new(),
        doubts: join_doubts(parts),
        record: None,
        ..first.clone()
    }
}

/// Returns the doubts of all hosts. Of several doubts with the same name, the doubt of the first host is kept.
fn join_doubts(parts: &[&Run]) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for doubt in parts.iter().flat_map(|part| &part.doubts) {
        if doubts.iter().all(|other| other.name != doubt.name) {
            doubts.push(doubt.clone());
        }
    }
    doubts
}
