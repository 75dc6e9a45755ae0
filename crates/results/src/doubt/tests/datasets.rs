//! Tests of doubts about datasets that another run generated.

use super::{analyse, check, large_run};
use crate::import::fake::Fake;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::DELIVERED_WHOLE;
use std::fs;
use std::path::Path;

#[test]
fn a_run_on_another_runs_dataset_is_doubted() {
    let rows = |root: &Path, hostname: &'static str| {
        let made = Fake { start_s: 300.0, generate: true, train: false, hostname, ..large_run() };
        made.write(root, "fake/4_record_length_bytes_400000000/made");
        Fake { start_s: 500.0, ..Fake::default() }.write(root, "fake/4/later");
    };
    let (_folder, index) = analyse(|root| rows(root, "node1"));
    let later = index.runs.iter().find(|run| run.path.ends_with("later")).unwrap();
    let doubt = later.doubts.iter().find(|doubt| doubt.name == "stale_data").unwrap();
    assert_eq!(doubt.severity, Severity::Warning);
    assert!(
        later.unusable.is_none() && doubt.evidence.contains("4_record_length_bytes_400000000/made"),
        "{doubt:?}"
    );
    assert_eq!(later.mean_sample_bytes, None);
    assert_eq!(later.metric(&DELIVERED_WHOLE), None);
    let evidence = "record_length_bytes was 400000000 and is 100000000 in the run; the generation ran on `node2`, the run on `node1`";
    check("stale_data", &["4/later"], evidence, |root| rows(root, "node2"));
}

#[test]
fn a_generation_that_left_only_a_log_counts_too() {
    // Without checkpoints, DLIO leaves only a log: no summary, hostname or folder name.
    let only_a_log = |root: &Path, log: bool| {
        let made =
            Fake { start_s: 36_000.0, generate: true, train: false, ranks: 0, ..large_run() };
        let made = made.write(root, "w/4_record_length_bytes_400000000/2025-11-30-10-00-00");
        fs::remove_file(made.join("summary.json")).unwrap();
        if log {
            let text = fs::read_to_string(made.join("dlio.log")).unwrap();
            fs::write(
                made.join("dlio.log"),
                text.split_once("[OUTPUT] 2025-11-30T10:00:00.000000 Saved").unwrap().0,
            )
            .unwrap();
        } else {
            fs::remove_file(made.join("dlio.log")).unwrap();
        }
        Fake { start_s: 37_000.0, ..Fake::default() }.write(root, "w/4/run");
    };
    check("stale_data", &["4/run"], "was `4_record_length", |root| only_a_log(root, true));
    check("stale_data", &["4/run"], "was `4_record_length", |root| only_a_log(root, false));
}
