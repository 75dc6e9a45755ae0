//! Bad input: each case has an error that says where, what and what to do, and none panics.

use crate::harness::{Answer, MountedDisk, TINY, Test};
use std::path::Path;

#[track_caller]
fn check_refused(yaml: &str, arguments: &[&str], words: &[&str]) {
    let test = Test::with_workload(yaml);
    let mut all = vec!["run", "workload.yaml"];
    all.extend(arguments);
    test.feedrate(&all).refuses(2, words);
    assert!(!test.path("results").exists(), "a refused run writes no results");
}

#[test]
fn all_problems_of_a_workload_are_reported_at_once_with_their_positions() {
    let yaml = TINY.replace("batch_size: 4", "batch_sise: 4\n  read_threads: many");
    check_refused(
        &yaml,
        &["train.epoch=3"],
        &[
            "workload.yaml:11:3",
            "batch_sise",
            "did you mean `reader.batch_size`?",
            "workload.yaml:12:17",
            "`many`",
            "train.epoch",
        ],
    );
}

#[test]
fn a_file_of_another_kind_is_refused_with_its_kind_and_command() {
    let test = Test::with_workload(TINY);
    test.write("study.csv", "# mine\nmodel,epochs,processes,run\nworkload.yaml,1,1,N\n");
    test.write("design.toml", "design = \"two_level\"\n[factors]\nprocesses = [1, 2]\n");
    test.write("design.toml", "design = \"two_level\"\nfactors.processes = [1, 2]\n");
    for (command, file, kind, hint) in [
        ("study run", "workload.yaml", "is a workload, not a study", "feedrate run workload.yaml"),
        ("study status", "workload.yaml", "is a workload, not a study", "feedrate study new"),
        ("study new", "workload.yaml", "is a workload, not the design", "--model workload.yaml"),
        ("analyze", "workload.yaml", "is a workload, not a study", "feedrate run workload.yaml"),
        ("report", "workload.yaml", "is a workload, not a study", "feedrate run workload.yaml"),
        ("plot stall", "workload.yaml", "is a workload", "feedrate run workload.yaml"),
        ("run", "study.csv", "is a study, not a workload", "feedrate study run study.csv"),
        ("scale", "study.csv", "is a study, not a workload", "feedrate study run study.csv"),
        ("study new", "study.csv", "is a study, not the design", "feedrate study run study.csv"),
        ("report", "study.csv", "holds no result", "feedrate study run study.csv"),
        ("study run", "design.toml", "is the design of a study", "feedrate study new design.toml"),
        ("report", "design.toml", "is the design of a study", "feedrate study new design.toml"),
        ("run", "design.toml", "is the design of a study", "feedrate study new design.toml"),
    ] {
        let words: Vec<&str> = command.split(' ').chain([file]).collect();
        let answer = test.feedrate(&words);
        answer.refuses(2, &[&format!("`{file}` {kind}"), "hint: ", hint]);
        assert!(answer.stderr.lines().count() < 4, "{command} {file}: {}", answer.stderr);
    }
}

#[test]
fn an_unknown_workload_is_refused_with_the_most_similar_name() {
    Test::new()
        .feedrate(&["run", "unet3d_h10"])
        .refuses(2, &["`unet3d_h10`", "hint: did you mean `unet3d_h100`"]);
    Test::new().feedrate(&["run", "./nowhere.yaml"]).refuses(2, &["nowhere.yaml", "hint:"]);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    check_refused(TINY, &["dataset.num_files_train=0"], &["`0` training files"]);
    check_refused(
        TINY,
        &["reader.batch_size=9"],
        &["batches of `9`", "the dataset has 8", "hint:"],
    );
    check_refused(TINY, &["-n", "9"], &["`9` accelerators share 8 samples"]);
    check_refused(
        TINY,
        &["dataset.num_files_train=1000000000000000000"],
        &["more than a file system can store"],
    );
    check_refused(TINY, &["--scale", "0"], &["--scale 0"]);
    check_refused(TINY, &["dataset.format=hdf5_opt"], &["there is no format `hdf5_opt`"]);
    check_refused(
        TINY,
        &["dataset.format=safetensors"],
        &["there is no format `safetensors`", "hint: available formats: npz, npy, raw"],
    );
    check_refused(
        TINY,
        &["workflow.checkpoint=true", "checkpoint.format=tar"],
        &["`tar`", "pt, tf, safetensors, raw"],
    );
}

