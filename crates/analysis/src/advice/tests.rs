//! Tests of the advice rules: each rule fires, the best rule comes first, and the table is consistent.
//!
//! Long because each rule has a record for which it fires.

mod named_causes;
mod ranking;

use super::*;
use crate::answer::Answer;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt;
use feedrate_measure::example::{block, epoch, plan, record};
use feedrate_measure::record::access::{FilesRead, ReadPosition};
use feedrate_measure::record::{
    CheckpointRecord, HostEpoch, IoCounters, Mount, OtherProcess, Record, StepCauses,
};
use feedrate_spec::plan::{CheckpointPlan, ClientPlan, FileAccess, Library};
use feedrate_spec::workload::{Override, Shuffle, Strictness, TimeSpec, parse};
use std::collections::BTreeSet;

/// A record of two accelerators with 40 steps of 200 ms. In each step they wait 100 ms for a read of 2 MB. The functions below change it to
/// make a rule fire.
pub(super) fn waiting_record() -> Record {
    let blocks = vec![vec![block(0, &[(100, 100, 0, 2_000_000); 40])]; 2];
    let mut record = record(plan(2, 40), vec![epoch(1, blocks)]);
    record.plan.dataset.record_bytes = 2e6;
    record.plan.dataset.record_dims = vec![2_000_000];
    record.plan.loader.piece_bytes = 4 << 20;
    record.plan.storage.throttle_bytes_per_second = Some(20e6);
    // The reading threads are always busy.
    change_io(&mut record, |io| {
        io.read_ns *= 2;
        io.access.samples_read = io.samples;
    });
    record.plan.train.compute = TimeSpec::Constant { mean: 0.1 };
    record
}

/// Calls `check` with the case of a record.
pub(super) fn with_case<T>(record: &Record, check: impl Fn(&Case) -> T) -> T {
    let derived = Derived::new(record);
    let doubts = doubt::doubts(&derived);
    let answer = Answer::from_record(&derived, &doubts);
    check(&Case::new(&derived, &answer, &doubts))
}

/// Names of the rules that are advised for the changed record, best first.
pub(super) fn advised_rules(change: impl Fn(&mut Record)) -> Vec<&'static str> {
    let mut record = waiting_record();
    change(&mut record);
    with_case(&record, |case| {
        advise_without_plans(case).iter().map(|advice| advice.proposal.rule).collect()
    })
}

fn change_io(record: &mut Record, change: impl Fn(&mut IoCounters)) {
    for epoch in &mut record.epochs {
        epoch.accelerators.iter_mut().for_each(|accelerator| change(&mut accelerator.io));
    }
}

fn change_causes(record: &mut Record, change: fn(&mut StepCauses)) {
    record.epochs.iter_mut().filter_map(|epoch| epoch.causes.as_mut()).for_each(change);
}

/// Each read waits equally long, independent of its size.
pub(super) fn latency_bound(record: &mut Record) {
    record.plan.storage.throttle_bytes_per_second = None;
    record.plan.storage.read_delay_s = 0.2;
}

pub(super) fn slow_disk(record: &mut Record) {
    record.plan.storage.throttle_bytes_per_second = Some(20e6);
}

fn slow_opens(record: &mut Record) {
    change_io(record, |io| (io.open_ns, io.read_ns) = (io.read_ns, 1000));
    change_causes(record, |causes| std::mem::swap(&mut causes.open_ns, &mut causes.read_ns));
    latency_bound(record);
}

pub(super) fn tiny_files(record: &mut Record) {
    slow_opens(record);
    record.plan.dataset.record_bytes = 4096.0;
    record.plan.dataset.record_dims = vec![64, 64];
    record.plan.dataset.files_train = 4096;
}

pub(super) fn small_files(record: &mut Record) {
    tiny_files(record);
    record.plan.dataset.samples_per_file = 4;
}

fn split_into_requests(record: &mut Record, bytes: u64, follows: ReadPosition) {
    change_io(record, |io| {
        io.reads = io.read_bytes / bytes;
        (0..io.reads).for_each(|_| io.access.count_read(bytes, follows));
        io.access.samples_read = io.samples;
        (io.access.payload_samples, io.access.payload_bytes) = (io.samples, io.read_bytes);
    });
    record.plan.loader.piece_bytes = bytes;
}

