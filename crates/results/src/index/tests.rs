//! Tests of indexing folders with runs of feedrate and DLIO.

use super::*;
use crate::import::fake::Fake;
use feedrate_measure::example::simple;
use feedrate_measure::metric::{AU_ALL_STEPS, SAMPLES_WHOLE};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::{self, RECORD_FILE};
use std::fs;

fn read(folder: &Path) -> Result<RunIndex, RunsError> {
    RunIndex::read(&[folder.into()], &ReadOptions { threads: 2, ..ReadOptions::default() })
}

fn index(folder: &Path) -> RunIndex {
    read(folder).unwrap()
}

fn save(folder: &Path, name: &str, change: impl Fn(&mut Record)) {
    let mut record = simple(&[(1000, 1000, 0, 1_000_000); 20]);
    change(&mut record);
    std::fs::create_dir_all(folder.join(name)).unwrap();
    file::write(&folder.join(name), &record).unwrap();
}

fn names(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
    paths.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn runs_are_found_at_any_depth_and_sorted_by_start() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "model/4/later", |_| {});
    save(folder.path(), "z", |record| record.started = "2026-11-21T00:00:00.000000".into());
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    let (runs, _) = index(folder.path()).into_usable();
    assert_eq!(names(runs.into_iter().map(|run| run.path)), ["z", "later"]);
    let (runs, left_out) = index(&folder.path().join("z")).into_usable();
    assert_eq!((runs.len(), left_out.len()), (1, 0));
}

#[test]
fn unusable_runs_are_left_out_with_reasons() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "broken_off", |record| {
        record.complete = false;
        record.stopped_because = Some("interrupted".into());
    });
    std::fs::create_dir(folder.path().join("damaged")).unwrap();
    std::fs::write(folder.path().join("damaged").join(RECORD_FILE), "{").unwrap();
    let (runs, left_out) = index(folder.path()).into_usable();
    assert_eq!(runs.len(), 0);
    let why: Vec<&str> = left_out.iter().map(|folder| folder.why.as_str()).collect();
    assert!(why[0].starts_with("incomplete_run: ") && why[0].contains("interrupted"), "{why:?}");
    assert!(why[1].contains("is no record"), "{why:?}");
}

#[test]
fn a_superseded_run_is_not_a_replicate() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "4/first", |_| {});
    save(folder.path(), "4/superseded/older", |_| {});
    let (runs, left_out) = index(folder.path()).into_usable();
    assert_eq!((runs.len(), left_out.len()), (1, 1));
    assert!(left_out[0].why.starts_with("superseded"));
    let (runs, _) = index(&folder.path().join("4/superseded/older")).into_usable();
    assert_eq!(runs.len(), 1, "it is read if the user names it");
}

#[test]
fn two_names_of_a_workload_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, start, workers| {
        save(folder.path(), &format!("{name}/1/{start}"), |record| {
            record.plan.workload = name.into();
            record.plan.model = name.into();
            record.plan.loader.workers = workers;
            record.started = format!("2026-11-21T00:00:0{start}.000000");
        });
    };
    save("theirs", 1, 1);
    save("mine", 2, 1);
    save("mine", 3, 2);
    save("slow", 4, 4);
    let mut runs = index(folder.path()).runs;
    runs.sort_by(|a, b| a.start_key().cmp(&b.start_key()));
    let named: Vec<_> =
        runs.iter().map(|run| (run.workload.as_str(), run.settings["model"].as_str())).collect();
    let theirs = ("theirs", "theirs");
    assert_eq!(named, [theirs, theirs, theirs, ("slow", "slow")]);
}

#[test]
fn a_copy_of_a_run_is_not_a_replicate() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "4/first", |_| {});
    save(folder.path(), "4/first copy", |_| {});
    save(folder.path(), "4/other host", |record| record.system.hostname = "node2".into());
    save(folder.path(), "4/other plan", |record| record.plan.loader.order_seed += 1);
    let (runs, left_out) = index(folder.path()).into_usable();
    assert_eq!(runs.len(), 3);
    assert_eq!(names(left_out.iter().map(|folder| folder.path.clone())), ["first copy"]);
    assert!(left_out[0].why.contains("equal the times in `4/first`"), "{left_out:?}");
}

#[test]
fn a_folder_without_runs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(read(folder.path()), Err(RunsError::NoRuns(_))));
    assert!(matches!(read(&folder.path().join("gone")), Err(RunsError::Io { .. })));
}

