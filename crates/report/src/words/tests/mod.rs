//! Tests of findings on simulated studies: known effects are found, nothing else is claimed, and open questions are named.

mod comparison;
mod conditions;
mod limits;
mod over_time;
mod recommendation;

use super::finding::{caveat, sentence};
use feedrate_analysis::design::{DeclaredFactors, HOST, designs};
use feedrate_analysis::finding::{Finding, FindingKind, Inconclusive, Subject};
use feedrate_analysis::findings::{findings, main_responses};
use feedrate_measure::doubt::{Bias, Doubt, Severity};
use feedrate_measure::metric::{Metric, Provenance, Value};
use feedrate_results::import::RunOrigin;
use feedrate_results::run::{Run, UNKNOWN};
use feedrate_results::table::Table;
use feedrate_spec::plan::mt19937::LegacyRandom;
use std::collections::{BTreeMap, BTreeSet};

const AU: &str = "au_all_steps_percent";
const RATE: &str = "samples_per_second";

fn levels(levels: &[(&str, &str)]) -> BTreeMap<String, String> {
    levels.iter().map(|&(factor, level)| (factor.to_string(), level.to_string())).collect()
}

/// A run with the levels of its factors.
#[derive(Clone, Default)]
struct SimulatedRun {
    workload: &'static str,
    factors: BTreeMap<String, String>,
    responses: BTreeMap<&'static str, f64>,
    order: u32,
    /// Whether DLIO made it, with the loader `pytorch`.
    is_of_dlio: bool,
    doubts: Vec<Doubt>,
    host: Option<&'static str>,
    record_length_bytes: Option<f64>,
    number: usize,
}

impl SimulatedRun {
    fn run(&self) -> Run {
        let value = |number| Value { number, provenance: Provenance::Measured };
        let values = self
            .responses
            .iter()
            .map(|(name, number)| (Metric::find(name).unwrap().id, value(*number)));
        let loader = Some(("loader.kind".to_string(), "pytorch".to_string()));
        let host = self.host.map(|host| (HOST.to_string(), host.to_string()));
        Run {
            path: format!("run-{}", self.number).into(),
            workload: self.workload.into(),
            origin: if self.is_of_dlio { RunOrigin::Dlio } else { RunOrigin::Feedrate },
            settings: loader.into_iter().chain(host).collect(),
            record_length_bytes: self.record_length_bytes,
            values: values.collect(),
            order: Some(self.order),
            doubts: self.doubts.clone(),
            ..Run::default()
        }
    }
}

