//! Whose fault it is: accelerators and processes are named.

use super::*;

#[test]
fn who_is_named_is_who_did_it() {
    let mut record = starved();
    one_is_slow(&mut record);
    let slow = with(&record, |case| would_help(case).remove(0).evidence);
    assert_eq!(
        slow.render("{accelerator} {last_percent} {compute_s} {others_compute_s}"),
        "1 100.0 % 200 ms 100 ms"
    );
    // Two of four that come last in turns.
    let blocks = |compute, barrier| vec![block(0, &[(1, compute, barrier, 2_000_000); 40])];
    let (slow, other) = (blocks(200, 0), blocks(100, 100));
    record.epochs = vec![epoch(1, vec![other.clone(), slow.clone(), other, slow])];
    record.plan.accelerators = 4;
    let causes = record.epochs[0].causes.as_mut().unwrap();
    causes.last.iter_mut().zip([1, 3].into_iter().cycle()).for_each(|(last, at)| *last = at);
    let slow = with(&record, |case| would_help(case).remove(0).evidence);
    assert_eq!(
        slow.render("{accelerators} {last_percent} {compute_s} {others_compute_s}"),
        "1 and 3 100.0 % 200 ms 100 ms"
    );
    let mut record = starved();
    others_compute(&mut record);
    let other = with(&record, |case| would_help(case).remove(0).evidence);
    assert_eq!(
        other.render("{process} ({process_id}) {others:.1} of {all_cores}"),
        "burn (7) 6.8 of 8 cores"
    );
}

#[test]
fn others_that_leave_the_processors_to_whoever_decodes_are_not_named() {
    let first = |own_s: u64| {
        advised(|record| {
            others_compute(record);
            record.epochs[0].host.process_cpu_ns = Some(own_s * 1_000_000_000);
        })
    };
    assert_eq!(first(8)[0], "other_processes");
    // Without them decoding would still be waited for, half as long.
    assert_ne!(first(12)[0], "other_processes");
    assert!(first(12).contains(&"other_processes"));
    assert!(!first(13).contains(&"other_processes"));
    // Copying out of the page cache takes a processor too.
    let cached = advised(|record| {
        others_compute(record);
        each_io(record, |io| (io.decode_ns, io.read_ns) = (1000, io.decode_ns));
        each_causes(record, |causes| std::mem::swap(&mut causes.decode_ns, &mut causes.read_ns));
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(160_000_000);
        record.plan.storage.throttle_bytes_per_second = None;
    });
    assert_eq!(cached, ["other_processes", "run_again"]);
}

#[test]
fn decoding_that_lasts_as_asked_for_is_no_fault_of_others() {
    let first = |preprocess_s: f64| {
        advised(|record| {
            others_compute(record);
            record.epochs[0].host.process_cpu_ns = Some(4_000_000_000);
            record.plan.loader.preprocess = TimeSpec::Constant { mean: preprocess_s };
        })
    };
    assert_eq!(first(0.05)[0], "other_processes");
    assert!(!first(0.2).contains(&"other_processes"));
}

#[test]
fn who_waits_for_latency_gains_nothing_by_reading_for_all() {
    assert!(advised(all_read_the_same).contains(&"broadcast"));
    let by_latency = advised(|record| {
        all_read_the_same(record);
        latency(record);
    });
    assert_eq!(by_latency[0], "read_threads");
    assert!(!by_latency.contains(&"broadcast"));
}
