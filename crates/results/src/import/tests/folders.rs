//! Tests of reading folders of DLIO runs, complete and damaged: reading always succeeds, and problems are reported.

use super::fake::Fake;
use crate::import::*;
use crate::index::{ReadOptions, RunIndex};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, SAMPLES_WHOLE};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::{CheckpointKind, Record};
use serde_json::{Value, json};
use std::fs;

fn assert_close(found: Option<f64>, expected: f64) {
    assert!((found.unwrap() - expected).abs() < 1e-3 * expected, "{found:?}, not {expected}");
}

fn record_of(imported: Imported) -> Record {
    imported.record.unwrap()
}

#[test]
fn metrics_follow_from_the_steps() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    let imported = load_dlio(&run);
    assert!(imported.unreadable.is_empty() && imported.missing.is_empty(), "{imported:?}");
    let record = imported.record.as_ref().unwrap();
    // Six steps of 0.3 s; the slowest rank waits 4.3 s and five times 0.01 s.
    let epoch_s = 6.0 * 0.3 + 4.3 + 0.05;
    assert_close(AU_ALL_STEPS.run_value(record), 180.0 / epoch_s);
    let windowed: f64 = (0..4).map(|rank| 150.0 / (epoch_s - 4.3 - 0.1 * f64::from(rank))).sum();
    assert_close(AU_WINDOWED.run_value(record), windowed / 4.0);
    assert_close(SAMPLES_WHOLE.run_value(record), 168.0 / epoch_s);
    assert_eq!(imported.ranks_expected, Some(4));
    assert_eq!(record.plan.loader.batches_in_flight, 4);
    assert_eq!(imported.log.folder.as_deref(), Some("/scratch/job/hydra_log/fake/2025"));
}

#[test]
fn checkpoints_are_as_long_as_the_rank_that_took_longest() {
    for (name, kind) in [("save_ckpt1", "save"), ("ckpt1", "save"), ("load_ckpt1", "load")] {
        let folder = tempfile::tempdir().unwrap();
        let run = Fake::default().write(folder.path(), "4/2025");
        let read = || {
            RunIndex::read(std::slice::from_ref(&run), &ReadOptions::default())
                .unwrap()
                .runs
                .remove(0)
        };
        let before = read();
        for (rank, micros) in [(0, 250_000), (1, 1000)] {
            let path = run.join(format!("{rank}_per_epoch_stats.json"));
            let mut stats: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let start = stats["1"]["block1"]["end"].as_str().unwrap().to_string();
            let (second, _) = start.split_once('.').unwrap_or((&start, ""));
            let [start, end] = [0, micros].map(|micros| format!("{second}.{micros:06}"));
            stats["1"][name] = json!({"start": start, "end": end, "duration": 0.25});
            fs::write(&path, stats.to_string()).unwrap();
        }
        let found = read();
        let is_checkpoint = |phase: &&Phase| phase.phase == PhaseKind::Checkpoint;
        let [checkpoint] = found.phases.iter().filter(is_checkpoint).collect::<Vec<_>>()[..] else {
            panic!()
        };
        assert_eq!(checkpoint.checkpoint.map(CheckpointKind::name), Some(kind));
        assert!((checkpoint.duration_s - 0.25).abs() < 1e-9, "{}", checkpoint.duration_s);
        assert_eq!(found.phases.len(), before.phases.len() + 1, "no other phase is added");
        assert_eq!(found.values, before.values);
    }
}

#[test]
fn files_of_older_versions_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { ranks: 1, files: 42, ..Fake::default() }.write(folder.path(), "old");
    let output = run.join("0_output.json");
    let text = fs::read_to_string(&output).unwrap().replace("\"compute\"", "\"other\"");
    fs::write(&output, text).unwrap();
    fs::rename(run.join("0_per_epoch_stats.json"), run.join("per_epoch_stats.json")).unwrap();
    assert_close(AU_ALL_STEPS.run_value(&record_of(load_dlio(&run))), 180.0 / (1.8 + 4.05));
}

