//! Compares au_sustained with the rate of the storage, in the simulated driver.

use super::{Case, SAMPLE_BYTES, plan, rate, simulate};
use feedrate_measure::metric;
use feedrate_measure::record::{EpochRecord, HostEpoch, RECORD_VERSION, Record, System};
use feedrate_measure::summary::Summary;

/// Returns the record of one simulated epoch.
fn record(case: Case, bytes_per_second: f64) -> Record {
    let accelerators = simulate(&plan(case), rate(bytes_per_second));
    let end_ns = accelerators.iter().map(|a| a.blocks[0].end_ns).max().unwrap();
    Record {
        version: RECORD_VERSION,
        program: "test".into(),
        plan: plan(case),
        system: System::default(),
        started: String::new(),
        ended: String::new(),
        complete: true,
        nodes: Vec::new(),
        processes: Vec::new(),
        stopped_because: None,
        compute_spins: false,
        simulated: true,
        evaluations: vec![],
        timeline: None,
        study: None,
        staging: None,
        data_request: None,
        found_dataset: None,
        members: None,
        watched: None,
        contradictions: Vec::new(),
        epochs: vec![EpochRecord {
            number: 1,
            start_ns: 0,
            end_ns,
            started: String::new(),
            ended: String::new(),
            accelerators,
            causes: None,
            files_read: None,
            transfers: None,
            host: HostEpoch::default(),
            nodes: Vec::new(),
            checkpoints: vec![],
        }],
        doubts: vec![],
    }
}

/// Returns min(1, R·C ÷ (N·B)) in percent, with the storage's rate R, the compute of a step C, the accelerators N and the bytes of a
/// batch B.
fn sustainable_percent(case: Case, bytes_per_second: f64) -> f64 {
    let needed_rate = f64::from(case.accelerators) * SAMPLE_BYTES as f64 / case.compute_s;
    100.0 * (bytes_per_second / needed_rate).min(1.0)
}

#[test]
fn in_a_long_epoch_au_sustained_follows_from_the_rate_of_the_storage() {
    for loader in ["pytorch", "native"] {
        for workers in [1u32, 4, 16, 64] {
            for steps in [6, 50, 500, 2000] {
                for (accelerators, compute_ms) in [
                    (1, 3.0),
                    (1, 9.0),
                    (1, 9.9),
                    (1, 10.2),
                    (1, 25.0),
                    (2, 15.0),
                    (4, 20.0),
                    (4, 44.0),
                ] {
                    check(Case {
                        loader,
                        accelerators,
                        workers,
                        steps,
                        compute_s: compute_ms / 1e3,
                    });
                }
            }
        }
    }
}

fn check(case: Case) {
    let record = record(case, 1e8);
    let summary = Summary::new(&record);
    let name = format!(
        "{} × {} × {} × {}, {} s",
        case.loader, case.accelerators, case.workers, case.steps, case.compute_s
    );
    let needed_steps = 4 * u64::from(record.plan.loader.batches_in_flight);
    assert_eq!(summary.figures.sustained_needs_steps, needed_steps.max(3), "{name}");
    match summary.figures.value(&metric::AU_SUSTAINED) {
        None => assert!(case.steps < needed_steps, "{name}: not measurable"),
        Some(percent) => {
            assert!(case.steps >= needed_steps, "{name}: measured with too few steps");
            let expected = sustainable_percent(case, 1e8);
            assert!((percent - expected).abs() < 1.0, "{name}: {percent}, not {expected}");
        }
    }
}

#[test]
fn too_short_epochs_report_the_needed_steps() {
    for (workers, steps, needed) in [(4, 6, 16), (64, 50, 256)] {
        let case = Case { loader: "pytorch", accelerators: 1, workers, steps, compute_s: 0.01 };
        let figures = Summary::new(&record(case, 1e8)).figures;
        let au = figures.value(&metric::AU_SUSTAINED);
        assert_eq!((au, figures.sustained_needs_steps), (None, needed));
    }
}

/// With six steps and four workers, the window mostly contains batches that were read before it began.
#[test]
fn a_window_that_consumes_the_stock_is_doubted() {
    let case = Case { loader: "pytorch", accelerators: 1, workers: 4, steps: 6, compute_s: 0.002 };
    let record = record(case, 1e8);
    let all_steps = metric::AU_ALL_STEPS.run_value(&record).unwrap();
    // Six reads of 10 ms and the last compute take 62 ms, of which 12 are compute.
    assert!((all_steps - 100.0 * 12.0 / 62.0).abs() < 1e-6, "{all_steps}");
    let doubts = Summary::new(&record).doubts;
    assert!(doubts.iter().any(|doubt| doubt.name == "window_shorter_than_stock" || doubt.name == "too_few_steps"), "{doubts:?}");
}