#[test]
fn a_yaml_bomb_is_refused() {
    let mut yaml = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let last = i - 1;
        yaml.push_str(&format!("a{i}: &a{i} [{}]\n", vec![format!("*a{last}"); 10].join(", ")));
    }
    check_refused(&yaml, &[], &["error:"]);
}

/// Generates a dataset, damages its first file with `damage`, and checks the error of a run.
#[track_caller]
fn check_damaged(damage: impl Fn(&Path), words: &[&str]) {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    damage(&test.data_files(".npz")[0]);
    test.feedrate(&["run", "workload.yaml"]).refuses(1, words);
    let verify = test.feedrate(&["generate", "--verify", "workload.yaml"]);
    verify.refuses(1, &["img_0_of_8.npz"]);
}

#[test]
fn a_truncated_npz_is_named() {
    check_damaged(
        |file| {
            let bytes = std::fs::read(file).unwrap();
            std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        },
        &["img_0_of_8.npz"],
    );
}

#[test]
fn a_wrong_crc_is_named() {
    check_damaged(
        |file| {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[1000] ^= 1;
            std::fs::write(file, bytes).unwrap();
        },
        &["img_0_of_8.npz", "CRC"],
    );
}

#[test]
fn an_npz_without_x_is_named() {
    check_damaged(
        |file| {
            let mut bytes = std::fs::read(file).unwrap();
            for i in 0..bytes.len() - 5 {
                if bytes[i..].starts_with(b"x.npy") {
                    bytes[i] = b'z';
                }
            }
            std::fs::write(file, bytes).unwrap();
        },
        &["img_0_of_8.npz", "x.npy", "z.npy"],
    );
}

#[test]
fn a_missing_file_is_named() {
    check_damaged(|file| std::fs::remove_file(file).unwrap(), &["img_0_of_8.npz", "cannot open"]);
}

#[test]
fn a_data_folder_that_is_a_file_is_refused() {
    let test = Test::with_workload(TINY);
    test.write("data", "not a folder");
    test.feedrate(&["run", "workload.yaml"]).refuses(2, &["is a file", "hint:"]);
}

#[test]
fn files_without_manifest_are_not_touched() {
    let test = Test::with_workload(TINY);
    std::fs::create_dir_all(test.path("data/train")).unwrap();
    test.write("data/train/mine.npz", "precious");
    test.feedrate(&["run", "workload.yaml"]).refuses(2, &["without a manifest", "--foreign"]);
    assert_eq!(std::fs::read(test.path("data/train/mine.npz")).unwrap(), b"precious");
    test.feedrate(&["run", "workload.yaml", "--foreign"])
        .refuses(2, &["there are no files of the format `npz`", "feedrate scan ./data"]);
}

#[test]
fn a_dataset_with_other_settings_is_refused_with_the_setting() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let dataset =
        test.data_files("manifest.json")[0].parent().unwrap().to_string_lossy().into_owned();
    let answer = test.feedrate(&[
        "run",
        "workload.yaml",
        "--data",
        &dataset,
        "dataset.record_length_bytes=8192",
    ]);
    answer.refuses(2, &["record_bytes", "4096", "8192", "hint:"]);
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_writing() {
    let test = Test::with_workload(TINY);
    let disk = MountedDisk::tmpfs(&test.path("small"), "size=1m");
    let data = disk.0.to_string_lossy().into_owned();
    let answer = test.feedrate(&[
        "run",
        "workload.yaml",
        "--data",
        &data,
        "dataset.record_length_bytes=1000000",
    ]);
    answer.refuses(2, &["needs 8 MB", "1 MB are free", "hint: free space there"]);
    let run = ["run", "workload.yaml", "--data", &data, "dataset.record_length_bytes=1000000"];
    let page = test.feedrate(&[&run[..], &["--dry-run"]].concat()).stdout;
    assert!(page.contains("not enough space: the dataset needs 8 MB"), "{page}");
    let smaller = ["run", "workload.yaml", "--data", &data, "dataset.record_length_bytes=240000"];
    // Four of the eight files fit.
    let answer = test.feedrate(&smaller);
    answer.refuses(2, &["needs 1.9 MB", "hint: `--scale 0.51` fits"]);
    assert_eq!(test.feedrate(&[&smaller[..], &["--scale", "0.51", "--quiet"]].concat()).code, 0);
}

