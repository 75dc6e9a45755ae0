//! Tests on published runs of submissions.

use super::*;
use crate::import::fake::Fake;
use crate::index::{ReadOptions, RunIndex};
use feedrate_spec::bundled;
use std::path::PathBuf;

fn read(root: &Path) -> Vec<Run> {
    read_named(&[root.into()])
}

/// Reads runs of which each is named.
fn read_named(roots: &[PathBuf]) -> Vec<Run> {
    RunIndex::read(roots, &ReadOptions::default()).unwrap().runs
}

const H100_S: f64 = 0.323;
const B200_S: f64 = 0.162;

/// Writes a run of MLPerf Storage's unet3d: 4 ranks, 500 steps of `compute_s`, and the given memory of the host in GiB.
fn publish(root: &Path, name: &str, number: u32, memory_gib: Option<f64>, compute_s: f64) {
    let is_older = compute_s == H100_S;
    let fake = Fake {
        files: 7 * 4 * 500,
        record_length: 146_600_628,
        compute_s,
        load_s: |_, step| if step == 0 { 2.0 } else { 0.001 },
        // Runs with equal times would count as copies.
        slower: 1.0 + f64::from(number) / 1e4,
        // A run with the older accelerator takes 14 minutes, one with the newer 7.
        start_s: if is_older { 1000.0 } else { 500.0 } * f64::from(number),
        epochs: 5,
        is_older,
        overrides: vec!["profiling.profiler=none"],
        ..Fake::default()
    };
    let run = fake.publish(root, &format!("closed/x/results/{name}/{number}"));
    let [hydra, workload] =
        if is_older { ["configs", "unet3d_h100"] } else { ["dlio_config", "unet3d_b200"] };
    let official = bundled::find(workload).unwrap().yaml;
    let indented = official.lines().map(|line| match line.split_once("num_files_train: ") {
        Some((before, _)) => format!("  {before}num_files_train: 14000\n"),
        None => format!("  {line}\n"),
    });
    let config = format!("workload:\n{}", indented.collect::<String>());
    let config =
        config.replace("computation_time: 0.162", &format!("computation_time: {compute_s}"));
    std::fs::write(run.join(hydra).join("config.yaml"), config).unwrap();
    edit(&run.join(hydra).join("overrides.yaml"), "workload=fake", &format!("workload={workload}"));
    let memory = memory_gib.map_or("[]".into(), |gib| format!("[{gib}]"));
    edit(&run.join("summary.json"), "[100.0]", &memory);
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn published_runs_keep_the_rules_unless_their_dataset_is_too_small() {
    let folder = tempfile::tempdir().unwrap();
    // The dataset has 1911.4 GiB.
    for (system, memory_gib) in [
        ("exact", Some(382.3)),
        ("rounded", Some(386.0)),
        ("small", Some(490.0)),
        ("unknown", None),
    ] {
        for number in 1..=5 {
            let name = format!("{system}/unet3d-h100/run_1");
            publish(folder.path(), &name, number, memory_gib, H100_S);
        }
    }
    let runs = read(folder.path());
    let found = judge_workloads(runs.iter());
    let [unet3d] = &found[..] else { panic!("{found:?}") };
    assert_eq!((unet3d.kept, unet3d.not_kept, unet3d.unknown), (10, 5, 5), "{unet3d:?}");
    assert_eq!(unet3d.submissions.len(), 4);
    assert!(unet3d.submissions.iter().all(|outcome| outcome.keeps == Some(true)));
}

#[test]
fn a_submission_of_3_0_has_a_warm_up_that_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=6 {
        let name = "one/training/unet3d_b200/run";
        publish(folder.path(), name, number, Some(100.0), B200_S);
    }
    for number in 11..=15 {
        publish(folder.path(), "two/training/unet3d_b200/run", number, Some(100.0), B200_S);
    }
    for number in 21..=26 {
        publish(folder.path(), "edited/training/unet3d_b200/run", number, Some(100.0), 0.2);
    }
    let runs = read(folder.path());
    let found = judge_workloads(runs.iter());
    let [unet3d] = &found[..] else { panic!("{found:?}") };
    assert_eq!((unet3d.kept, unet3d.not_kept, unet3d.unknown), (10, 5, 0), "{unet3d:?}");
    let keeps = |name| {
        let outcomes = unet3d.submissions.iter().filter(|outcome| outcome.name == name);
        outcomes.map(|outcome| outcome.keeps).collect::<Vec<_>>()
    };
    assert_eq!(keeps("runs"), [Some(true), Some(true), Some(false)]);
    assert_eq!(keeps("gap between starts"), [Some(true); 3]);
    let unused: Vec<&Run> = runs.iter().filter(|run| run.unusable.is_some()).collect();
    assert_eq!(unused.len(), 2);
    assert!(unused.iter().any(|run| run.path.ends_with("one/training/unet3d_b200/run/1")));
    let scored = unet3d.results.iter().flat_map(|result| &result.runs);
    assert!(scored.clone().all(|run| !run.path.ends_with("one/training/unet3d_b200/run/1")));
}

