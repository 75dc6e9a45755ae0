//! Folders of DLIO runs, whole and broken: none stops the reading, and what is wrong is told.

use super::fake::Fake;
use crate::import::*;
use crate::index::{ReadOptions, RunIndex};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, SAMPLES_WHOLE};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::{CheckpointKind, Record};
use serde_json::{Value, json};
use std::fs;

fn near(found: Option<f64>, expected: f64) {
    assert!((found.unwrap() - expected).abs() < 1e-3 * expected, "{found:?}, not {expected}");
}

fn record_of(imported: Imported) -> Record {
    imported.record.unwrap()
}

#[test]
fn the_numbers_follow_from_the_steps() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    let imported = load_dlio(&run);
    assert!(imported.unreadable.is_empty() && imported.missing.is_empty(), "{imported:?}");
    let record = imported.record.as_ref().unwrap();
    // Six steps of 0.3 s; the slowest rank waits 4.3 s and five times 0.01 s.
    let epoch_s = 6.0 * 0.3 + 4.3 + 0.05;
    near(AU_ALL_STEPS.run_value(record), 180.0 / epoch_s);
    let windowed: f64 = (0..4).map(|rank| 150.0 / (epoch_s - 4.3 - 0.1 * f64::from(rank))).sum();
    near(AU_WINDOWED.run_value(record), windowed / 4.0);
    near(SAMPLES_WHOLE.run_value(record), 168.0 / epoch_s);
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
            let [start, end] = [0, micros].map(|at| format!("{second}.{at:06}"));
            stats["1"][name] = json!({"start": start, "end": end, "duration": 0.25});
            fs::write(&path, stats.to_string()).unwrap();
        }
        let found = read();
        let saved = |of: &&Phase| of.phase == PhaseKind::Checkpoint;
        let [one] = found.phases.iter().filter(saved).collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(one.checkpoint.map(CheckpointKind::name), Some(kind));
        assert!((one.duration_s - 0.25).abs() < 1e-9, "{}", one.duration_s);
        assert_eq!(found.phases.len(), before.phases.len() + 1, "nothing beside it is known");
        assert_eq!(found.values, before.values);
    }
}

#[test]
fn older_files_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { ranks: 1, files: 42, ..Fake::default() }.write(folder.path(), "old");
    let output = run.join("0_output.json");
    let text = fs::read_to_string(&output).unwrap().replace("\"compute\"", "\"other\"");
    fs::write(&output, text).unwrap();
    fs::rename(run.join("0_per_epoch_stats.json"), run.join("per_epoch_stats.json")).unwrap();
    near(AU_ALL_STEPS.run_value(&record_of(load_dlio(&run))), 180.0 / (1.8 + 4.05));
}

#[test]
fn without_a_config_the_rates_tell_batch_and_record_length() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    fs::remove_dir_all(run.join(".hydra")).unwrap();
    fs::remove_file(run.join("dlio.log")).unwrap();
    let record = record_of(load_dlio(&run));
    assert_eq!(record.plan.loader.batch_size, 7);
    near(Some(record.plan.dataset.record_bytes), 1e8);
    near(SAMPLES_WHOLE.run_value(&record), 168.0 / 6.15);
}

