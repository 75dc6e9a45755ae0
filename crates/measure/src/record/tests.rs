//! Tests of small methods of records.

use super::*;
use crate::example::{checkpoint, epoch, plan, record, simple};

fn process(node: u32, accelerators: u32) -> Process {
    Process { node, id: 1, accelerators, clock_offset_ns: 0, clock_error_ns: 0 }
}

#[test]
fn an_accelerator_is_on_the_machine_of_its_process() {
    let mut record = simple(&[(1, 1, 1, 1)]);
    for (processes, accelerator, expected) in [
        (vec![], 0, 0),
        (vec![process(0, 2), process(1, 2)], 1, 0),
        (vec![process(0, 2), process(1, 2)], 2, 1),
        (vec![process(1, 1), process(0, 1)], 0, 1),
        (vec![process(0, 1), process(2, 3)], 3, 2),
        (vec![process(1, 1)], 9, 0),
    ] {
        record.processes = processes;
        assert_eq!(record.machine_of(accelerator), expected, "{:?}", record.processes);
    }
}

#[test]
fn machines_are_the_nodes_or_the_single_system() {
    let mut record = simple(&[(1, 1, 1, 1)]);
    assert_eq!(record.machines()[0].hostname, "node1");
    let named = |name: &str| System { hostname: name.into(), ..System::default() };
    record.nodes = vec![named("a"), named("b")];
    let names: Vec<&str> =
        record.machines().iter().map(|machine| machine.hostname.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn all_cpus_are_the_online_cpus_if_known() {
    for (cpus, cpus_online, expected) in [(4, None, 4), (4, Some(16), 16), (0, None, 0)] {
        assert_eq!(System { cpus, cpus_online, ..System::default() }.all_cpus(), expected);
    }
}

#[test]
fn without_evaluations_there_is_no_evaluation_record() {
    let mut record = simple(&[(1, 1, 1, 1)]);
    assert_eq!(record.evaluation_record(), None);
    // The record has an evaluation, but the plan has none.
    record.evaluations = vec![record.epochs[0].clone()];
    assert_eq!(record.evaluation_record(), None);
}

#[test]
fn checkpoints_are_filtered_by_kind() {
    let mut first = epoch(1, vec![]);
    let load = CheckpointRecord { kind: CheckpointKind::Load, ..checkpoint(30, 40, 2, 0) };
    first.checkpoints = vec![checkpoint(0, 10, 1, 0), load, checkpoint(50, 60, 3, 0)];
    let record = record(plan(1, 1), vec![first.clone(), first]);
    for (kind, expected) in
        [(CheckpointKind::Save, vec![1, 3, 1, 3]), (CheckpointKind::Load, vec![2, 2])]
    {
        let bytes: Vec<u64> =
            record.checkpoints_of(kind).map(|checkpoint| checkpoint.bytes).collect();
        assert_eq!(bytes, expected);
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn a_checkpoint_has_a_duration_a_stall_and_a_rate() {
    for (start_ms, end_ms, stall_ns, duration_s, stalled_ns, rate) in [
        (0, 2000, None, 2.0, 2_000_000_000, Some(0.5)),
        (0, 2000, Some(5), 2.0, 5, Some(0.5)),
        (7, 7, None, 0.0, 0, None),
        // The clock of another machine may be behind.
        (9, 7, None, 0.0, 0, None),
    ] {
        let record = CheckpointRecord { stall_ns, ..checkpoint(start_ms, end_ms, 1 << 30, 0) };
        assert_eq!((record.duration_s(), record.stall_ns()), (duration_s, stalled_ns));
        assert_eq!(record.gib_per_second(), rate);
    }
}

#[test]
fn a_ranks_checkpoint_is_five_numbers() {
    let rank = RankCheckpoint { rank: 3, start_ns: 10, end_ns: 30, bytes: 7, sync_ns: 5 };
    let text = serde_json::to_string(&rank).unwrap();
    assert_eq!(text, "[3,10,30,7,5]");
    assert_eq!(serde_json::from_str::<RankCheckpoint>(&text).unwrap(), rank);
    assert_eq!(rank.duration_ns(), 20);
    assert_eq!(RankCheckpoint { end_ns: 1, ..rank }.duration_ns(), 0);
    assert!(serde_json::from_str::<RankCheckpoint>("[1,2,3]").is_err());
}

#[test]
fn counters_of_two_workers_are_added() {
    let mut io = IoCounters {
        opens: 1,
        reads: 2,
        read_bytes: 3,
        memory_bytes: 4,
        samples: 5,
        open_ns: 6,
        read_ns: 7,
        decode_ns: 8,
        idle_ns: 9,
        ..IoCounters::default()
    };
    io.read_latency.record(1000);
    io.access.count_sample(Some(10));
    let mut sum = io.clone();
    sum.compact();
    sum.add(&io);
    assert_eq!((sum.opens, sum.reads, sum.read_bytes, sum.memory_bytes), (2, 4, 6, 8));
    assert_eq!((sum.samples, sum.open_ns, sum.read_ns), (10, 12, 14));
    assert_eq!((sum.decode_ns, sum.idle_ns), (16, 18));
    assert_eq!((sum.read_latency.count(), sum.open_latency.count()), (2, 0));
    assert_eq!((sum.access.samples_read, sum.access.payload_bytes), (2, 20));
    let mut stall = Stall { open_ns: 1, read_ns: 2, decode_ns: 3, client_ns: 5, queue_ns: 4 };
    stall.add(&stall.clone());
    assert_eq!(stall, Stall { open_ns: 2, read_ns: 4, decode_ns: 6, client_ns: 10, queue_ns: 8 });
}
