//! Tests of findings on studies at their limits: confounded, too large, too small.

use super::*;

/// Half of 2^3: c is always the product of a and b.
#[test]
fn confounded_effects_are_open_or_doubted() {
    let mut random = LegacyRandom::new(9);
    let mut runs = Vec::new();
    for _ in 0..3 {
        for (a, b, c) in [("0", "0", "1"), ("1", "0", "0"), ("0", "1", "0"), ("1", "1", "1")] {
            let rate = if a == "1" { 2e8 } else { 1e8 } * (0.01 * random.standard_normal()).exp();
            runs.push(run(runs.len(), &[("a", a), ("b", b), ("c", c)], &[(RATE, rate)]));
        }
    }
    insta::assert_snapshot!(text(&findings_on(&runs, &[RATE])), @"
    1. `a` matters most to throughput (more than 99 % of its variation): at 1 it is 2.01 × that at 0 [1.98, 2.03], n = 6 (p < 0.0001, corrected for 4 tests)
         doubt: assumes that factors do not interact, which this design cannot check
    2. inconclusive, because the noise is too large for so few runs: throughput by `b` (at 1 it is about equal to that at 0 [−1 %, 2 %], n = 6) and `c` (at 1 it is 1 % above that at 0 [−1 %, 2 %], n = 6); about 4 runs of each are needed to detect 2 %
    3. inconclusive, because other factors always changed together with them: the effect of `a` together with `b`, `a` together with `c` and `b` together with `c` on throughput; a design with more runs can separate them
    ");
    // Two factors that always change together.
    let both = |level| move |rate| run(1, &[("a", level), ("b", level)], &[(RATE, rate)]);
    let mut runs: Vec<SimulatedRun> = [1.0, 1.1].map(both("x")).into();
    runs.extend([2.0, 2.1].map(both("y")));
    insta::assert_snapshot!(text(&findings_on(&runs, &[RATE])), @"
    1. inconclusive, because other factors always changed together with them: the effect of `a` and `b` on throughput; make runs that vary only one of them
    2. inconclusive, because not all combinations of their levels were run: interactions of factors (1 of 1 pair); a full factorial or a 2^k design shows them
    ");
}

#[test]
fn repeated_runs_show_how_many_runs_are_needed() {
    let mut runs = one_at_a_time(1, 0.01, &mut LegacyRandom::new(10));
    // The baseline again, as a sentinel.
    for (index, rate) in [2.02e8, 1.98e8, 2.01e8].into_iter().enumerate() {
        let mut again = runs[0].clone();
        again.order = 20 + index as u32;
        again.responses.insert(RATE, rate);
        runs.push(again);
    }
    let found = findings_on(&runs, &[RATE]);
    let open: Vec<Finding> =
        found.into_iter().filter(|finding| finding.kind == FindingKind::CannotTell).collect();
    insta::assert_snapshot!(sentence(&open[0]), @"inconclusive, because some combinations were run once (no replicates): the effect of `file_shuffle`, `format`, `processes` and `read_threads` on throughput; with the noise of throughput in repeated runs (1.0 %), 6 runs of each are needed to detect 2 %");
}

#[test]
fn the_main_responses_are_those_that_most_runs_have() {
    let names = |responses: &[(&'static str, f64)]| {
        let found = main_responses(&[&run(1, &[], responses).run()]);
        found.iter().map(|response| response.id.name()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[(AU, 1.0), ("au_windowed_percent", 1.0), (RATE, 1.0)]), [AU, RATE]);
    assert_eq!(names(&[("samples_per_second", 1.0)]), ["samples_per_second"]);
    assert_eq!(names(&[]), [""; 0]);
}

/// A tree of 5 000 runs: four factors of five levels, eight runs of each combination.
#[test]
fn large_studies_have_findings() {
    let mut random = LegacyRandom::new(11);
    let level = ["0", "1", "2", "3", "4"];
    let mut runs = Vec::new();
    for index in 0..5000 {
        let point =
            [index % 5, index / 5 % 5, index / 25 % 5, index / 125 % 5].map(|digit| level[digit]);
        let rate =
            if point[2] == "3" { 2e8 } else { 1e8 } * (0.05 * random.standard_normal()).exp();
        let levels: Vec<(&str, &str)> = ["a", "b", "c", "d"].into_iter().zip(point).collect();
        runs.push(run(index, &levels, &[(RATE, rate)]));
    }
    let found = findings_on(&runs, &[RATE]);
    assert_eq!((found[0].factors[0].as_str(), found[0].kind), ("c", FindingKind::Effect));
    assert!(
        found.iter().skip(1).all(|finding| finding.kind == FindingKind::NoEffect),
        "{}",
        text(&found)
    );
}

#[test]
fn too_many_levels_are_not_tested() {
    let level = |index: usize| index.to_string();
    let runs = (0..2000).map(|index| {
        run(index, &[("a", &level(index)), ("b", &level(index % 3))], &[(RATE, 1e8 + index as f64)])
    });
    let found = findings_on(&runs.collect::<Vec<_>>(), &[RATE]);
    insta::assert_snapshot!(text(&found), @"
    1. inconclusive, because not all combinations of their levels were run: interactions of factors (1 of 1 pair); a full factorial or a 2^k design shows them
    2. inconclusive, because there are too many levels to test one by one: the effect of `a` and `b` on throughput
    ");
}

/// No two levels can be compared, and the analysis must not test every pair.
#[test]
fn levels_that_always_changed_together_are_named() {
    let level = |index: usize| index.to_string();
    let runs = (0..98).map(|index| {
        run(index, &[("a", &level(index)), ("b", &level(index))], &[(RATE, 1e8 + index as f64)])
    });
    let found = findings_on(&runs.collect::<Vec<_>>(), &[RATE]);
    assert!(
        sentence(&found[0]).contains("the effect of `a` and `b` on throughput"),
        "{}",
        text(&found)
    );
    assert_eq!((found.len(), found[0].kind), (2, FindingKind::CannotTell));
}

#[test]
fn too_few_or_equal_runs_have_no_effect() {
    assert_eq!(findings_on(&[], &[RATE]), []);
    assert_eq!(findings_on(&[run(1, &[("a", "x")], &[(RATE, 1.0)])], &[RATE]), []);
    let same = [1.0, 1.1].map(|rate| run(1, &[("a", "x")], &[(RATE, rate)]));
    assert_eq!(findings_on(&same, &[RATE]), []);
    // Values that never vary are the same.
    let constant =
        (0..6).map(|index| run(index, &[("a", ["x", "y", "z"][index % 3])], &[(RATE, 0.1 + 0.2)]));
    let found = findings_on(&constant.collect::<Vec<_>>(), &[RATE]);
    assert_eq!(
        found.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
        [FindingKind::NoEffect]
    );
}

/// Two machines, real runs and debug runs of 64 KiB: no drift or difference between them is reported.
#[test]
fn runs_of_other_machines_sources_and_sizes_are_not_compared() {
    let mut random = LegacyRandom::new(23);
    let mut runs = Vec::new();
    for (host, size, rate) in [
        ("node1", 146_600_628.0, 100.0),
        ("node2", 146_600_628.0, 350.0),
        ("node1", 65_536.0, 4_400.0),
    ] {
        for (index, n) in ["1", "2", "4", "8"].into_iter().enumerate() {
            // The machines have different numbers of processes, so that growth shows only within a machine.
            if (host == "node2") == (index < 2) && size > 1e6 {
                continue;
            }
            for _ in 0..3 {
                let processes = n.parse::<f64>().unwrap();
                let rate = rate * processes * (0.01 * random.standard_normal()).exp();
                let au = (rate / 50.0).min(95.0) + 0.1 * random.standard_normal();
                let files = if size > 1e6 { "168" } else { "8" };
                let levels = [("processes", n), ("num_files_train", files)];
                let mut simulated = run(runs.len(), &levels, &[(RATE, rate), (AU, au)]);
                simulated.host = Some(host);
                simulated.record_length_bytes = Some(size);
                runs.push(simulated);
            }
        }
    }
    let found = findings_on(&runs, &[RATE, AU]);
    let parts: BTreeSet<&str> =
        found.iter().flat_map(|finding| &finding.workloads).map(String::as_str).collect();
    assert_eq!(parts.len(), 4, "{parts:?}");
    for finding in found.iter().filter(|finding| !finding.effects.is_empty()) {
        let is_evidence =
            |run: &&SimulatedRun| finding.evidence.contains(&format!("run-{}", run.number).into());
        let places: BTreeSet<_> = runs
            .iter()
            .filter(is_evidence)
            .map(|run| (run.host, run.record_length_bytes.map(|bytes| bytes as u64)))
            .collect();
        assert_eq!(places.len(), 1, "{}", sentence(finding));
    }
}

/// Sizes are compared if the runs differ in nothing else.
#[test]
fn sizes_that_alone_were_varied_are_compared() {
    let mut random = LegacyRandom::new(24);
    let mut runs = Vec::new();
    for _ in 0..3 {
        for (threads, size) in [("4", 1e6), ("4", 1e7), ("8", 1e7)] {
            let rate = 1e9 / size * (0.01 * random.standard_normal()).exp();
            let length = format!("{size:.0}");
            let levels = [("read_threads", threads), ("record_length_bytes", length.as_str())];
            let mut simulated = run(runs.len(), &levels, &[(RATE, rate)]);
            simulated.record_length_bytes = Some(size);
            runs.push(simulated);
        }
    }
    let found = findings_on(&runs, &[RATE]);
    let says: Vec<String> = found.iter().map(sentence).collect();
    assert!(says[0].contains("`record_length_bytes` matters most to throughput"), "{says:#?}");
    assert!(says[0].contains("at 1000000 it is 10"), "{says:#?}");
}

/// A drift is not extrapolated beyond the repeated runs, and differences of percentages stay within ± 100 points.
#[test]
fn differences_of_percentages_are_bounded() {
    let mut random = LegacyRandom::new(25);
    let mut noise = || 0.1 * random.standard_normal();
    let mut runs: Vec<SimulatedRun> = (0..6)
        .map(|index| run(index, &[("a", "x")], &[(AU, 80.0 - 8.0 * index as f64 + noise())]))
        .collect();
    runs.extend((1..9).map(|index| run(50 * index, &[("a", "y")], &[(AU, 40.0)])).take(1));
    runs.extend(["p", "q", "r"].map(|level| run(400, &[("a", level)], &[(AU, 40.0)])));
    let found = findings_on(&runs, &[AU]);
    let drift = found.iter().find(|finding| finding.kind == FindingKind::Drift).unwrap();
    // Eight points a run, of which the repeated ones are five apart.
    assert!((drift.effects[0].estimate + 40.0).abs() < 1.0, "{}", sentence(drift));
    let pairs = [("x", 10.0), ("x", 90.0), ("y", 20.0), ("y", 95.0)];
    let runs = pairs.map(|(level, au)| run(au as usize, &[("a", level)], &[(AU, au)]));
    let found = findings_on(&runs, &[AU]);
    let Subject::Inconclusive(Inconclusive::TooNoisy(noisy)) = &found[0].subject else {
        panic!("{}", text(&found))
    };
    let widest = &noisy[0].2[0];
    assert_eq!((widest.low, widest.high), (Some(-100.0), Some(100.0)), "{}", text(&found));
    assert_eq!(noisy[0].0.runs, None, "{}", text(&found));
}

/// Runs without a known workload may have different workloads.
#[test]
fn runs_of_unknown_workloads_are_compared_with_nothing() {
    let mut random = LegacyRandom::new(26);
    let mut runs = Vec::new();
    for index in 0..6 {
        let rate = 100.0 * (0.01 * random.standard_normal()).exp();
        let level = if index < 3 { ("read_threads", "1") } else { ("read_threads", "8") };
        let rate = if index < 3 { rate } else { 4.0 * rate };
        runs.push(SimulatedRun { workload: UNKNOWN, ..run(index, &[level], &[(RATE, rate)]) });
    }
    let found = findings_on(&runs, &[RATE]);
    assert!(found.iter().all(|finding| finding.effects.is_empty()), "{}", text(&found));
    assert!(text(&found).contains("they may differ in storage or data"), "{}", text(&found));
    runs.iter_mut().for_each(|run| run.workload = "unet3d");
    let found = findings_on(&runs, &[RATE]);
    assert_eq!(found[0].kind, FindingKind::Effect, "{}", text(&found));
}
