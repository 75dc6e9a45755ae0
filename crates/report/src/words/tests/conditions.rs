//! What runs can tell and what not: settings that are not acted on, levels that cannot be compared, growth.

use super::*;

#[test]
fn shares_that_overlap_are_doubted() {
    let mut random = LegacyRandom::new(4);
    let mut runs = Vec::new();
    for (a, b, times) in [(0, 0, 2), (1, 0, 6), (0, 1, 6), (1, 1, 2)] {
        for _ in 0..times {
            let rate = 1e8 * 2_f64.powi(a + b) * (0.001 * random.standard_normal()).exp();
            let of = [("a", ["x", "y"][a as usize]), ("b", ["x", "y"][b as usize])];
            runs.push(run(runs.len(), &of, &[(RATE, rate)]));
        }
    }
    let found = all_of(&runs, &[RATE]);
    let effects: Vec<&Finding> =
        found.iter().filter(|one| one.kind == FindingKind::Effect).collect();
    let is_doubted = |one: &&Finding| one.caveats.iter().any(|of| caveat(of).contains("overlap"));
    assert_eq!(effects.iter().copied().filter(is_doubted).count(), 2, "{}", text(&found));
}

#[test]
fn what_is_not_acted_on_cannot_be_told() {
    let mut random = LegacyRandom::new(15);
    let mut runs = Vec::new();
    for _ in 0..5 {
        for (shuffle, threads) in [("seed", "1"), ("off", "1"), ("seed", "8")] {
            let rate = if threads == "8" { 2e8 } else { 1e8 };
            let rate = rate * (0.001 * random.standard_normal()).exp();
            let of = [("file_shuffle", shuffle), ("read_threads", threads)];
            let mut one = run(runs.len(), &of, &[(RATE, rate)]);
            one.is_of_dlio = true;
            runs.push(one);
        }
    }
    insta::assert_snapshot!(text(&all_of(&runs, &[RATE])), @"
    1. `read_threads` explains more than 99 % of the variation of throughput: at 8 it is 1.999 × that at 1 [1.997, 2.001], n = 5 (p < 0.0001, corrected for 2 tests)
    2. cannot be told, because DLIO does not act on it: what `file_shuffle` (off and seed) does (with the loader `pytorch` every epoch reads the files in the order of their names, whatever is set); runs that differ in nothing else are taken as repeats; feedrate's loaders obey it
    ");
    // Of several factors a reason is said once.
    let twice = runs.iter().cloned().map(|mut one| {
        let level = one.factors["file_shuffle"].clone();
        one.factors.insert("sample_shuffle".into(), level);
        one
    });
    let found = all_of(&twice.collect::<Vec<_>>(), &[RATE]);
    let ignored = found.iter().find(|one| one.kind == FindingKind::CannotTell).unwrap();
    insta::assert_snapshot!(sentence(ignored), @"cannot be told, because DLIO does not act on them: what `file_shuffle` (off and seed) and `sample_shuffle` (off and seed) do (with the loader `pytorch` every epoch reads the files in the order of their names, whatever is set); runs that differ in nothing else are taken as repeats; feedrate's loaders obey them");
    // Where some runs act on it, levels that both do not are not compared.
    let acted = runs.iter().filter(|one| one.factors["read_threads"] == "1").cloned();
    let acted = acted.map(|mut one| {
        one.factors.insert("file_shuffle".into(), "random".into());
        one.is_of_dlio = false;
        one.responses.entry(RATE).and_modify(|rate| *rate *= 3.0);
        one
    });
    runs.extend(acted.collect::<Vec<_>>());
    let found = all_of(&runs, &[RATE]);
    let of_shuffle = found.iter().find(|one| one.factors == ["file_shuffle"]).unwrap();
    assert_eq!(
        (of_shuffle.kind, of_shuffle.effects.len()),
        (FindingKind::Effect, 1),
        "{}",
        text(&found)
    );
}

/// One factor at a time from a baseline that has no run of its own, as in a study that was broken off.
#[test]
fn levels_are_compared_where_they_can_be() {
    let point =
        |n, threads, format| [("processes", n), ("read_threads", threads), ("format", format)];
    let points = [
        point("6", "4", "npz"),
        point("4", "1", "npz"),
        point("4", "8", "npz"),
        point("4", "4", "png"),
    ];
    let mut random = LegacyRandom::new(16);
    let mut runs = Vec::new();
    for _ in 0..5 {
        for of in points {
            let rate = if of[1].1 == "8" { 2e8 } else { 1e8 };
            let rate = rate * (0.01 * random.standard_normal()).exp();
            runs.push(run(runs.len(), &of, &[(RATE, rate)]));
        }
    }
    insta::assert_snapshot!(text(&all_of(&runs, &[RATE])), @"
    1. `read_threads` acts on throughput: at 8 it is 2.00 × that at 1 [1.99, 2.02], n = 5 (p < 0.0001, corrected for 2 tests)
    2. cannot be told, because other factors always changed with them: what `format`, `processes` and `read_threads` at 4 do to throughput; one combination more, `format` npz, `processes` 4 and `read_threads` 4, would tell
    3. cannot be told, because not all combinations of their levels were run: whether factors act together (3 of 3 pairs); a full factorial or a 2^k design would tell
    ");
}

/// A run that read another's files makes no growth.
#[test]
fn growth_rests_on_no_invalid_run() {
    let stale = doubt("stale_data", Severity::Invalid);
    let mut random = LegacyRandom::new(18);
    let mut runs = Vec::new();
    for _ in 0..3 {
        for (n, rate) in [("1", 1e8), ("2", 1.9e8), ("4", 3.5e8), ("8", 30e8)] {
            let rate = rate * (0.01 * random.standard_normal()).exp();
            let mut one = run(runs.len(), &[("processes", n)], &[(RATE, rate)]);
            one.doubts = if n == "8" { vec![stale.clone()] } else { Vec::new() };
            runs.push(one);
        }
    }
    let found = all_of(&runs, &[RATE]);
    assert_eq!(found.iter().filter(|one| one.kind == FindingKind::LeftOut).count(), 1);
    let of_growth =
        |one: &&Finding| matches!(one.kind, FindingKind::Superlinear | FindingKind::Scaling);
    let told: Vec<String> = found.iter().filter(of_growth).map(sentence).collect();
    assert!(told.iter().all(|one| !one.contains("more than") && !one.contains(" 8 ")), "{told:?}");
    assert!(told.iter().any(|one| one.contains("at 4 `processes` is 8")), "{told:?}");
}

/// What is no gain is a loss, a gain too small, or neither.
#[test]
fn a_fall_is_no_lack_of_gain() {
    let said = |beyond: f64| {
        let mut random = LegacyRandom::new(20);
        let mut runs = Vec::new();
        for _ in 0..5 {
            for (n, rate) in [("1", 0.5), ("2", 1.0), ("4", beyond)] {
                let rate = 1e8 * rate * (0.002 * random.standard_normal()).exp();
                runs.push(run(runs.len(), &[("read_threads", n)], &[(RATE, rate)]));
            }
        }
        let found = all_of(&runs, &[RATE]);
        let same = found.iter().find(|one| one.kind == FindingKind::NoEffect).unwrap();
        sentence(same)
    };
    insta::assert_snapshot!(said(0.8), @"more than 2 `read_threads`: throughput falls by 19.8 to 20.1 %, n = 5");
    insta::assert_snapshot!(said(1.01), @"more than 2 `read_threads`: throughput rises by at most 1.3 %, less than what matters (2 %), n = 5");
    assert!(said(1.0).contains("no measurable gain of throughput (difference −"));
}

/// Two points of 5 % are no small matter.
#[test]
fn small_percentages_have_a_small_margin() {
    let study = |of_b: f64| {
        let mut random = LegacyRandom::new(22);
        let runs: Vec<Simulated> = (0..12)
            .map(|at| {
                let (level, au) = if at % 2 == 0 { ("x", 5.0) } else { ("y", of_b) };
                run(at, &[("a", level)], &[(AU, au + 0.02 * random.standard_normal())])
            })
            .collect();
        let found = all_of(&runs, &[AU]);
        (found[0].kind, sentence(&found[0]).contains("within 0.5 points of x"))
    };
    assert_eq!(study(5.0), (FindingKind::NoEffect, true));
    assert_eq!(study(6.5), (FindingKind::Effect, false));
}