#[test]
fn results_beside_a_study_without_results_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("study.csv");
    fs::write(&study, "model,processes,run\nw,1,N\n").unwrap();
    let hint = || read(&study).unwrap_err().hint().unwrap();
    let run =
        format!("none of its runs is done: `feedrate study run {}` executes them", study.display());
    fs::create_dir_all(folder.path().join("results/other/1")).unwrap();
    assert_eq!(hint(), run);
    let results = folder.path().join("results");
    fs::create_dir_all(results.join("w/1")).unwrap();
    let analyze = format!("`feedrate analyze {}` reads the results there", results.display());
    assert_eq!(hint(), format!("{run}; {analyze}"));
}

/// Returns the next number of a linear congruential generator (Knuth, TAOCP 3.3.4, table 1, line 26), for reproducible damage.
fn next_random(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

#[test]
fn damaged_files_do_not_stop_the_analysis() {
    let folder = tempfile::tempdir().unwrap();
    let small = Fake { ranks: 2, files: 28, stdev: 1000, ..Fake::default() };
    let run = small.write(folder.path(), "fake/2/2025-11-30-10-00-00");
    let names = [
        "summary.json",
        "0_output.json",
        "1_per_epoch_stats.json",
        "dlio.log",
        ".hydra/config.yaml",
        ".hydra/overrides.yaml",
    ];
    let replacements: [&[u8]; 10] =
        [b"", b"\"", b"-", b"9999999999", b"NaN", b"[", b"{}", b"\xff", b"null", b"\\"];
    let mut seed = 7;
    for name in names {
        let path = run.join(name);
        let original = fs::read(&path).unwrap();
        for _ in 0..60 {
            let mut bytes = original.clone();
            for _ in 0..=next_random(&mut seed) % 3 {
                let start = next_random(&mut seed) % bytes.len();
                let end = (start + next_random(&mut seed) % 4).min(bytes.len());
                bytes.splice(
                    start..end,
                    replacements[next_random(&mut seed) % replacements.len()].iter().copied(),
                );
            }
            if next_random(&mut seed).is_multiple_of(4) {
                bytes.truncate(next_random(&mut seed) % original.len());
            }
            fs::write(&path, &bytes).unwrap();
            let found = index(folder.path());
            assert_eq!(found.runs.len(), 1, "{name}: {}", String::from_utf8_lossy(&bytes));
            assert!(found.runs[0].values.values().all(|value| value.number.is_finite()));
        }
        fs::write(path, original).unwrap();
    }
}

#[test]
fn shared_overrides_are_not_varied_parameters() {
    let folder = tempfile::tempdir().unwrap();
    for (name, batch) in [("a", "reader.batch_size=7"), ("b", "reader.batch_size=14")] {
        let overrides = vec!["dataset.num_files_train=168", batch];
        Fake { overrides, ..Fake::default() }.write(folder.path(), name);
    }
    let found = index(folder.path());
    let varied: Vec<(&str, &str)> =
        found.runs.iter().map(|run| (run.parameter.as_str(), run.value.as_str())).collect();
    assert_eq!(varied, [("batch_size", "7"), ("batch_size", "14")]);
    let single = index(&folder.path().join("a"));
    assert_eq!(single.runs[0].parameter, "num_files_train,batch_size");
    let twice =
        RunIndex::read(&[folder.path().into(), folder.path().join("a")], &ReadOptions::default())
            .unwrap();
    assert_eq!(twice.runs.len(), 2, "a folder that is named twice is read once");
}

#[test]
fn shared_settings_do_not_name_the_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let all = "dataset.num_files_train=168";
    for (ranks, name, setting) in [
        (2, "2_num_files_train=168", None),
        (4, "4_num_files_train=168", None),
        (4, "4_num_files_train=168,read_threads=8", Some("reader.read_threads=8")),
    ] {
        let overrides: Vec<&str> = [all].into_iter().chain(setting).collect();
        let fake = Fake { ranks, overrides, ..Fake::default() };
        fake.write(folder.path(), &format!("fake/{name}/2025-11-30-10-00-00"));
    }
    let found = index(folder.path());
    let varied: Vec<String> =
        found.runs.iter().map(|run| format!("{} {}", run.parameter, run.value)).collect();
    assert_eq!(varied, ["processes 2", "processes 4", "read_threads 8"]);
}

fn edit(run: &Path, name: &str, from: &str, to: &str) {
    let text = fs::read_to_string(run.join(name)).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(run.join(name), text.replace(from, to)).unwrap();
}

