//! Each doubt where it fires and where it does not, and the contract of the table.

use super::*;
use crate::example::{block, epoch, plan, record, simple};
use crate::record::{HostEpoch, Mount, Record};
use feedrate_spec::workload::TimeSpec;

/// Three epochs of two accelerators, half of the time computing, 40 steps, half a second of compute.
fn good() -> Record {
    let steps = vec![(500, 500, 0, 1_000_000); 40];
    let accelerators = |start| vec![vec![block(start, &steps)], vec![block(start, &steps)]];
    let mut record = record(
        plan(2, 40),
        (0..3).map(|i| epoch(i + 1, accelerators(u64::from(i) * 100_000))).collect(),
    );
    for epoch in &mut record.epochs {
        epoch.host = HostEpoch {
            process_device_read_bytes: Some(80_000_000),
            device_read_bytes: Some(80_000_000),
            device_write_bytes: Some(0),
            resident_before_bytes: Some(0),
            resident_sampled_share: 1.0,
            cpu_busy_share: Some(0.2),
            clock_step_ns: Some(0),
            ..HostEpoch::default()
        };
    }
    let mount = |device: &str| Some(Mount { device: device.into(), ..Mount::default() });
    record.system.data_mount = mount("8:1");
    record.system.results_mount = mount("8:2");
    record
}

fn names(record: &Record) -> Vec<String> {
    of(&Facts::of(record)).into_iter().map(|doubt| doubt.name).collect()
}

/// After `change` the doubt of the file's name is there; some part of its evidence too.
fn fires(name: &str, evidence: &str, change: impl Fn(&mut Record)) {
    let mut record = good();
    change(&mut record);
    let seen = of(&Facts::of(&record));
    let Some(doubt) = seen.iter().find(|doubt| doubt.name == name) else {
        panic!("`{name}` did not fire, only {:?}", names(&record))
    };
    assert!(doubt.evidence.contains(evidence), "{}", doubt.evidence);
    assert!(!doubt.advice.is_empty() && Some(doubt.severity) == find(name).map(|d| d.severity));
}

fn silent(change: impl Fn(&mut Record)) {
    let mut record = good();
    change(&mut record);
    assert_eq!(names(&record), Vec::<String>::new());
}

#[test]
fn a_good_record_has_no_doubts() {
    silent(|_| {});
}

#[test]
fn incomplete_run() {
    fires("incomplete_run", "3 of 5 epochs are there: interrupted", |r| {
        (r.complete, r.plan.train.epochs, r.stopped_because) =
            (false, 5, Some("interrupted".into()));
    });
}

#[test]
fn window_shorter_than_stock() {
    fires("window_shorter_than_stock", "39 steps are judged, and the loader may hold 39", |r| {
        r.plan.loader.batches_in_flight = 39
    });
    let mut record = good();
    record.plan.loader.batches_in_flight = 38;
    assert_eq!(names(&record), ["too_few_steps"]);
}

#[test]
fn too_few_steps() {
    fires("too_few_steps", "40 steps an epoch, and at least 44", |r| {
        r.plan.loader.batches_in_flight = 11
    });
    silent(|r| r.plan.loader.batches_in_flight = 10);
}

#[test]
fn au_disagrees() {
    let slow_start = |ms: u64| {
        move |r: &mut Record| {
            for block in
                r.epochs.iter_mut().flat_map(|e| &mut e.accelerators).flat_map(|a| &mut a.blocks)
            {
                block.load_ns[0] += ms * 1_000_000;
                block.end_ns += ms * 1_000_000;
            }
        }
    };
    fires("au_disagrees", "50.0 % in the window, 48.2 % over all", slow_start(1500));
    silent(slow_start(500));
}

