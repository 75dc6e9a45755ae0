//! Tests of findings on changes during runs, from invented records.

use super::*;
use feedrate_analysis::finding::EffectUnit;
use feedrate_measure::example::{block, checkpoint, epoch, plan, record};
use feedrate_measure::record::EpochRecord;
use std::path::Path;

/// A run of three epochs. Each has two blocks of four steps of 10 ms, with a checkpoint of 20 ms between them. `loads_ms` are the load times in the first
/// epoch and in later epochs, and the additional load time after the checkpoint.
fn run_with_epochs(name: &str, batch: u64, loads_ms: [u64; 3]) -> Run {
    let [first_ms, later_ms, after_ms] = loads_ms;
    let mut epochs = Vec::new();
    let mut at_ms = 0;
    for number in 1..=3 {
        let load_ms = if number == 1 { first_ms } else { later_ms };
        let before = block(at_ms, &[(load_ms, 10, 0, 1000); 4]);
        let saved_ms = before.end_ns / 1_000_000;
        let after = block(saved_ms + 20, &[(load_ms + after_ms, 10, 0, 1000); 4]);
        at_ms = after.end_ns / 1_000_000;
        let mut epoch = epoch(number, vec![vec![before, after]]);
        epoch.checkpoints = vec![checkpoint(saved_ms, saved_ms + 20, 1000, 4)];
        epochs.push(epoch);
    }
    let mut record = record(plan(1, 8), epochs);
    record.plan.loader.batch_size = batch;
    Run { doubts: Vec::new(), unusable: None, ..Run::from_record(Path::new(name), &record) }
}

/// The text of findings on epochs and checkpoints.
fn findings_text(runs: &[Run]) -> String {
    let designs = designs(
        &runs.iter().map(|run| &run.settings).collect::<Vec<_>>(),
        &DeclaredFactors::default(),
    );
    let all = findings(&designs, &runs.iter().collect::<Vec<_>>(), &[]);
    let kinds = [FindingKind::Epochs, FindingKind::Checkpoints];
    text(&all.into_iter().filter(|finding| kinds.contains(&finding.kind)).collect::<Vec<_>>())
}

