//! Tests of the conditions for findings: ignored settings, levels that cannot be compared, growth.

use super::*;

#[test]
fn shares_that_overlap_are_doubted() {
    let mut random = LegacyRandom::new(4);
    let mut runs = Vec::new();
    for (a, b, times) in [(0, 0, 2), (1, 0, 6), (0, 1, 6), (1, 1, 2)] {
        for _ in 0..times {
            let rate = 1e8 * 2_f64.powi(a + b) * (0.001 * random.standard_normal()).exp();
            let levels = [("a", ["x", "y"][a as usize]), ("b", ["x", "y"][b as usize])];
            runs.push(run(runs.len(), &levels, &[(RATE, rate)]));
        }
    }
    let found = findings_on(&runs, &[RATE]);
    let effects: Vec<&Finding> =
        found.iter().filter(|finding| finding.kind == FindingKind::Effect).collect();
    let is_doubted =
        |finding: &&Finding| finding.caveats.iter().any(|doubt| caveat(doubt).contains("overlap"));
    assert_eq!(effects.iter().copied().filter(is_doubted).count(), 2, "{}", text(&found));
}

#[test]
fn ignored_settings_are_inconclusive() {
    let mut random = LegacyRandom::new(15);
    let mut runs = Vec::new();
    for _ in 0..5 {
        for (shuffle, threads) in [("seed", "1"), ("off", "1"), ("seed", "8")] {
            let rate = if threads == "8" { 2e8 } else { 1e8 };
            let rate = rate * (0.001 * random.standard_normal()).exp();
            let levels = [("file_shuffle", shuffle), ("read_threads", threads)];
            let mut simulated = run(runs.len(), &levels, &[(RATE, rate)]);
            simulated.is_of_dlio = true;
            runs.push(simulated);
        }
    }
    insta::assert_snapshot!(text(&findings_on(&runs, &[RATE])), @"
    1. `read_threads` explains more than 99 % of the variation of throughput: at 8 it is 1.999 × that at 1 [1.997, 2.001], n = 5 (p < 0.0001, corrected for 2 tests)
    2. inconclusive, because DLIO ignores it: the effect of `file_shuffle` (off and seed) (with the loader `pytorch` every epoch reads the files in the order of their names regardless of this setting); runs that differ in nothing else count as repeats; feedrate's loaders obey it
    ");
    // A shared reason of several factors is stated once.
    let twice = runs.iter().cloned().map(|mut run| {
        let level = run.factors["file_shuffle"].clone();
        run.factors.insert("sample_shuffle".into(), level);
        run
    });
    let found = findings_on(&twice.collect::<Vec<_>>(), &[RATE]);
    let ignored = found.iter().find(|finding| finding.kind == FindingKind::CannotTell).unwrap();
    insta::assert_snapshot!(sentence(ignored), @"inconclusive, because DLIO ignores them: the effect of `file_shuffle` (off and seed) and `sample_shuffle` (off and seed) (with the loader `pytorch` every epoch reads the files in the order of their names regardless of this setting); runs that differ in nothing else count as repeats; feedrate's loaders obey them");
    // If some runs obey the setting, only their levels are compared.
    let acted = runs.iter().filter(|run| run.factors["read_threads"] == "1").cloned();
    let acted = acted.map(|mut run| {
        run.factors.insert("file_shuffle".into(), "random".into());
        run.is_of_dlio = false;
        run.responses.entry(RATE).and_modify(|rate| *rate *= 3.0);
        run
    });
    runs.extend(acted.collect::<Vec<_>>());
    let found = findings_on(&runs, &[RATE]);
    let on_shuffle = found.iter().find(|finding| finding.factors == ["file_shuffle"]).unwrap();
    assert_eq!(
        (on_shuffle.kind, on_shuffle.effects.len()),
        (FindingKind::Effect, 1),
        "{}",
        text(&found)
    );
}

/// One factor at a time from a baseline without a run, as in an interrupted study.
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
        for point in points {
            let rate = if point[1].1 == "8" { 2e8 } else { 1e8 };
            let rate = rate * (0.01 * random.standard_normal()).exp();
            runs.push(run(runs.len(), &point, &[(RATE, rate)]));
        }
    }
    insta::assert_snapshot!(text(&findings_on(&runs, &[RATE])), @"
    1. `read_threads` affects throughput: at 8 it is 2.00 × that at 1 [1.99, 2.02], n = 5 (p < 0.0001, corrected for 2 tests)
    2. inconclusive, because other factors always changed together with them: the effect of `format`, `processes` and `read_threads` at 4 on throughput; also run `format` npz, `processes` 4 and `read_threads` 4 to separate them
    3. inconclusive, because not all combinations of their levels were run: interactions of factors (3 of 3 pairs); a full factorial or a 2^k design shows them
    ");
}