#[test]
fn runs_without_a_result_count_for_their_submission() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=5 {
        publish(folder.path(), "one/unet3d-h100/run_1", number, Some(100.0), H100_S);
    }
    publish(folder.path(), "two/unet3d-h100/run_1", 6, Some(100.0), H100_S);
    let truncate = |run: &str| {
        let run = folder.path().join("closed/x/results").join(run);
        std::fs::remove_file(run.join("summary.json")).unwrap();
        for rank in 0..4 {
            std::fs::remove_file(run.join(format!("{rank}_output.json"))).ok();
            std::fs::remove_file(run.join(format!("{rank}_per_epoch_stats.json"))).ok();
        }
        std::fs::remove_file(run.join("dlio.log")).ok();
        std::fs::write(run.join("0_output.json"), "{").unwrap();
    };
    truncate("one/unet3d-h100/run_1/5");
    truncate("two/unet3d-h100/run_1/6");
    let runs = read(folder.path());
    let found = judge_workloads(runs.iter());
    let [unet3d] = &found[..] else { panic!("{found:?}") };
    assert_eq!((unet3d.kept, unet3d.results.len()), (4, 4), "{unet3d:?}");
    let unusable = unet3d.unusable.iter().map(|system| (system.usable, system.runs.len()));
    assert_eq!(unusable.collect::<Vec<_>>(), [(4, 1), (0, 1)]);
    let judged = unet3d.submissions.iter();
    let judged: Vec<_> = judged
        .map(|rule| (rule.submission.as_deref().unwrap(), rule.value.as_deref(), rule.keeps))
        .collect();
    assert_eq!(
        judged,
        [("closed/x/one", Some("4"), Some(false)), ("closed/x/two", Some("0"), Some(false)),]
    );
}

#[test]
fn a_submission_of_3_0_names_its_missing_parts() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=2 {
        publish(folder.path(), "one/training/unet3d/run", number, Some(100.0), B200_S);
    }
    let missing = || missing_parts(read(folder.path()).iter());
    let expected = [
        "`datagen/` of unet3d",
        "`datasize/` of unet3d",
        "`systems/` beside `results/`",
        "`provenance.json` of 2 runs, which only `mlpstorage` writes",
    ];
    assert_eq!(missing(), expected);
    let submitter = folder.path().join("closed/x");
    std::fs::create_dir(submitter.join("systems")).unwrap();
    std::fs::create_dir(submitter.join("results/one/training/unet3d/datagen")).unwrap();
    assert_eq!(missing(), [expected[1], expected[3]]);
    std::fs::rename(submitter, folder.path().join("closed/rehearsal")).unwrap();
    assert_eq!(missing(), Vec::<String>::new());
}

