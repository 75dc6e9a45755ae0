//! Tests of the rules that name slow accelerators and other processes.

use super::*;

#[test]
fn slow_accelerators_and_busy_processes_are_named() {
    let mut record = waiting_record();
    one_slow_accelerator(&mut record);
    let slow = with_case(&record, |case| advise_without_plans(case).remove(0).proposal.evidence);
    assert_eq!(
        slow.render("{accelerator} {last_percent} {compute_s} {others_compute_s}"),
        "1 100.0 % 200 ms 100 ms"
    );
    // If the factor is emulated, the run without it is predicted. The storage is not the limit.
    let mut emulated = record.clone();
    emulated.plan.train.slow_accelerators = vec![(1, 2.0)];
    emulated.plan.storage.throttle_bytes_per_second = None;
    change_io(&mut emulated, |io| io.access.samples_read = io.samples);
    let found = with_case(&emulated, |case| advise(case, &|_| Some(case.plan().clone())));
    assert_eq!(found[0].proposal.rule, "slow_accelerator");
    assert!(found[0].prediction.unwrap().au_percent > 95.0, "{found:?}");
    // Two of four accelerators take turns in being the last.
    let blocks = |compute, barrier| vec![block(0, &[(1, compute, barrier, 2_000_000); 40])];
    let slow = blocks(200, 0);
    let fast = blocks(100, 100);
    record.epochs = vec![epoch(1, vec![fast.clone(), slow.clone(), fast, slow])];
    record.plan.accelerators = 4;
    let causes = record.epochs[0].causes.as_mut().unwrap();
    causes.last.iter_mut().zip([1, 3].into_iter().cycle()).for_each(|(last, at)| *last = at);
    let slow = with_case(&record, |case| advise_without_plans(case).remove(0).proposal.evidence);
    assert_eq!(
        slow.render("{accelerators} {last_percent} {compute_s} {others_compute_s}"),
        "1 and 3 100.0 % 200 ms 100 ms"
    );
    let mut record = waiting_record();
    busy_other_processes(&mut record);
    let other = with_case(&record, |case| advise_without_plans(case).remove(0).proposal.evidence);
    assert_eq!(
        other.render("{process} ({process_id}) {others:.1} of {all_cores}"),
        "burn (7) 6.8 of 8 cores"
    );
}

#[test]
fn processes_that_do_not_delay_decoding_are_not_named() {
    let advised_for = |run_cpu_s: u64| {
        advised_rules(|record| {
            busy_other_processes(record);
            record.epochs[0].host.process_cpu_ns = Some(run_cpu_s * 1_000_000_000);
        })
    };
    // With busy cores no other cause is named, even if accelerators would still wait for decoding without the other processes.
    assert_eq!(advised_for(8), ["other_processes", "run_again"]);
    assert_eq!(advised_for(12), ["other_processes", "run_again"]);
    assert_eq!(advised_for(13), ["run_again"]);
    // Copying out of the page cache needs a processor too.
    let cached = advised_rules(|record| {
        busy_other_processes(record);
        change_io(record, |io| (io.decode_ns, io.read_ns) = (1000, io.decode_ns));
        change_causes(record, |causes| std::mem::swap(&mut causes.decode_ns, &mut causes.read_ns));
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(160_000_000);
        record.plan.storage.throttle_bytes_per_second = None;
    });
    assert_eq!(cached, ["other_processes", "run_again"]);
}

#[test]
fn other_processes_are_not_named_if_decoding_takes_the_configured_time() {
    let advised_for = |preprocess_s: f64| {
        advised_rules(|record| {
            busy_other_processes(record);
            record.epochs[0].host.process_cpu_ns = Some(4_000_000_000);
            record.plan.loader.preprocess = TimeSpec::Constant { mean: preprocess_s };
        })
    };
    assert_eq!(advised_for(0.05)[0], "other_processes");
    assert!(!advised_for(0.2).contains(&"other_processes"));
}

#[test]
fn broadcast_is_not_advised_if_reads_wait_for_latency() {
    assert!(advised_rules(shared_reads).contains(&"broadcast"));
    let with_latency = advised_rules(|record| {
        shared_reads(record);
        latency_bound(record);
    });
    assert_eq!(with_latency[0], "read_threads");
    assert!(!with_latency.contains(&"broadcast"));
}
