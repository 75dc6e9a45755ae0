//! Tests that checkpoints are read back, that incomplete ones are refused, and that foreign files are kept.

use super::folder::{CheckpointFolder, WrittenPart};
use super::step::{StepFolder, begin_removal};
use super::*;
use crate::clock::Clock;
use crate::comm::tests::ThreadRank;
use crate::live::Signals;
use crate::ranks::Ranks;
use feedrate_measure::record::RankCheckpoint;
use feedrate_spec::plan::state::{Layers, StatePlan, StateType, Writers};
use feedrate_spec::plan::{CheckpointPlan, WriteInterface};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

pub(super) fn plan(folder: &Path, format: &str, fsync: bool) -> CheckpointPlan {
    let state = StatePlan {
        model_bytes: 10_000,
        layers: Layers::Alike { count: 3, tensors: vec![5000, 70] },
        optimization_groups: vec![100, 50],
        file_sizes: vec![],
        model_element: StateType::Fp16,
        optimizer_element: StateType::Fp32,
        tensor: 1,
        pipeline: 1,
        data: 3,
        zero_stage: 3,
        writers: Writers::Holders,
        ranks: 3,
        scale: 1.0,
    };
    CheckpointPlan {
        interface: WriteInterface::Posix,
        ones: false,
        alone: None,
        read_rank_shift: 0,
        folder: folder.to_string_lossy().into_owned(),
        object: None,
        after_epoch: 1,
        epochs_between: 1,
        steps_between: None,
        format: format.into(),
        total_bytes: state.total_bytes(),
        total_files: state.total_files(),
        rank_bytes_max: state.rank_bytes_max(),
        state,
        fsync,
        asynchronous: false,
        keep_last: None,
    }
}

fn folder_of(plan: &CheckpointPlan, step: u64) -> CheckpointFolder {
    CheckpointFolder::new(&Arc::new(plan.clone()), Clock::new(), &Arc::default(), 1, step)
}

fn save_in(folder: &CheckpointFolder, writers: u64) -> Result<WrittenPart, CheckpointError> {
    folder.begin()?;
    let mut part = folder.write(0..writers)?;
    folder.complete(std::mem::take(&mut part.entries))?;
    Ok(part)
}

/// Returns the path of the manifest of epoch 1 and step 5.
fn manifest_path(plan: &CheckpointPlan) -> std::path::PathBuf {
    Path::new(&plan.folder).join(".global_epoch1_step5.manifest.json")
}

fn save(plan: &CheckpointPlan) -> Result<WrittenPart, CheckpointError> {
    save_in(&folder_of(plan, 5), plan.state.writers())
}

fn load_all(plan: &CheckpointPlan, shift: u64) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let plan = CheckpointPlan { read_rank_shift: shift, ..plan.clone() };
    load(&plan, Clock::new(), 1, 5, &Ranks::single_process(3), &Signals::default())
        .map(|loaded| loaded.ranks)
}

#[test]
fn processes_write_one_checkpoint_together() {
    for asynchronous in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let plan = CheckpointPlan { asynchronous, ..plan(temporary.path(), "raw", false) };
        let plan = CheckpointPlan { keep_last: Some(1), ..plan };
        let save_and_load = |comm: ThreadRank| {
            let ranks = Ranks::new(Arc::new(comm), 3);
            let mut saver = Saver::new(&plan, Clock::new(), ranks.clone(), &Signals::default());
            for step in [4, 5] {
                saver.save(CheckpointDue { epoch: 1, steps: step, step }).unwrap();
            }
            saver.finish().unwrap();
            let shifted = CheckpointPlan { read_rank_shift: 1, ..plan.clone() };
            let loaded =
                load(&shifted, Clock::new(), 1, 5, &ranks, &Signals::default()).unwrap().ranks;
            let saved = saver.take_saved().pop().unwrap();
            (saved.record.ranks, loaded, ranks.local.len())
        };
        let all: Vec<_> = std::thread::scope(|scope| {
            let save_and_load = &save_and_load;
            let threads = ThreadRank::group(2)
                .into_iter()
                .map(|comm| scope.spawn(move || save_and_load(comm)));
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let ranks =
            |records: &[RankCheckpoint]| records.iter().map(|rank| rank.rank).collect::<Vec<_>>();
        assert_eq!(ranks(&all[0].0), [0, 1, 2], "rank 0 has the records of all ranks");
        assert_eq!(ranks(&all[0].1), [0, 1, 2]);
        assert_eq!((all[0].2, ranks(&all[1].1)), (1, vec![1, 2]));
        assert!(!folder(&plan, 1, 4).exists(), "one is kept");
        assert!(load_all(&plan, 0).is_ok());
    }
}

#[test]
fn checkpoints_load_with_every_rank_shift() {
    for format in CHECKPOINTS {
        for fsync in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let plan = plan(folder.path(), format.member().name, fsync);
            let checkpoint = folder_of(&plan, 5);
            let saved = save_in(&checkpoint, plan.state.writers()).unwrap();
            assert_eq!(saved.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1, 2]);
            let bytes: u64 = saved.ranks.iter().map(|rank| rank.bytes).sum();
            assert!(bytes >= plan.total_bytes, "{bytes}");
            assert!(saved.ranks.iter().all(|rank| (rank.sync_ns > 0) == fsync));
            assert_eq!(checkpoint.step.sync_ns() > 0, fsync);
            for shift in [0, 1, 4] {
                let loaded = load_all(&plan, shift).unwrap();
                let read: u64 = loaded.iter().map(|rank| rank.bytes).sum();
                assert_eq!(read, bytes);
            }
        }
    }
}