pub(super) fn small_requests(record: &mut Record) {
    split_into_requests(record, 4096, ReadPosition::Consecutive);
    record.plan.storage.throttle_bytes_per_second = None;
    record.plan.storage.throttle_latency_s = 0.001;
}

pub(super) fn small_library_requests(record: &mut Record) {
    small_requests(record);
    split_into_requests(record, 1 << 16, ReadPosition::Consecutive);
    record.plan.loader.library = Some(Library::PillowJpeg);
}

pub(super) fn limited_concurrency(record: &mut Record) {
    split_into_requests(record, 200_000, ReadPosition::Consecutive);
    latency_bound(record);
    record.plan.storage.throttle_concurrency = Some(1);
}

pub(super) fn shared_reads(record: &mut Record) {
    record.plan.loader.file_access = FileAccess::Same;
    let read =
        FilesRead { unique_bytes: 80_000_000, overlap_bytes: 80_000_000, files_by_ranks: vec![] };
    record.epochs[0].files_read = Some(read);
}

pub(super) fn small_chunks(record: &mut Record) {
    split_into_requests(record, 4096, ReadPosition::Consecutive);
    record.plan.loader.piece_bytes = 4 << 20;
    record.plan.dataset.encoding.chunk_dims = vec![1, 4096];
}

pub(super) fn interleaved_samples(record: &mut Record) {
    split_into_requests(record, 100_000, ReadPosition::Forward);
    record.plan.loader.piece_bytes = 4 << 20;
    record.plan.loader.file_access = FileAccess::Shared;
}

pub(super) fn samples_of_all_files(record: &mut Record) {
    record.plan.dataset.samples_per_file = 64;
    record.plan.loader.sample_shuffle = Shuffle::Random;
    change_io(record, |io| (io.opens, io.reads) = (io.samples, 2 * io.samples));
    latency_bound(record);
}

pub(super) fn many_reads_of_a_small_file(record: &mut Record) {
    split_into_requests(record, 100, ReadPosition::Forward);
    record.plan.loader.piece_bytes = 4 << 20;
    let read = FilesRead { unique_bytes: 4600, overlap_bytes: 0, files_by_ranks: vec![] };
    record.epochs[0].files_read = Some(read);
    record.plan.dataset.files_train = 1;
    change_io(record, |io| io.opens = 1);
    latency_bound(record);
}

pub(super) fn slow_decode(record: &mut Record) {
    change_io(record, |io| (io.decode_ns, io.read_ns) = (io.read_ns, 1000));
    change_causes(record, |causes| std::mem::swap(&mut causes.decode_ns, &mut causes.read_ns));
}

/// 16 threads share two cores: a sample takes 200 ms of processor time, and eight times as long in total.
pub(super) fn slow_client(record: &mut Record) {
    record.system.cpus = 2;
    record.plan.loader.workers = 16;
    record.plan.loader.client = Some(ClientPlan { per_sample_s: 0.2, ..ClientPlan::default() });
    change_io(record, |io| {
        (io.client_burnt_ns, io.client_ns) = (io.read_ns, 8 * io.read_ns);
        io.read_ns = 1000;
    });
    change_causes(record, |causes| {
        causes.client_ns = std::mem::replace(&mut causes.read_ns, vec![0; causes.last.len()]);
    });
}

pub(super) fn text_files(record: &mut Record) {
    slow_decode(record);
    split_into_requests(record, 1 << 18, ReadPosition::Consecutive);
    change_io(record, |io| io.access.payload_bytes = io.read_bytes / 4);
}

/// Threads wait for space in the prefetch buffer half of the time.
pub(super) fn full_buffer(record: &mut Record) {
    record.plan.storage.throttle_bytes_per_second = Some(200e6);
    change_io(record, |io| io.read_ns /= 2);
}

pub(super) fn page_cache_copies(record: &mut Record) {
    record.plan.storage.throttle_bytes_per_second = None;
    record.epochs[0].host = HostEpoch {
        process_device_read_bytes: Some(160_000_000),
        resident_before_bytes: Some(0),
        cpu_busy_share: Some(0.85),
        ..HostEpoch::default()
    };
}

