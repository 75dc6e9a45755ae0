//! Tests that foreign files are never touched, and that a dataset does not change while it is read.

use super::*;
use crate::generate::{FileShare, Generation, Watch};
use crate::lock::{DatasetLock, LockAccess, LockAttempt};
use crate::removal::{self, Removal};
use std::os::unix::fs::symlink;

/// A user's folder that contains a dataset and other files.
#[test]
fn only_the_dataset_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("npz-0123");
    let storage = storage::open("file", &dataset).unwrap();
    let plan = plan("npz");
    let remove = || removal::remove_folder(&dataset, &["claim"], "a test").unwrap();
    generate_dataset(&plan, &*storage).unwrap();
    for own_path in ["claim", "train/0/.img_00_of_12.npz.1-0.part", ".manifest.json.1-0.part"] {
        std::fs::write(dataset.join(own_path), "mine").unwrap();
    }
    let Removal::Removed(found) = remove() else { panic!() };
    assert_eq!((found.files, found.foreign_files), (14, vec![]));
    assert!(!dataset.exists());

    generate_dataset(&plan, &*open_folder(&dataset)).unwrap();
    std::fs::create_dir_all(dataset.join("train/mine")).unwrap();
    std::fs::create_dir_all(dataset.join("checkpoints/global_epoch1_step5")).unwrap();
    let foreign_paths = [
        "thesis.txt",
        "checkpoints/global_epoch1_step5/model.pt",
        "train/mine/a.bin",
        "train/0/.mydownload.part",
        "train/0/img_12_of_12.npz",
        // Links with the names of the dataset's files.
        "train/1/img_01_of_12.npz",
        "valid/img_1_of_2.npz",
    ];
    for foreign in foreign_paths {
        std::fs::write(dataset.join(foreign), "mine").unwrap();
    }
    let inspected = removal::inspect_folder(&dataset, &["claim"]).unwrap().unwrap();
    assert_eq!((inspected.files, inspected.foreign_files.len()), (12, 3));
    let Removal::Removed(found) = remove() else { panic!() };
    assert_eq!(found, inspected, "the inspection reported the same");
    for foreign in foreign_paths {
        assert_eq!(std::fs::read(dataset.join(foreign)).unwrap(), b"mine", "{foreign}");
    }
    assert_eq!(count_files_below(&dataset), foreign_paths.len());
    assert_eq!(remove(), Removal::Foreign);
}

/// Part of the dataset is in another folder, behind a link.
#[test]
fn removal_does_not_follow_links() {
    let folder = tempfile::tempdir().unwrap();
    let [dataset, elsewhere] = ["npz-0123", "elsewhere"].map(|name| folder.path().join(name));
    let plan = plan("npz");
    generate_dataset(&plan, &*open_folder(&dataset)).unwrap();
    let file = dataset.join(file_path(&plan, 3));
    std::fs::rename(dataset.join("train/1"), &elsewhere).unwrap();
    symlink(&elsewhere, dataset.join("train/1")).unwrap();
    std::fs::rename(&file, elsewhere.join("3")).unwrap();
    symlink(elsewhere.join("3"), &file).unwrap();
    let Removal::Removed(found) = removal::remove_folder(&dataset, &[], "a test").unwrap() else {
        panic!()
    };
    assert_eq!((found.files, found.foreign_files.len()), (9, 2), "{found:?}");
    assert_eq!(count_files_below(&elsewhere), 4 + 1);
    assert!(file.is_symlink() && dataset.join("train/1").is_symlink());
}

fn open_folder(folder: &Path) -> Box<dyn Storage> {
    storage::open("file", folder).unwrap()
}

/// Number of files below a folder.
fn count_files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { count_files_below(&path) } else { 1 }).sum()
}

#[test]
fn a_dataset_in_use_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    generate_dataset(&plan("npz"), &*open_folder(folder.path())).unwrap();
    let attempt = DatasetLock::try_acquire(folder.path(), LockAccess::Shared, "").unwrap();
    assert!(matches!(attempt, LockAttempt::Held(_)), "{attempt:?}");
    let removal = removal::remove_folder(folder.path(), &[], "a test").unwrap();
    assert_eq!(removal, Removal::InUse { holder: None });
    assert_eq!(count_files_below(folder.path()), 14 + 2);
}

