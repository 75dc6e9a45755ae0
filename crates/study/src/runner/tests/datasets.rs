//! Datasets while a study runs.

use super::*;

#[test]
fn room_is_made_for_datasets_and_none_is_confused() {
    let study = Study::new(STUDY);
    let mut env = FakeEnv { free_bytes: Some(99), ..study.env() };
    let (report, _) = study.run(&mut env, RunnerOptions::default()).unwrap();
    let reason = &report.failed[0].1;
    assert!(reason.contains("needs 100 B, 1 B more than there is room"), "{reason}");
    let retry =
        RunnerOptions { retry: true, datasets: Policy::DeleteUnneeded, ..RunnerOptions::default() };
    let (report, _) = study.run(&mut study.env(), retry).unwrap();
    assert_eq!(report.finished, 4);
    assert_eq!(entries(&study.folder.path().join("data")), Vec::<PathBuf>::new());
}

#[test]
fn a_dataset_that_others_made_anew_or_read_is_not_deleted() {
    let study = Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\n");
    study
        .run(&mut study.env(), RunnerOptions { limit: Some(1), ..RunnerOptions::default() })
        .unwrap();
    let mine = study.folder.path().join("data/-data");
    let claim = fs::read_to_string(mine.join("made-by")).unwrap();
    let unneeded = RunnerOptions {
        datasets: Policy::DeleteUnneeded,
        limit: Some(0),
        ..RunnerOptions::default()
    };
    fs::write(mine.join("made-by"), "another").unwrap();
    study.run(&mut study.env(), unneeded.clone()).unwrap();
    assert!(mine.exists());
    fs::write(mine.join("made-by"), claim).unwrap();
    fs::write(mine.join("in use"), "").unwrap();
    let mut env = study.env();
    study.run(&mut env, unneeded.clone()).unwrap();
    assert!(mine.exists());
    assert!(env.events.iter().any(|event| matches!(event, RunnerEvent::InUse { .. })));
    fs::remove_file(mine.join("in use")).unwrap();
    study.run(&mut study.env(), unneeded).unwrap();
    assert!(!mine.exists());
}

#[test]
fn what_another_pending_row_needs_is_not_unneeded() {
    let study =
        Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\nw,3,,N\n");
    let only = |row: &str| RunnerOptions {
        only: vec![row.into()],
        datasets: Policy::DeleteUnneeded,
        ..RunnerOptions::default()
    };
    study.run(&mut study.env(), only("#1")).unwrap();
    study.run(&mut study.env(), only("#2")).unwrap();
    assert!(study.folder.path().join("data/-data").exists());
    assert!(!study.folder.path().join("data/++workload.dataset.format=npy-data").exists());
}

/// The others come first; where all wait, the first waits.
#[test]
fn a_row_whose_dataset_another_makes_comes_later() {
    let study = Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\n");
    let theirs = study.folder.path().join("data/-data");
    fs::create_dir_all(&theirs).unwrap();
    fs::write(theirs.join("maker"), "process 7 on h").unwrap();
    let mut env = study.env();
    let (report, _) = study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!(report.finished, 2);
    let told: Vec<String> = env.events.iter().filter_map(told_of_order).collect();
    assert_eq!(told, ["w/1 waits for process 7 on h", "2_format_npy runs", "1 runs"]);
}

fn told_of_order(event: &RunnerEvent) -> Option<String> {
    match event {
        RunnerEvent::Busy { label, holder, .. } => Some(format!("{label} waits for {holder}")),
        RunnerEvent::Running { label, .. } => Some(format!("{label} runs")),
        _ => None,
    }
}
