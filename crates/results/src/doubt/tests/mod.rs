//! Tests that each doubt fires where it should, and only there, on folders as DLIO leaves them. Long because each doubt has its folders.

mod datasets;
mod folders;

pub(super) use crate::import::fake::Fake;
use crate::index::{ReadOptions, RunIndex};
use crate::run::{Activity, Run};
use feedrate_measure::doubt::{Severity, find as find_record_doubt};
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::SAMPLES_WHOLE;
use std::fs;
use std::path::{Path, PathBuf};

const REFERENCE: &str = include_str!("../../../../../docs/reference/doubts.md");

fn analyse(build: impl Fn(&Path)) -> (tempfile::TempDir, RunIndex) {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let analysis = RunIndex::read(&[folder.path().into()], &ReadOptions::default()).unwrap();
    (folder, analysis)
}

/// Returns the short paths of the runs that have the doubt, with its evidence.
fn evidence_by_run(analysis: &RunIndex, name: &str) -> Vec<(String, String)> {
    let path_and_evidence = |run: &Run| {
        let doubt = run.doubts.iter().find(|doubt| doubt.name == name)?;
        Some((run.short_path(), doubt.evidence.clone()))
    };
    analysis.runs.iter().filter_map(path_and_evidence).collect()
}

/// Checks that exactly the runs `expected` have the doubt `name`, each with `evidence` in its text.
fn check(name: &str, expected: &[&str], evidence: &str, build: impl Fn(&Path)) {
    let (_folder, analysis) = analyse(build);
    let found = evidence_by_run(&analysis, name);
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, expected, "{name}: {found:?}");
    for (path, text) in &found {
        assert!(text.contains(evidence), "{name} of {path}: {text}");
    }
}

/// Returns a run of forty similar steps on a dataset larger than memory.
pub(super) fn good_run() -> Fake {
    Fake {
        files: 1120,
        record_length: 200_000_000,
        load_s: |rank, _| 0.3 + 0.001 * f64::from(rank),
        ..Fake::default()
    }
}

/// Returns a good run whose load times differ between ranks and steps.
pub(super) fn varied_run() -> Fake {
    let load_s = |rank: u32, step: u64| 0.3 + 0.001 * f64::from(rank) + 1e-5 * step as f64;
    Fake { load_s, ..good_run() }
}

/// Writes four runs of an experiment with slightly different load times, of which the last are multiplied by `slower`.
pub(super) fn write_replicates(root: &Path, slower: f64) {
    for (name, factor) in [("a", 1.0), ("b", 1.001), ("c", 1.002), ("d", slower)] {
        Fake { slower: factor, ..good_run() }.write(root, &format!("w/4/{name}"));
    }
}

