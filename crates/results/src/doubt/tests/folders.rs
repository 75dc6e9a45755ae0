//! Tests of doubts about folders that are damaged, were edited, or contain files of another run.

use super::*;

/// Writes two runs and changes the first.
fn with_broken_run(change: fn(&Path)) -> impl Fn(&Path) {
    move |root| {
        change(&good_run().write(root, "w/4/a"));
        Fake { slower: 1.1, ..good_run() }.write(root, "w/4/b");
    }
}

#[test]
fn damaged_folders_are_doubted_and_others_are_read() {
    let run_a = ["4/a"];
    check(
        "unreadable_files",
        &run_a,
        "it is empty",
        with_broken_run(|run| fs::write(run.join("1_output.json"), "").unwrap()),
    );
    check(
        "missing_ranks",
        &run_a,
        "1 of 4 ranks are missing: 3",
        with_broken_run(|run| fs::remove_file(run.join("3_output.json")).unwrap()),
    );
    check(
        "incomplete_run",
        &run_a,
        "there is no readable `summary.json`",
        with_broken_run(|run| fs::remove_file(run.join("summary.json")).unwrap()),
    );
    let (_folder, analysis) =
        analyse(with_broken_run(|run| fs::remove_file(run.join("3_output.json")).unwrap()));
    let text = &evidence_by_run(&analysis, "wrong_step_count")[0].1;
    assert!(text.contains(" of 3 ranks count 38 steps") && text.contains("unknown"), "{text}");
    check(
        "impossible_values",
        &run_a,
        "`train_io_mean_MB_per_second` is NaN",
        with_broken_run(|run| {
            let path = run.join("summary.json");
            let text = fs::read_to_string(&path).unwrap();
            let (before, after) = text.split_once("\"train_io_mean_MB_per_second\": ").unwrap();
            let (_, after) = after.split_once('}').unwrap();
            fs::write(path, format!("{before}\"train_io_mean_MB_per_second\": NaN}}{after}"))
                .unwrap();
        }),
    );
    check(
        "no_config",
        &run_a,
        "has 1120 files of 1 samples, batch 7",
        with_broken_run(|run| fs::remove_dir_all(run.join(".hydra")).unwrap()),
    );
    let (_folder, analysis) =
        analyse(with_broken_run(|run| fs::remove_dir_all(run.join(".hydra")).unwrap()));
    let threads = |name: &str| {
        analysis.runs.iter().find(|run| run.path.ends_with(name)).unwrap().read_threads
    };
    assert_eq!((threads("a"), threads("b")), (None, Some(4)));
}

#[test]
fn clocks_that_were_set_are_doubted_and_offsets_are_corrected() {
    let run_a = ["4/a"];
    let backwards = |run: &Path| {
        replace(
            &run.join("2_per_epoch_stats.json"),
            "\"end\": \"2025-11-30T10",
            "\"end\": \"2025-11-30T08",
        )
    };
    check("time_runs_backwards", &run_a, "before it began", with_broken_run(backwards));
    let late_epoch = |run: &Path| {
        let epoch = "{\"1\": {\"start\": \"2025-11-30T10:00:01";
        replace(&run.join("0_per_epoch_stats.json"), epoch, &epoch.replace(":01", ":04"));
    };
    check(
        "time_runs_backwards",
        &run_a,
        "epoch 1 began 3 s after its `block1`",
        with_broken_run(late_epoch),
    );
    // One hour ahead at each start and end.
    let ahead = |run: &Path| replace(&run.join("1_per_epoch_stats.json"), "T10:", "T11:");
    let short = |run: &Path| {
        fs::remove_file(run.join("1_output.json")).unwrap();
        replace(&run.join("3_per_epoch_stats.json"), "T10:00:01.000000", "T10:00:04.000000");
    };
    check(
        "time_runs_backwards",
        &run_a,
        "a block of rank 3 in epoch 1 lasted",
        with_broken_run(short),
    );
    let whole = |build: &dyn Fn(&Path)| analyse(build).1.runs[0].metric(&SAMPLES_WHOLE).unwrap();
    let one_clock = whole(&with_broken_run(|_| ()));
    let two_clocks = whole(&with_broken_run(ahead));
    assert!((two_clocks / one_clock - 1.0).abs() < 1e-6, "{two_clocks}, not {one_clock}");
}