pub(super) fn served_from_memory(record: &mut Record) {
    page_cache_copies(record);
    record.epochs[0].host.process_device_read_bytes = Some(0);
    record.epochs[0].host.resident_before_bytes = Some(160_000_000);
}

pub(super) fn one_stripe(record: &mut Record) {
    let striping = Some("stripe_count: 1 stripe_size: 1048576 pattern: raid0".to_string());
    record.system.data_mount = Some(Mount { striping, ..Mount::default() });
    record.plan.dataset.samples_per_file = 64;
}

pub(super) fn many_epochs(record: &mut Record) {
    let first = record.epochs[0].clone();
    record.epochs.extend((2..5).map(|number| {
        let mut next = first.clone();
        next.number = number;
        next
    }));
    record.plan.train.epochs = 4;
}

pub(super) fn larger_than_memory(record: &mut Record) {
    many_epochs(record);
    record.system.memory_bytes = Some(1 << 20);
}

pub(super) fn checkpoint_storm(record: &mut Record) {
    let saved = CheckpointRecord {
        start_ns: 8_000_000_000,
        end_ns: 10_000_000_000,
        bytes: 1 << 30,
        ..CheckpointRecord::default()
    };
    record.epochs[0].checkpoints = vec![saved];
    let alone = feedrate_measure::example::checkpoint_only_record(3).plan.checkpoint.unwrap();
    record.plan.checkpoint = Some(CheckpointPlan { alone: None, ..alone });
}

/// Checkpoints take much longer than the training between them.
pub(super) fn long_checkpoints(record: &mut Record) {
    checkpoint_storm(record);
    record.epochs[0].checkpoints[0].end_ns *= 10;
}

/// The second accelerator computes as long as the first one computes and waits together.
pub(super) fn one_slow_accelerator(record: &mut Record) {
    let blocks =
        |load, compute, barrier| vec![block(0, &[(load, compute, barrier, 2_000_000); 40])];
    record.epochs = vec![epoch(1, vec![blocks(1, 100, 100), blocks(1, 200, 0)])];
    record.plan.metric.au_target_percent = 99.9;
}

pub(super) fn busy_other_processes(record: &mut Record) {
    slow_decode(record);
    record.epochs[0].host = HostEpoch {
        cpu_busy_share: Some(0.98),
        process_cpu_ns: Some(8_000_000_000),
        busiest_other: Some(OtherProcess { id: 7, name: "burn".into(), cpu_ns: 50_000_000_000 }),
        ..HostEpoch::default()
    };
}

fn text_files_with_client(record: &mut Record) {
    text_files(record);
    record.plan.loader.client = Some(ClientPlan::default());
}

#[test]
fn every_rule_fires_and_its_overrides_are_valid() {
    for rule in RULES {
        let mut record = waiting_record();
        (rule.fires)(&mut record);
        let found = with_case(&record, |case| {
            assert!(rule.answers.contains(&case.answer.kind), "{}: {:?}", rule.name, case.answer);
            (rule.propose)(case)
        });
        let proposal = found.unwrap_or_else(|| panic!("{} is silent", rule.name));
        assert_eq!(proposal.rule, rule.name);
        assert_ne!(
            serde_json::to_value(&proposal.evidence).unwrap(),
            serde_json::json!({}),
            "{}",
            rule.name
        );
        let overrides: Vec<Override> =
            proposal.overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
        if let Err(problems) = parse("w", "model: {name: w}", &overrides, Strictness::Error) {
            panic!("{}: {:?}: {problems}", rule.name, proposal.overrides);
        }
    }
}