/// Foreign files are found before anything is changed.
#[test]
fn a_folder_with_foreign_files_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("train")).unwrap();
    std::fs::write(folder.path().join("train/.mydownload.part"), "mine").unwrap();
    let refused = generate_dataset(&plan("npz"), &*open_folder(folder.path()));
    let Err(DatasetError::ForeignFiles { path }) = refused else { panic!("{refused:?}") };
    assert_eq!(path, "train/.mydownload.part");
    assert_eq!(count_files_below(folder.path()), 1);
}

/// After a complete generation, changed files belong to the user, and missing files are generated again.
#[test]
fn a_file_that_has_changed_since_is_not_overwritten() {
    for_each_format(|plan, _, storage| {
        generate_dataset(&plan, storage).unwrap();
        storage.remove(&file_path(&plan, 5)).unwrap();
        assert_eq!(generate_dataset(&plan, storage).unwrap().files_written, 1);
        change(storage, &file_path(&plan, 2), |bytes| bytes[30] ^= 1);
        storage.remove(&file_path(&plan, 9)).unwrap();
        for _ in 0..2 {
            let Err(DatasetError::Altered { path: altered, .. }) = generate_dataset(&plan, storage)
            else {
                panic!()
            };
            assert_eq!(altered, file_path(&plan, 2));
        }
        storage.remove(&file_path(&plan, 2)).unwrap();
        let repaired = generate_dataset(&plan, storage).unwrap();
        assert_eq!((repaired.files_mended, verify_dataset(&plan, storage).bad_files), (0, 0));
    });
}

#[test]
fn files_that_shrink_during_generation_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open_folder(folder.path());
    let plan = plan("npz");
    let layout = Layout::new(&plan);
    let generation = Generation::new(&plan, &layout, &*storage).unwrap().unwrap();
    let existing = generation.prepare().unwrap();
    let never = AtomicBool::new(false);
    let generated = generation
        .write_files(existing, FileShare::ALL, 1, &Watch::new(&|_, _| {}, &never))
        .unwrap();
    std::fs::write(folder.path().join(file_path(&plan, 3)), "torn").unwrap();
    let refused = generation.complete(generated, Vec::new()).unwrap_err();
    assert!(matches!(refused, DatasetError::Changed { .. }), "{refused}");
}

