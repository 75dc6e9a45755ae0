//! Tests of replicates and their number.

use super::*;
use crate::chooser::{ChooserEvent, PrecisionGoal, ReplicateChooser, replicate_groups};
use feedrate_analysis::precision::{self, NextStep};
use feedrate_measure::metric::Metric;

#[test]
fn runs_with_another_plan_are_doubted_and_do_not_count_as_replicates() {
    let study = Study::new(STUDY);
    let mut env = study.env();
    env.plan = "first";
    let first = RunnerOptions { limit: Some(1), ..RunnerOptions::default() };
    study.run(&mut env, first).unwrap();
    env.plan = "another";
    let end = study.choose(&mut env, RunnerOptions::default(), &mut FixedDesign).unwrap();
    let doubted: Vec<&str> = env
        .events
        .iter()
        .filter_map(|events| match events {
            RunnerEvent::Finished { label, doubts, .. } if doubts == &["replicates_differ"] => {
                Some(label.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(doubted, ["1"]);
    let groups = replicate_groups(&end.history, Metric::find("au_all_steps").unwrap());
    assert_eq!((groups[0].rows.len(), groups[0].runs), (2, 1));
}

#[test]
fn replicates_are_added_until_the_response_is_precise_or_out_of_reach() {
    let study = Study::new("model,processes,overrides,run\nw,2,,N\nw,4,dataset.format=npy,N\n");
    let wanted = PrecisionGoal {
        target: precision::PrecisionTarget::parse("ci=2%").unwrap(),
        response: Metric::find("au_all_steps").unwrap(),
        replicates_max: 8,
    };
    let until = || ReplicateChooser::new(wanted, Vec::new());
    let mut env = study.env();
    study.choose(&mut env, RunnerOptions::default(), &mut until()).unwrap();
    let rows: Vec<Row> = study.files.table().unwrap().rows().cloned().collect();
    let rows_with = |processes| rows.iter().filter(move |row| row.accelerators == processes);
    let replicates: Vec<Option<u32>> = rows_with(2).map(|row| row.replicate).collect();
    assert_eq!(replicates, [None, Some(2), Some(3), Some(4), Some(5)]);
    assert!(rows.iter().all(|row| row.done) && rows_with(4).count() < 8);
    let ends: Vec<NextStep> = env
        .events
        .iter()
        .filter_map(|events| match events {
            RunnerEvent::Chooser(ChooserEvent::ReplicationEnded { status, .. }) => {
                Some(status.next)
            }
            _ => None,
        })
        .collect();
    assert!(ends.contains(&NextStep::Enough) && ends.contains(&NextStep::OutOfReach), "{ends:?}");
    let again = study.choose(&mut study.env(), RunnerOptions::default(), &mut until()).unwrap();
    assert_eq!(again.report.finished, 0);
}