#[test]
fn another_feedrate_is_not_taken_for_the_run_itself() {
    let mut record = waiting_record();
    busy_other_processes(&mut record);
    for (name, expected) in [("burn", "burn"), ("feedrate", "another feedrate")] {
        record.epochs[0].host.busiest_other.as_mut().unwrap().name = name.into();
        let found = with_case(&record, |case| (other_processes::RULE.propose)(case)).unwrap();
        let change = found.evidence.render(other_processes::RULE.change);
        assert!(change.starts_with(&format!("stop {expected} (process 7), or ")), "{change}");
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(RULES.iter().all(|rule| !rule.source.is_empty()));
}

#[test]
fn nothing_is_advised_for_a_fed_run() {
    for rule in RULES {
        let mut record = waiting_record();
        (rule.fires)(&mut record);
        record.plan.metric.au_target_percent = 1.0;
        record.epochs[0].checkpoints.clear();
        let is_fed = with_case(&record, |case| case.answer.fed == Some(true));
        let found = with_case(&record, |case| advise_without_plans(case).len());
        // If memory served the run, it is unknown whether accelerators were fed.
        assert!(!is_fed || found == 0, "{}", rule.name);
    }
}

#[track_caller]
fn check_first(expected: &[&str], change: fn(&mut Record)) {
    let advised = advised_rules(change);
    let first = advised.first().copied().unwrap_or("nothing");
    assert!(expected.contains(&first), "{advised:?}");
}

#[test]
fn the_first_advice_addresses_the_cause() {
    check_first(&["storage", "fewer_accelerators"], slow_disk);
    check_first(&["read_threads", "transfer_size"], latency_bound);
    check_first(&["shards"], tiny_files);
    check_first(&["shards"], |record| {
        tiny_files(record);
        // Reading a file takes twice as long as opening it.
        change_io(record, |io| {
            (io.open_ns, io.read_ns) = (io.open_ns / 2, io.open_ns);
            io.opens = io.read_bytes / 4096;
        });
        change_causes(record, |causes| std::mem::swap(&mut causes.open_ns, &mut causes.read_ns));
    });
    check_first(&["binary_format"], text_files);
    check_first(&["binary_format"], |record| {
        change_io(record, |io| {
            (io.access.payload_samples, io.access.payload_bytes) = (io.samples, io.read_bytes / 64);
        });
    });
    check_first(&["binary_format", "decode_threads"], slow_decode);
    // The cost of a client with files of another format is unknown.
    assert!(!advised_rules(text_files_with_client).contains(&"binary_format"));
    check_first(&["transfer_size"], small_requests);
    check_first(&["library_requests"], small_library_requests);
    check_first(&["broadcast"], shared_reads);
    check_first(&["asynchronous_checkpoints"], |record| {
        checkpoint_storm(record);
        record.plan.metric.au_target_percent = 1.0;
    });
    check_first(&["rank_local_checkpoints"], |record| {
        long_checkpoints(record);
        record.nodes = vec![record.system.clone(); 2];
        record.plan.metric.au_target_percent = 1.0;
    });
    // The disk of a single machine is not shared, and a setting comes before another disk.
    check_first(&["asynchronous_checkpoints"], |record| {
        long_checkpoints(record);
        record.plan.metric.au_target_percent = 1.0;
    });
    check_first(&["chunk_is_sample"], small_chunks);
    check_first(&["chunk_is_sample"], |record| {
        small_chunks(record);
        record.plan.dataset.encoding.chunk_dims = vec![16, 2_000_000];
        change_io(record, |io| io.access.payload_bytes /= 16);
    });
}

/// BERT's text has examples of about 200 bytes.
#[test]
fn text_with_short_samples_should_become_tfrecord() {
    let proposed = |samples_per_file: u64| {
        let mut record = waiting_record();
        text_files(&mut record);
        record.plan.dataset.record_bytes = 200.0;
        record.plan.dataset.record_dims = vec![200];
        record.plan.dataset.samples_per_file = samples_per_file;
        with_case(&record, |case| (super::binary_format::RULE.propose)(case)).unwrap().overrides
    };
    assert_eq!(proposed(3600), ["dataset.format=tfrecord"]);
    assert_eq!(proposed(1), ["dataset.format=hdf5"]);
}

#[test]
fn storage_is_not_advised_if_it_is_not_the_cause() {
    assert_eq!(advised_rules(served_from_memory), ["run_again"]);
    assert_eq!(advised_rules(one_slow_accelerator), ["slow_accelerator"]);
    assert_eq!(advised_rules(busy_other_processes)[0], "other_processes");
    assert!(!advised_rules(busy_other_processes).contains(&"storage"));
}

#[test]
fn prefetch_is_not_advised_for_busy_threads() {
    assert!(!advised_rules(latency_bound).contains(&"prefetch"));
    assert!(advised_rules(full_buffer).contains(&"prefetch"));
    assert!(!advised_rules(|record| change_io(record, |io| io.read_ns /= 2)).contains(&"prefetch"));
}

/// A thread reads a batch in 200 ms, and a step computes in 100 ms. With a reserve of a tenth, this needs three threads.
#[test]
fn the_smallest_sufficient_number_of_threads_is_advised() {
    let mut record = waiting_record();
    latency_bound(&mut record);
    for (threads, times) in [("reader.read_threads=3", 1), ("reader.read_threads=5", 2)] {
        change_io(&mut record, |io| io.read_ns *= times);
        let found = with_case(&record, advise_without_plans);
        let advice = found.iter().find(|advice| advice.proposal.rule == "read_threads").unwrap();
        assert_eq!(advice.proposal.overrides, [threads]);
    }
}

#[test]
fn changes_without_predicted_effect_are_not_advised() {
    let mut record = waiting_record();
    latency_bound(&mut record);
    let unchanged = with_case(&record, |case| advise(case, &|_| Some(case.plan().clone())));
    assert!(unchanged.iter().all(|advice| advice.proposal.overrides.is_empty()), "{unchanged:?}");
    let changed = with_case(&record, |case| {
        let plan_with = |overrides: &[String]| {
            let mut plan = case.plan().clone();
            let threads =
                overrides.first().and_then(|text| text.strip_prefix("reader.read_threads="));
            plan.loader.workers = threads.map_or(1, |threads| threads.parse().unwrap());
            Some(plan)
        };
        advise(case, &plan_with)
    });
    let first = &changed[0];
    assert_eq!(first.proposal.rule, "read_threads");
    assert!(first.prediction.unwrap().au_percent > 90.0, "{first:?}");
    checkpoint_storm(&mut record);
    record.plan.metric.au_target_percent = 1.0;
    let fed = with_case(&record, |case| advise(case, &|_| Some(case.plan().clone())));
    let names: Vec<&str> = fed.iter().map(|advice| advice.proposal.rule).collect();
    assert_eq!(names, ["asynchronous_checkpoints"], "utilisation does not show its effect");
    record.plan.metric.au_target_percent = 90.0;
    let impossible = with_case(&record, |case| advise(case, &|_| None));
    assert!(impossible.is_empty(), "{impossible:?}");
}

#[test]
fn smaller_chunks_are_advised_if_entire_chunks_are_read_for_one_sample() {
    let advised_for = |read_bytes: u64| {
        advised_rules(|record| {
            record.plan.dataset.encoding.chunk_dims = vec![16, 2_000_000];
            change_io(record, |io| {
                (io.access.payload_samples, io.access.payload_bytes) =
                    (io.samples, io.samples * 2_000_000);
                io.read_bytes = io.samples * read_bytes;
            });
        })
    };
    assert!(advised_for(32_000_000).contains(&"chunk_is_sample"));
    assert!(!advised_for(2_000_000).contains(&"chunk_is_sample"));
}

/// Opens are half of the wait. More threads would save both halves, but only the wait for opens counts.
#[test]
fn predicted_savings_beyond_the_lost_time_do_not_count() {
    let mut record = waiting_record();
    tiny_files(&mut record);
    change_io(&mut record, |io| {
        (io.open_ns, io.read_ns) = (io.open_ns / 100 * 52, io.open_ns / 100 * 48)
    });
    let scale = |waits_ns: &mut Vec<u64>, percent: u64| {
        waits_ns.iter_mut().for_each(|wait_ns| *wait_ns = *wait_ns / 100 * percent);
    };
    for causes in record.epochs.iter_mut().filter_map(|epoch| epoch.causes.as_mut()) {
        causes.read_ns = causes.open_ns.clone();
        scale(&mut causes.open_ns, 52);
        scale(&mut causes.read_ns, 48);
    }
    let plan_with = |case: &Case, overrides: &[String]| {
        let mut plan = case.plan().clone();
        match overrides.first().and_then(|text| text.strip_prefix("reader.read_threads=")) {
            Some(threads) => plan.loader.workers = threads.parse().ok()?,
            None => plan.dataset.format = "other".into(),
        }
        Some(plan)
    };
    let found = with_case(&record, |case| advise(case, &|overrides| plan_with(case, overrides)));
    let names: Vec<&str> = found.iter().map(|advice| advice.proposal.rule).collect();
    assert_eq!(names[..2], ["shards", "read_threads"], "{found:?}");
    assert!(found[1].prediction.unwrap().au_percent > 75.0, "{:?}", found[1].prediction);
}

#[test]
fn an_ambiguous_prediction_counts_with_its_lowest_utilisation() {
    let deciding_run = crate::predict::DecidingRun::MoreReadingThreads;
    let reason = NotPredictable::LatencyOrBandwidth {
        least_percent: 51.0,
        most_percent: 97.0,
        deciding_run,
    };
    assert_eq!(least_percent(&Err(reason)), Some(51.0));
}

#[test]
fn larger_requests_are_advised_before_other_changes() {
    let names = advised_rules(|record| {
        small_requests(record);
        record.plan.storage.throttle_latency_s = 0.0;
        change_io(record, |io| io.opens = 40);
    });
    assert_eq!(names, ["transfer_size", "read_threads", "storage"]);
}

/// One of the two reads of a sample reads the header, but only one of 64 samples needs it.
#[test]
fn only_repeated_header_reads_can_be_saved() {
    let mut record = waiting_record();
    samples_of_all_files(&mut record);
    change_io(&mut record, |io| io.open_ns = 0);
    let found = with_case(&record, |case| (header_once::RULE.propose)(case)).unwrap();
    assert!((found.lost_s.unwrap() - 4.0 * 0.5 * 63.0 / 64.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn the_work_of_the_client_is_named_where_it_is_done() {
    let mut record = waiting_record();
    slow_client(&mut record);
    let why = |record: &Record| {
        let proposal = with_case(record, |case| (client_work::RULE.propose)(case)).unwrap();
        proposal.evidence.render(client_work::RULE.why)
    };
    let workers = "a worker of your code takes 1.6 s for a sample; each accelerator trains on one every 100 ms, with 16 workers";
    assert_eq!(why(&record), workers);
    change_io(&mut record, |io| io.receive_ns = 3_900_000_000);
    let training =
        "the training's process takes 97.5 ms for a batch, which more workers do not shorten";
    assert_eq!(why(&record), training);
    // Workers wait for what they share, or batches for the thread that pins them: twice as long as a batch is computed.
    change_io(&mut record, |io| io.receive_ns = 0);
    let batch_size = record.plan.loader.batch_size as f64;
    let batch_bytes = with_case(&record, |case| {
        let io = &case.derived.io;
        io.read_bytes as f64 / io.samples as f64 * batch_size
    });
    let interval_s = 0.2 * batch_size;
    let client = record.plan.loader.client.as_mut().unwrap();
    client.shared_bytes_per_second = Some(2.0 * batch_bytes / interval_s);
    let limit = |name: &str| {
        let interval = feedrate_spec::units::seconds(interval_s);
        format!(
            "{name} allows a batch for each accelerator every {interval}, which neither more workers nor more cores shorten"
        )
    };
    assert_eq!(why(&record), limit("the rate that all workers share"));
    assert!(with_case(&record, |case| (decode_threads::RULE.propose)(case)).is_none());
    let client = record.plan.loader.client.as_mut().unwrap();
    client.shared_bytes_per_second = None;
    client.pin_bytes_per_second = Some(batch_bytes / interval_s);
    assert_eq!(why(&record), limit("the thread that pins batches"));
    // Other waits are not the client's.
    assert!(with_case(&waiting_record(), |case| (client_work::RULE.propose)(case)).is_none());
}

/// Each of two accelerators consumes a sample every 100 ms and needs 0.2 s / 0.1 s = 2 cores, with a reserve of a tenth.
#[test]
fn missing_cores_follow_from_the_processor_time_of_the_client() {
    let mut record = waiting_record();
    slow_client(&mut record);
    let missing = |record: &Record| {
        let proposal = with_case(record, |case| (decode_threads::RULE.propose)(case))?;
        Some(proposal.evidence.render("{lacks_cores} {client_s} {needed_threads}"))
    };
    assert_eq!(missing(&record).as_deref(), Some("3 cores 200 ms 3"));
    // Now each accelerator waits for the single training process, which more cores do not speed up.
    change_io(&mut record, |io| io.receive_ns = 3_900_000_000);
    assert_eq!(missing(&record), None);
}