#[test]
fn configs_that_contradict_their_results_are_doubted() {
    let with = |from: &'static str, to: &'static str| {
        move |root: &Path| {
            replace(&good_run().write(root, "w/4/a").join(".hydra/config.yaml"), from, to)
        }
    };
    let run_a = ["4/a"];
    check(
        "config_disagrees",
        &run_a,
        "give 1 steps per epoch",
        with("batch_size: 7", "batch_size: 280"),
    );
    check(
        "config_disagrees",
        &run_a,
        "training files: 2240 in the config, 1120",
        with("files_train: 1120", "files_train: 2240"),
    );
    check("config_disagrees", &run_a, "epochs: 3 in the config", with("epochs: 2", "epochs: 3"));
    check(
        "config_disagrees",
        &run_a,
        "imply samples of 200000000 bytes",
        with("record_length_bytes: 200000000", "record_length_bytes: 100"),
    );
    for (from, to, evidence) in [
        ("batch_size: 7", "batch_size: 14", "batch: 14 in the config, 7 in `dlio.log`"),
        ("batch_size: 7", "batch_size: -7", "`reader.batch_size` is `-7` in the config"),
        ("bytes: 200000000", "bytes: 0", "`dataset.record_length_bytes` is `0` in the config"),
        ("bytes: 200000000", "bytes: 1.0e+300", "`dataset.record_length_bytes` is `1e+300`"),
        ("computation_time: 0.3", "computation_time: 0.5", "500 ms in the config, 300 ms in the"),
        ("computation_time: 0.3", "computation_time: 0.1", "100 ms in the config, 300 ms in the"),
    ] {
        check("config_disagrees", &run_a, evidence, with(from, to));
        for name in ["au_misreported", "compute_overshoot", "nominal_bytes"] {
            check(name, &[], "", with(from, to));
        }
    }
    check("config_disagrees", &[], "", with("computation_time: 0.3", "computation_time: 0.29"));
    // Checkpoints alone need no files, and their config has no number of files.
    for (trains, runs) in [(false, &[][..]), (true, &["4/a"][..])] {
        check("config_disagrees", runs, "training files: 8 in the config, 0 in", |root: &Path| {
            let run = Fake { train: trains, ..good_run() }.write(root, "w/4/a");
            replace(&run.join(".hydra/config.yaml"), "    num_files_train: 1120\n", "");
            replace(&run.join("summary.json"), "files_train\": 1120", "files_train\": 0");
        });
    }
    // A number may be that of a job, a day or an experiment.
    for name in ["8/a", "12345/run1", "20260711/run1", "3/1"] {
        let number = |root: &Path| drop(good_run().write(root, &format!("w/{name}")));
        check("config_disagrees", &[], "", number);
    }
    let batch = Fake { overrides: vec!["reader.batch_size=7"], ..good_run() };
    check("config_disagrees", &["4_batch_size_9/a"], "says batch_size 9", |root| {
        drop(batch.write(root, "w/4_batch_size_9/a"))
    });
    let other = Fake { overrides: vec!["reader.batch_size=9"], ..good_run() };
    // The config has the values that were used, whatever overrides say.
    check("config_disagrees", &[], "", |root| drop(other.write(root, "w/4_batch_size_9/a")));
    check("config_disagrees", &[], "", |root| drop(batch.write(root, "w/4_batch_size_7/a")));
    check("config_disagrees", &["4_batch_size_70/a"], "says batch_size 70", |root| {
        drop(batch.write(root, "w/4_batch_size_70/a"))
    });
    let two = vec!["reader.batch_size=7", "reader.read_threads=4"];
    let two = Fake { overrides: two, ..good_run() };
    for name in ["4_read_threads_4_batch_size_7/a", "4_batch_size=7,read_threads=4/a"] {
        check("config_disagrees", &[], "", |root| drop(two.write(root, &format!("w/{name}"))));
    }
}

