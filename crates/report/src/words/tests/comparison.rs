//! Tests of comparisons between invented runs: one epoch of twenty steps with a second of compute each. The load time decides utilisation.

use super::doubt;
use crate::words::comparison::{note, verdict};
use feedrate_analysis::compare::{
    ComparedResponse, Comparison, ComparisonVerdict, Pairing, Question, Runs, VerdictReason,
    compare,
};
use feedrate_measure::doubt::Severity;
use feedrate_measure::example::{plan, simple};
use feedrate_measure::metric::Metric;
use feedrate_measure::record::{Record, StudyRun};
use feedrate_results::import::RunOrigin;
use feedrate_results::run::Run;
use feedrate_spec::workload::TimeSpec;
use std::path::Path;

fn au() -> &'static Metric {
    Metric::find("au_all_steps").unwrap()
}

/// A run of utilisation `au` percent, changed.
fn run(au: f64, change: impl Fn(&mut Record)) -> Run {
    let load_ms = (1000.0 * (100.0 / au - 1.0)).round() as u64;
    let mut record = simple(&[(load_ms, 1000, 0, 1_000_000); 20]);
    record.plan = feedrate_spec::plan::Plan { accelerators: 1, ..plan(1, 20) };
    change(&mut record);
    Run::from_record(Path::new("run"), &record)
}

fn runs(values: &[f64], change: impl Fn(&mut Record) + Copy) -> Runs {
    Runs { runs: values.iter().map(|&au| run(au, change)).collect(), ..Runs::default() }
}

fn plain(values: &[f64]) -> Runs {
    runs(values, |_| {})
}

fn finding(a: &[f64], b: &[f64], question: Question, pairing: Pairing) -> ComparedResponse {
    compare(plain(a), plain(b), &[au()], question, pairing, &[]).findings.remove(0)
}

fn notes(comparison: &Comparison) -> Vec<String> {
    comparison.notes.iter().map(note).collect()
}

const WITHIN: Question = Question::Within(0.02);
const STEADY: [f64; 4] = [90.0, 90.1, 89.9, 90.05];

#[track_caller]
fn check(a: &[f64], b: &[f64], question: Question, expected: ComparisonVerdict, says: &str) {
    let found = finding(a, b, question, Pairing::None);
    assert_eq!((found.verdict, verdict(&found).as_str()), (expected, says));
}

#[test]
fn verdicts_follow_from_values_and_noise() {
    check(&STEADY, &[89.5, 89.6, 89.4, 89.5], WITHIN, ComparisonVerdict::Same, "same within 2 %");
    check(
        &STEADY,
        &[80.0, 80.1, 79.9, 80.0],
        WITHIN,
        ComparisonVerdict::Differs,
        "differs: B is worse by 10.03 points",
    );
    check(
        &[80.0, 80.1],
        &STEADY,
        WITHIN,
        ComparisonVerdict::Differs,
        "differs: B is better by 9.97 points",
    );
    let noise =
        "inconclusive: the noise is too large for so few runs; about 71 runs of each are needed";
    check(&[90.0, 86.0, 94.0], &[90.0, 88.0, 93.0], WITHIN, ComparisonVerdict::CannotTell, noise);
}

#[test]
fn equal_values_are_not_called_noise() {
    let equal = "equal in all runs: 50.0 %";
    check(&[50.0; 3], &[50.0; 2], WITHIN, ComparisonVerdict::Same, equal);
    check(&[100.0; 2], &[100.0; 2], WITHIN, ComparisonVerdict::Same, "equal in all runs: 100.0 %");
    let few = "inconclusive: n = 1 in A, n = 2 in B";
    check(&[50.0], &[50.0; 2], WITHIN, ComparisonVerdict::CannotTell, few);
}