/// Returns a run whose records are four times as large.
pub(super) fn large_run() -> Fake {
    Fake { record_length: 400_000_000, slower: 4.0, ..Fake::default() }
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Writes a run with a long wait in its first step.
pub(super) fn write_cold_run(root: &Path) -> PathBuf {
    Fake::default().write(root, "w/4/a")
}

/// Writes a good run and replaces text in one of its files.
pub(super) fn edit_good_run(root: &Path, file: &str, from: &str, to: &str) {
    replace(&good_run().write(root, "w/4/a").join(file), from, to);
}

pub(super) fn edit_cold_run(root: &Path, file: &str, from: &str, to: &str) {
    replace(&write_cold_run(root).join(file), from, to);
}

pub(super) fn remove_from_good_run(root: &Path, file: &str) {
    fs::remove_file(good_run().write(root, "w/4/a").join(file)).unwrap();
}

/// Writes a good run with an additional line in its log.
pub(super) fn add_log_line(root: &Path, line: &str) {
    let path = good_run().write(root, "w/4/a").join("dlio.log");
    let log = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{line}{log}")).unwrap();
}

#[test]
fn each_doubt_fires_on_its_case_with_facts() {
    for row in super::DOUBTS {
        let (_folder, index) = analyse(row.fires);
        let mut fired = index.runs.iter().flat_map(|run| &run.doubts);
        let fired = fired.find(|doubt| doubt.name == row.kind.name);
        let fired = fired.unwrap_or_else(|| panic!("`{}` did not fire", row.kind.name));
        assert!(!fired.evidence.is_empty() && fired.facts != Facts::new(), "{fired:?}");
        assert!(!fired.evidence.contains(['{', '[']), "{fired:?}");
    }
}

#[test]
fn names_are_unique_and_have_one_severity() {
    let names: Vec<&str> = super::DOUBTS.iter().map(|row| row.kind.name).collect();
    for (index, kind) in super::DOUBTS.iter().map(|row| &row.kind).enumerate() {
        assert!(!names[..index].contains(&kind.name), "{}", kind.name);
        assert!(kind.meaning.ends_with('.'), "{}", kind.name);
        // A record proves what logs only suggest.
        if let Some(record_doubt) = find_record_doubt(kind.name)
            && kind.name != super::STALE_DATA
        {
            assert_eq!(record_doubt.severity, kind.severity, "{}", kind.name);
        }
        assert!(is_documented(kind.name, kind.severity), "{}", kind.name);
    }
}

/// Returns whether the reference lists a doubt below the heading of its severity.
fn is_documented(name: &str, severity: Severity) -> bool {
    let heading = format!("**{}**", severity.name());
    let entry = format!("- `{name}`: ");
    let mut is_below_heading = false;
    REFERENCE.lines().any(|line| {
        is_below_heading = if line.starts_with("**") { line == heading } else { is_below_heading };
        is_below_heading && line.starts_with(&entry)
    })
}

#[test]
fn a_good_run_is_doubted_only_for_what_dlio_always_does() {
    let (_folder, analysis) = analyse(|root| drop(good_run().write(root, "fake/4/a")));
    let serious = analysis.runs[0].doubts.iter().filter(|d| d.severity != Severity::Note);
    let serious: Vec<&str> = serious.map(|doubt| doubt.name.as_str()).collect();
    assert_eq!(serious, ["wrong_step_count"]);
    assert_eq!(evidence_by_run(&analysis, "no_step_causes"), [], "no record is older");
    let run = &analysis.runs[0];
    assert_eq!((run.parameter.as_str(), run.value.as_str(), run.steps), ("processes", "4", 40));
}

#[test]
fn a_generation_may_have_other_ranks_and_unreadable_files_do_not_count() {
    check("config_disagrees", &[], "", |root| {
        let made = Fake { ranks: 8, generate: true, train: false, ..good_run() };
        made.write(root, "w/4_record_length_bytes_200000000/made");
    });
    let (_folder, analysis) = analyse(|root| {
        let run = Fake { generate: true, ..good_run() }.write(root, "w/4/a");
        for name in ["summary.json", "dlio.log", ".hydra/config.yaml"] {
            fs::write(run.join(name), "{").unwrap();
        }
        (0..4).for_each(|rank| fs::write(run.join(format!("{rank}_output.json")), "{").unwrap());
    });
    assert_eq!(analysis.runs[0].activity, Activity::Unknown);
}

#[test]
fn a_rate_that_no_release_computes_from_the_steps_is_misreported() {
    let with_factor = |rate_factor: f64| {
        move |root: &Path| drop(Fake { rate_factor, ..good_run() }.write(root, "w/4/a"))
    };
    check(
        "throughput_misreported",
        &["4/a"],
        "but 45.24 follow from the steps",
        with_factor(0.648),
    );
    check("throughput_misreported", &[], "", with_factor(1.0));
    // The first step is as long as two, so that both formulas of older releases give the same rate.
    let older = |root: &Path| {
        let load_s = |_, step| if step == 0 { 0.34 } else { 0.02 };
        drop(Fake { is_older: true, load_s, ..good_run() }.write(root, "w/4/a"));
    };
    for name in ["throughput_misreported", "wrong_step_count"] {
        check(name, &[], "", older);
    }
}

#[test]
fn forged_values_are_named_without_files_of_ranks() {
    let without_ranks = |first: u32, rate_factor: f64| {
        move |root: &Path| {
            let run = Fake { rate_factor, ..good_run() }.write(root, "w/4/a");
            for rank in first..4 {
                fs::remove_file(run.join(format!("{rank}_output.json"))).unwrap();
                fs::remove_file(run.join(format!("{rank}_per_epoch_stats.json"))).unwrap();
            }
        }
    };
    for first in [0, 1] {
        for rate_factor in [0.85, 1.05, 1.2, 1.5] {
            let forged = without_ranks(first, rate_factor);
            check("throughput_misreported", &["4/a"], "samples/s are reported", forged);
        }
        check("throughput_misreported", &[], "", without_ranks(first, 1.0));
    }
    let forged_au = |root: &Path| {
        without_ranks(1, 1.0)(root);
        let key = "\"train_au_mean_percentage\": ";
        replace(&root.join("w/4/a/summary.json"), key, &format!("{key}96.2, \"x\": "));
    };
    check("au_misreported", &["4/a"], "96.20 % is reported", forged_au);
    check("au_misreported", &[], "", without_ranks(1, 1.0));
}

#[test]
fn forged_values_are_named_in_older_results() {
    let published = |rate_factor: f64| {
        move |root: &Path| {
            let older = Fake { is_older: true, rate_factor, ..good_run() };
            older.publish(root, "w/4/a");
        }
    };
    for rate_factor in [0.85, 0.95, 1.05, 1.2, 1.5] {
        let evidence = "the nearest rate that fits";
        check("throughput_misreported", &["4/a"], evidence, published(rate_factor));
    }
    for name in ["throughput_misreported", "au_misreported"] {
        check(name, &[], "", published(1.0));
    }
    let forged_au = |root: &Path| {
        published(1.0)(root);
        let summary = root.join("w/4/a/summary.json");
        for (key, value) in [("percentage", "[30.0, 30.0]"), ("mean_percentage", "30.0")] {
            let key = format!("\"train_au_{key}\": ");
            replace(&summary, &key, &format!("{key}{value}, \"x\": "));
        }
    };
    check("au_misreported", &["4/a"], "30.00 % is reported, but at least 48.51 %", forged_au);
}

#[test]
fn changed_times_of_checkpoints_are_named() {
    let with_checkpoint = |span_end: &'static str, mean_s: f64| {
        move |root: &Path| {
            let run = good_run().write(root, "w/4/a");
            let metrics = format!(
                "\"metric\": {{\"checkpoint_size_GB\": 3.3, \"save_checkpoint_duration_mean_seconds\": {mean_s}, \"save_checkpoint_io_mean_GB_per_second\": 3.3, \"x\": 0, "
            );
            replace(&run.join("summary.json"), "\"metric\": {", &metrics);
            let summary = fs::read_to_string(run.join("summary.json")).unwrap();
            let nan = "\"save_checkpoint_io_mean_GB_per_second\": NaN, ";
            fs::write(run.join("summary.json"), summary.replace(nan, "")).unwrap();
            let stats = run.join("0_per_epoch_stats.json");
            let text = fs::read_to_string(&stats).unwrap();
            let save = format!(
                "\"save_ckpt1\": {{\"start\": \"2025-11-30T10:00:20.000000\", \"end\": \"{span_end}\"}}, \"block1\""
            );
            fs::write(&stats, text.replacen("\"block1\"", &save, 1)).unwrap();
        }
    };
    let one_second = "2025-11-30T10:00:21.000000";
    let half_second = "2025-11-30T10:00:20.500000";
    check("mean_misreported", &[], "", with_checkpoint(one_second, 1.0));
    check(
        "mean_misreported",
        &["4/a"],
        "first rank took 500 ms",
        with_checkpoint(half_second, 1.0),
    );
    check("mean_misreported", &["4/a"], "is 6.600", with_checkpoint(one_second, 0.5));
    let with_rate = |rate: &'static str| {
        move |root: &Path| {
            with_checkpoint(one_second, 1.0)(root);
            let stdev = "\"save_checkpoint_duration_stdev_seconds\": 0.01";
            let changed = format!("GB_per_second\": {rate}, {stdev}");
            replace(&root.join("w/4/a/summary.json"), "GB_per_second\": 3.3", &changed);
        }
    };
    // 3.3 GiB/s are 3.54 GB/s.
    for rate in ["3.3", "3.54"] {
        check("mean_misreported", &[], "", with_rate(rate));
    }
    let evidence = "is 3.900, but size ÷ mean duration is 3.300";
    check("mean_misreported", &["4/a"], evidence, with_rate("3.9"));
}