#[test]
fn machines_that_differ_between_files_are_doubted() {
    let other_host = with_broken_run(|run| {
        replace(&run.join("2_output.json"), "\"node1\"", "\"node7\"");
    });
    check("config_disagrees", &["4/a"], "the files of ranks name `node1`, `node7`", other_host);
}

/// Without a config, the ratio of the reported rates gives the record length.
#[test]
fn a_record_length_of_a_byte_or_less_is_unknown() {
    for rates in [
        "\"train_io_mean_MB_per_second\": 1e-9, \"x\": ",
        "\"train_throughput_mean_samples_per_second\": 1048576.0, \"train_io_mean_MB_per_second\": 1.0, \"x\": ",
    ] {
        let (_folder, analysis) = analyse(|root| {
            let run = good_run().write(root, "w/4/a");
            fs::remove_dir_all(run.join(".hydra")).unwrap();
            let summary = fs::read_to_string(run.join("summary.json")).unwrap();
            let reported = "\"train_throughput_mean_samples_per_second\": ";
            let without_rate = if rates.contains(reported) {
                summary.replace(reported, "\"y\": ")
            } else {
                summary
            };
            let key = "\"train_io_mean_MB_per_second\": ";
            fs::write(run.join("summary.json"), without_rate.replace(key, rates)).unwrap();
        });
        let run = &analysis.runs[0];
        assert_eq!((run.record_length_bytes, run.mean_sample_bytes), (None, None));
        assert_eq!(evidence_by_run(&analysis, "cache_unseen"), []);
    }
}

#[test]
fn a_summary_with_epochs_is_a_training() {
    let (_folder, analysis) = analyse(|root| {
        let run = good_run().write(root, "w/4/a");
        let summary = fs::read_to_string(run.join("summary.json")).unwrap();
        fs::remove_dir_all(&run).unwrap();
        fs::create_dir(&run).unwrap();
        let without_mean = summary.replace("train_au_mean_percentage", "x");
        fs::write(run.join("summary.json"), without_mean).unwrap();
    });
    assert_eq!((analysis.runs[0].activity, analysis.runs[0].epochs), (Activity::Training, 2));
}

/// Ranks leave a step within milliseconds of each other, so rank 0's times hold only approximately for others.
#[test]
fn ranks_without_block_times_are_not_doubted() {
    let shared = |root: &Path| {
        let run = good_run().write(root, "w/4/a");
        for rank in 1..4 {
            fs::remove_file(run.join(format!("{rank}_per_epoch_stats.json"))).unwrap();
        }
        fs::rename(run.join("0_per_epoch_stats.json"), run.join("per_epoch_stats.json")).unwrap();
        let output = run.join("1_output.json");
        let text = fs::read_to_string(&output).unwrap();
        let list = &text[text.find("\"load\"").unwrap()..];
        let start = text.len() - list.len() + list.find('[').unwrap() + 1;
        fs::write(output, format!("{}9{}", &text[..start], &text[start..])).unwrap();
    };
    for name in ["time_runs_backwards", "au_misreported"] {
        check(name, &[], "", shared);
    }
}

#[test]
fn a_sibling_folder_with_the_missing_ranks_is_named() {
    let both = ["4/2025-11-30-18-58-17", "4/2025-11-30-18-58-18"];
    let evidence = "; `2025-11-30-18-58-1";
    check("missing_ranks", &both, evidence, |root| {
        let run = good_run().write(root, "w/4/2025-11-30-18-58-17");
        for other in ["2025-11-30-18-58-18", "2025-11-30-18-59-18"] {
            fs::create_dir(root.join("w/4").join(other)).unwrap();
        }
        for name in ["3_output.json", "3_per_epoch_stats.json"] {
            fs::rename(run.join(name), root.join("w/4/2025-11-30-18-58-18").join(name)).unwrap();
        }
    });
}
