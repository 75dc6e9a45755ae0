//! `<rank>_output.json`: the times of every step of one accelerator.

use super::{Evaluations, host, to_value, without_unknown};
use crate::derived::Derived;
use crate::metric::{block_au_percent, block_samples_per_second};
use crate::record::{AcceleratorEpoch, Block, EpochRecord};
use crate::window::{Scope, seconds};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
#[expect(non_snake_case, reason = "DLIO's keys")]
struct OutputHead<'a> {
    host_memory_GB: Option<f64>,
    host_cpu_count: Option<u32>,
    host_processor_name: &'a str,
    potential_caching: Option<u64>,
    host_cpuinfo: Option<Value>,
    host_meminfo: Option<Value>,
}

#[derive(Serialize)]
struct OutputEpoch {
    load: Value,
    proc: Value,
    throughput: Value,
    au: Value,
    compute: Value,
    host_meminfo: Option<Value>,
    end: String,
}

pub(super) fn output_json(derived: &Derived, evaluations: &Evaluations, rank: usize) -> Value {
    let record = derived.record;
    let machine_index = record.machine_of(rank);
    let system = record.machines().get(machine_index).unwrap_or(&record.system);
    let mut output = without_unknown(OutputHead {
        host_memory_GB: system.memory_bytes.map(host::gib),
        host_cpu_count: host::cpu_count(system),
        host_processor_name: &system.processor,
        potential_caching: host::potential_caching(derived, system),
        host_cpuinfo: host::proc_object(&system.cpuinfo),
        host_meminfo: host::proc_object(&system.meminfo),
    });
    for scope in Scope::all_epochs(record) {
        if let Some(accelerator) = scope.epoch.accelerators.get(rank) {
            let mut entry =
                epoch_entry(scope, accelerator, machine_index, evaluations.end_after(scope.epoch));
            let evaluation = if evaluations.is_empty_after(scope.epoch.number) {
                let empty = Value::Array(Vec::new());
                Some([empty.clone(), empty.clone(), 0.0.into(), 0.0.into(), empty])
            } else {
                let evaluation = evaluations.after(scope.epoch.number);
                evaluation.and_then(|evaluation| evaluation_values(evaluation, rank))
            };
            for (key, value) in KEYS.into_iter().zip(evaluation.unwrap_or_default()) {
                if !value.is_null() {
                    entry[key]["eval"] = value;
                }
            }
            output[scope.epoch.number.to_string()] = entry;
        }
    }
    if !system.hostname.is_empty() {
        output["hostname"] = system.hostname.clone().into();
    }
    output
}

fn epoch_entry(
    scope: Scope,
    accelerator: &AcceleratorEpoch,
    machine_index: usize,
    end: String,
) -> Value {
    let EpochRecord { host, nodes, .. } = scope.epoch;
    let machine = nodes.get(machine_index).unwrap_or(host);
    let blocks = accelerator.blocks.iter();
    let windows = scope.windows(accelerator);
    let rates = windows.map(|window| block_samples_per_second(scope, window).map(Value::from));
    let au = scope.windows(accelerator).map(|window| block_au_percent(window).map(Value::from));
    without_unknown(OutputEpoch {
        load: object_of_blocks(blocks.clone().map(|block| Some(list_of_seconds(&block.load_ns)))),
        proc: object_of_blocks(blocks.clone().map(|block| Some(processing_seconds(block)))),
        throughput: object_of_blocks(rates),
        au: object_of_blocks(au),
        compute: object_of_blocks(blocks.map(|block| Some(list_of_seconds(&block.compute_ns)))),
        host_meminfo: host::proc_object(&machine.meminfo),
        end,
    })
}

/// Keys of an epoch whose objects have an entry for each block and, as `eval`, one for the evaluation.
const KEYS: [&str; 5] = ["load", "proc", "throughput", "au", "compute"];

/// Values of an evaluation in the order of [`KEYS`]; `null` if unknown.
fn evaluation_values(scope: Scope, rank: usize) -> Option<[Value; 5]> {
    let accelerator = scope.epoch.accelerators.get(rank)?;
    let block = accelerator.blocks.first()?;
    let window = scope.windows(accelerator).next()?;
    let batch_size = scope.plan.loader.batch_size as f64;
    let rate = scope.wall_s().map(|wall_s| block.steps() as f64 * batch_size / wall_s);
    Some([
        list_of_seconds(&block.load_ns),
        processing_seconds(block),
        to_value(rate),
        to_value(block_au_percent(window)),
        list_of_seconds(&block.compute_ns),
    ])
}

fn list_of_seconds(times_ns: &[u64]) -> Value {
    times_ns.iter().map(|&ns| seconds(ns)).collect()
}

/// Load plus compute time of each step, which DLIO calls `proc`.
fn processing_seconds(block: &Block) -> Value {
    let times = block.load_ns.iter().zip(&block.compute_ns);
    times.map(|(load_ns, compute_ns)| seconds(load_ns + compute_ns)).collect()
}

/// An object with the keys `block1`, `block2` and so on; blocks without a value are omitted.
fn object_of_blocks(values: impl Iterator<Item = Option<Value>>) -> Value {
    (1..).zip(values).filter_map(|(i, value)| Some((format!("block{i}"), value?))).collect()
}