#[test]
fn damaged_checkpoints_are_refused_with_file_and_reason() {
    let root = tempfile::tempdir().unwrap();
    for format in CHECKPOINTS {
        let name = format.member().name;
        let plan = plan(root.path(), name, false);
        let manifest = manifest_path(&plan);
        let checkpoint_folder = super::folder(&plan, 1, 5);
        let file = checkpoint_folder.join(&format.file_names("model_states-1")[0]);
        let flip = |bytes: &mut Vec<u8>| bytes[5000] ^= 1;
        let shorten = |bytes: &mut Vec<u8>| bytes.truncate(5000);
        let lengthen = |bytes: &mut Vec<u8>| bytes.push(0);
        type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);
        let write_again = || {
            let _ = (std::fs::remove_dir_all(&checkpoint_folder), std::fs::remove_file(&manifest));
            save(&plan).unwrap();
        };
        for (path, damage, words) in [
            (&file, &flip as Damage, "its checksum is"),
            (&file, &shorten, "it has 5000 bytes of"),
            (&file, &lengthen, "bytes of"),
            (&manifest, &|bytes| bytes.truncate(100), "EOF"),
        ] {
            write_again();
            let mut bytes = std::fs::read(path).unwrap();
            damage(&mut bytes);
            std::fs::write(path, bytes).unwrap();
            let error = load_all(&plan, 0).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains(words) && message.contains(path.to_str().unwrap()),
                "{message}"
            );
            assert!(error.hint().is_some());
        }
        for (removed, words) in [(&file, "it is missing"), (&manifest, "incomplete")] {
            write_again();
            std::fs::remove_file(removed).unwrap();
            let message = load_all(&plan, 0).unwrap_err().to_string();
            let path = removed.to_str().unwrap();
            assert!(message.contains(words) && message.contains(path), "{message}");
        }
        write_again();
        let mut other = plan.clone();
        other.state.model_bytes += 1;
        let message = load_all(&other, 0).unwrap_err().to_string();
        assert!(message.contains("its tensors differ"), "{message}");
    }
}

/// Reading these files completely would take longer than a test may.
#[test]
fn a_file_of_another_length_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), "raw", false);
    save(&plan).unwrap();
    let path = super::folder(&plan, 1, 5).join("model_states-1.raw");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 42).unwrap();
    let message = load_all(&plan, 0).unwrap_err().to_string();
    assert!(message.contains("it has 4398046511104 bytes of"), "{message}");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let message = load_all(&plan, 0).unwrap_err().to_string();
    assert!(message.contains("it is not a regular file"), "{message}");
    let manifest = std::fs::OpenOptions::new().write(true).open(manifest_path(&plan)).unwrap();
    manifest.set_len(1 << 42).unwrap();
    let message = load_all(&plan, 0).unwrap_err().to_string();
    assert!(message.contains("it has 4398046511104 bytes, more than"), "{message}");
    save(&plan).unwrap_err();
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Opening a pipe for reading normally blocks until a writer opens it.
#[test]
fn a_pipe_with_the_name_of_a_checkpoint_file_does_not_block() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), "raw", false);
    let checkpoint_folder = super::folder(&plan, 1, 5);
    for path in [manifest_path(&plan), checkpoint_folder.join("model_states-1.raw")] {
        save(&plan).unwrap();
        let _ = std::fs::remove_file(&path);
        pipe(&path);
        let error = save(&plan).unwrap_err();
        assert!(matches!(error, CheckpointError::ForeignFiles { paths } if paths.contains(&path)));
        load_all(&plan, 0).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_dir_all(&checkpoint_folder).unwrap();
    }
}

