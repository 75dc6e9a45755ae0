//! `<rank>_output.json`: every step of one accelerator.

use super::{Evaluations, host, known};
use crate::derived::Derived;
use crate::metric::{block_au_percent, block_samples_per_second};
use crate::record::{AcceleratorEpoch, Block, EpochRecord};
use crate::window::{Scope, seconds};
use serde_json::{Value, json};

pub(super) fn output_json(derived: &Derived, evaluations: &Evaluations, rank: usize) -> Value {
    let record = derived.record;
    let node = record.machine_of(rank);
    let system = record.machines().get(node).unwrap_or(&record.system);
    let mut output = known(json!({
        "host_memory_GB": system.memory_bytes.map(host::gib),
        "host_cpu_count": host::cpu_count(system),
        "host_processor_name": system.processor,
        "potential_caching": host::potential_caching(derived, system),
        "host_cpuinfo": host::lines(&system.cpuinfo),
        "host_meminfo": host::lines(&system.meminfo),
    }));
    for scope in Scope::each(record) {
        if let Some(accelerator) = scope.epoch.accelerators.get(rank) {
            let mut own = epoch(scope, accelerator, node);
            let evaluation = evaluations.after(scope.epoch.number);
            let evaluation = evaluation.and_then(|evaluation| of_evaluation(evaluation, rank));
            let is_empty = evaluations.is_empty_after(scope.epoch.number);
            let empty = is_empty.then(|| [json!([]), json!([]), json!(0.0), json!(0.0), json!([])]);
            for (key, value) in KEYS.into_iter().zip(empty.or(evaluation).unwrap_or_default()) {
                if !value.is_null() {
                    own[key]["eval"] = value;
                }
            }
            output[scope.epoch.number.to_string()] = own;
        }
    }
    if !system.hostname.is_empty() {
        output["hostname"] = system.hostname.clone().into();
    }
    output
}

fn epoch(scope: Scope, accelerator: &AcceleratorEpoch, node: usize) -> Value {
    let EpochRecord { host, nodes, ended, .. } = scope.epoch;
    let machine = nodes.get(node).unwrap_or(host);
    let blocks = accelerator.blocks.iter();
    let windows = scope.windows(accelerator);
    let rates = windows.map(|window| block_samples_per_second(scope, window).map(Value::from));
    let au = scope.windows(accelerator).map(|window| block_au_percent(window).map(Value::from));
    known(json!({
        "load": by_block(blocks.clone().map(|block| Some(all_s(&block.load_ns)))),
        "proc": by_block(blocks.clone().map(|block| Some(proc_s(block)))),
        "throughput": by_block(rates),
        "au": by_block(au),
        "compute": by_block(blocks.map(|block| Some(all_s(&block.compute_ns)))),
        "host_meminfo": host::lines(&machine.meminfo),
        "end": ended,
    }))
}

/// Keys of an epoch that have an entry for each block, and `eval` for its evaluation.
const KEYS: [&str; 5] = ["load", "proc", "throughput", "au", "compute"];

/// Entries of an evaluation by these keys; `null` where they are not known.
fn of_evaluation(scope: Scope, rank: usize) -> Option<[Value; 5]> {
    let accelerator = scope.epoch.accelerators.get(rank)?;
    let (block, window) = (accelerator.blocks.first()?, scope.windows(accelerator).next()?);
    let batch_size = scope.plan.loader.batch_size as f64;
    let rate = scope.wall_s().map(|wall_s| block.steps() as f64 * batch_size / wall_s);
    Some([
        all_s(&block.load_ns),
        proc_s(block),
        json!(rate),
        json!(block_au_percent(window)),
        all_s(&block.compute_ns),
    ])
}

fn all_s(times_ns: &[u64]) -> Value {
    times_ns.iter().map(|&ns| seconds(ns)).collect()
}

/// DLIO's `proc` is load and compute together.
fn proc_s(block: &Block) -> Value {
    let times = block.load_ns.iter().zip(&block.compute_ns);
    times.map(|(load_ns, compute_ns)| seconds(load_ns + compute_ns)).collect()
}

/// `block1`, `block2`, …; a block without a value has no key.
fn by_block(values: impl Iterator<Item = Option<Value>>) -> Value {
    (1..).zip(values).filter_map(|(i, value)| Some((format!("block{i}"), value?))).collect()
}