#[test]
fn results_on_a_full_disk_fail_with_the_reason() {
    let test = Test::with_workload(TINY);
    let disk = MountedDisk::tmpfs(&test.path("full"), "size=64k");
    std::fs::write(disk.0.join("filler"), vec![0; 48 << 10]).unwrap();
    let results = disk.0.to_string_lossy().into_owned();
    let words = ["run", "workload.yaml", "--results", &results, "train.epochs=500"];
    let gates = ["--fail-on", "invalid", "--junit", "junit.xml", "--openmetrics", "metrics.txt"];
    let mut command = test.command(&[&words[..], &gates].concat());
    let answer = Answer::from_output(&command.env("TMPDIR", test.path("")).output().unwrap());
    answer.refuses(1, &["No space left", "hint:"]);
    // The run is complete and its gate is met, but the job failed.
    let [junit, metrics] =
        ["junit.xml", "metrics.txt"].map(|file| std::fs::read_to_string(test.path(file)).unwrap());
    assert!(junit.contains("tests=\"1\"") && junit.contains("type=\"failed\""), "{junit}");
    assert_eq!(metrics, "# EOF\n");
}

#[test]
fn a_file_above_the_size_limit_fails_with_the_reason() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["run", "workload.yaml", "--run-dir", "run"]).code, 0);
    let [dlio_benchmark, dlio_postprocessor] =
        [env!("CARGO_BIN_EXE_dlio_benchmark"), env!("CARGO_BIN_EXE_dlio_postprocessor")];
    let large = "dataset.record_length_bytes=1000000";
    let feedrate = env!("CARGO_BIN_EXE_feedrate");
    let small = [
        "workload=unet3d_h100",
        "++workload.workflow.generate_data=True",
        "++workload.dataset.num_files_train=8",
        "++workload.dataset.record_length_bytes=1000000",
        "++workload.dataset.record_length_bytes_stdev=0",
    ];
    for (limit_kib, words) in [
        (100, &[feedrate, "generate", "workload.yaml", large][..]),
        (100, &[feedrate, "run", "workload.yaml", large]),
        (0, &[feedrate, "run", "workload.yaml"]),
        (0, &[feedrate, "report", "run", "-o", "report.html"]),
        (0, &[dlio_postprocessor, "--output-folder", "run"]),
        (100, &[&[dlio_benchmark][..], &small].concat()),
    ] {
        let limited = format!("ulimit -f {limit_kib}; exec \"$@\"");
        let words = [&["-c", &limited, "bash"], words].concat();
        let answer = Answer::from_output(&test.program("bash", &words).output().unwrap());
        answer.refuses(1, &["File too large", "hint:", "ulimit -f"]);
    }
}

/// The device has various small sizes. The measurement is printed and completely saved, in the folder that the answer names.
#[test]
fn measurements_survive_a_full_results_folder() {
    let test = Test::with_workload(TINY);
    std::fs::create_dir(test.path("tmp")).unwrap();
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let mut rescued = 0;
    for size in [8, 16, 20, 24, 28, 32, 40, 48, 64, 96, 256] {
        let disk = MountedDisk::tmpfs(&test.path("full"), &format!("size={size}k"));
        let results = disk.0.to_string_lossy().into_owned();
        let mut command = test.command(&["run", "workload.yaml", "--results", &results]);
        let answer =
            Answer::from_output(&command.env("TMPDIR", test.path("tmp")).output().unwrap());
        let printed_folder = answer.stdout.lines().find_map(|line| line.strip_prefix("Results: "));
        let Some(folder) = printed_folder else {
            answer.refuses(1, &["nothing was measured", "No space left"]);
            continue;
        };
        let record = std::fs::read(test.path(folder).join("record.json")).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        assert_eq!(record["complete"], true);
        if !test.path(folder).starts_with(&disk.0) {
            rescued += 1;
            answer.refuses(1, &["the results are in", "No space left"]);
        } else {
            assert_eq!(answer.code, 0, "{}", answer.stderr);
        }
    }
    assert!(0 < rescued, "on each device, either nothing was measured or all results fit");
}

