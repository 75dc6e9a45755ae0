//! Tests of the result of a rehearsal.

use super::*;

fn summary(name: &str, keeps: Option<bool>) -> RuleSummary {
    let requires = "less than 2".into();
    RuleSummary { rule: "1.2.3 any".into(), name: name.into(), value: None, requires, keeps }
}

fn run(is_warm_up: bool, unusable: Option<&str>) -> RehearsedRun {
    RehearsedRun {
        run_dir: "run/20261121_100000".into(),
        is_warm_up,
        au_windowed_percent: None,
        au_all_steps_percent: Some(80.0),
        target_percent: 90.0,
        written_bytes_per_second: None,
        read_bytes_per_second: None,
        unusable: unusable.map(Into::into),
    }
}

/// A rehearsal with a rule `gap` of this outcome.
fn rehearsal(scale: f64, keeps: Option<bool>, runs: Vec<RehearsedRun>) -> RehearsalResult {
    let mut result = RehearsalResult {
        workload: "unet3d_b200".into(),
        accelerators: 1,
        edition: "v3.0".into(),
        status: None,
        scale,
        shrink_records: 1.0,
        keeps: None,
        rules: vec![RehearsedRule::new(summary("gap", keeps), None, scale < 1.0)],
        runs,
        answer: Some("NO for all 5 runs".into()),
        results: "results".into(),
        is_checkpoint_only: false,
    };
    result.keeps = result.keeps_rules();
    result
}

#[test]
fn runs_that_must_not_be_used_keep_no_rules() {
    let usable = || run(false, None);
    let stale = |is_warm_up| run(is_warm_up, Some("stale_data: other bytes"));
    let check = |keeps, runs, exit, verdict: &str| {
        let result = rehearsal(1.0, keeps, runs);
        assert_eq!(result.exit(), exit, "{result:?}");
        assert!(result.verdict().contains(verdict), "{}", result.verdict());
    };
    check(Some(true), vec![usable(), usable()], Exit::Fine, "RULES KEPT");
    check(Some(true), vec![stale(true), usable()], Exit::Fine, "RULES KEPT");
    let verdict = "accelerator: a run must not be used (v3.0)";
    check(Some(true), vec![usable(), stale(false)], Exit::Undecided, verdict);
    let verdict = "accelerator: 1.2.3 gap and a run must not be used (v3.0)";
    check(None, vec![stale(false)], Exit::Undecided, verdict);
    check(Some(false), vec![stale(false)], Exit::Unmet, "BROKEN RULES");
}

#[test]
fn a_scaled_rehearsal_names_what_it_does_not_decide() {
    let verdict = |keeps, unusable| rehearsal(0.1, keeps, vec![run(false, unusable)]).verdict();
    let kept = verdict(Some(true), None);
    assert!(kept.ends_with("apart from the scale it breaks no rule (v3.0)"), "{kept}");
    let unknown = verdict(None, None);
    let expected = "apart from the scale it breaks no rule; not decided: 1.2.3 gap (v3.0)";
    assert!(unknown.ends_with(expected), "{unknown}");
    let unusable = verdict(Some(true), Some("stale_data: other bytes"));
    assert!(unusable.ends_with("not decided: a run must not be used (v3.0)"), "{unusable}");
    // Short runs break the rule on the gap between them.
    let scaled = rehearsal(0.1, Some(false), vec![run(false, None)]);
    assert_eq!(scaled.verdict(), kept);
    let line = "scaled  1.2.3 gap (less than 2); runs are longer at full size, but an interruption counts too";
    assert!(scaled.rest().starts_with(line), "{}", scaled.rest());
}

#[test]
fn only_rules_that_the_full_size_would_keep_are_broken_by_the_scale() {
    for (keeps, full_size, word) in [
        (Some(false), Some(true), "scaled"),
        (Some(false), Some(false), "broken"),
        (Some(false), None, "broken"),
        (Some(true), Some(true), "kept"),
        (None, Some(true), "unknown"),
    ] {
        let full_size = Some(summary("steps", full_size));
        assert_eq!(RehearsedRule::new(summary("steps", keeps), full_size, false).word(), word);
    }
}

#[test]
fn training_without_windowed_au_has_the_table_of_training() {
    let training = rehearsal(1.0, None, vec![run(false, None)]);
    assert!(training.table().contains("Windowed AU"), "{}", training.table());
    let checkpoints = RehearsalResult { is_checkpoint_only: true, ..training };
    assert!(checkpoints.table().contains("Written"), "{}", checkpoints.table());
}
