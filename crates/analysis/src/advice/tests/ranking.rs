//! Tests of the order of advice.

use super::super::{Advice, EXCEEDED_CORES, RankedAdvice, rank, read_threads};
use crate::predict::Prediction;
use feedrate_measure::facts::Facts;
use feedrate_measure::verdict::Bound;

/// Advice that saves some time and is predicted to reach a utilisation.
fn advice(name: &str, saved_s: f64, au_percent: Option<f64>) -> RankedAdvice {
    let proposal = read_threads::RULE.proposal(&[name.into()], saved_s, Facts::new());
    let prediction = au_percent.map(|au_percent| Prediction {
        au_percent,
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
