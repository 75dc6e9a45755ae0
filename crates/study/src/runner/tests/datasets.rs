//! Tests of generating and deleting datasets while a study runs.

use super::*;

#[test]
fn datasets_are_deleted_to_make_room() {
    let study = Study::new(STUDY);
    let mut env = FakeEnv { free_bytes: Some(99), ..study.env() };
    let (report, _) = study.run(&mut env, RunnerOptions::default()).unwrap();
    let reason = &report.failed[0].1;
    assert!(reason.contains("needs 100 B, 1 B more than fits"), "{reason}");
    let retry = RunnerOptions { retry: true, ..RunnerOptions::default() };
    let mut env = FakeEnv { free_bytes: Some(100), ..study.env() };
    assert_eq!(study.run(&mut env, retry).unwrap().0.finished, 4);
}

#[test]
fn a_foreign_dataset_or_one_in_use_is_not_deleted() {
    let study = Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\n");
    let run = |free_bytes, datasets, limit| {
        let mut env = FakeEnv { free_bytes, ..study.env() };
        let options = RunnerOptions { datasets, limit, retry: true, ..RunnerOptions::default() };
        study.run(&mut env, options).unwrap();
        env.events
    };
    run(None, Policy::MakeRoom, Some(1));
    let mine = study.folder.path().join("data/-data");
    let claim = fs::read_to_string(mine.join("made-by")).unwrap();
    fs::write(mine.join("made-by"), "another").unwrap();
    run(Some(99), Policy::MakeRoom, None);
    assert!(mine.exists());
    fs::write(mine.join("made-by"), claim).unwrap();
    run(Some(99), Policy::Keep, None);
    assert!(mine.exists());
    fs::write(mine.join("in use"), "").unwrap();
    let events = run(Some(99), Policy::MakeRoom, None);
    assert!(mine.exists());
    assert!(events.iter().any(|event| matches!(event, RunnerEvent::InUse { .. })));
    study.edit(|csv| csv.replace("npy,Y", "npy,N"));
    fs::remove_dir_all(study.folder.path().join("data/++workload.dataset.format=npy-data"))
        .unwrap();
    fs::remove_file(mine.join("in use")).unwrap();
    run(Some(99), Policy::MakeRoom, None);
    assert!(!mine.exists());
}

/// Other rows run first. If all rows wait for datasets, the first one waits.
#[test]
fn a_row_whose_dataset_another_process_generates_runs_later() {
    let study = Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\n");
    let theirs = study.folder.path().join("data/-data");
    fs::create_dir_all(&theirs).unwrap();
    fs::write(theirs.join("maker"), "process 7 on h").unwrap();
    let mut env = study.env();
    let (report, _) = study.run(&mut env, RunnerOptions::default()).unwrap();
    assert_eq!(report.finished, 2);
    let order: Vec<String> = env.events.iter().filter_map(describe_order).collect();
    assert_eq!(order, ["w/1 waits for process 7 on h", "2_format_npy runs", "1 runs"]);
}

fn describe_order(event: &RunnerEvent) -> Option<String> {
    match event {
        RunnerEvent::Busy { label, holder, .. } => Some(format!("{label} waits for {holder}")),
        RunnerEvent::Running { label, .. } => Some(format!("{label} runs")),
        _ => None,
    }
}