/// Files that only have the name of a checkpoint file belong to the user.
#[test]
fn foreign_files_are_neither_overwritten_nor_removed() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), "raw", false);
    let checkpoint_folder = super::folder(&plan, 1, 5);
    let check_refused = |path: &Path| {
        let error = save(&plan).unwrap_err();
        assert!(error.hint().is_some());
        let CheckpointError::ForeignFiles { paths } = error else { panic!("{error}") };
        assert_eq!(paths, [path]);
    };
    let mine = br#"{"mine":1}"#;
    for path in [manifest_path(&plan), checkpoint_folder.join("model_states-1.raw")] {
        std::fs::create_dir_all(&checkpoint_folder).unwrap();
        std::fs::write(&path, mine).unwrap();
        check_refused(&path);
        assert_eq!(std::fs::read(&path).unwrap(), mine);
        std::fs::remove_file(path).unwrap();
        assert_eq!(std::fs::read_dir(&checkpoint_folder).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
    }
    // Overwriting an older checkpoint keeps the foreign files in its folder, and removes files that the new plan does not have.
    save(&plan).unwrap();
    let foreign_names = ["thesis.txt", "manifest.json", "model_states-1.part", ".a.7-0.part"];
    foreign_names
        .iter()
        .for_each(|name| std::fs::write(checkpoint_folder.join(name), mine).unwrap());
    let with_two_ranks = |plan: &CheckpointPlan| {
        let mut smaller = plan.clone();
        (smaller.state.ranks, smaller.state.data) = (2, 2);
        smaller
    };
    let names = || std::fs::read_dir(&checkpoint_folder).unwrap().count();
    let before = names();
    save(&with_two_ranks(&plan)).unwrap();
    assert!(names() < before && !checkpoint_folder.join("model_states-2.raw").exists());
    save(&plan).unwrap();
    assert_eq!(names(), before);
    for name in foreign_names {
        assert_eq!(std::fs::read(checkpoint_folder.join(name)).unwrap(), mine);
    }
    // A file that was changed since is foreign.
    let file = checkpoint_folder.join("model_states-0.raw");
    std::fs::write(&file, "mine").unwrap();
    check_refused(&file);
    // A link may lead to foreign files.
    std::fs::remove_file(&file).unwrap();
    save(&plan).unwrap();
    let moved = temporary.path().join("moved");
    std::fs::rename(&file, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &file).unwrap();
    check_refused(&file);
    std::fs::remove_file(&file).unwrap();
    let thesis = temporary.path().join("thesis.txt");
    std::fs::write(&thesis, "mine").unwrap();
    let manifest = manifest_path(&plan);
    std::fs::remove_file(&manifest).unwrap();
    std::fs::remove_dir_all(&checkpoint_folder).unwrap();
    std::os::unix::fs::symlink(&thesis, &manifest).unwrap();
    check_refused(&manifest);
    std::fs::remove_file(&manifest).unwrap();
    save(&plan).unwrap();
    std::fs::rename(&checkpoint_folder, temporary.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &checkpoint_folder).unwrap();
    check_refused(&checkpoint_folder);
    assert_eq!(std::fs::read(&thesis).unwrap(), b"mine");
}

/// Tests the state after a killed run, with and without an older checkpoint that has more files.
#[test]
fn an_incomplete_checkpoint_is_refused_and_written_again() {
    for replaces_older in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let plan = plan(temporary.path(), "pt", false);
        let mut older = plan.clone();
        (older.state.ranks, older.state.data) = (4, 4);
        if replaces_older {
            save(&older).unwrap();
        }
        let checkpoint = folder_of(&plan, 5);
        checkpoint.begin().unwrap();
        checkpoint.write(0..1).unwrap();
        let path = &checkpoint.step.path;
        std::fs::write(path.join(".model_states-1.pt.7-0.part"), "half").unwrap();
        std::fs::write(path.join("model_states-2.pt"), "some of it").unwrap();
        let message = load_all(&plan, 0).unwrap_err().to_string();
        assert!(message.contains("begun and not completed"), "{message}");
        save(&plan).unwrap();
        load_all(&plan, 0).unwrap();
        let files = std::fs::read_dir(path).unwrap().count() as u64;
        assert_eq!(files, plan.total_files, "{replaces_older}");
    }
}

/// The manifest is removed last, so that the remaining files are still recognised as feedrate's.
#[test]
fn an_interrupted_removal_can_be_resumed() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), "raw", false);
    for is_begun in [false, true] {
        if is_begun {
            folder_of(&plan, 5).begin().unwrap();
            folder_of(&plan, 5).write(0..2).unwrap();
        } else {
            save(&plan).unwrap();
        }
        let checkpoint_folder = super::folder(&plan, 1, 5);
        std::fs::remove_file(checkpoint_folder.join("model_states-0.raw")).unwrap();
        std::fs::write(checkpoint_folder.join(".model_states-1.raw.7-0.part"), "half").unwrap();
        load_all(&plan, 0).unwrap_err();
        folder_of(&plan, 6).remove(1, 5).unwrap();
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "{is_begun}");
    }
}