#[test]
fn batch_size_and_record_length_are_inferred_without_a_config() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    fs::remove_dir_all(run.join(".hydra")).unwrap();
    fs::remove_file(run.join("dlio.log")).unwrap();
    let record = record_of(load_dlio(&run));
    assert_eq!(record.plan.loader.batch_size, 7);
    assert_close(Some(record.plan.dataset.record_bytes), 1e8);
    assert_close(SAMPLES_WHOLE.run_value(&record), 168.0 / 6.15);
}

/// Checks that a changed folder gives a problem that contains `expected`.
fn check(change: impl Fn(&Path), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    change(&run);
    let imported = load_dlio(&run);
    let all = [&imported.unreadable, &imported.missing, &imported.backwards];
    let all: Vec<&String> = all.into_iter().flatten().collect();
    assert!(all.iter().any(|text| text.contains(expected)), "no {expected} in {all:?}");
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn problems_of_files_are_reported() {
    let missing = load_changed_fake(Fake { files: 20, ..Fake::default() }, |_| {}).0.missing;
    assert!(missing[0].starts_with("no step was run"), "{missing:?}");
    check(|run| fs::write(run.join("1_output.json"), "").unwrap(), "`1_output.json`: it is empty");
    check(
        |run| {
            let path = run.join("2_output.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, &text[..text.len() / 2]).unwrap();
        },
        "`2_output.json`: it is cut short",
    );
    check(
        |run| fs::remove_file(run.join("summary.json")).unwrap(),
        "there is no readable `summary.json`",
    );
    check(
        |run| fs::write(run.join("summary.json"), "[]").unwrap(),
        "`summary.json`: it is not JSON",
    );
    let check_log = |change: fn(&str) -> String| {
        check(
            move |run| {
                let path = run.join("dlio.log");
                let text = change(&fs::read_to_string(&path).unwrap());
                fs::write(path, text).unwrap();
            },
            "`dlio.log`: it is cut short",
        );
    };
    check_log(|text| text[..text.len() / 2].into());
    check_log(|text| text[..text.find("[OUTPUT] 2025-11-30T10:00:01").unwrap()].into());
    check(
        |run| fs::remove_file(run.join("2_per_epoch_stats.json")).unwrap(),
        "its start or end time is unknown",
    );
    check(
        |run| replace(&run.join("0_output.json"), "4.0,", "NaN,"),
        "`NaN` is not a valid step time",
    );
    check(
        |run| replace(&run.join("0_output.json"), "4.0,", "-4.0,"),
        "`-4` is not a valid step time",
    );
    for text in
        [r#"{"1": 5}"#, r#"{"1": {"load": [1]}}"#, r#"{"1": {"load": {}, "throughput": 7}}"#]
    {
        check(|run| fs::write(run.join("0_output.json"), text).unwrap(), "is not a map of blocks");
    }
    check(|run| replace(&run.join("0_output.json"), "4.0,", ""), "it has 5 load times and 6");
    check(
        |run| {
            replace(
                &run.join("0_per_epoch_stats.json"),
                "\"end\": \"2025-11-30T10",
                "\"end\": \"2025-11-30T09",
            )
        },
        "before it began",
    );
    check(|run| fs::write(run.join(".hydra/config.yaml"), "a: [").unwrap(), "`config.yaml`: line");
    check(
        |run| fs::write(run.join(".hydra/overrides.yaml"), [0xff]).unwrap(),
        "`overrides.yaml`: it is not text",
    );
}

/// Reads a folder after `change`, and joins its unreadable parts.
fn load_changed(change: impl Fn(&Path)) -> (Imported, String) {
    load_changed_fake(Fake::default(), change)
}

fn load_changed_fake(fake: Fake, change: impl Fn(&Path)) -> (Imported, String) {
    let folder = tempfile::tempdir().unwrap();
    let run = fake.write(folder.path(), "4/2025");
    change(&run);
    let imported = load_dlio(&run);
    let unreadable = imported.unreadable.join("; ");
    (imported, unreadable)
}

fn utilisation_of(ranks: impl Iterator<Item = u32> + Clone) -> f64 {
    let count = ranks.clone().count() as f64;
    ranks.map(|rank| 150.0 / (1.85 - 0.1 * f64::from(rank))).sum::<f64>() / count
}

#[test]
fn unusable_ranks_do_not_affect_others() {
    let whole = 180.0 / 6.15;
    let remove = |name: &'static str| move |run: &Path| fs::remove_file(run.join(name)).unwrap();
    for change in [
        &remove("2_per_epoch_stats.json") as &dyn Fn(&Path),
        &remove("2_output.json"),
        &|run| fs::write(run.join("2_per_epoch_stats.json"), "{").unwrap(),
        &|run| fs::write(run.join("2_output.json"), "[1").unwrap(),
        // One of two epochs is unusable.
        &|run| replace(&run.join("2_output.json"), "4.2,", "NaN,"),
        &|run| replace(&run.join("2_output.json"), "\"2\": {", "\"x\": {"),
        &|run| replace(&run.join("2_output.json"), "\"load\": {", "\"load\": null, \"x\": {"),
    ] {
        let (imported, unreadable) = load_changed(change);
        assert_eq!(imported.ranks_missing(), [2], "{unreadable}");
        let record = record_of(imported);
        assert_close(AU_ALL_STEPS.run_value(&record), whole);
        let windowed = AU_WINDOWED.run_value(&record);
        assert_close(windowed, utilisation_of([0, 1, 3].into_iter()));
        assert!(record.epochs.iter().all(|epoch| epoch.accelerators.len() == 3), "{unreadable}");
    }
}

#[test]
fn epochs_are_dropped_until_half_of_the_ranks_have_all() {
    let check = |fake: Fake,
                 lost: &[(u32, u32)],
                 unreadable: &str,
                 epochs: &[u32],
                 ranks: &[u32]| {
        let (imported, problems) = load_changed_fake(fake, |run| {
            for (rank, epoch) in lost {
                let path = run.join(format!("{rank}_output.json"));
                replace(&path, &format!("\"{epoch}\": {{"), "\"x\": {");
            }
        });
        assert!(problems.starts_with(unreadable), "{problems}");
        let left: Vec<u32> = imported.epochs().iter().map(|epoch| epoch.number).collect();
        assert_eq!((left.as_slice(), imported.ranks), (epochs, ranks.iter().copied().collect()));
    };
    let four = Fake { epochs: 4, ..Fake::default() };
    let lost = [(0, 4), (1, 4), (2, 3), (3, 3)];
    check(four, &lost, "epoch 4 is left out: only 2 of 4 ranks", &[1, 2, 3], &[0, 1]);
    let two = Fake { ranks: 2, files: 84, epochs: 3, ..Fake::default() };
    check(two, &[(0, 3), (1, 1)], "epoch 3 is left out: only 1 of 2 ranks", &[1, 2], &[0]);
    let three = || Fake { epochs: 3, ..Fake::default() };
    check(
        three(),
        &[(0, 3), (1, 3), (2, 3)],
        "epoch 3 is left out: only 1 of 4",
        &[1, 2],
        &[0, 1, 2, 3],
    );
    check(three(), &[(1, 2)], "rank 1 is left out", &[1, 2, 3], &[0, 2, 3]);
}

#[test]
fn log_and_summary_override_a_changed_config() {
    let windowed = utilisation_of(0..4);
    for (from, to) in [
        ("num_files_train: 168", "num_files_train: 84"),
        ("batch_size: 7", "batch_size: 14"),
        ("batch_size: 7", "batch_size: -7"),
    ] {
        let change = |run: &Path| replace(&run.join(".hydra/config.yaml"), from, to);
        let record = record_of(load_changed(change).0);
        let plan = (record.plan.dataset.files_train, record.plan.loader.batch_size);
        assert_eq!((plan, record.plan.train.steps_per_epoch), ((168, 7), 6), "{to}");
        assert_close(AU_WINDOWED.run_value(&record), windowed);
        assert_close(SAMPLES_WHOLE.run_value(&record), 168.0 / 6.15);
    }
    let (imported, _) = load_changed(|run| {
        replace(&run.join("summary.json"), "accelerators\": 4", "accelerators\": 8")
    });
    assert_close(AU_WINDOWED.run_value(imported.record.as_ref().unwrap()), windowed);
}

#[test]
fn times_of_centuries_are_refused_and_sums_do_not_overflow() {
    let (imported, unreadable) = load_changed(|run| {
        let path = run.join("1_output.json");
        let years = vec!["3.1e7"; 700].join(", ");
        let text = fs::read_to_string(&path).unwrap();
        let lengthen = |text: String, kind: &str| {
            let name = text.find(kind).unwrap();
            let start = name + text[name..].find('[').unwrap() + 1;
            format!("{}{years}, {}", &text[..start], &text[start..])
        };
        fs::write(path, lengthen(lengthen(text, "\"load\""), "\"compute\"")).unwrap();
    });
    assert!(
        unreadable.contains("of rank 1: the sum of all times up to this block exceeds 290"),
        "{unreadable}"
    );
    assert_eq!(imported.ranks_missing(), [1]);
}

#[test]
fn an_epoch_without_usable_ranks_does_not_affect_others() {
    let (imported, _) = load_changed(|run| {
        for rank in 0..4 {
            let name = format!("{rank}_per_epoch_stats.json");
            replace(&run.join(name), "\"2\": {", "\"2\": null, \"x\": {");
        }
    });
    assert!(imported.ranks_missing().is_empty());
    assert_eq!(imported.epochs().len(), 1);
    assert_eq!(imported.missing, ["1 of 2 epochs have steps"]);
}

#[test]
fn block_times_are_read_from_the_log_without_other_files() {
    let (imported, unreadable) =
        load_changed(|run| fs::remove_file(run.join("0_per_epoch_stats.json")).unwrap());
    assert_eq!((imported.ranks_missing(), unreadable.as_str()), (vec![], ""));
    assert_close(AU_WINDOWED.run_value(imported.record.as_ref().unwrap()), utilisation_of(0..4));
    let (imported, unreadable) = load_changed(|run| {
        (0..4)
            .for_each(|r| fs::remove_file(run.join(format!("{r}_per_epoch_stats.json"))).unwrap());
    });
    assert_eq!((imported.ranks_missing(), unreadable.as_str()), (vec![], ""));
    assert_eq!(imported.shared_times_file, Some("dlio.log"));
    assert_close(AU_WINDOWED.run_value(imported.record.as_ref().unwrap()), utilisation_of(0..4));
}

#[test]
fn the_machine_follows_from_the_summary_or_the_ranks() {
    let components = |change: &dyn Fn(&Path)| {
        let system = load_changed(change).0.system;
        (system.components, system.memory_bytes)
    };
    let row = |name: &str, text: &str| (name.to_string(), text.to_string());
    let cpu = row("CPU", "72 × aarch64");
    let (found, memory) = components(&|_| {});
    assert_eq!(found, [cpu, row("Memory", "100 GiB")]);
    assert_eq!(memory, Some(100 << 30));
    // With one entry for two hosts, the entry may be the sum of both.
    let (found, memory) = components(&|run| {
        let path = run.join("summary.json");
        replace(&path, "\"num_hosts\": 1", "\"num_hosts\": 2");
        replace(&path, "[100.0]", "[100.0, 0.0]");
        replace(&path, "[72]", "[72, 64]");
    });
    let expected = [row("Hosts", "2"), row("CPU", "64 to 72 × aarch64 per host")];
    assert_eq!((found.as_slice(), memory), (expected.as_slice(), None));
    let (imported, _) = load_changed(|run| {
        fs::remove_file(run.join("summary.json")).unwrap();
        replace(&run.join("3_output.json"), "node1", "node2");
    });
    assert_eq!((imported.hosts, imported.system.hostname.as_str()), (Some(2), "node1"));
    assert_eq!(imported.system.components[0], row("Hosts", "2: node1, node2"));
}

#[test]
fn impossible_values_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    for (from, to) in [
        ("num_files_train: 168", "num_files_train: 999999999999999999999"),
        ("record_length_bytes_stdev: 0", "record_length_bytes_stdev: .inf"),
        ("read_threads: 4", "read_threads: 4294967295"),
        ("epochs: 2", "epochs: -3"),
    ] {
        replace(&run.join(".hydra/config.yaml"), from, to);
    }
    replace(
        &run.join("summary.json"),
        "\"num_accelerators\": 4",
        "\"num_accelerators\": 4294967295",
    );
    let imported = load_dlio(&run);
    assert_eq!(imported.ranks_missing().len(), 65_532);
    assert_eq!(imported.plan.train.epochs, 2);
}

#[test]
fn runs_are_found_in_any_layout_with_their_origin() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    Fake::default().write(root, "unet/4/2025");
    Fake::default().write(root, "unet/4/incomplete/2024");
    Fake::default().write(root, "a/b/c/d");
    let mlperf = Fake::default().write(root, "training/unet3d/run/20250613_101010");
    fs::rename(mlperf.join(".hydra"), mlperf.join("dlio_config")).unwrap();
    fs::create_dir_all(root.join("ours")).unwrap();
    fs::write(root.join("ours/record.json"), "{}").unwrap();
    fs::write(root.join("ours/summary.json"), "{}").unwrap();
    fs::create_dir_all(root.join("begun/.hydra")).unwrap();
    fs::write(root.join("begun/.hydra/config.yaml"), "workload: {}\n").unwrap();
    fs::create_dir_all(root.join("notes/.hydra")).unwrap();
    fs::write(root.join("notes/output.json"), "{}").unwrap();
    std::os::unix::fs::symlink(root, root.join("notes/again")).unwrap();
    let (found, left_out) = find(root).unwrap();
    let found: Vec<(String, RunOrigin)> = found
        .into_iter()
        .map(|run| (run.path.strip_prefix(root).unwrap().display().to_string(), run.origin))
        .collect();
    let expected = [
        ("a/b/c/d", RunOrigin::Dlio),
        ("begun", RunOrigin::Dlio),
        ("ours", RunOrigin::Feedrate),
        ("training/unet3d/run/20250613_101010", RunOrigin::MlperfStorage),
        ("unet/4/2025", RunOrigin::Dlio),
        ("unet/4/incomplete/2024", RunOrigin::Dlio),
    ];
    let expected: Vec<(String, RunOrigin)> =
        expected.map(|(path, kind)| (path.to_string(), kind)).into();
    assert_eq!((found, left_out), (expected, vec![]));
}

#[test]
fn folders_without_results_are_reported_and_hide_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let root = folder.path();
    let older = Fake::default().write(root, "closed/x/results/y/unet3d/run1/c008");
    fs::rename(older.join(".hydra"), older.join("configs")).unwrap();
    fs::write(root.join("summary.json"), "{}").unwrap();
    fs::create_dir_all(root.join("notes/configs")).unwrap();
    fs::write(root.join("notes/configs/config.yaml"), "workload: {}\n").unwrap();
    fs::create_dir_all(root.join("unet/4/2025-11-30-10-00-00")).unwrap();
    let failed = root.join("training/unet3d/run/20250613_101010");
    fs::create_dir_all(&failed).unwrap();
    fs::write(failed.join("training_20250613_101010_metadata.json"), "{}").unwrap();
    std::os::unix::fs::symlink(other.path(), root.join("elsewhere")).unwrap();
    let (found, left_out) = find(root).unwrap();
    let below = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let found: Vec<(String, RunOrigin)> =
        found.iter().map(|run| (below(&run.path), run.origin)).collect();
    let older = "closed/x/results/y/unet3d/run1/c008".to_string();
    assert_eq!(found, [(String::new(), RunOrigin::Dlio), (older, RunOrigin::MlperfStorage)]);
    let reasons = ["which is not followed", "_metadata.json`", "it is empty"];
    assert_eq!(left_out.len(), reasons.len());
    for (folder, reason) in left_out.iter().zip(reasons) {
        assert!(folder.why.contains(reason), "{left_out:?}");
    }
    assert!(find(&root.join("gone")).is_err());
}
