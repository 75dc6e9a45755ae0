//! Words of other tools, files that are not workloads, times without a unit, and missing folders. Each is understood, or refused with a hint,
//! and a refused command leaves no files.

use crate::harness::{TINY, Test};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

const MEMORY: &str = "storage.storage_type=memory";

/// Names of the entries in the test's folder.
fn entry_names(test: &Test) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(test.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn times_without_a_unit_are_refused() {
    let test = Test::with_workload(TINY);
    for words in [
        &["run", "workload.yaml", "--compute", "50"][..],
        &["run", "workload.yaml", "--rank-timeout", "50"],
        &["scale", "workload.yaml", "--budget", "50"],
        &["advise", "workload.yaml", "--try", "--budget", "50"],
        &["diagnose", "workload.yaml", "--budget", "50"],
        &["calibrate", "train.py:make", "--time", "50"],
        &["study", "run", "study.csv", "--time-budget", "50"],
    ] {
        test.feedrate(words).refuses(2, &["it has no unit: write `50s`, or `50ms`"]);
    }
    let refused = test.feedrate(&["study", "run", "study.csv", "--quiet-wait", "5s"]);
    refused.refuses(2, &["has no option `--quiet-wait`", "leave it out: a run on a busy machine"]);
    let json = test.run_json(&[MEMORY, "--compute", "2ms", "--quiet"]);
    let record = fs::read(test.files_below("results", "record.json").remove(0)).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["plan"]["train"]["compute"]["mean"], 0.002, "{json}");
    assert_eq!(entry_names(&test), ["results", "workload.yaml"]);
}

#[test]
fn missing_data_folders_are_refused_and_leave_no_files() {
    let test = Test::with_workload(TINY);
    test.write("study.csv", "model,epochs,processes,overrides,run\nworkload.yaml,1,1,,\n");
    test.write("file", "");
    let before = entry_names(&test);
    for words in [
        &["run", "workload.yaml"][..],
        &["run"],
        &["generate", "workload.yaml"],
        &["generate", "--verify", "workload.yaml"],
        &["scale", "workload.yaml"],
        &["diagnose", "workload.yaml"],
        &["advise", "workload.yaml", "--try"],
        &["study", "run", "study.csv"],
    ] {
        let run_with_data = |folder| test.feedrate(&[words, &["--data", folder]].concat());
        run_with_data("gone/data")
            .refuses(2, &["`--data gone/data` does not exist", "mounted?", "mkdir -p"]);
        run_with_data("file").refuses(2, &["`--data file` is not a folder"]);
        assert_eq!(entry_names(&test), before, "{words:?}");
    }
    // Without files the folder is not used.
    for storage in [&[MEMORY][..], &["storage.storage_type=null", "dataset.format=synthetic"]] {
        let words = [&["run", "workload.yaml", "--data", "gone"], storage].concat();
        let answer = test.feedrate(&words);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(!test.path("gone").exists());
    }
}

#[test]
fn a_data_folder_instead_of_a_run_is_refused_with_the_right_command() {
    let test = Test::new();
    for folder in 0..4200 {
        fs::create_dir_all(test.path(&format!("my photos/{folder}"))).unwrap();
    }
    // A run behind so many folders is not searched for.
    fs::create_dir_all(test.path("my photos/4100/deeper/run")).unwrap();
    test.write("my photos/4100/deeper/run/record.json", "{}");
    let command_hint = "`feedrate run --data 'my photos'`";
    for command in ["run", "diagnose", "scale", "advise", "show", "analyze", "report"] {
        test.feedrate(&[command, "my photos"]).refuses(2, &[command_hint]);
    }
    test.feedrate(&["analyze", "my photos"]).refuses(2, &["there is no run among the first"]);
    test.feedrate(&["my photos"]).refuses(2, &[command_hint]);
}

#[test]
fn runs_of_dlio_are_refused_with_the_command_that_reads_them() {
    let test = Test::new();
    for run in ["resnet/1", "unet/1", "unet/2"] {
        fs::create_dir_all(test.path(&format!("lab/{run}"))).unwrap();
        test.write(&format!("lab/{run}/summary.json"), "{}");
    }
    for command in ["run", "show", "advise"] {
        let words = ["3 runs of DLIO", "`feedrate analyze lab`", "`lab/resnet/1`"];
        test.feedrate(&[command, "lab"]).refuses(2, &words);
    }
}

#[test]
fn names_that_are_not_utf_8_are_opened_or_refused() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["run", "workload.yaml", MEMORY, "--run-dir", "run"]).code, 0);
    let name = OsStr::from_bytes(b"r\xffn");
    fs::rename(test.path("run"), test.path("").join(name)).unwrap();
    let answer = |words: &[&str]| {
        let mut command = test.command(words);
        command.arg(name).output().unwrap()
    };
    let shown = answer(&["show", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(json["run_dir"], "$'r\\xffn'", "the name in bash's syntax");
    assert_eq!(answer(&["analyze"]).status.code(), Some(0));
    for words in [&["run"][..], &["advise", "--table"], &["advise"], &["show", "--nothing"], &[]] {
        let refused = answer(words);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains("hint:") && !stderr.contains("panicked"), "{words:?}: {stderr}");
    }
    let all = test.feedrate(&["analyze", ".", "--json"]).json();
    assert_eq!(all["runs"][0]["path"], "$'./r\\xffn'");
}