#[test]
fn page_cache() {
    let from_device = |bytes| {
        move |r: &mut Record| {
            r.epochs[1].host.process_device_read_bytes = Some(bytes);
            r.epochs[1].host.device_read_bytes = Some(bytes);
        }
    };
    fires(
        "page_cache",
        "240 MB were read and 200 MB came from the device (17 % from memory)",
        from_device(40_000_000),
    );
    silent(from_device(79_000_000));
    silent(from_device(90_000_000));
    let nothing = |r: &mut Record| {
        for epoch in &mut r.epochs {
            epoch.host.process_device_read_bytes = Some(0);
            epoch.host.device_read_bytes = Some(0);
        }
    };
    fires("page_cache", "100 % from memory", nothing);
    silent(|r| {
        nothing(r);
        r.plan.storage.throttle_bytes_per_second = Some(1e6);
    });
    fires("page_cache", "100 % from memory", |r| {
        nothing(r);
        r.plan.storage.throttle_bytes_per_second = Some(1e13);
    });
    silent(|r| r.epochs.iter_mut().for_each(|e| e.host.process_device_read_bytes = None));
    silent(|r| {
        nothing(r);
        r.epochs.iter_mut().for_each(|e| e.host.resident_before_bytes = None);
    });
}

#[test]
fn direct_not_in_effect() {
    let nothing = |r: &mut Record| {
        for epoch in &mut r.epochs {
            epoch.host.process_device_read_bytes = Some(0);
            epoch.host.device_read_bytes = Some(0);
        }
    };
    fires("direct_not_in_effect", "240 MB were read and 0 B came from the device", |r| {
        nothing(r);
        r.plan.storage.engine = Some("direct".into());
    });
    silent(|r| r.plan.storage.engine = Some("direct".into()));
}

#[test]
fn other_io() {
    fires("other_io", "the device read 40 MB and wrote 0 B", |r| {
        r.epochs[0].host.device_read_bytes = Some(120_000_000)
    });
    fires("other_io", "read 0 B and wrote 50 MB", |r| {
        r.epochs[2].host.device_write_bytes = Some(50_000_000)
    });
    silent(|r| r.epochs[0].host.device_read_bytes = Some(81_000_000));
    silent(|r| r.epochs[0].host.device_read_bytes = None);
    silent(|r| r.epochs[0].host.device_write_bytes = Some(20_000_000));
    silent(|r| {
        r.epochs[0].host.device_write_bytes = Some(210_000_000);
        let saved = r#"{"start_ns": 0, "end_ns": 1, "bytes": 200000000}"#;
        r.epochs[0].checkpoints = vec![serde_json::from_str(saved).unwrap()];
    });
}

#[test]
fn client_cpu_saturated() {
    fires("client_cpu_saturated", "the 8 cores were 97 % busy", |r| {
        r.epochs[2].host.cpu_busy_share = Some(0.97)
    });
    silent(|r| r.epochs[2].host.cpu_busy_share = Some(0.9));
    silent(|r| r.epochs[2].host.cpu_busy_share = None);
}

#[test]
fn straggler_accelerator() {
    // Half a second of a step moves from the barrier of the others to the load of this one.
    let slower = |by_ms: u64| {
        move |r: &mut Record| {
            for epoch in &mut r.epochs {
                for (i, accelerator) in epoch.accelerators.iter_mut().enumerate() {
                    let times = if i == 1 {
                        &mut accelerator.blocks[0].load_ns
                    } else {
                        &mut accelerator.blocks[0].barrier_ns
                    };
                    times.iter_mut().for_each(|ns| *ns += by_ms * 1_000_000);
                    accelerator.blocks[0].end_ns += 40 * by_ms * 1_000_000;
                }
            }
        }
    };
    fires(
        "straggler_accelerator",
        "accelerator 1 loaded and computed for 3 min, the median one for 2 min",
        slower(500),
    );
    silent(slower(150));
}