#[test]
fn files_of_ranks_that_do_not_belong_together_are_named() {
    let copied = |root: &Path| {
        let run = varied_run().write(root, "w/4/a");
        fs::copy(run.join("1_output.json"), run.join("3_output.json")).unwrap();
    };
    check("mixed_ranks", &["4/a"], "all load times of ranks 1 and 3 are equal", copied);
    check("mixed_ranks", &[], "", |root| drop(varied_run().write(root, "w/4/a")));
    // Files of rank 1 and 2 in a folder with those of other runs of the same settings.
    let replaced = |names: &'static [&'static str], slower: f64| {
        move |root: &Path| {
            let run = varied_run().write(root, "w/4/a");
            let other = Fake { slower, ..varied_run() }.write(root, "other/4/a");
            for name in names {
                fs::copy(other.join(name), run.join(name)).unwrap();
            }
            fs::remove_dir_all(root.join("other")).unwrap();
        }
    };
    let foreign = replaced(&["2_output.json"], 1.1);
    check("mixed_ranks", &["4/a"], "the rates of rank 2 differ by 5 %", foreign);
    let both_files = &["1_output.json", "1_per_epoch_stats.json"];
    check("mixed_ranks", &[], "", replaced(both_files, 1.02));
    let swapped = |root: &Path| {
        replaced(both_files, 1.02)(root);
        let output = |rank: u32| root.join(format!("w/4/a/{rank}_output.json"));
        fs::rename(output(1), output(9)).unwrap();
        fs::rename(output(2), output(1)).unwrap();
        fs::rename(output(9), output(2)).unwrap();
    };
    check("mixed_ranks", &["4/a"], "steps of rank 1 fit the block times of rank 2", swapped);
}