/// A run whose folder was changed, and what is told of it.
fn check(change: impl Fn(&Path), told: &str) {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    change(&run);
    let imported = load_dlio(&run);
    let all = [&imported.unreadable, &imported.missing, &imported.backwards];
    let all: Vec<&String> = all.into_iter().flatten().collect();
    assert!(all.iter().any(|text| text.contains(told)), "no {told} in {all:?}");
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn what_is_broken_is_told() {
    let none = left_of(Fake { files: 20, ..Fake::default() }, |_| {}).0.missing;
    assert!(none[0].starts_with("no step was run"), "{none:?}");
    check(|run| fs::write(run.join("1_output.json"), "").unwrap(), "`1_output.json`: it is empty");
    check(
        |run| {
            let path = run.join("2_output.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, &text[..text.len() / 2]).unwrap();
        },
        "`2_output.json`: it is cut short",
    );
    check(|run| fs::remove_file(run.join("summary.json")).unwrap(), "there is no `summary.json`");
    check(
        |run| fs::write(run.join("summary.json"), "[]").unwrap(),
        "`summary.json`: it is no JSON",
    );
    let log = |change: fn(&str) -> String| {
        check(
            move |run| {
                let path = run.join("dlio.log");
                let text = change(&fs::read_to_string(&path).unwrap());
                fs::write(path, text).unwrap();
            },
            "`dlio.log`: it is cut short",
        );
    };
    log(|text| text[..text.len() / 2].into());
    log(|text| text[..text.find("[OUTPUT] 2025-11-30T10:00:01").unwrap()].into());
    check(
        |run| fs::remove_file(run.join("2_per_epoch_stats.json")).unwrap(),
        "it is not known when it began and ended",
    );
    check(|run| replace(&run.join("0_output.json"), "4.0,", "NaN,"), "`NaN` is no time of a step");
    check(|run| replace(&run.join("0_output.json"), "4.0,", "-4.0,"), "`-4` is no time of a step");
    for text in
        [r#"{"1": 5}"#, r#"{"1": {"load": [1]}}"#, r#"{"1": {"load": {}, "throughput": 7}}"#]
    {
        check(|run| fs::write(run.join("0_output.json"), text).unwrap(), "is no map of blocks");
    }
    check(|run| replace(&run.join("0_output.json"), "4.0,", ""), "5 times of loading and 6");
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
        "`overrides.yaml`: it is no text",
    );
}

/// Ranks that are left of a folder that was changed, and what is told of it.
fn left(change: impl Fn(&Path)) -> (Imported, String) {
    left_of(Fake::default(), change)
}

fn left_of(fake: Fake, change: impl Fn(&Path)) -> (Imported, String) {
    let folder = tempfile::tempdir().unwrap();
    let run = fake.write(folder.path(), "4/2025");
    change(&run);
    let imported = load_dlio(&run);
    let told = imported.unreadable.join("; ");
    (imported, told)
}

fn utilisation_of(ranks: impl Iterator<Item = u32> + Clone) -> f64 {
    let count = ranks.clone().count() as f64;
    ranks.map(|rank| 150.0 / (1.85 - 0.1 * f64::from(rank))).sum::<f64>() / count
}

#[test]
fn ranks_that_cannot_be_used_leave_the_others() {
    let whole = 180.0 / 6.15;
    let remove = |name: &'static str| move |run: &Path| fs::remove_file(run.join(name)).unwrap();
    for change in [
        &remove("2_per_epoch_stats.json") as &dyn Fn(&Path),
        &remove("2_output.json"),
        &|run| fs::write(run.join("2_per_epoch_stats.json"), "{").unwrap(),
        &|run| fs::write(run.join("2_output.json"), "[1").unwrap(),
        // One bad epoch of two.
        &|run| replace(&run.join("2_output.json"), "4.2,", "NaN,"),
        &|run| replace(&run.join("2_output.json"), "\"2\": {", "\"x\": {"),
        &|run| replace(&run.join("2_output.json"), "\"load\": {", "\"load\": null, \"x\": {"),
    ] {
        let (imported, told) = left(change);
        assert_eq!(imported.ranks_missing(), [2], "{told}");
        let record = record_of(imported);
        near(AU_ALL_STEPS.run_value(&record), whole);
        let windowed = AU_WINDOWED.run_value(&record);
        near(windowed, utilisation_of([0, 1, 3].into_iter()));
        assert!(record.epochs.iter().all(|epoch| epoch.accelerators.len() == 3), "{told}");
    }
}

#[test]
fn epochs_are_left_out_until_half_of_the_ranks_have_all() {
    let check = |fake: Fake, lost: &[(u32, u32)], told: &str, epochs: &[u32], ranks: &[u32]| {
        let (imported, said) = left_of(fake, |run| {
            for (rank, epoch) in lost {
                let path = run.join(format!("{rank}_output.json"));
                replace(&path, &format!("\"{epoch}\": {{"), "\"x\": {");
            }
        });
        assert!(said.starts_with(told), "{said}");
        let left: Vec<u32> = imported.epochs().iter().map(|epoch| epoch.number).collect();
        assert_eq!((left.as_slice(), imported.ranks), (epochs, ranks.iter().copied().collect()));
    };
    let four = Fake { epochs: 4, ..Fake::default() };
    let lost = [(0, 4), (1, 4), (2, 3), (3, 3)];
    check(four, &lost, "epoch 4 is left out: 2 of 4 ranks", &[1, 2, 3], &[0, 1]);
    let two = Fake { ranks: 2, files: 84, epochs: 3, ..Fake::default() };
    check(two, &[(0, 3), (1, 1)], "epoch 3 is left out: 1 of 2 ranks", &[1, 2], &[0]);
    let three = || Fake { epochs: 3, ..Fake::default() };
    check(
        three(),
        &[(0, 3), (1, 3), (2, 3)],
        "epoch 3 is left out: 1 of 4",
        &[1, 2],
        &[0, 1, 2, 3],
    );
    check(three(), &[(1, 2)], "rank 1 is left out", &[1, 2, 3], &[0, 2, 3]);
}

#[test]
fn what_the_run_says_of_itself_counts_more_than_a_config_that_was_changed() {
    let windowed = utilisation_of(0..4);
    for (from, to) in [
        ("num_files_train: 168", "num_files_train: 84"),
        ("batch_size: 7", "batch_size: 14"),
        ("batch_size: 7", "batch_size: -7"),
    ] {
        let change = |run: &Path| replace(&run.join(".hydra/config.yaml"), from, to);
        let record = record_of(left(change).0);
        let plan = (record.plan.dataset.files_train, record.plan.loader.batch_size);
        assert_eq!((plan, record.plan.train.steps_per_epoch), ((168, 7), 6), "{to}");
        near(AU_WINDOWED.run_value(&record), windowed);
        near(SAMPLES_WHOLE.run_value(&record), 168.0 / 6.15);
    }
    let (imported, _) =
        left(|run| replace(&run.join("summary.json"), "accelerators\": 4", "accelerators\": 8"));
    near(AU_WINDOWED.run_value(imported.record.as_ref().unwrap()), windowed);
}

#[test]
fn times_of_centuries_are_refused_and_overflow_no_sum() {
    let (imported, told) = left(|run| {
        let path = run.join("1_output.json");
        let years = vec!["3.1e7"; 700].join(", ");
        let text = fs::read_to_string(&path).unwrap();
        let long = |text: String, kind: &str| {
            let at = text.find(kind).unwrap();
            let at = at + text[at..].find('[').unwrap() + 1;
            format!("{}{years}, {}", &text[..at], &text[at..])
        };
        fs::write(path, long(long(text, "\"load\""), "\"compute\"")).unwrap();
    });
    assert!(
        told.contains("of rank 1: its times and those before it come to more than 290"),
        "{told}"
    );
    assert_eq!(imported.ranks_missing(), [1]);
}

#[test]
fn an_epoch_that_no_rank_can_use_leaves_the_others() {
    let (imported, _) = left(|run| {
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
fn the_log_tells_when_blocks_were_where_nothing_else_does() {
    let (imported, told) = left(|run| fs::remove_file(run.join("0_per_epoch_stats.json")).unwrap());
    assert_eq!((imported.ranks_missing(), told.as_str()), (vec![], ""));
    near(AU_WINDOWED.run_value(imported.record.as_ref().unwrap()), utilisation_of(0..4));
    let (imported, told) = left(|run| {
        (0..4)
            .for_each(|r| fs::remove_file(run.join(format!("{r}_per_epoch_stats.json"))).unwrap());
    });
    assert_eq!((imported.ranks_missing(), told.as_str()), (vec![], ""));
    assert_eq!(imported.times_of_rank_0, Some("dlio.log"));
    near(AU_WINDOWED.run_value(imported.record.as_ref().unwrap()), utilisation_of(0..4));
}

#[test]
fn the_machine_is_what_the_summary_or_the_ranks_tell() {
    let components = |change: &dyn Fn(&Path)| {
        let system = left(change).0.system;
        (system.components, system.memory_bytes)
    };
    let row = |name: &str, text: &str| (name.to_string(), text.to_string());
    let cpu = row("CPU", "72 × aarch64");
    let (found, memory) = components(&|_| {});
    assert_eq!(found, [cpu, row("Memory", "100 GiB")]);
    assert_eq!(memory, Some(100 << 30));
    // One place for two hosts may have the sum of both.
    let (found, memory) = components(&|run| {
        let path = run.join("summary.json");
        replace(&path, "\"num_hosts\": 1", "\"num_hosts\": 2");
        replace(&path, "[100.0]", "[100.0, 0.0]");
        replace(&path, "[72]", "[72, 64]");
    });
    let expected = [row("Hosts", "2"), row("CPU", "64 to 72 × aarch64 a host")];
    assert_eq!((found.as_slice(), memory), (expected.as_slice(), None));
    let (imported, _) = left(|run| {
        fs::remove_file(run.join("summary.json")).unwrap();
        replace(&run.join("3_output.json"), "node1", "node2");
    });
    assert_eq!((imported.hosts, imported.system.hostname.as_str()), (Some(2), "node1"));
    assert_eq!(imported.system.components[0], row("Hosts", "2: node1, node2"));
}

#[test]
fn values_that_cannot_be_are_kept_out_of_the_arithmetic() {
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
fn runs_are_found_in_any_layout_and_told_apart() {
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
    let (found, closed) = find(root).unwrap();
    let found: Vec<(String, RunOrigin)> = found
        .into_iter()
        .map(|one| (one.path.strip_prefix(root).unwrap().display().to_string(), one.origin))
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
    assert_eq!((found, closed), (expected, vec![]));
}

#[test]
fn what_holds_no_result_is_told_and_hides_none() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
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
    let (found, closed) = find(root).unwrap();
    let below = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let found: Vec<(String, RunOrigin)> =
        found.iter().map(|one| (below(&one.path), one.origin)).collect();
    let older = "closed/x/results/y/unet3d/run1/c008".to_string();
    assert_eq!(found, [(String::new(), RunOrigin::Dlio), (older, RunOrigin::MlperfStorage)]);
    let closed: Vec<String> =
        closed.iter().map(|one| format!("{}: {}", below(&one.path), one.why)).collect();
    for (told, why) in
        closed.iter().zip(["which is not followed", "_metadata.json`", "it is empty"])
    {
        assert!(told.contains(why), "{closed:?}");
    }
    assert_eq!(closed.len(), 3);
    assert!(find(&root.join("gone")).is_err());
}