#[test]
fn a_run_with_other_settings_or_named_alone_does_not_split_its_submission() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=6 {
        publish(folder.path(), "one/training/unet3d_b200/run", number, Some(100.0), B200_S);
    }
    let last = folder.path().join("closed/x/results/one/training/unet3d_b200/run/6");
    let list = last.join("dlio_config/overrides.yaml");
    edit(&list, "profiling.profiler=none", "reader.batch_size=8");
    edit(&last.join("dlio_config/config.yaml"), "batch_size: 7", "batch_size: 8");
    let judge = |root: &Path| {
        let runs = read(root);
        let found = judge_workloads(runs.iter());
        let [unet3d] = &found[..] else { panic!("{found:?}") };
        let keeps = unet3d.submissions.iter().map(|outcome| outcome.keeps);
        (unet3d.kept, unet3d.not_kept, keeps.collect::<Vec<_>>())
    };
    assert_eq!(judge(folder.path()), (4, 1, vec![Some(true), Some(true)]));
    assert_eq!(judge(&last), (0, 1, vec![]));
    // All runs named one by one are a submission too, with its warm-up.
    let one_by_one: Vec<PathBuf> =
        (1..=6).map(|number| last.with_file_name(number.to_string())).collect();
    let runs = read_named(&one_by_one);
    let found = judge_workloads(runs.iter());
    let [unet3d] = &found[..] else { panic!("{found:?}") };
    assert_eq!((unet3d.kept, unet3d.not_kept, unet3d.submissions.len()), (4, 1, 2));
}

#[test]
fn the_gap_between_starts_is_relative_to_the_shortest_run() {
    let run = |started: &str, ended: &str| Run {
        started: Some(format!("2026-11-21T10:{started}.000000")),
        ended: Some(format!("2026-11-21T10:{ended}.000000")),
        ..Run::default()
    };
    let check = |runs: &[Run], expected: Option<f64>| {
        let check = || MlperfCheck { edition: "v3.0", keeps: None, rules: Vec::new() };
        let judged: Vec<_> = runs.iter().map(|run| JudgedRun { run, check: check() }).collect();
        assert_eq!(submission_facts(&judged).start_gap_ratio, expected, "{runs:?}");
    };
    let first = || run("00:00", "05:00");
    check(&[first(), run("06:00", "10:00"), run("11:00", "16:00")], Some(1.5));
    // The pauses of overlapping runs would be negative.
    check(&[first(), run("03:00", "08:00")], Some(0.6));
    check(&[first(), run("12:00", "12:00")], None);
    check(&[first(), Run { ended: None, ..run("06:00", "11:00") }], None);
    check(&[first()], None);
}

#[test]
fn writing_and_reading_are_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, start_s: f64, writes: u32, reads: u32, fsync: bool| {
        let name = format!("closed/x/results/{name}");
        let fake = Fake { train: false, ranks: 8, start_s, ..Fake::default() };
        let run = fake.write(folder.path(), &name);
        edit(&run.join(".hydra/overrides.yaml"), "workload=fake", "workload=llama3_8b");
        let checkpoint = format!(
            "checkpoint: true}}\n  checkpoint: {{fsync: {fsync}, num_checkpoints_write: {writes}, num_checkpoints_read: {reads}}}"
        );
        edit(&run.join(".hydra/config.yaml"), "checkpoint: false}", &checkpoint);
    };
    write("a/checkpointing/llama3-8b/run/20260101_000001", 1000.0, 10, 0, true);
    write("a/checkpointing/llama3-8b/run/20260101_000002", 1010.0, 0, 10, true);
    write("b/checkpointing/llama3-8b/run/20260101_000003", 2000.0, 10, 10, false);
    let runs = read(folder.path());
    let found = judge_workloads(runs.iter());
    let [llama] = &found[..] else { panic!("{found:?}") };
    assert_eq!(llama.results.iter().map(|result| result.runs.len()).collect::<Vec<_>>(), [2, 1]);
    let outcome = |result: usize, name: &str| {
        let rules = &llama.results[result].check.rules;
        rules.iter().find(|rule| rule.name == name).unwrap().keeps
    };
    assert_eq!([outcome(0, "writes and reads"), outcome(1, "writes and reads")], [Some(true); 2]);
    assert_eq!([outcome(0, "fsync"), outcome(1, "fsync")], [Some(true), Some(false)]);
    assert_eq!([outcome(0, "processes"), outcome(0, "subset mode")], [Some(true); 2]);
}