#[test]
fn a_run_far_from_its_replicates_is_named() {
    check("outlier", &["4/d"], "the 3 other runs of", |root| write_replicates(root, 1.5));
    check("outlier", &[], "", |root| write_replicates(root, 1.05));
}

#[test]
fn copies_are_not_replicates() {
    let twice = |root: &Path| {
        good_run().write(root, "w/4/a");
        good_run().write(root, "w/4/b");
    };
    check("duplicate_results", &["4/b"], "equal the times in `4/a`", twice);
    let earlier = |root: &Path| {
        good_run().write(root, "w/4/a");
        Fake { start_s: 100.0, ..good_run() }.write(root, "w/4/b");
        good_run().write(root, "w/2/c");
    };
    // The run that started first is the original, wherever it is located.
    check("duplicate_results", &["2/c", "4/a"], "equal the times in `4/b`", earlier);
    // Without a summary, the start is taken from the log and is earlier.
    let cut = |root: &Path| {
        good_run().write(root, "w/4/a");
        let copy = Fake { start_s: 100.0, ..good_run() }.write(root, "w/4/b");
        fs::remove_file(copy.join("summary.json")).unwrap();
    };
    check("duplicate_results", &["4/b"], "equal the times in `4/a`", cut);
    let misplaced = |root: &Path| {
        good_run().write(root, "w/2/c");
        good_run().write(root, "w/4/a");
    };
    check("duplicate_results", &["2/c"], "equal the times in `4/a`", misplaced);
    check("no_replicates", &["4/a", "4/b"], "there is one run of 4", twice);
    let two = |root: &Path| {
        good_run().write(root, "w/4/a");
        Fake { slower: 1.01, ..good_run() }.write(root, "w/4/b");
    };
    check("duplicate_results", &[], "", two);
    check("no_replicates", &[], "", two);
}

