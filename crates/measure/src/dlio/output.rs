//! `<rank>_output.json`: every step of one accelerator.

use super::{Evaluations, Object, host};
use crate::derived::Derived;
use crate::metric::{block_au_percent, block_samples_per_second};
use crate::record::{AcceleratorEpoch, Block, EpochRecord};
use crate::window::{Scope, seconds};
use serde_json::Value;

pub(super) fn output_json(derived: &Derived, evaluations: &Evaluations, rank: usize) -> Value {
    let record = derived.record;
    let node = record.machine_of(rank);
    let system = record.machines().get(node).unwrap_or(&record.system);
    let mut output = Object::default();
    output.put_known("host_memory_GB", system.memory_bytes.map(host::gib));
    output.put_known("host_cpu_count", host::cpu_count(system));
    output.put_text("host_processor_name", &system.processor);
    output.put_known("potential_caching", host::potential_caching(derived, system));
    output.put_known("host_cpuinfo", host::lines(&system.cpuinfo));
    output.put_known("host_meminfo", host::lines(&system.meminfo));
    for scope in Scope::each(record) {
        if let Some(accelerator) = scope.epoch.accelerators.get(rank) {
            let mut object = epoch(scope, accelerator, node);
            if let Some(evaluation) = evaluations.after(scope.epoch.number) {
                add_evaluation(&mut object, evaluation, rank);
            }
            output.put(scope.epoch.number.to_string(), object);
        }
    }
    output.put_text("hostname", &system.hostname);
    output.into()
}

fn epoch(scope: Scope, accelerator: &AcceleratorEpoch, node: usize) -> Object {
    let EpochRecord { host, nodes, ended, .. } = scope.epoch;
    let machine = nodes.get(node).unwrap_or(host);
    let blocks = accelerator.blocks.iter();
    let windows = scope.windows(accelerator);
    let rates = windows.map(|window| block_samples_per_second(scope, window).map(Value::from));
    let au = scope.windows(accelerator).map(|window| block_au_percent(window).map(Value::from));
    let mut object = Object::default();
    object.put("load", by_block(blocks.clone().map(|block| Some(all_s(&block.load_ns)))));
    object.put("proc", by_block(blocks.clone().map(|block| Some(proc_s(block)))));
    object.put("throughput", by_block(rates));
    object.put("au", by_block(au));
    object.put("compute", by_block(blocks.map(|block| Some(all_s(&block.compute_ns)))));
    object.put_known("host_meminfo", host::lines(&machine.meminfo));
    object.put_text("end", ended);
    object
}

/// An entry `eval` beside those of the blocks.
fn add_evaluation(epoch: &mut Object, scope: Scope, rank: usize) {
    let Some(accelerator) = scope.epoch.accelerators.get(rank) else { return };
    let (Some(block), Some(window)) =
        (accelerator.blocks.first(), scope.windows(accelerator).next())
    else {
        return;
    };
    let batch_size = scope.plan.loader.batch_size as f64;
    let rate = scope.wall_s().map(|wall_s| block.steps() as f64 * batch_size / wall_s);
    for (key, value) in [
        ("load", Some(all_s(&block.load_ns))),
        ("proc", Some(proc_s(block))),
        ("throughput", rate.map(Value::from)),
        ("au", block_au_percent(window).map(Value::from)),
        ("compute", Some(all_s(&block.compute_ns))),
    ] {
        if let (Some(entries), Some(value)) = (epoch.0.get_mut(key), value) {
            entries["eval"] = value;
        }
    }
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
fn by_block(values: impl Iterator<Item = Option<Value>>) -> Object {
    (1..).zip(values).filter_map(|(i, value)| Some((format!("block{i}"), value?))).collect()
}