#[test]
fn a_checkpoint_is_incomplete_once_its_removal_has_begun() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), "raw", false);
    save(&plan).unwrap();
    let step = StepFolder::new(None, temporary.path(), 1, 5);
    let user_file = super::folder(&plan, 1, 5).join("model_states-1.raw");
    std::fs::write(&user_file, "changed").unwrap();
    let storage = feedrate_data::storage::open("file", temporary.path()).unwrap();
    begin_removal(&step.read_manifest().unwrap().unwrap(), &*storage).unwrap();
    let incomplete = step.read_manifest().unwrap().unwrap();
    assert!(incomplete.files.contains_key("model_states-0.raw"));
    assert!(!incomplete.files.contains_key("model_states-1.raw"), "it is a foreign file now");
    assert!(incomplete.files.values().all(Option::is_none));
    load_all(&plan, 0).unwrap_err();
    step.remove().unwrap();
    assert_eq!(std::fs::read(&user_file).unwrap(), b"changed");
}

#[test]
fn a_replaced_file_survives_incomplete_checkpoints() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), "raw", false);
    save(&plan).unwrap();
    let user_file = super::folder(&plan, 1, 5).join("model_states-1.raw");
    std::fs::write(&user_file, "changed").unwrap();
    let step = StepFolder::new(None, temporary.path(), 1, 5);
    let planned = BTreeSet::from(["model_states-0.raw".to_string()]);
    for _ in 0..2 {
        step.begin(&planned, step.read_manifest().unwrap()).unwrap();
    }
    assert_eq!(std::fs::read(&user_file).unwrap(), b"changed");
}

#[test]
fn checkpoints_differ_and_are_not_confused() {
    for (ones, format) in [(false, "raw"), (false, "pt"), (true, "raw")] {
        let temporary = tempfile::tempdir().unwrap();
        let plan = CheckpointPlan { ones, ..plan(temporary.path(), format, false) };
        let mut saver =
            Saver::new(&plan, Clock::new(), Ranks::single_process(3), &Signals::default());
        let all = [(1, 5), (1, 6), (2, 5), (5, 1)];
        for (epoch, step) in all {
            saver.save(CheckpointDue { epoch, steps: step, step }).unwrap();
        }
        let name = format!("{}.{format}", plan.state.files(0)[0].name);
        let content = |&(epoch, step)| std::fs::read(folder(&plan, epoch, step).join(&name));
        let contents: std::collections::BTreeSet<_> =
            all.iter().map(|checkpoint| content(checkpoint).unwrap()).collect();
        assert_eq!(contents.len(), if ones { 1 } else { all.len() });
        load_all(&plan, 0).unwrap();
        std::fs::remove_dir_all(folder(&plan, 1, 5)).unwrap();
        std::fs::rename(folder(&plan, 1, 6), folder(&plan, 1, 5)).unwrap();
        match load_all(&plan, 0) {
            Ok(_) => assert!(ones, "equal bytes are equal"),
            Err(error) => assert!(error.to_string().contains("its checksum is"), "{error}"),
        }
        let other_manifest = temporary.path().join(".global_epoch1_step6.manifest.json");
        std::fs::rename(other_manifest, manifest_path(&plan)).unwrap();
        let message = load_all(&plan, 0).unwrap_err().to_string();
        assert!(message.contains("it is of epoch 1 and step 6"), "{message}");
    }
}

#[test]
fn a_manifest_without_epoch_or_step_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), "raw", false);
    save(&plan).unwrap();
    let manifest = manifest_path(&plan);
    let text = std::fs::read(&manifest).unwrap();
    for field in ["step", "epoch"] {
        let mut json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert!(json.as_object_mut().unwrap().remove(field).is_some());
        std::fs::write(&manifest, json.to_string()).unwrap();
        let message = load_all(&plan, 0).unwrap_err().to_string();
        assert!(message.contains(&format!("missing field `{field}`")), "{message}");
    }
}

#[test]
fn tensors_may_be_ones() {
    let folder = tempfile::tempdir().unwrap();
    let plan = CheckpointPlan { ones: true, ..plan(folder.path(), "raw", false) };
    save(&plan).unwrap();
    let name = format!("{}.raw", plan.state.files(0)[0].name);
    let bytes = std::fs::read(folder.path().join("global_epoch1_step5").join(name)).unwrap();
    assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 1));
    load_all(&plan, 0).unwrap();
}