#[test]
fn windowed_values_are_doubted() {
    let cold = |root: &Path| drop(Fake::default().write(root, "w/4/a"));
    let run_a = ["4/a"];
    check("wrong_step_count", &run_a, "count 4 steps over the time of 5 steps", cold);
    let two_steps = |root: &Path| drop(Fake { files: 56, ..Fake::default() }.write(root, "w/4/a"));
    check("wrong_step_count", &run_a, "0.00 samples/s count 0 steps", two_steps);
    check("au_disagrees", &run_a, "over all steps", cold);
    let one_step = |root: &Path| drop(Fake { files: 28, ..Fake::default() }.write(root, "w/4/a"));
    check("empty_window", &run_a, "has 1 step, and the window leaves out 1", one_step);
    check("empty_window", &[], "", cold);
    check("impossible_values", &run_a, "an epoch has 1 step;", one_step);
    check("au_misreported", &[], "", cold);
    let with_value = |key: &'static str, value: &'static str| {
        move |root: &Path| {
            let path = Fake::default().write(root, "w/4/a").join("summary.json");
            let text = fs::read_to_string(&path).unwrap();
            let (before, after) = text.split_once(&format!("\"{key}\": ")).unwrap();
            let (_, after) = after.split_once(',').unwrap();
            fs::write(path, format!("{before}\"{key}\": {value},{after}")).unwrap();
        }
    };
    check(
        "au_misreported",
        &run_a,
        "97.00 % is reported",
        with_value("train_au_mean_percentage", "97.0"),
    );
    check("throughput_misreported", &[], "", cold);
    for (value, evidence) in
        [("0.0", "0.00 samples/s are reported"), ("99.0", "but 66.17 follow from the block rates")]
    {
        let changed = with_value("train_throughput_mean_samples_per_second", value);
        check("throughput_misreported", &run_a, evidence, changed);
        check("wrong_step_count", &run_a, "66.17 samples/s count 4 steps", changed);
    }
}

#[test]
fn peculiarities_of_dlio_are_doubted() {
    let with = |setting: &'static str, name: &'static str| {
        move |root: &Path| drop(Fake { overrides: vec![setting], ..good_run() }.write(root, name))
    };
    check(
        "ignored_setting",
        &["4_file_shuffle_off/a"],
        "in the order of their names",
        with("reader.file_shuffle=off", "w/4_file_shuffle_off/a"),
    );
    check("ignored_setting", &[], "", with("reader.batch_size=7", "w/4_batch_size_7/a"));
    // Sizes below 1 are clamped, which makes the mean four times the length.
    let drawn =
        Fake { record_length: 10_485_760, stdev: 68_341_808, files: 168, ..Fake::default() };
    check("nominal_bytes", &["4/a"], "4.13 times", |root| drop(drawn.write(root, "w/4/a")));
    let (_folder, negative) = analyse(|root| {
        let summary = drawn.write(root, "w/4/a").join("summary.json");
        let key = "\"train_io_mean_MB_per_second\": ";
        replace(&summary, key, &format!("{key}-"));
    });
    let texts = evidence_by_run(&negative, "nominal_bytes");
    assert!(!texts[0].1.contains("MiB/s"), "a negative rate is left out: {texts:?}");
    check("nominal_bytes", &[], "", |root| drop(good_run().write(root, "w/4/a")));
    let both = Fake { generate: true, ..good_run() };
    check("generated_in_same_process", &["4/a"], "is set", |root| drop(both.write(root, "w/4/a")));
    check("cache_unseen", &["4/a"], "times as much", |root| {
        drop(Fake::default().write(root, "w/4/a"))
    });
    check("cache_unseen", &[], "", |root| drop(good_run().write(root, "w/4/a")));
    let checkpoints = |root: &Path| {
        let run = good_run().write(root, "w/4/a");
        replace(
            &run.join("summary.json"),
            "\"metric\": {",
            "\"metric\": {\"checkpoint_size_GB\": 9.5e-06, ",
        );
    };
    let config = |from: &'static str, to: &'static str| {
        move |root: &Path| {
            replace(&good_run().write(root, "w/4/a").join(".hydra/config.yaml"), from, to)
        }
    };
    check(
        "not_all_data_read",
        &["4/a"],
        "the same 280 of 1120",
        config("data_loader: pytorch", "data_loader: tensorflow"),
    );
    check(
        "not_all_data_read",
        &["4/a"],
        "no byte is read",
        config("format: npz", "format: mmap_indexed_binary"),
    );
    check("not_all_data_read", &[], "", config("batch_size: 7", "batch_size: 14"));
    let evaluated = |root: &Path| {
        let more = "\"metric\": {\"eval_au_mean_percentage\": 20.0, \"eval_au_percentage\": [20, 20, 20, 20, 20, 20, 20, 20], ";
        replace(&good_run().write(root, "w/4/a").join("summary.json"), "\"metric\": {", more);
    };
    check("eval_divided_by_ranks", &["4/a"], "80.00 % before the division", evaluated);
    check("checkpoint_too_small", &["4/a"], "a checkpoint has 10", checkpoints);
}