#[test]
fn all_overrides_except_locations_are_settings() {
    let folder = tempfile::tempdir().unwrap();
    let overrides = vec![
        "workflow.checkpoint=True",
        "evaluation.eval_time=0.5",
        "reader.preprocess_time={mean: 0.1}",
        "dataset.data_folder=/elsewhere",
        "metric.au=0.7",
    ];
    let run = Fake { overrides, ..Fake::default() }.write(folder.path(), "a");
    edit(&run, ".hydra/config.yaml", "checkpoint: false", "checkpoint: true");
    edit(&run, ".hydra/config.yaml", "  train: {", "  evaluation: {eval_time: 0.5}\n  train: {");
    edit(&run, ".hydra/config.yaml", "reader: {", "reader: {preprocess_time: {mean: 0.1}, ");
    let settings = |run: &Path| index(run).runs[0].settings.clone();
    let found = settings(&run);
    for (key, expected) in [
        ("workflow.checkpoint", Some("true")),
        ("evaluation.eval_time", Some("0.5")),
        ("reader.preprocess_time.mean", Some("0.1")),
        ("loader.prefetch_size", Some("2")),
        ("dataset.data_folder", None),
        ("metric.au", None),
    ] {
        assert_eq!(found.get(key).map(String::as_str), expected, "{key}");
    }
    // Without a config, settings come from the overrides.
    fs::remove_file(run.join(".hydra/config.yaml")).unwrap();
    assert_eq!(settings(&run).get("evaluation.eval_time").map(String::as_str), Some("0.5"));
}

#[test]
fn runs_with_an_edited_config_or_another_machine_are_not_replicates() {
    let folder = tempfile::tempdir().unwrap();
    let write = |second: u32, hostname: &'static str| {
        let start_s = 36_000.0 + 60.0 * f64::from(second);
        let fake = Fake { start_s, hostname, ..Fake::default() };
        fake.write(folder.path(), &format!("fake/4/2025-11-30-10-0{second}-00"))
    };
    let edited: Vec<PathBuf> = [(1, "node1"), (2, "node1"), (3, "node2"), (4, "node1")]
        .map(|(second, host)| write(second, host))
        .into();
    edit(
        &edited[1],
        ".hydra/config.yaml",
        "record_length_bytes_stdev: 0",
        "record_length_bytes_stdev: 5",
    );
    edit(&edited[1], ".hydra/config.yaml", "{name: fake, ", "{name: fake, x: y, ");
    let varied = || -> Vec<(String, String, Option<u32>)> {
        let found = index(folder.path()).runs.into_iter();
        found.map(|run| (run.parameter, run.value, run.replicate)).collect()
    };
    let expected_run = |parameter: &str, value: &str, replicate: u32| {
        (parameter.to_string(), value.to_string(), Some(replicate))
    };
    let expected = [
        expected_run("processes", "4", 1),
        expected_run("record_length_bytes_stdev,model.x", "5,y", 1),
        expected_run("host", "node2", 1),
        expected_run("processes", "4", 2),
    ];
    assert_eq!(varied(), expected);
    write(2, "node2");
    let hosts: Vec<String> = varied().into_iter().map(|(_, value, _)| value).collect();
    assert_eq!(hosts, ["node1", "node2", "node2", "node1"]);
}

/// In MLPerf Storage 0.5, each host of a run writes a folder.
#[test]
fn simultaneous_folders_of_hosts_are_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |run: &str, hostname: &'static str, start_s: f64| {
        let name = format!("closed/x/results/y-Nacc4-Nhosts2/unet3d/{run}/{hostname}");
        let slower = 1.0 + start_s % 1000.0 / 1e7;
        Fake { hostname, start_s, slower, is_older: true, compute_s: 1.3604, ..Fake::default() }
            .write(root, &name)
    };
    let hosts = ["n1", "n2"].map(|host| write("run_1", host, 36_000.0));
    // Without configs, the workload follows from the compute time.
    for (host, start_s) in [("n1", 37_000.0), ("n2", 37_002.5)] {
        fs::remove_dir_all(write("run_2", host, start_s).join(".hydra")).unwrap();
    }
    // Runs of hosts at different times are separate.
    write("run_3", "n1", 38_000.0);
    write("run_3", "n2", 39_000.0);
    let read = |path: &Path| RunIndex::read(&[path.into()], &ReadOptions::default()).unwrap();
    let index = read(root);
    let found: Vec<_> =
        index.runs.iter().map(|run| (run.hosts, run.accelerators, run.parts.len())).collect();
    let joined = (Some(2), Some(8), 2);
    let single = (Some(1), Some(4), 0);
    assert_eq!(found, [joined, joined, single, single]);
    assert_eq!(index.sources, [vec![0, 1, 2, 3]]);
    assert_eq!(index.runs[1].workload, "unet3d_v100");
    let run = &index.runs[0];
    assert!(run.unusable.is_none() && run.doubts.iter().any(|doubt| doubt.name == "hosts_apart"));
    let [first, second] = hosts.map(|path| read(&path).runs.remove(0));
    let sum = |value: fn(&Run) -> Option<f64>| value(&first).unwrap() + value(&second).unwrap();
    let rate = |run: &Run| run.metric(&SAMPLES_WHOLE);
    assert_eq!(rate(run), Some(sum(rate)));
    assert_eq!(run.reported_samples_per_second(), Some(sum(Run::reported_samples_per_second)));
    assert_eq!(run.reported_au_percent(), first.reported_au_percent());
    assert_eq!(run.metric(&AU_ALL_STEPS), first.metric(&AU_ALL_STEPS));
}