/// Without a difference and with noise of 1, 2 and 5 %, the number of runs gives two one-sided tests a power of 80 %.
#[test]
fn the_needed_runs_follow_from_the_tests() {
    let about = |noise: f64, question: Question, pairing: Pairing| {
        let ends = [90.0 * (1.0 - noise / 2.0_f64.sqrt()), 90.0 * (1.0 + noise / 2.0_f64.sqrt())];
        let turned = [ends[1], ends[0]];
        let says = verdict(&finding(&ends, &turned, question, pairing));
        let (_, rest) = says.split_once("about ").unwrap_or_else(|| panic!("{says}"));
        rest.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    for (noise, question, pairing, expected) in [
        (0.01, WITHIN, Pairing::None, 6.0),
        (0.02, WITHIN, Pairing::None, 18.0),
        (0.05, WITHIN, Pairing::None, 107.0),
        // A pair's difference is twice the noise of either here.
        (0.01, WITHIN, Pairing::ByReplicate, 10.0),
        (0.02, Question::NoWorseThan(0.02), Pairing::None, 13.0),
    ] {
        let found = about(noise, question, pairing);
        assert!((found - expected).abs() <= 1.0 + 0.03 * expected, "{noise}, {pairing:?}: {found}");
    }
}

#[test]
fn one_run_each_has_a_difference_and_no_claim() {
    check(
        &[90.0],
        &[80.0],
        WITHIN,
        ComparisonVerdict::CannotTell,
        "inconclusive: n = 1 in A, n = 1 in B",
    );
    let found = finding(&[90.0], &[80.0], WITHIN, Pairing::None);
    assert!((found.difference.estimate.unwrap() + 10.0).abs() < 0.1);
    assert!((found.ratio.unwrap().estimate.unwrap() - 80.0 / 90.0).abs() < 0.01);
    assert_eq!((found.difference.low, found.a.mean.low, found.p), (None, None, None));
}

#[test]
fn not_worse_is_a_one_sided_test() {
    let better = [95.0, 95.1, 94.9, 95.0];
    let question = Question::NoWorseThan(0.02);
    check(&STEADY, &better, question, ComparisonVerdict::NotWorse, "not worse by more than 2 %");
    check(
        &better,
        &STEADY,
        question,
        ComparisonVerdict::Differs,
        "differs: B is worse by 4.94 points",
    );
    let stall = Metric::find("stall").unwrap();
    let found = |a: &[f64], b: &[f64]| {
        compare(plain(a), plain(b), &[stall], question, Pairing::None, &[]).findings[0].verdict
    };
    assert_eq!(found(&STEADY, &better), ComparisonVerdict::NotWorse);
    assert_eq!(found(&better, &STEADY), ComparisonVerdict::Differs);
}

#[test]
fn pairing_removes_a_drift() {
    let (a, b) = ([70.0, 80.0, 90.0], [71.0, 81.2, 91.3]);
    let alone = finding(&a, &b, WITHIN, Pairing::None);
    assert_eq!(alone.verdict, ComparisonVerdict::CannotTell);
    let paired = finding(&a, &b, WITHIN, Pairing::ByReplicate);
    assert_eq!(paired.verdict, ComparisonVerdict::Same, "{}", verdict(&paired));
    let uneven = finding(&a, &b[..2], WITHIN, Pairing::ByReplicate);
    assert_eq!(verdict(&uneven), "inconclusive: 3 runs of A cannot be paired with 2 runs of B");
}

#[test]
fn pairs_of_a_study_go_by_replicate_in_any_order() {
    let replicates = |values: &[(u32, f64)]| {
        let mut all = Runs::default();
        all.runs.extend(values.iter().map(|&(replicate, au)| {
            run(au, |record| {
                let study = StudyRun { replicate: Some(replicate), ..StudyRun::default() };
                record.study = Some(Box::new(study));
            })
        }));
        all
    };
    let b = || replicates(&[(1, 71.0), (2, 81.2), (3, 91.3)]);
    let found = compare(
        replicates(&[(3, 90.0), (1, 70.0), (2, 80.0)]),
        b(),
        &[au()],
        WITHIN,
        Pairing::ByReplicate,
        &[],
    );
    assert_eq!(
        found.findings[0].verdict,
        ComparisonVerdict::Same,
        "{}",
        verdict(&found.findings[0])
    );
    let found = compare(
        replicates(&[(3, 90.0), (1, 70.0), (4, 80.0)]),
        b(),
        &[au()],
        WITHIN,
        Pairing::ByReplicate,
        &[],
    );
    assert_eq!(verdict(&found.findings[0]), "inconclusive: their replicates or blocks differ");
}

#[test]
fn single_experiments_are_compared_despite_different_settings() {
    let direct = runs(&STEADY, |record| {
        record.plan.storage.engine = Some("direct".into());
        record.plan.accelerators = 1;
        record.plan.loader.workers = 4;
    });
    let found = compare(plain(&STEADY), direct, &[au()], WITHIN, Pairing::None, &[]);
    let settings: Vec<&str> = found.differs_in.iter().map(|row| row.setting.as_str()).collect();
    assert_eq!(settings, ["loader.workers", "storage.engine"]);
    assert_eq!(found.differs_in[1].b.as_deref(), Some("direct"));
    assert_eq!(found.findings[0].experiment, "example, 1 accelerator");
    assert!(found.is_met());
}

#[test]
fn experiments_are_matched_by_what_was_run() {
    let study = |engine: &str, workers: &[u32]| {
        let mut all = Runs::default();
        for &workers in workers {
            all.runs.extend(STEADY.map(|au| {
                run(au, |record| {
                    record.plan.storage.engine = Some(engine.into());
                    record.plan.loader.workers = workers;
                })
            }));
        }
        all
    };
    let found = compare(
        study("psync", &[1, 2, 8]),
        study("mmap", &[2, 1, 4]),
        &[au()],
        WITHIN,
        Pairing::None,
        &[],
    );
    let names: Vec<&str> = found.findings.iter().map(|row| row.experiment.as_str()).collect();
    assert_eq!(
        names,
        ["example, 1 accelerator, loader.workers=1", "example, 1 accelerator, loader.workers=2"]
    );
    assert_eq!(found.only_in_a, ["example, 1 accelerator, loader.workers=8"]);
    assert_eq!(found.only_in_b, ["example, 1 accelerator, loader.workers=4"]);
    // Experiments without a counterpart have their numbers too.
    let alone = |side: &str| found.unmatched.iter().find(|alone| alone.side == side).unwrap();
    for (side, names) in [("A", &found.only_in_a), ("B", &found.only_in_b)] {
        let unmatched = alone(side);
        assert_eq!(unmatched.experiment, names[0]);
        let mean = unmatched.responses[0].runs.mean.estimate.unwrap();
        assert!((89.0..91.0).contains(&mean), "{mean}");
    }
    assert_eq!(found.differs_in.len(), 1);
    assert!(found.findings.iter().all(|row| row.verdict == ComparisonVerdict::Same));
    assert!(!found.is_met(), "experiments without a counterpart were not shown to be the same");
}

#[test]
fn many_findings_are_corrected_for_their_number() {
    // p = 0.03 alone.
    let (a, b) = ([90.0, 86.0, 94.0, 91.0], [85.0, 83.0, 88.0, 80.5]);
    let alone = finding(&a, &b, WITHIN, Pairing::None);
    assert_eq!(alone.verdict, ComparisonVerdict::Differs, "{:?}", alone.p);
    let two = [au(), Metric::find("au_windowed").unwrap()];
    let both = compare(plain(&a), plain(&b), &two, WITHIN, Pairing::None, &[]).findings;
    assert_eq!(both[0].p, alone.p, "each response is corrected on its own, as in findings");
    let with_workers =
        |values: &[f64], workers: u32| runs(values, |record| record.plan.loader.workers = workers);
    let side = |values: &[f64]| {
        let mut all = with_workers(values, 1);
        let more = with_workers(values, 2);
        all.runs.extend(more.runs);
        all
    };
    let both = compare(side(&a), side(&b), &[au()], WITHIN, Pairing::None, &[]).findings;
    assert!((both[0].p.unwrap() - 2.0 * alone.p.unwrap()).abs() < 1e-3, "{both:?}");
    assert!(both.iter().all(|row| row.verdict == ComparisonVerdict::CannotTell), "{both:?}");
}

#[test]
fn other_machines_are_noted() {
    let other = runs(&STEADY, |record| record.system.hostname = "node2".into());
    let found = compare(plain(&STEADY), other, &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!(notes(&found), ["not the same machine: `node1` in A, `node2` in B"]);
    let mut mixed = plain(&STEADY);
    mixed.runs.extend(runs(&[90.0], |record| record.system.hostname = "node2".into()).runs);
    let found = compare(mixed, plain(&STEADY), &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!(notes(&found), ["runs of A are not all of the same machine"]);
}

#[test]
fn a_missing_response_is_named() {
    let sustained = Metric::find("au_sustained").unwrap();
    let nothing_read = |record: &mut Record| record.epochs[0].accelerators[0].io.read_bytes = 0;
    let found = compare(
        runs(&STEADY, nothing_read),
        plain(&STEADY),
        &[sustained],
        WITHIN,
        Pairing::None,
        &[],
    );
    let says = verdict(&found.findings[0]);
    assert_eq!(says, "inconclusive: A has no au_sustained_percent, n = 4 in B");
}

/// A utilisation of 0, as DLIO writes it for runs without compute, is no value either.
#[test]
fn runs_without_compute_have_no_utilisation() {
    let reads_only = |record: &mut Record| {
        record.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
    };
    for name in ["au_all_steps", "au_windowed"] {
        let response = Metric::find(name).unwrap();
        let [a, b] = [(); 2].map(|()| runs(&STEADY, reads_only));
        let found = compare(a, b, &[response], WITHIN, Pairing::None, &[]);
        let says = verdict(&found.findings[0]);
        let expected = format!("inconclusive: A has no {name}_percent, B has no {name}_percent");
        assert_eq!((says, found.is_met(), found.is_undecided()), (expected, false, true));
    }
}

/// Steps of 1.1 instead of 1 s raise 80 % to 88 %.
#[test]
fn a_difference_that_slow_compute_explains_is_inconclusive() {
    let calm = |record: &mut Record| {
        record.plan.train.compute = TimeSpec::Constant { mean: 1.0 };
    };
    let busy = |record: &mut Record| {
        calm(record);
        let block = &mut record.epochs[0].accelerators[0].blocks[0];
        block.compute_ns.fill(1_100_000_000);
        block.load_ns.iter_mut().for_each(|load_ns| *load_ns -= 100_000_000);
    };
    let values = [80.0, 80.1, 79.9];
    let says = |question, a, b| {
        let found = compare(a, b, &[au()], question, Pairing::None, &[]);
        verdict(&found.findings[0])
    };
    let expected = "inconclusive: emulated compute took longer than configured, by 10 % in A, which could change the verdict; run again while the cores are free";
    assert_eq!(says(WITHIN, runs(&values, busy), runs(&values, calm)), expected);
    // 77 instead of 70 %: B is worse by 4 %, and would be by 12 %.
    let worse = [70.0, 70.1, 69.9];
    let not_worse = Question::NoWorseThan(0.1);
    let found = says(not_worse, runs(&values, calm), runs(&worse, busy));
    assert_eq!(found, expected.replace("in A", "in B"));
    let much_worse = [40.0, 40.1, 39.9];
    let found = says(WITHIN, runs(&values, calm), runs(&much_worse, busy));
    assert!(found.starts_with("differs: B is worse by "), "{found}");
    assert_eq!(says(WITHIN, runs(&values, busy), runs(&values, busy)), "same within 2 %");
}

#[test]
fn workloads_are_compared_by_content_not_by_name() {
    let renamed = |record: &mut Record| record.plan.workload = "copy".into();
    let found =
        compare(plain(&STEADY), runs(&STEADY, renamed), &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!(found.findings[0].verdict, ComparisonVerdict::Same);
    assert_eq!(found.differs_in, []);
    let other = runs(&STEADY, |record| {
        renamed(record);
        record.plan.dataset.files_train += 1;
    });
    let found = compare(plain(&STEADY), other, &[au()], WITHIN, Pairing::None, &[]);
    let not_alike = VerdictReason::NotComparable { differs: vec!["workload"], unknown: vec![] };
    assert_eq!(found.findings[0].reason, not_alike);
}

/// Runs with another or an unknown batch size do other work, which is no comparison of storages.
#[test]
fn other_work_is_compared_only_on_request() {
    let batch = |record: &mut Record| record.plan.loader.batch_size = 7;
    let compared = |across: &[&str]| {
        compare(plain(&STEADY), runs(&STEADY, batch), &[au()], WITHIN, Pairing::None, across)
            .findings
            .remove(0)
    };
    assert_eq!(
        verdict(&compared(&[])),
        "inconclusive: A and B differ in batch_size; `--across KEY` compares across that difference"
    );
    assert_eq!(
        (compared(&[]).p, compared(&["workload"]).verdict),
        (None, ComparisonVerdict::CannotTell)
    );
    for name in ["batch_size", "loader.batch_size", "reader.batch_size"] {
        assert_eq!(compared(&[name]).verdict, ComparisonVerdict::Same, "{name}");
    }
    let mut nameless = plain(&STEADY);
    nameless.runs.iter_mut().for_each(|run| run.batch_size = None);
    let found = compare(plain(&STEADY), nameless, &[au()], WITHIN, Pairing::None, &[]);
    let says = verdict(&found.findings[0]);
    assert!(says.contains("A and B are not known to be alike in batch_size;"), "{says}");
}

#[test]
fn a_side_with_a_run_that_must_not_be_used_has_no_verdict() {
    let mut b = plain(&STEADY);
    b.invalid.push(run(90.0, |_| {}));
    b.invalid[0].doubts = vec![doubt("stale_data", Severity::Invalid)];
    let found = compare(plain(&STEADY), b, &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!(verdict(&found.findings[0]), "inconclusive: 1 run of B invalid");
    assert_eq!((found.findings[0].b.runs, found.findings[0].b.invalid), (4, 1));
    assert!(!found.is_met() && found.doubts_of_a.iter().all(|doubt| doubt.name != "stale_data"));
    let worst = found.doubts_of_b.first().unwrap();
    assert_eq!((worst.severity, worst.name.as_str()), (Severity::Invalid, "stale_data"));
}

/// Busy cores and the page cache change values as much as a change of the storage would.
#[test]
fn runs_that_do_not_show_the_storage_have_no_verdict() {
    let busy = |record: &mut Record| record.epochs[0].host.cpu_busy_share = Some(0.97);
    let cached = |record: &mut Record| {
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(20_000_000);
    };
    let says = |a: Runs, b: Runs, question| {
        let found = compare(a, b, &[au()], question, Pairing::None, &[]);
        let finding = &found.findings[0];
        assert_eq!((finding.verdict, finding.p), (ComparisonVerdict::CannotTell, None));
        assert!(found.is_undecided());
        verdict(finding)
    };
    let slow = [48.0, 48.1, 47.9];
    assert_eq!(
        says(plain(&[80.0, 80.1, 79.9]), runs(&slow, busy), Question::NoWorseThan(0.1)),
        "inconclusive: 3 runs of B are cpu-saturated, which does not show the storage's speed; run again while the cores are free"
    );
    let mut mixed = runs(&[80.0], busy);
    mixed.runs.extend(runs(&[80.0], cached).runs);
    // Equal values do not show that the storages are equal.
    assert_eq!(
        says(mixed, plain(&[80.0; 2]), WITHIN),
        "inconclusive: 1 run of A is cache-fed and 1 run of A is cpu-saturated, which does not show the storage's speed; run again while the cores are free and with `--cold`"
    );
    let one = compare(plain(&[80.0]), runs(&[80.0], busy), &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!(verdict(&one.findings[0]), "inconclusive: n = 1 in A, n = 1 in B");
    // The utilisation of runs of other programs is not judged.
    let mut theirs = runs(&STEADY, busy);
    theirs.runs.iter_mut().for_each(|run| run.supply = None);
    let found = compare(plain(&STEADY), theirs, &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!(found.findings[0].verdict, ComparisonVerdict::Same);
}

/// Settings that DLIO's files lack do not count as different.
#[test]
fn unknown_settings_are_never_different() {
    let mut theirs = plain(&STEADY);
    for run in &mut theirs.runs {
        run.origin = RunOrigin::Dlio;
        run.settings.remove("loader.prefetch_size");
        run.place.remove("kernel");
    }
    let mut ours = plain(&STEADY);
    ours.runs.iter_mut().for_each(|run| {
        run.place.insert("kernel".into(), "6.1".into());
    });
    assert!(ours.runs[0].settings.contains_key("loader.prefetch_size"));
    let found = compare(ours, theirs, &[au()], WITHIN, Pairing::None, &[]);
    assert_eq!((found.differs_in.len(), notes(&found).len()), (0, 0), "{:?}", found.differs_in);
    assert_eq!(found.findings[0].verdict, ComparisonVerdict::Same);
}