#[test]
fn runs_with_other_settings_are_doubted() {
    let different = |root: &Path| {
        Fake { files: 28, batch: 1, compute_s: 0.05, ..good_run() }.write(root, "w/4/a");
        for (name, setting) in [
            ("4_x_1", "reader.transfer_size=1"),
            ("4_x_2", "reader.transfer_size=2"),
            ("4_x_3", "reader.transfer_size=3"),
        ] {
            Fake { overrides: vec![setting], slower: 1.1, ..good_run() }
                .write(root, &format!("w/{name}/a"));
        }
    };
    check(
        "settings_differ",
        &["4/a"],
        "dataset.num_files_train is 28, but 1120 in 3 others",
        different,
    );
    let scaled = |root: &Path| {
        for ranks in [1, 2, 4] {
            Fake { ranks, slower: f64::from(ranks), ..good_run() }
                .write(root, &format!("w/{ranks}/a"));
        }
    };
    check("settings_differ", &[], "", scaled);
}

/// A study varies two settings in its configs, without overrides. One folder name has an equals sign, another only words.
#[test]
fn settings_that_a_study_varies_are_not_doubted() {
    let study = |name: fn(u32, u64) -> String| {
        move |root: &Path| {
            for (run, (threads, batch)) in
                [(2, 7), (4, 7), (8, 7), (4, 14), (4, 28), (4, 7)].into_iter().enumerate()
            {
                let slower = 1.0 + 0.01 * run as f64;
                let fake = Fake { threads, batch, slower, ..good_run() };
                fake.write(root, &format!("w/{}/run_{run}x", name(threads, batch)));
            }
        }
    };
    let by_words = study(|threads, batch| format!("threads{threads}-batch{batch}"));
    check("settings_differ", &[], "", by_words);
    let by_keys = study(|threads, batch| format!("4_batch_size={batch},read_threads={threads}"));
    check("settings_differ", &[], "", by_keys);
    // Another setting of one of these runs is doubted.
    check("settings_differ", &["threads4-batch7/odd"], "dataset.record_length_bytes", |root| {
        study(|threads, batch| format!("threads{threads}-batch{batch}"))(root);
        let odd = Fake { record_length: 300_000_000, slower: 1.1, ..good_run() };
        odd.write(root, "w/threads4-batch7/odd");
    });
}

#[test]
fn a_setting_is_usual_if_more_than_half_of_the_runs_have_it() {
    let halves = |counts: [usize; 2]| {
        move |root: &Path| {
            for (index, files) in [1120, 560].into_iter().enumerate() {
                for run in 0..counts[index] {
                    let slower = 1.0 + 0.01 * (run + 10 * index) as f64;
                    let fake = Fake { files, slower, ..good_run() };
                    fake.write(root, &format!("w/4/{index}{}", ["a", "b", "c"][run]));
                }
            }
        }
    };
    check("settings_differ", &[], "", halves([2, 2]));
    check("settings_differ", &["4/1a", "4/1b"], "1120 in 3 others", halves([3, 2]));
}