/// A run with stale data does not count for growth.
#[test]
fn growth_excludes_invalid_runs() {
    let stale = doubt("stale_data", Severity::Invalid);
    let mut random = LegacyRandom::new(18);
    let mut runs = Vec::new();
    for _ in 0..3 {
        for (n, rate) in [("1", 1e8), ("2", 1.9e8), ("4", 3.5e8), ("8", 30e8)] {
            let rate = rate * (0.01 * random.standard_normal()).exp();
            let mut simulated = run(runs.len(), &[("processes", n)], &[(RATE, rate)]);
            simulated.doubts = if n == "8" { vec![stale.clone()] } else { Vec::new() };
            runs.push(simulated);
        }
    }
    let found = findings_on(&runs, &[RATE]);
    assert_eq!(found.iter().filter(|finding| finding.kind == FindingKind::LeftOut).count(), 1);
    let is_on_growth = |finding: &&Finding| {
        matches!(finding.kind, FindingKind::Superlinear | FindingKind::Scaling)
    };
    let sentences: Vec<String> = found.iter().filter(is_on_growth).map(sentence).collect();
    assert!(
        sentences.iter().all(|text| !text.contains("more than") && !text.contains(" 8 ")),
        "{sentences:?}"
    );
    assert!(sentences.iter().any(|text| text.contains("at 4 `processes` is 8")), "{sentences:?}");
}

/// A missing gain is a loss, a gain that is too small, or neither.
#[test]
fn a_loss_is_distinguished_from_a_missing_gain() {
    let said = |beyond: f64| {
        let mut random = LegacyRandom::new(20);
        let mut runs = Vec::new();
        for _ in 0..5 {
            for (n, rate) in [("1", 0.5), ("2", 1.0), ("4", beyond)] {
                let rate = 1e8 * rate * (0.002 * random.standard_normal()).exp();
                runs.push(run(runs.len(), &[("read_threads", n)], &[(RATE, rate)]));
            }
        }
        let found = findings_on(&runs, &[RATE]);
        let same = found.iter().find(|finding| finding.kind == FindingKind::NoEffect).unwrap();
        sentence(same)
    };
    insta::assert_snapshot!(said(0.8), @"more than 2 `read_threads`: throughput falls by 19.8 to 20.1 %, n = 5");
    insta::assert_snapshot!(said(1.01), @"more than 2 `read_threads`: throughput rises by at most 1.3 %, less than what matters (2 %), n = 5");
    assert!(said(1.0).contains("no measurable gain of throughput (difference −"));
}

/// A difference of two points matters if utilisation is only 5 %.
#[test]
fn small_percentages_have_a_small_margin() {
    let study = |of_b: f64| {
        let mut random = LegacyRandom::new(22);
        let runs: Vec<SimulatedRun> = (0..12)
            .map(|index| {
                let (level, au) = if index % 2 == 0 { ("x", 5.0) } else { ("y", of_b) };
                run(index, &[("a", level)], &[(AU, au + 0.02 * random.standard_normal())])
            })
            .collect();
        let found = findings_on(&runs, &[AU]);
        (found[0].kind, sentence(&found[0]).contains("within 0.5 points of x"))
    };
    assert_eq!(study(5.0), (FindingKind::NoEffect, true));
    assert_eq!(study(6.5), (FindingKind::Effect, false));
}
