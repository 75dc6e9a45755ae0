//! Waits for a quiet machine, and the time that is left.

use super::*;

/// Of these rows each run takes 20 s; their plans say 10, 20, 40 and 10.
#[test]
fn waits_are_bounded_by_the_time_of_the_runs_and_are_no_setup() {
    let study = Study::new(STUDY);
    let mut env = FakeEnv { is_noisy: true, ..study.env() };
    study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!(env.waits_s, [10.0, 0.0, 0.0, 5.0]);
    let left = env.events.iter().filter_map(|event| match event {
        RunnerEvent::Begun { place, left_s, .. } => Some((place.number, place.of, *left_s)),
        _ => None,
    });
    let rows = [
        // Plans, and two datasets of a second.
        (1, 4, 80.0 + 2.0),
        // Twice their plans, and a dataset; nobody knows whether they will wait as the first did.
        (2, 4, 2.0 * 70.0 + 1.0),
        (3, 4, 2.0 * 50.0),
        (4, 4, 10.0),
    ];
    for (is, expected) in left.clone().zip(rows) {
        assert_eq!((is.0, is.1), (expected.0, expected.1));
        assert!((is.2 - expected.2).abs() < 1e-9, "{is:?}: {expected:?}");
    }
    assert_eq!(left.count(), rows.len());
    let ended = env.events.iter().filter_map(|event| match event {
        RunnerEvent::Finished { place, au_percent, .. } => {
            Some((place.unwrap().number, au_percent.is_some()))
        }
        _ => None,
    });
    assert_eq!(Vec::from_iter(ended), [(1, true), (2, true), (3, true), (4, true)]);
    let study = Study::new(STUDY);
    let mut env = FakeEnv { is_noisy: true, ..study.env() };
    let each = RunnerOptions { quiet_wait: QuietWait::Each(60.0), ..RunnerOptions::default() };
    study.run(&mut env, each).unwrap();
    assert_eq!(env.waits_s, [60.0; 4]);
}