/// After an interrupted removal, the remaining files may have been changed.
#[test]
fn a_changed_file_is_not_overwritten_after_an_interrupted_removal() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open_folder(folder.path());
    let plan = plan("npz");
    generate_dataset(&plan, &*storage).unwrap();
    change(&*storage, &file_path(&plan, 2), |bytes| bytes[30] ^= 1);
    // The manifest in the middle of a removal.
    std::fs::remove_file(folder.path().join(file_path(&plan, 1))).unwrap();
    let manifest = Manifest::read(&*storage).unwrap().unwrap();
    Manifest { state: State::Generating, removing: true, ..manifest }.write(&*storage).unwrap();
    for _ in 0..2 {
        let refused = generate_dataset(&plan, &*storage);
        let Err(DatasetError::Altered { path, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(path, file_path(&plan, 2));
    }
    storage.remove(&file_path(&plan, 2)).unwrap();
    generate_dataset(&plan, &*storage).unwrap();
    let whole = Manifest::read(&*storage).unwrap().unwrap();
    assert!(whole.state == State::Complete && !whole.removing);
}

/// Other programs write files called `manifest.json` too.
#[test]
fn a_foreign_manifest_is_refused() {
    for text in [r#"{"name": "app"}"#, "[]"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("manifest.json"), text).unwrap();
        let refused = generate_dataset(&plan("npz"), &*open_folder(folder.path()));
        let Err(DatasetError::ForeignFiles { path }) = refused else { panic!("{refused:?}") };
        assert_eq!(path, "manifest.json");
        let removal = removal::remove_folder(folder.path(), &[], "a test").unwrap();
        assert_eq!((removal, count_files_below(folder.path())), (Removal::Foreign, 1));
    }
}

/// A complete dataset of an older version is kept unchanged, and neither completed nor verified.
#[test]
fn older_versions_can_only_be_read() {
    let storage = storage::open("memory", Path::new("")).unwrap();
    let plan = fit_to_format(plan("png"), format::find("png").unwrap());
    generate_dataset(&plan, &*storage).unwrap();
    let mut manifest = Manifest::read(&*storage).unwrap().unwrap();
    manifest.content_version = 1;
    manifest.write(&*storage).unwrap();
    assert_eq!(manifest.differences(&plan), [""; 0]);
    let kept = generate_dataset(&plan, &*storage).unwrap();
    assert_eq!((kept.files_kept, kept.bytes_kept), (14, manifest.total_bytes));
    assert_eq!(Manifest::read(&*storage).unwrap().as_ref(), Some(&manifest));
    let never = AtomicBool::new(false);
    let verified = verify(&plan, &Layout::new(&plan), &*storage, 1, &|_, _| {}, &never);
    assert!(matches!(verified, Err(DatasetError::OtherVersion(_))), "{verified:?}");
    assert!(verified.unwrap_err().hint().unwrap().contains("`feedrate clean"));
    storage.remove(&file_path(&plan, 3)).unwrap();
    let refused = generate_dataset(&plan, &*storage).unwrap_err();
    assert!(refused.to_string().contains(&file_path(&plan, 3)), "{refused}");
    let incomplete = Manifest { state: State::Generating, ..manifest };
    assert_eq!(incomplete.differences(&plan).len(), 1, "an incomplete dataset cannot be completed");
}

/// Includes formats with lengths that are unknown in advance, and a missing sidecar.
#[test]
fn a_users_file_with_the_name_of_a_dataset_file_stays() {
    let gzip = Encoding { compression: Compression::Gzip, ..Encoding::default() };
    for (name, encoding) in
        [("npz", gzip), ("png", Encoding::default()), ("tfrecord", Encoding::default())]
    {
        let plan =
            fit_to_format(DatasetPlan { encoding, ..plan(name) }, format::find(name).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let dataset = folder.path().join("d");
        let storage = open_folder(&dataset);
        generate_dataset(&plan, &*storage).unwrap();
        let names = format::find(name).unwrap().parts;
        let mut sidecar = String::new();
        for part in &names[1..] {
            part.write_path(&file_path(&plan, 3), &mut sidecar);
            std::fs::remove_file(dataset.join(&sidecar)).unwrap();
        }
        let users_file = dataset.join(file_path(&plan, 3));
        std::fs::write(&users_file, "mine").unwrap();
        // Older manifests contain no lengths, so nothing can be compared.
        let manifest = Manifest::read(&*storage).unwrap().unwrap();
        Manifest { files: None, ..manifest.clone() }.write(&*storage).unwrap();
        let before = count_files_below(&dataset);
        let refused = removal::remove_folder(&dataset, &[], "a test");
        assert!(matches!(refused, Err(DatasetError::Changed { .. })), "{name}: {refused:?}");
        assert!(count_files_below(&dataset) >= before, "{name}");
        manifest.write(&*storage).unwrap();
        let Removal::Removed(found) = removal::remove_folder(&dataset, &[], "a test").unwrap()
        else {
            panic!()
        };
        assert_eq!(found.foreign_files, [file_path(&plan, 3)], "{name}");
        assert_eq!(
            (std::fs::read(&users_file).unwrap(), count_files_below(&dataset)),
            (b"mine".to_vec(), 1)
        );
    }
}

#[test]
fn unfinished_files_behind_links_stay() {
    let folder = tempfile::tempdir().unwrap();
    let [dataset, elsewhere] = ["npz-0123", "elsewhere"].map(|name| folder.path().join(name));
    let plan = plan("npz");
    generate_dataset(&plan, &*open_folder(&dataset)).unwrap();
    std::fs::rename(dataset.join("train"), &elsewhere).unwrap();
    symlink(&elsewhere, dataset.join("train")).unwrap();
    let part = elsewhere.join("0/.img_00_of_12.npz.999-0.part");
    std::fs::write(&part, "mine").unwrap();
    generate_dataset(&plan, &*open_folder(&dataset)).unwrap();
    assert!(part.exists());
    removal::remove_folder(&dataset, &[], "a test").unwrap();
    assert_eq!((part.exists(), count_files_below(&elsewhere)), (true, 13));
}

#[test]
fn a_manifest_that_is_a_pipe_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("manifest.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let result = generate_dataset(&plan("npz"), &*open_folder(folder.path()));
    assert!(matches!(result, Err(DatasetError::BrokenManifest { .. })), "{result:?}");
    assert!(pipe.exists());
}
