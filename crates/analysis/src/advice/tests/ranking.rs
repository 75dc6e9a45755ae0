//! Tests of the order of advice.

use super::super::{Advice, EXCEEDED_CORES, RankedAdvice, advise, rank, read_threads};
use super::{waiting_record, with_case};
use crate::predict::Prediction;
use feedrate_measure::facts::Facts;
use feedrate_measure::verdict::Bound;

/// Advice that saves some time and is predicted to reach a utilisation.
fn advice(name: &str, saved_s: f64, au_percent: Option<f64>) -> RankedAdvice {
    let proposal = read_threads::RULE.proposal(&[name.into()], saved_s, Facts::new());
    let prediction = au_percent.map(|au_percent| Prediction {
        au_percent,
        au_kind: "au_all_steps_percent",
        interval: [au_percent; 2],
        bottleneck: Bound::StorageBound,
        bytes_per_second: 1.0,
        samples_per_second: 1.0,
    });
    RankedAdvice { advice: Advice { proposal, prediction }, saved_s }
}

#[track_caller]
fn check(found: Vec<RankedAdvice>, expected: &[&str]) {
    let ranked = rank(found, 90.0);
    let names: Vec<&str> =
        ranked.iter().map(|advice| advice.proposal.overrides[0].as_str()).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_change_that_is_predicted_to_suffice_comes_before_one_without_a_prediction() {
    check(
        vec![
            advice("unpredicted", 9.0, None),
            advice("short", 8.0, Some(80.0)),
            advice("sufficient", 2.0, Some(90.0)),
        ],
        &["sufficient", "unpredicted", "short"],
    );
}

/// Two samples of a step need the only core as long as a step lasts, so faster storage gains nothing.
#[test]
fn a_change_whose_gain_is_within_the_uncertainty_is_not_advised() {
    let mut record = waiting_record();
    let advised = |record: &_| {
        with_case(record, |case| {
            let found = advise(case, &|_| Some(case.plan().clone()));
            found.iter().map(|advice| advice.proposal.rule).collect::<Vec<_>>()
        })
    };
    assert_eq!(advised(&record), ["storage"]);
    record.system.cpus = 1;
    record.epochs[0].host.process_cpu_ns = Some(8_000_000_000);
    assert_eq!(advised(&record), [""; 0]);
}

#[test]
fn workers_beyond_the_cores_come_after_a_change_that_may_suffice_without_them() {
    let threads = || {
        let mut threads = advice("threads", 9.0, Some(99.0));
        threads.advice.proposal.evidence = Facts::new().with(EXCEEDED_CORES, 2_u64);
        threads
    };
    check(vec![threads(), advice("size", 5.0, Some(84.0))], &["threads", "size"]);
    check(vec![threads(), advice("size", 5.0, Some(86.0))], &["size", "threads"]);
    check(vec![advice("unpredicted", 9.0, None), threads()], &["threads", "unpredicted"]);
}