#[test]
fn a_slow_first_epoch_and_slow_steps_after_checkpoints_are_found() {
    let runs: Vec<Run> = [29, 30, 31]
        .into_iter()
        .flat_map(|load_ms| [2, 4].map(|batch| (load_ms, batch)))
        .map(|(load_ms, batch)| {
            run_with_epochs(&format!("{batch}-{load_ms}"), batch, [load_ms, 10, 10])
        })
        .collect();
    insta::assert_snapshot!(findings_text(&runs), @"
    1. throughput of the first epoch is 0.58 × that of later ones [0.57, 0.59] and utilisation over all steps of the first epoch is 17.8 points below that of later ones [17.2, 18.3], 6 runs of 2 experiments (p < 0.0001, corrected for 4 tests)
    2. a checkpoint takes 20 ms [20 ms, 20 ms] and costs 60 ms [60 ms, 60 ms] net; checkpoints are 7.3 % [7.2 %, 7.4 %] of the time; no step ran during one; throughput after it is 29.2 % below that before [29.0 %, 29.3 %] and utilisation over all steps after it is 12.78 points below that before [12.69, 12.86], 6 runs of 2 experiments (p < 0.0001, corrected for 4 tests)
    ");
}

#[test]
fn equal_epochs_do_not_differ_measurably() {
    let runs: Vec<Run> = [[10, 10, 0], [11, 10, 0], [10, 11, 0]]
        .into_iter()
        .enumerate()
        .map(|(index, loads_ms)| run_with_epochs(&index.to_string(), 2, loads_ms))
        .collect();
    insta::assert_snapshot!(findings_text(&runs), @"
    1. a checkpoint takes 20 ms [20 ms, 20 ms] and costs 20 ms [20 ms, 20 ms] net; checkpoints are 11 % [11 %, 11 %] of the time; no step ran during one; throughput after it does not differ measurably from that before (0.00 to 0.00 %) and utilisation over all steps after it does not differ measurably from that before (0.00 to 0.00 points), 3 runs of 1 experiment
    2. throughput of the first epoch does not differ measurably from that of later ones (−10 to +11 %) and utilisation over all steps of the first epoch does not differ measurably from that of later ones (−6 to +6 points), 3 runs of 1 experiment
    ");
}

/// The first epoch is compared with later ones in each run, so runs of experiments without replicates count too.
#[test]
fn all_runs_with_several_epochs_are_used() {
    let runs: Vec<Run> = [(2, 29), (2, 30), (4, 31), (8, 30), (16, 29)]
        .into_iter()
        .enumerate()
        .map(|(index, (batch, load_ms))| {
            run_with_epochs(&index.to_string(), batch, [load_ms, 10, 10])
        })
        .collect();
    let designs = designs(
        &runs.iter().map(|run| &run.settings).collect::<Vec<_>>(),
        &DeclaredFactors::default(),
    );
    let found = findings(&designs, &runs.iter().collect::<Vec<_>>(), &[]);
    let epochs = found.iter().find(|finding| finding.kind == FindingKind::Epochs).unwrap();
    assert_eq!((epochs.evidence.len(), epochs.effects[0].n), (5, 5));
    assert!(epochs.is_supported && epochs.effects[0].high.unwrap() < 0.65, "{epochs:?}");
}

#[test]
fn one_run_is_described_and_claims_nothing() {
    insta::assert_snapshot!(findings_text(&[run_with_epochs("a", 2, [30, 10, 10])]), @"
    1. not tested: throughput of the first epoch is 0.58 × that of later ones and utilisation over all steps of the first epoch is 17.8 points below that of later ones, 1 run of 1 experiment
         doubt: a combination was run once: its noise was not measured
    2. not tested: a checkpoint takes 20 ms and costs 60 ms net; checkpoints are 7.3 % of the time; no step ran during one; throughput after it is 29.2 % below that before and utilisation over all steps after it is 12.8 points below that before, 1 run of 1 experiment
         doubt: a combination was run once: its noise was not measured
    ");
    assert_eq!(findings_text(&[run(1, &[], &[(AU, 50.0)]).run()]), "");
}

/// The first steps of an epoch are slow with or without a checkpoint before it.
#[test]
fn the_start_of_an_epoch_is_no_effect_of_the_checkpoint_before_it() {
    let run_of = |load_ms: u64| {
        let first = epoch(1, vec![vec![block(0, &[(load_ms, 10, 0, 1000); 8])]]);
        let saved_ms = first.end_ns / 1_000_000;
        let second = block(saved_ms + 20, &[(9 * load_ms, 10, 0, 1000); 8]);
        let first = EpochRecord {
            checkpoints: vec![checkpoint(saved_ms, saved_ms + 20, 1000, 8)],
            ..first
        };
        let record = record(plan(1, 8), vec![first, epoch(2, vec![vec![second]])]);
        Run { doubts: Vec::new(), ..Run::from_record(Path::new(&load_ms.to_string()), &record) }
    };
    let text = findings_text(&[run_of(10), run_of(11), run_of(12)]);
    assert!(text.contains("a checkpoint takes 20 ms"), "{text}");
    assert!(!text.contains("after it"), "{text}");
}

#[test]
fn intervals_of_percentages_stay_within_possible_values() {
    let runs = [run_with_epochs("a", 2, [200, 10, 0]), run_with_epochs("b", 2, [12, 10, 0])];
    let designs = designs(
        &runs.iter().map(|run| &run.settings).collect::<Vec<_>>(),
        &DeclaredFactors::default(),
    );
    let found = findings(&designs, &runs.iter().collect::<Vec<_>>(), &[]);
    let effects: Vec<_> = found.iter().flat_map(|finding| &finding.effects).collect();
    let ends = |unit| {
        let wanted = effects.iter().filter(move |effect| effect.unit == unit);
        wanted.flat_map(|effect| [effect.low, effect.high])
    };
    let points: Vec<f64> = ends(EffectUnit::Points).flatten().collect();
    assert!(points.contains(&-100.0) && points.iter().all(|end| end.abs() <= 100.0), "{points:?}");
    let shares: Vec<f64> = ends(EffectUnit::Share).flatten().collect();
    assert!(!shares.is_empty() && shares.iter().all(|end| (0.0..=1.0).contains(end)), "{shares:?}");
}