/// The device fills up while the dataset is written. Complete files stay, and generation continues when there is space.
#[test]
fn a_generation_on_a_full_disk_continues_when_there_is_space() {
    let test = Test::with_workload(TINY);
    let disk = MountedDisk::tmpfs(&test.path("few"), "size=8m,nr_inodes=10");
    let folder = disk.0.to_string_lossy().into_owned();
    let generate = ["generate", "workload.yaml", "--data", &folder];
    test.feedrate(&generate).refuses(1, &["No space left", "hint:"]);
    let remount = ["-o", "remount,nr_inodes=100", &folder];
    assert!(std::process::Command::new("mount").args(remount).status().unwrap().success());
    let answer = test.feedrate(&generate);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(
        test.feedrate(&["generate", "--verify", "workload.yaml", "--data", &folder]).code,
        0
    );
}

#[test]
fn flags_that_exclude_each_other_are_refused() {
    let test = Test::with_workload(TINY);
    for arguments in [
        &["run", "workload.yaml", "--foreign", "--verify"][..],
        &["run", "workload.yaml", "--foreign", "--scale", "0.5"],
        &["generate", "workload.yaml", "--foreign"],
        &["generate", "--verify", "workload.yaml", "--foreign"],
        &["run", "workload.yaml", "--cold", "storage.storage_type=memory"],
        &["run", "workload.yaml", "--warm", "storage.storage_type=memory"],
        &["run", "workload.yaml", "--warm", "reader.odirect=true"],
        &["run", "llama3_8b", "--warm"],
    ] {
        test.feedrate(arguments).refuses(2, &["error:", "hint:"]);
    }
}

#[test]
fn unsupported_settings_of_training_do_not_stop_generation() {
    let test = Test::with_workload(TINY);
    let unsupported = [
        "reader.data_loader=someones_own",
        "workflow.profiling=true",
        "profiling.profiler=darshan",
    ];
    let generate = [&["generate", "workload.yaml"], &unsupported[..]].concat();
    assert_eq!(test.feedrate(&generate).code, 0);
    let run = [&["run", "workload.yaml"], &unsupported[..]].concat();
    test.feedrate(&run).refuses(2, &["someones_own", "darshan"]);
}

#[test]
fn a_read_only_folder_is_refused() {
    let test = Test::with_workload(TINY);
    let disk = MountedDisk::tmpfs(&test.path("locked"), "size=1m,ro");
    let folder = disk.0.to_string_lossy().into_owned();
    test.feedrate(&["run", "workload.yaml", "--data", &folder]).refuses(1, &["ead-only", "hint:"]);
    test.feedrate(&["run", "workload.yaml", "--results", &folder])
        .refuses(1, &["ead-only", "hint:"]);
}

#[test]
fn errors_name_the_wrong_setting_once() {
    let test = Test::with_workload(TINY);
    test.write("study.csv", "model,processes,run\nworkload.yaml,x,N\n");
    for words in [&["analyze", "study.csv"][..], &["report", "study.csv"]] {
        let answer = test.feedrate(words);
        answer.refuses(2, &["study.csv:2:1: processes: `x` is not a valid value"]);
        assert!(!answer.stderr.contains("error: error:"), "{}", answer.stderr);
        assert!(!answer.stderr.contains("the folder of a run"), "{}", answer.stderr);
    }
    for (set, words) in [
        ("dataset.num_files_train=1e12", "dataset.num_files_train: a record of"),
        ("dataset.num_samples_per_file=1e12", "dataset.num_samples_per_file: a record of"),
        ("dataset.format=npx", "there is no format `npx`"),
        ("dataset.colour=red", "`feedrate list keys` shows all keys"),
    ] {
        let answer = test.feedrate(&["plan", "workload.yaml", set]);
        answer.refuses(2, &[words]);
        assert!(!answer.stderr.contains("train.epochs: a record"), "{}", answer.stderr);
    }
}
