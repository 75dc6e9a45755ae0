//! Tests of recommendations from simulated studies.

use super::*;
use crate::words::recommendation::sentences;
use feedrate_analysis::recommendation::{Recommendation, recommendations};

const SAMPLES: &str = "samples_per_second";

fn recommend(runs: &[SimulatedRun]) -> Vec<Recommendation> {
    let settings: Vec<BTreeMap<String, String>> =
        runs.iter().map(|run| run.factors.clone()).collect();
    let designs = designs(&settings.iter().collect::<Vec<_>>(), &DeclaredFactors::default());
    let runs: Vec<Run> = runs.iter().map(SimulatedRun::run).collect();
    recommendations(&designs, &runs.iter().collect::<Vec<_>>())
}

/// Levels, samples per second, and AU.
type Planted<'a> = ([(&'a str, &'a str); 2], f64, f64);

/// Three runs of each configuration, one percent apart.
fn three_runs_each(planted: &[Planted]) -> Vec<SimulatedRun> {
    let mut runs = Vec::new();
    for (levels, rate, au) in planted {
        for noise in [0.99, 1.0, 1.01] {
            let responses = [(SAMPLES, rate * noise), (AU, au * noise)];
            runs.push(run(runs.len(), levels, &responses));
        }
    }
    runs
}

#[test]
fn the_best_configurations_have_their_changes() {
    let runs = three_runs_each(&[
        ([("format", "npz"), ("read_threads", "1")], 100.0, 90.0),
        ([("format", "npz"), ("read_threads", "4")], 105.0, 95.0),
        ([("format", "png"), ("read_threads", "1")], 300.0, 60.0),
        ([("format", "tar"), ("read_threads", "1")], 301.0, 30.0),
    ]);
    let found = recommend(&runs);
    insta::assert_snapshot!(sentences(&found[0]).join("\n"), @"
    most throughput: `format` tar, `read_threads` 1: 301 samples/s [294 samples/s, 309 samples/s] at 30.0 % [29.3 %, 30.8 %] AU, n = 3; 1 of 3 others may be as fast
    against the baseline: `format` tar instead of npz
    highest AU: `format` npz, `read_threads` 4: 105 samples/s [102 samples/s, 108 samples/s] at 95.0 % [92.0 %, 96.9 %] AU, n = 3; 1 configuration between these two
    untested: 2 of 6 combinations of their levels
    ");
    let rates: Vec<f64> = found[0]
        .best
        .iter()
        .map(|configuration| configuration.throughput.estimate.unwrap().round())
        .collect();
    assert_eq!(rates, [301.0, 300.0, 105.0], "npz with one is beaten in both by more threads");
    assert_eq!((found[0].tested, found[0].combinations, found[0].indistinguishable), (4, 6, 1));
}

/// Other work, accelerators, clients or conditions of the storage are not a choice: each has its own best configuration.
#[test]
fn only_choices_are_compared() {
    let held = [
        ("batch_size", "1", "64"),
        ("processes", "1", "8"),
        ("loader.client.name", "pytorch", "unset"),
        ("throttle_bytes_per_second", "100", "200"),
        ("cache", "as_is", "warm"),
        ("num_files_train", "8", "16"),
    ];
    for (name, level, other) in held {
        let runs = three_runs_each(&[
            ([(name, level), ("format", "npz")], 100.0, 90.0),
            ([(name, level), ("format", "hdf5")], 110.0, 95.0),
            ([(name, other), ("format", "npz")], 6000.0, 90.0),
        ]);
        let found = recommend(&runs);
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].best[0].levels, levels(&[("format", "hdf5")]));
        assert_eq!((found[0].combinations, found[0].tested), (2, 2));
        assert_eq!(found[0].held, [(name.to_string(), level.to_string())].into());
        let mut runs = runs;
        runs.extend(three_runs_each(&[([(name, other), ("format", "hdf5")], 5000.0, 80.0)]));
        let best = recommend(&runs).into_iter().map(|group| group.best[0].levels["format"].clone());
        assert_eq!(best.collect::<BTreeSet<_>>(), ["hdf5", "npz"].map(String::from).into());
    }
    let runs = three_runs_each(&[
        ([("batch_size", "1"), ("format", "npz")], 100.0, 90.0),
        ([("batch_size", "64"), ("format", "npz")], 6000.0, 90.0),
    ]);
    assert!(recommend(&runs).is_empty(), "one configuration is not the best of several");
}

/// A setting that always changed together with the accelerators is no choice either.
#[test]
fn followers_of_a_factor_are_held_or_named() {
    let runs = three_runs_each(&[
        ([("processes", "4"), ("read_threads", "1")], 100.0, 90.0),
        ([("processes", "6"), ("read_threads", "8")], 600.0, 20.0),
    ]);
    assert_eq!(recommend(&runs), []);
    let runs = three_runs_each(&[
        ([("format", "npz"), ("read_threads", "1")], 100.0, 90.0),
        ([("format", "png"), ("read_threads", "8")], 600.0, 20.0),
    ]);
    let says = sentences(&recommend(&runs)[0]);
    let expected = "`read_threads` always changed together with `format`".to_string();
    assert!(says.contains(&expected), "{says:#?}");
    assert!(!says.iter().any(|says| says.contains("combinations")), "{says:#?}");
}