#[test]
fn siblings_of_a_single_run_show_that_its_dataset_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let large = |start_s| Fake { record_length: 400_000_000, start_s, ..Fake::default() };
    Fake { generate: true, train: false, ..large(900.0) }.write(root, "w/4_x/made");
    let run = Fake { start_s: 1800.0, slower: 4.0, ..Fake::default() }.write(root, "w/4/a");
    let stale = |path: &Path| {
        let index = index(path);
        assert_eq!(index.runs.iter().filter(|run| run.path == *path).count(), index.runs.len());
        index.runs[0].doubts.iter().any(|doubt| doubt.name == "stale_data")
    };
    assert!(stale(&run));
    fs::remove_dir_all(root.join("w/4_x")).unwrap();
    assert!(!stale(&run));
}

#[test]
fn siblings_of_the_runs_of_a_study_show_that_a_dataset_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let large = |start_s| Fake { record_length: 400_000_000, start_s, ..Fake::default() };
    Fake { generate: true, train: false, ..large(900.0) }.write(&results, "w/4_x/made");
    let run = Fake { start_s: 1800.0, slower: 4.0, ..Fake::default() }.write(&results, "w/4/a");
    let csv = folder.path().join("s.csv");
    fs::write(&csv, "model,processes,run\nw,4,Y\n").unwrap();
    let index = index(&csv);
    let paths: Vec<PathBuf> = index.runs.iter().map(|run| canonical(&run.path)).collect();
    assert_eq!(paths, [canonical(&run)]);
    assert!(index.runs[0].doubts.iter().any(|doubt| doubt.name == "stale_data"));
}

#[test]
fn folders_without_a_run_do_not_keep_others_from_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let runs = ["w/4/a", "w/4/b"].map(|name| Fake::default().write(root, name));
    fs::create_dir(root.join("empty")).unwrap();
    let folders = [root.join("none"), runs[0].clone(), root.join("empty"), runs[1].clone()];
    let index = RunIndex::read_folders(&folders, &ReadOptions::default());
    assert_eq!(index.sources, [vec![], vec![0], vec![], vec![1]]);
    assert_eq!(index.runs.iter().map(|run| &run.path).collect::<Vec<_>>(), runs.each_ref());
    assert_eq!(index.unread.len(), 1, "{:?}", index.unread);
}

#[test]
fn runs_of_a_system_without_configs_are_grouped_with_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for number in 0..5 {
        let start_s = 36_000.0 + 100.0 * f64::from(number);
        let slower = 1.0 + f64::from(number) / 1e7;
        let overrides = vec!["dataset.num_files_train=168"];
        let name = format!("closed/x/results/y/training/unet3d/run/2026072{number}_123243");
        let run = Fake { start_s, slower, compute_s: 0.162, overrides, ..Fake::default() }
            .write(root, &name);
        let hydra = run.join(".hydra");
        let text = fs::read_to_string(hydra.join("config.yaml")).unwrap();
        fs::write(hydra.join("config.yaml"), text.replace("name: fake", "name: unet3d")).unwrap();
        fs::write(hydra.join("overrides.yaml"), "- ++workload.dataset.num_files_train=168\n")
            .unwrap();
        if number < 4 {
            fs::remove_file(hydra.join("config.yaml")).unwrap();
        }
        if number < 2 {
            fs::remove_dir_all(hydra).unwrap();
        }
    }
    let index = index(root);
    let first = &index.runs[0];
    assert_eq!((first.workload.as_str(), first.read_threads), ("unet3d_b200", Some(4)));
    for run in &index.runs[1..] {
        assert_eq!(run.experiment_key(), first.experiment_key());
        assert_eq!(run.settings, first.settings);
    }
    assert!(index.runs[0].doubts.iter().any(|doubt| doubt.name == "no_config"));
}