fn run(number: usize, factors: &[(&str, &str)], responses: &[(&'static str, f64)]) -> SimulatedRun {
    SimulatedRun {
        workload: "unet3d",
        factors: levels(factors),
        responses: responses.iter().copied().collect(),
        order: number as u32,
        number,
        ..SimulatedRun::default()
    }
}

fn findings_on(runs: &[SimulatedRun], names: &[&str]) -> Vec<Finding> {
    let settings: Vec<BTreeMap<String, String>> = runs
        .iter()
        .map(|run| {
            let workload = [("workload".to_string(), run.workload.to_string())];
            run.factors.clone().into_iter().chain(workload).collect()
        })
        .collect();
    // The study sets each factor itself, also those that always change together.
    let factors: BTreeSet<&String> = runs.iter().flat_map(|run| run.factors.keys()).collect();
    let factors: String = factors.into_iter().map(|name| format!("# factor {name}: \n")).collect();
    let csv = Table::parse("s.csv", &format!("model,processes,run\n{factors}")).unwrap();
    let designs = designs(&settings.iter().collect::<Vec<_>>(), &DeclaredFactors::from_table(&csv));
    let runs: Vec<Run> = runs.iter().map(SimulatedRun::run).collect();
    let responses: Vec<&Metric> = names.iter().map(|name| Metric::find(name).unwrap()).collect();
    findings(&designs, &runs.iter().collect::<Vec<_>>(), &responses)
}

fn doubt(name: &str, severity: Severity) -> Doubt {
    Doubt {
        name: name.into(),
        severity,
        bias: Bias::Either,
        evidence: "evidence".into(),
        advice: "advice".into(),
        facts: Default::default(),
    }
}

fn text(findings: &[Finding]) -> String {
    let line = |(index, finding): (usize, &Finding)| {
        let doubts = finding.caveats.iter().map(|doubt| format!("\n     doubt: {}", caveat(doubt)));
        format!("{}. {}{}", index + 1, sentence(finding), doubts.collect::<String>())
    };
    findings.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Points of perf_2025, one factor at a time.
const FACTORS: [(&str, &str, &[&str]); 4] = [
    ("processes", "4", &["1", "2", "6", "8"]),
    ("read_threads", "4", &["1", "8", "16"]),
    ("format", "npz", &["png", "hdf5"]),
    ("file_shuffle", "seed", &["off", "random"]),
];

/// The planted factor on throughput at a level.
fn planted_factor(factor: &str, level: &str) -> f64 {
    match (factor, level) {
        ("processes", n) => {
            let growth = |n: f64| n / (1.0 + 0.05 * (n - 1.0));
            growth(n.parse().unwrap()) / growth(4.0)
        }
        ("read_threads", "1") => 0.5,
        ("format", "hdf5") => 2.7,
        ("format", "png") => 0.4,
        _ => 1.0,
    }
}

/// Each point `replicates` times in random order, with log-normal noise.
fn one_at_a_time(replicates: usize, noise: f64, random: &mut LegacyRandom) -> Vec<SimulatedRun> {
    let baseline: Vec<(&str, &str)> = FACTORS.iter().map(|&(name, base, _)| (name, base)).collect();
    let mut points = vec![(baseline.clone(), 1.0)];
    for (index, (name, _, others)) in FACTORS.iter().enumerate() {
        for level in *others {
            let mut point = baseline.clone();
            point[index].1 = level;
            points.push((point, planted_factor(name, level)));
        }
    }
    let mut runs = Vec::new();
    for _ in 0..replicates {
        for (point, factor) in &points {
            let rate = 2e8 * factor * (noise * random.standard_normal()).exp();
            runs.push(run(runs.len(), point, &[(RATE, rate)]));
        }
    }
    runs
}

#[test]
fn experiments_without_replicates_are_described_but_not_tested() {
    let runs = one_at_a_time(1, 0.01, &mut LegacyRandom::new(1));
    let found = findings_on(&runs, &[RATE]);
    let tested = |kind| matches!(kind, FindingKind::NotTested | FindingKind::CannotTell);
    assert!(found.iter().all(|finding| tested(finding.kind)
        && finding.is_supported == (finding.kind == FindingKind::CannotTell)));
    insta::assert_snapshot!(text(&found), @"
    1. not tested: `processes` and throughput: at 1 it is 0.28 × that at 4; at 2 it is 0.54 × that at 4; at 6 it is 34.3 % above that at 4; at 8 it is 1.69 × that at 4
         doubt: a combination was run once: its noise was not measured
    2. not tested: `format` and throughput: hdf5 is 2.65 × npz; png is 0.39 × npz
         doubt: a combination was run once: its noise was not measured
    3. not tested: `read_threads` and throughput: at 1 it is 0.48 × that at 4; at 8 it is 0.1 % above that at 4; at 16 it is 2.4 % below that at 4
         doubt: a combination was run once: its noise was not measured
    4. not tested: throughput at 8 `processes` is 75 % of what 1 would grow to linearly, n = 1, as a combination was run once
    5. not tested: `file_shuffle` and throughput: random is 3.6 % below seed; off is 0.2 % below seed
         doubt: a combination was run once: its noise was not measured
    6. inconclusive, because some combinations were run once (no replicates): the effect of `file_shuffle`, `format`, `processes` and `read_threads` on throughput; run each at least twice to measure the noise, better 5 times (none was repeated, so the number needed is unknown)
    7. inconclusive, because not all combinations of their levels were run: interactions of factors (6 of 6 pairs); a full factorial or a 2^k design shows them
    ");
}

#[test]
fn an_open_question_of_several_workloads_is_reported_once() {
    let mut runs = one_at_a_time(1, 0.01, &mut LegacyRandom::new(1));
    let others: Vec<SimulatedRun> =
        runs.iter().map(|run| SimulatedRun { workload: "dlrm", ..run.clone() }).collect();
    runs.extend(others);
    let found = findings_on(&runs, &[RATE]);
    let workloads: Vec<String> = found
        .iter()
        .filter(|finding| finding.kind == FindingKind::CannotTell)
        .map(|finding| finding.workloads.join(", "))
        .collect();
    assert_eq!(workloads, ["dlrm, unet3d", "dlrm, unet3d"]);
}

#[test]
fn planted_effects_are_found_with_their_intervals() {
    let runs = one_at_a_time(5, 0.01, &mut LegacyRandom::new(2));
    let found = findings_on(&runs, &[RATE]);
    insta::assert_snapshot!(text(&found), @"
    1. `processes` matters most to throughput (48 % of its variation): at 1 it is 0.287 × that at 4 [0.285, 0.289]; at 2 it is 0.547 × that at 4 [0.539, 0.556]; at 6 it is 38 % above that at 4 [36 %, 40 %]; at 8 it is 1.69 × that at 4 [1.68, 1.71], n = 5 (p < 0.0001, corrected for 16 tests)
    2. `format` explains 42 % of the variation of throughput: hdf5 is 2.70 × npz [2.68, 2.72]; png is 0.398 × npz [0.391, 0.405], n = 5 (p < 0.0001, corrected for 16 tests)
    3. `read_threads` explains 8 % of the variation of throughput: at 1 it is 0.502 × that at 4 [0.497, 0.507], n = 5 (p < 0.0001, corrected for 16 tests); no measurable difference from 4 at 8 and 16
    4. throughput at 8 `processes` is 73.8 % [73.1 %, 74.5 %] of what 1 would grow to linearly, n = 5
    5. inconclusive, because the noise is too large for so few runs: throughput by `file_shuffle` (off is 0.6 % above seed [0.0 %, 1.2 %], n = 5); about 6 runs of each are needed to detect 2 %
    6. inconclusive, because not all combinations of their levels were run: interactions of factors (6 of 6 pairs); a full factorial or a 2^k design shows them
    ");
    // The runs do not show that growth differs from linear growth.
    let mut growth = found.iter().find(|found| found.kind == FindingKind::Scaling).unwrap().clone();
    growth.effects[0].high = Some(1.23);
    assert!(sentence(&growth).starts_with("estimate: throughput at 8 `processes` is 74 % ["));
    let format = found.iter().find(|finding| finding.factors == ["format"]).unwrap();
    let figures = &format.effects[0];
    assert!(figures.low.unwrap() < 2.7 && 2.7 < figures.high.unwrap());
    assert_eq!((figures.n, format.evidence.len()), (5, 15));
}

/// Runs with two batch sizes. The larger batch has the given ratio of throughput, and a utilisation 20 points lower.
fn two_batch_sizes(ratio: f64, repeats: usize) -> Vec<SimulatedRun> {
    let mut random = LegacyRandom::new(7);
    let mut runs = Vec::new();
    for _ in 0..repeats {
        for (batch, au, rate) in [("4", 90.0, 1e3), ("32", 70.0, ratio * 1e3)] {
            let z = random.standard_normal();
            let responses = [(AU, au + z), (RATE, rate * (0.01 * z).exp())];
            runs.push(run(runs.len(), &[("batch_size", batch)], &responses));
        }
    }
    runs
}

#[test]
fn a_factor_that_trades_utilisation_for_throughput_is_named() {
    let sentences = |runs: &[SimulatedRun]| -> Vec<String> {
        let found = findings_on(runs, &[AU, RATE]);
        let trade_offs = found.iter().filter(|finding| finding.kind == FindingKind::TradeOff);
        trade_offs.map(sentence).collect()
    };
    insta::assert_snapshot!(sentences(&two_batch_sizes(3.0, 5)).join("\n"), @"`batch_size` trades utilisation for throughput: at 32, utilisation over all steps is 21 points below that at 4 [19, 22] and throughput is 2.98 × that at 4 [2.94, 3.02]; compare settings by throughput");
    insta::assert_snapshot!(sentences(&two_batch_sizes(3.0, 1)).join("\n"), @"not tested: `batch_size` trades utilisation for throughput: at 32, utilisation over all steps is 22.2 points below that at 4 and throughput is 2.94 × that at 4; compare settings by throughput");
    // Both fall, or throughput is the same.
    assert_eq!(sentences(&two_batch_sizes(0.5, 5)), [""; 0]);
    assert_eq!(sentences(&two_batch_sizes(1.0, 5)), [""; 0]);
}

/// Two factors of two levels; throughput is doubled by b, and by a only with b.
fn two_by_two(random: &mut LegacyRandom, noise: f64, name: &'static str) -> Vec<SimulatedRun> {
    let mut runs = Vec::new();
    for _ in 0..5 {
        for (a, b) in [("off", "1"), ("on", "1"), ("off", "8"), ("on", "8")] {
            let z = random.standard_normal();
            let value = match (a, b) {
                (_, "1") => 1.0,
                ("off", _) => 2.0,
                _ => 4.0,
            };
            let value = if name == AU {
                20.0 * value + 100.0 * noise * z
            } else {
                1e8 * value * (noise * z).exp()
            };
            runs.push(run(runs.len(), &[("direct", a), ("read_threads", b)], &[(name, value)]));
        }
    }
    runs
}

#[test]
fn interactions_are_found() {
    let found = findings_on(&two_by_two(&mut LegacyRandom::new(3), 0.01, RATE), &[RATE]);
    insta::assert_snapshot!(text(&found), @"
    1. `read_threads` matters most to throughput (82 % of its variation): at 8 it is 2.81 × that at 1 [2.79, 2.84], n = 10 (p < 0.0001, corrected for 4 tests)
         doubt: depends on `direct`
    2. `direct` and `read_threads` interact in throughput (9 % of its variation): from 1 to 8 `read_threads` it changes by a factor of 3.98 with `direct` on and by a factor of 1.99 with off; the first is 2.00 × the second [1.96, 2.04], n = 10 (p < 0.0001, corrected for 4 tests)
    3. `direct` explains 9 % of the variation of throughput: on is 41 % above off [39 %, 42 %], n = 10 (p < 0.0001, corrected for 4 tests)
         doubt: depends on `read_threads`
    ");
    let found = findings_on(&two_by_two(&mut LegacyRandom::new(3), 0.01, AU), &[AU]);
    insta::assert_snapshot!(text(&found), @"
    1. `direct` and `read_threads` interact in utilisation over all steps (17 % of its variation): from 1 to 8 `read_threads` it changes by +59.4 points with `direct` on and by +19.6 points with off; the first is 40 points above the second [38, 42], n = 10 (p < 0.0001, corrected for 4 tests)
    2. `read_threads` matters most to utilisation over all steps (67 % of its variation): at 8 it is 39.5 points above that at 1 [38.5, 40.5], n = 10 (p < 0.0001, corrected for 4 tests)
         doubt: depends on `direct`
    3. `direct` explains 16 % of the variation of utilisation over all steps: on is 19.5 points above off [18.5, 20.5], n = 10 (p < 0.0001, corrected for 4 tests)
         doubt: depends on `read_threads`
    ");
}

#[test]
fn nothing_is_claimed_without_an_effect() {
    let mut random = LegacyRandom::new(4);
    let (mut claimed, mut held, mut studies) = (0, 0, 0);
    for _ in 0..400 {
        let mut runs = Vec::new();
        for _ in 0..5 {
            for (a, b, c) in [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)] {
                let name = ["x", "y", "z"];
                let rate = 1e8 * (0.05 * random.standard_normal()).exp();
                let levels = [("a", name[a]), ("b", name[b]), ("c", name[c])];
                runs.push(run(runs.len(), &levels, &[(RATE, rate)]));
            }
        }
        let found = findings_on(&runs, &[RATE]);
        let claim = |finding: &Finding| {
            finding.is_supported
                && !matches!(finding.kind, FindingKind::NoEffect | FindingKind::CannotTell)
        };
        claimed += u32::from(found.iter().any(claim));
        // The interval of a planted ratio of 2.
        let factor = |run: &SimulatedRun| if run.factors["a"] == "y" { 2.0 } else { 1.0 };
        runs.iter_mut().for_each(|run| *run.responses.get_mut(RATE).unwrap() *= factor(run));
        let found = findings_on(&runs, &[RATE]);
        let on_a = found
            .iter()
            .find(|finding| finding.factors == ["a"] && finding.kind == FindingKind::Effect);
        let figures = &on_a.unwrap().effects[0];
        held += u32::from(figures.low.unwrap() < 2.0 && 2.0 < figures.high.unwrap());
        studies += 1;
    }
    assert!(claimed <= studies * 5 / 100, "{claimed} of {studies} studies claim what is not there");
    assert!((372..=388).contains(&held), "{held} of {studies} intervals hold the truth");
}

#[test]
fn a_drop_caused_by_the_window_is_an_artefact() {
    let au = |windowed, all_steps, rate| {
        [("au_windowed_percent", windowed), (AU, all_steps), (RATE, rate)]
    };
    let runs = [
        run(1, &[("processes", "4")], &au(92.0, 60.5, 2e8)),
        run(2, &[("processes", "6")], &au(91.5, 60.2, 3e8)),
        run(3, &[("processes", "8")], &au(74.0, 59.2, 3.93e8)),
    ];
    let artefacts = |runs: &[SimulatedRun], responses: &[&str]| {
        let mut found = findings_on(runs, responses);
        found.retain(|finding| finding.kind == FindingKind::Artefact);
        found
    };
    let found = artefacts(&runs, &["au_windowed", RATE]);
    insta::assert_snapshot!(sentence(&found[0]), @"not tested: the drop from 6 to 8 `processes` in windowed utilisation (91.5 % to 74.0 %) is an artefact of the excluded first step: whole-epoch throughput rises by 31 % (33 % would be linear) and utilisation over all steps goes from 60.2 % to 59.2 %");
    // One run of a level describes and shows nothing.
    assert!(!found[0].is_supported);
    // Without utilisation over all steps, throughput per process replaces it.
    let bare = runs.clone().map(|mut run| {
        run.responses.remove(AU);
        run
    });
    assert_eq!(artefacts(&bare, &["au_windowed"]).len(), 1);
    // A drop that the window hides is found.
    let hidden = [
        run(1, &[("read_threads", "1")], &au(99.1, 60.5, 2e8)),
        run(2, &[("read_threads", "8")], &au(99.0, 22.0, 0.72e8)),
    ];
    insta::assert_snapshot!(sentence(&artefacts(&hidden, &["au_windowed"])[0]), @"not tested: the drop from 1 to 8 `read_threads` in utilisation is hidden by the excluded first step (windowed, 99.1 % to 99.0 %): whole-epoch throughput falls by 64 % and utilisation over all steps goes from 60.5 % to 22.0 %");
    // A drop that the whole epoch shares is no artefact.
    let real = [
        run(1, &[("processes", "6")], &au(91.5, 90.0, 3e8)),
        run(2, &[("processes", "8")], &au(74.0, 72.0, 3.2e8)),
    ];
    assert!(
        findings_on(&real, &["au_windowed"])
            .iter()
            .all(|finding| finding.kind != FindingKind::Artefact)
    );
}

/// With replicates, noise of the window is no artefact.
#[test]
fn noise_of_the_window_is_no_artefact() {
    let mut random = LegacyRandom::new(13);
    let mut study = |windowed_of_eight: f64| {
        let mut runs = Vec::new();
        for _ in 0..5 {
            for (n, windowed) in [("4", 92.0), ("6", 92.0), ("8", windowed_of_eight)] {
                let au = [
                    ("au_windowed_percent", windowed + 2.0 * random.standard_normal()),
                    (AU, 60.0 + 0.5 * random.standard_normal()),
                ];
                runs.push(run(runs.len(), &[("processes", n)], &au));
            }
        }
        let found = findings_on(&runs, &["au_windowed"]);
        found.into_iter().filter(|finding| finding.kind == FindingKind::Artefact).count()
    };
    assert_eq!(study(74.0), 1);
    let none = (0..100).filter(|_| study(92.0) == 0).count();
    assert!(95 <= none, "{none} of 100 studies");
}

#[test]
fn more_than_linear_growth_is_doubted() {
    let mut random = LegacyRandom::new(14);
    let mut runs = Vec::new();
    for _ in 0..5 {
        for (n, rate) in [("1", 1.0), ("2", 2.4), ("4", 4.8), ("8", 9.6)] {
            let rate = 1e8 * rate * (0.01 * random.standard_normal()).exp();
            runs.push(run(runs.len(), &[("processes", n)], &[(RATE, rate)]));
        }
    }
    let found = findings_on(&runs, &[RATE]);
    assert_eq!(found[0].kind, FindingKind::Superlinear);
    insta::assert_snapshot!(text(&found), @"
    1. throughput grows more than linearly: at 2 `processes` it is 121 % [119 %, 123 %] of what 1 would grow to, n = 5 (p < 0.0001, corrected for 7 tests); suspect a cache or the measurement window until this is explained
    2. `processes` explains more than 99 % of the variation of throughput: at 2 it is 2.42 × that at 1 [2.38, 2.46]; at 4 it is 4.79 × that at 1 [4.71, 4.88]; at 8 it is 9.6 × that at 1 [9.4, 9.8], n = 5 (p < 0.0001, corrected for 7 tests)
    ");
}

#[test]
fn a_drift_of_repeated_runs_is_found() {
    let mut random = LegacyRandom::new(6);
    let mut runs = Vec::new();
    for index in 0..24 {
        let threads = if index % 3 == 0 { "4" } else { ["1", "8"][index % 2] };
        let rate = 1e8 * (-0.004 * index as f64 + 0.005 * random.standard_normal()).exp();
        runs.push(run(index, &[("read_threads", threads)], &[(RATE, rate)]));
    }
    let found = findings_on(&runs, &[RATE]);
    insta::assert_snapshot!(text(&found), @"
    1. throughput drifts with the order of runs: −8.3 % from the first repeated run to the last [−9.0, −7.5], n = 24 (p < 0.0001, corrected for 3 tests)
    2. inconclusive, because the noise is too large for so few runs: throughput by `read_threads` (at 4 it is 1 % above that at 1 [−2 %, 4 %], n = 8); about 36 runs of each are needed to detect 2 %
    ");
}

#[test]
fn a_run_far_from_its_replicates_is_named() {
    let mut random = LegacyRandom::new(12);
    let mut rate = || 100.0 * (0.01 * random.standard_normal()).exp();
    let mut runs: Vec<SimulatedRun> =
        (0..12).map(|index| run(index, &[("a", "x")], &[(RATE, rate())])).collect();
    *runs[7].responses.get_mut(RATE).unwrap() *= 0.7;
    insta::assert_snapshot!(text(&findings_on(&runs, &[RATE])), @"
    1. 1 of 12 runs of the same combination is far from the others in throughput: `run-7` (modified z-score −31.1); median of these 12 runs: 99.7 samples/s [98.5 samples/s, 100 samples/s]
         doubt: with normal noise, one in eight sets of ten runs has such an outlier
    ");
    // Nine runs are too few.
    assert_eq!(text(&findings_on(&runs[..9], &[RATE])), "");
}

#[test]
fn invalid_runs_are_left_out_and_doubted_runs_named() {
    let mut runs = one_at_a_time(3, 0.01, &mut LegacyRandom::new(7));
    runs[0].doubts.push(doubt("incomplete_run", Severity::Invalid));
    // The run may have read another dataset, so it is no replicate.
    runs[3].doubts.push(doubt("stale_data", Severity::Warning));
    runs[5].doubts.push(doubt("too_few_steps", Severity::Warning));
    runs[3].factors.insert("checkpoint".into(), "False".into());
    let found = findings_on(&runs, &[RATE]);
    let of_kind = |kind: FindingKind| found.iter().filter(move |finding| finding.kind == kind);
    let left_out: Vec<String> = of_kind(FindingKind::LeftOut).map(sentence).collect();
    assert_eq!(
        left_out,
        ["2 of 36 runs are left out for doubts: `incomplete_run` (1) and `stale_data` (1)"]
    );
    let lost = "inconclusive, because all of their runs are left out: the effect of `checkpoint` (False); run these again";
    let mut open = of_kind(FindingKind::CannotTell);
    assert!(open.any(|finding| sentence(finding) == lost), "{}", text(&found));
    // Runs that were left out come before findings on the others.
    assert!(found[0].kind == FindingKind::LeftOut, "{}", text(&found));
    let is_used = |finding: &&Finding| finding.kind != FindingKind::LeftOut;
    assert!(
        found.iter().filter(is_used).all(|finding| !finding.evidence.contains(&"run-0".into()))
    );
    assert!(found.iter().any(|finding| finding.kind == FindingKind::Effect
        && finding.caveats.iter().any(|doubt| caveat(doubt) == "`too_few_steps`")));
}

#[test]
fn levels_without_a_gain_are_found() {
    let runs = one_at_a_time(5, 0.002, &mut LegacyRandom::new(8));
    let found = findings_on(&runs, &[RATE]);
    let same: Vec<Finding> =
        found.into_iter().filter(|finding| finding.kind == FindingKind::NoEffect).collect();
    insta::assert_snapshot!(text(&same), @"
    1. more than 4 `read_threads`: no measurable gain of throughput (difference −0.1 to +0.8 %), n = 5
    2. `file_shuffle` makes no relevant difference to throughput: all levels are within 2 % of seed (difference −0.1 to +0.7 %), n = 5
    ");
}