#[test]
fn a_run_that_is_refused_leaves_no_folders() {
    let test = Test::with_workload(TINY);
    fs::create_dir(test.path("photos")).unwrap();
    fs::create_dir(test.path("own")).unwrap();
    fs::write(test.path("photos/1.npz"), "").unwrap();
    let before = entry_names(&test);
    for words in [
        &["run", "--data", "photos"][..],
        &["run", "--data", "photos", "--run-dir", "runs/of/mine"],
        &["run", "--data", "photos", "--run-dir", "own"],
        &["run", "workload.yaml", "--foreign", "--data", "photos"],
        &["run", "workload.yaml", "reader.batch_size=900"],
        &["run", "workload.yaml", "--trace", "no/where.pfw.gz"],
    ] {
        let answer = test.feedrate(words);
        assert!([1, 2].contains(&answer.code), "{words:?}: {answer:?}");
        assert!(answer.stderr.contains("hint:"), "{words:?}: {answer:?}");
        assert_eq!(entry_names(&test), before, "{words:?}");
    }
    assert!(fs::read_dir(test.path("own")).unwrap().next().is_none());
}

#[test]
fn files_of_other_kinds_are_refused_with_the_command_that_reads_them() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&[MEMORY]);
    let run = json["run_dir"].as_str().unwrap();
    test.write("printed.json", json.to_string());
    test.write("new.toml", "[factors]\nprocesses = [1, 2]\n");
    test.write("study.csv", "model,run\n");
    test.write("1.npz", [80, 75, 3, 4, 0, 0]);
    fs::create_dir_all(test.path("dlio/.hydra")).unwrap();
    test.write("dlio/summary.json", "{}");
    test.write("dlio/.hydra/config.yaml", TINY);
    fs::create_dir(test.path("empty")).unwrap();
    fs::create_dir_all(test.path("photos/cats")).unwrap();
    let shows = format!("`feedrate show {run}`");
    for (path, words) in [
        (format!("{run}/summary.json"), ["is a result of the run in", shows.as_str()]),
        ("printed.json".into(), ["a command with `--json` (`run`)", &shows]),
        ("results".into(), ["contains runs", run]),
        ("dlio".into(), ["of DLIO", "`feedrate analyze dlio`"]),
        ("dlio".into(), ["of DLIO", "`feedrate run dlio/.hydra/config.yaml`"]),
        ("dlio/summary.json".into(), ["result file of DLIO", "`feedrate analyze dlio`"]),
        ("new.toml".into(), ["is the design of a study", "`feedrate study new new.toml`"]),
        ("study.csv".into(), ["is a study", "`feedrate study run study.csv`"]),
        ("1.npz".into(), ["is not a text file", "--data"]),
        ("empty".into(), ["is an empty folder", "`feedrate run WORKLOAD --data empty`"]),
        ("photos".into(), ["a folder without results", "`feedrate run --data photos`"]),
    ] {
        let answer = test.feedrate(&["run", &path]);
        answer.refuses(2, &words);
        assert!(answer.stderr.lines().count() <= 2, "{answer:?}");
    }
    let shown = test.feedrate(&["show", "dlio"]);
    assert_eq!(
        (shown.code, &shown.stdout),
        (0, &test.feedrate(&["analyze", "dlio", "--all"]).stdout)
    );
    // A condition needs a record.
    let gate = ["show", "dlio", "--fail-on", "warning"];
    test.feedrate(&gate).refuses(2, &["`--fail-on` need", "`feedrate analyze dlio`"]);
    let shown = test.feedrate(&["show", &format!("{run}/summary.json"), "--json"]);
    assert_eq!(shown.json()["run_dir"], run);
}

#[test]
fn words_of_hydra_and_pytorch_are_understood_or_refused_with_a_hint() {
    let test = Test::with_workload(TINY);
    fs::create_dir_all(test.path("conf/workload")).unwrap();
    test.write("conf/workload/mine.yaml", TINY);
    let plan = |words: &[&str]| test.feedrate(&[&["plan", "--json"], words].concat());
    let hydra = plan(&["workload=workload.yaml", "++workload.reader.read_threads=3"]);
    assert_eq!(hydra.json()["plan"]["loader"]["workers"], 3, "{hydra:?}");
    let torch = plan(&["workload.yaml", "num_workers=3", "batch_size=2"]);
    assert_eq!(torch.json()["plan"]["loader"]["workers"], 3, "{torch:?}");
    assert_eq!(torch.json()["plan"]["loader"]["batch_size"], 2, "{torch:?}");
    torch.warns(&["`num_workers=3` sets `reader.read_threads`", "`batch_size=2` sets"]);
    let quiet = test.feedrate(&["run", "num_workers=0", MEMORY, "workload=workload.yaml", "-q"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    for (words, hint) in [
        (&["run", "prefetch_factor=2"][..], "`prefetch_factor` times `num_workers`"),
        (&["run", "--num-workers", "4"], "`reader.read_threads=VALUE`, without dashes"),
        (&["generate", "--dry-run"], "`feedrate plan WORKLOAD`"),
    ] {
        let words = [&words[..1], &["workload.yaml"], &words[1..]].concat();
        test.feedrate(&words).refuses(2, &[hint]);
    }
    let config_dir = ["run", "--config-dir", "conf", "workload=mine", "reader.batch_size=2"];
    let command_hint = "`feedrate run conf/workload/mine.yaml reader.batch_size=2`";
    test.feedrate(&config_dir).refuses(2, &[command_hint]);
}
