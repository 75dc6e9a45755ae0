//! What becomes of datasets while a study runs.

use super::*;

#[test]
fn room_is_made_for_datasets_and_none_is_confused() {
    let study = Study::new(STUDY);
    let mut world = World { free_bytes: Some(99), ..study.world() };
    let (report, _) = study.run(&mut world, Options::default()).unwrap();
    let reason = &report.failed[0].1;
    assert!(reason.contains("needs 100 B, 1 B more than there is room"), "{reason}");
    let retry = Options { retry: true, datasets: Policy::DeleteUnneeded, ..Options::default() };
    let (report, history) = study.run(&mut study.world(), retry).unwrap();
    assert_eq!((report.finished, history.datasets.len()), (4, 0));
    assert_eq!(entries(&study.folder.path().join("data")), Vec::<PathBuf>::new());
}

#[test]
fn a_dataset_that_others_made_anew_or_read_is_not_deleted() {
    let study = Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\n");
    study.run(&mut study.world(), Options { limit: Some(1), ..Options::default() }).unwrap();
    let mine = study.folder.path().join("data/-data");
    let claim = fs::read_to_string(mine.join("made-by-study")).unwrap();
    let unneeded =
        Options { datasets: Policy::DeleteUnneeded, limit: Some(0), ..Options::default() };
    fs::write(mine.join("made-by-study"), "another").unwrap();
    study.run(&mut study.world(), unneeded.clone()).unwrap();
    assert!(mine.exists());
    fs::write(mine.join("made-by-study"), claim).unwrap();
    fs::write(mine.join(".feedrate.lock"), "").unwrap();
    let reader = fs::File::open(mine.join(".feedrate.lock")).unwrap();
    reader.lock_shared().unwrap();
    let mut world = study.world();
    study.run(&mut world, unneeded.clone()).unwrap();
    assert!(mine.exists() && world.news.iter().any(|news| matches!(news, News::InUse { .. })));
    drop(reader);
    study.run(&mut study.world(), unneeded).unwrap();
    assert!(!mine.exists());
}

#[test]
fn what_another_pending_row_needs_is_not_unneeded() {
    let study =
        Study::new("model,processes,overrides,run\nw,1,,N\nw,2,dataset.format=npy,N\nw,3,,N\n");
    let only = |row: &str| Options {
        only: vec![row.into()],
        datasets: Policy::DeleteUnneeded,
        ..Options::default()
    };
    study.run(&mut study.world(), only("#1")).unwrap();
    study.run(&mut study.world(), only("#2")).unwrap();
    assert!(study.folder.path().join("data/-data").exists());
    assert!(!study.folder.path().join("data/++workload.dataset.format=npy-data").exists());
}