#[test]
fn compute_overshoot() {
    fires("compute_overshoot", "lasted 500 ms in the mean, 490 ms is configured", |r| {
        r.plan.train.compute = TimeSpec::Constant { mean: 0.49 }
    });
    let mut on_devices = good();
    on_devices.plan.train.compute = TimeSpec::Constant { mean: 0.49 };
    on_devices.plan.train.on_devices = Some("cuda".into());
    let seen = of(&Facts::of(&on_devices));
    assert!(seen[0].advice.contains("copy of its batch"), "{seen:?}");
    silent(|r| r.plan.train.compute = TimeSpec::Constant { mean: 0.496 });
    silent(|r| r.plan.train.compute = TimeSpec::Normal { mean: 0.4, stdev: 0.1 });
    silent(|r| r.plan.train.compute = TimeSpec::None);
}

#[test]
fn first_epoch_differs() {
    fires("first_epoch_differs", "1.9 samples/s in the first epoch, 2.0 in the others", |r| {
        r.epochs[0].end_ns += 3_000_000_000
    });
    silent(|r| r.epochs[0].end_ns += 1_000_000_000);
    silent(|r| r.epochs[1].end_ns += 1_000_000_000);
}

#[test]
fn results_on_device_under_test() {
    fires("results_on_device_under_test", "8:1", |r| {
        r.system.results_mount.clone_from(&r.system.data_mount)
    });
    silent(|r| r.system.results_mount = None);
    silent(|r| {
        (r.system.results_mount, r.system.data_mount) =
            (Some(Mount::default()), Some(Mount::default()))
    });
}

#[test]
fn clock_step() {
    fires("clock_step", "it moved by -2 s in epoch 2", |r| {
        r.epochs[1].host.clock_step_ns = Some(-2_000_000_000)
    });
    silent(|r| r.epochs[1].host.clock_step_ns = Some(15_000_000));
    silent(|r| r.epochs[1].host.clock_step_ns = None);
}

#[test]
fn known_doubts_are_passed_on_once() {
    let known = |name: &str| PlanDoubt {
        name: name.into(),
        evidence: format!("{name} was seen"),
        advice: "do".into(),
    };
    for name in [
        "records_shrunk",
        "not_cold",
        "scaled",
        "dataset_fits_page_cache",
        "checkpoint_not_reached",
        "evaluation_not_reached",
        "samples_in_memory",
        "raw_checkpoint",
        "checkpoints_exceed_disk",
        "no_replicates",
    ] {
        fires(name, "was seen", |r| r.plan.doubts = vec![known(name)]);
        fires(name, "was seen", |r| r.doubts = vec![known(name), known(name)]);
    }
    let mut record = good();
    record.plan.doubts = vec![known("scaled"), known("of_the_future"), known("no_replicates")];
    record.doubts = vec![known("scaled"), known("not_cold")];
    record.epochs.truncate(1);
    record.complete = false;
    let seen = of(&Facts::of(&record));
    let expected = [
        ("incomplete_run", Severity::Invalid),
        ("not_cold", Severity::Warning),
        ("of_the_future", Severity::Warning),
        ("scaled", Severity::Note),
        ("no_replicates", Severity::Note),
    ];
    assert_eq!(seen.iter().map(|d| (d.name.as_str(), d.severity)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_record_of_nothing_is_only_incomplete() {
    let mut nothing = record(plan(1, 5), vec![]);
    nothing.complete = false;
    assert_eq!(names(&nothing), ["incomplete_run"]);
    assert!(!names(&simple(&[])).contains(&"window_shorter_than_stock".to_string()));
}

#[test]
fn every_row_is_complete() {
    let names: std::collections::HashSet<_> = DOUBTS.iter().map(|doubt| doubt.name).collect();
    assert_eq!(names.len(), DOUBTS.len());
    for doubt in DOUBTS {
        assert!(doubt.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", doubt.name);
        assert!(doubt.meaning.ends_with('.') && !doubt.meaning.contains("  "), "{}", doubt.name);
        assert!(find(doubt.name).is_some_and(|found| std::ptr::eq(found, *doubt)));
    }
    assert_eq!(serde_json::to_string(&Severity::Warning).unwrap(), "\"warning\"");
}
