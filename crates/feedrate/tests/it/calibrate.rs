//! `feedrate calibrate` with a script in the place of Python that returns fixed measurements. calibrate.py checks the arithmetic of the real
//! helper; it needs `.venv`, but no torch.

use crate::harness::{TINY, Test, venv_python};
use crate::schema::assert_matches_schema;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CALIBRATION: &str = r#"{"client": {"per_sample": 0.0001466, "per_byte": 6.372e-10, "per_batch": 0.0021, "handover_bytes_per_second": 1164669494.5,
    "receive_per_batch": 0.00114, "receive_per_byte": 1.8e-10, "receive_wait_share": 0.25, "start_per_epoch": null}, "told_apart": false, "samples": 400,
    "sample_bytes": 1053151.75, "batch_size": 4, "workers": 1, "batches": 138, "batch_cpu_seconds": {"1": 0.0087, "2": 0.0092},
    "measuring_seconds": 0.0, "other_cores": 0.04, "is_disturbed": false}"#;

/// A training script, and a stand-in for Python that returns `CALIBRATION`.
fn with_training_script() -> Test {
    let test = Test::with_workload(TINY);
    test.write("train.py", "");
    test.write("calibration.json", CALIBRATION);
    test.write(
        "python",
        "#!/bin/sh\necho from the training >&2\nfor last; do :; done\ncp calibration.json \"$last\"\n",
    );
    std::fs::set_permissions(test.path("python"), PermissionsExt::from_mode(0o755)).unwrap();
    test
}

const CALIBRATE: &[&str] = &["calibrate", "train.py:make_dataset", "--python", "./python"];

#[test]
fn costs_are_printed_as_a_section_of_a_workload() {
    let test = with_training_script();
    let answer = test.feedrate(CALIBRATE);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let notes = answer.stderr.strip_prefix("from the training\n").expect(&answer.stderr);
    assert!(notes.starts_with("measured for 0 s, after ") && notes.ends_with(" of imports\n"));
    let (words, section) = answer.stdout.split_at(answer.stdout.find("client:").unwrap());
    assert!(words.contains("400 samples of 1.1 MB, batches of 4, 1 worker.\n"), "{words}");
    assert!(words.contains("8.7 ms with 1 worker, 9.2 ms with 2 workers.\n"), "{words}");
    assert!(words.contains("All samples have the same size"), "{words}");
    let keys = "\
client:
  per_sample: 1.466e-4
  per_byte: 6.372e-10
  per_batch: 2.100e-3
  handover_bytes_per_second: 1164669495
  receive_per_batch: 1.140e-3
  receive_per_byte: 1.800e-10
  receive_wait_share: 2.500e-1
";
    assert_eq!(section, keys);
    let json = test.feedrate(&[CALIBRATE, &["--json"]].concat()).json();
    assert_matches_schema("calibrate", &json);
    assert_eq!(json["client"]["per_batch"], 0.0021);
    assert!(json["client"]["start_per_epoch"].is_null());
    assert!(json["import_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{json}");
}

#[test]
fn costs_that_other_processes_disturbed_are_marked() {
    let test = with_training_script();
    let disturbed = CALIBRATION.replace(
        r#""other_cores": 0.04, "is_disturbed": false"#,
        r#""other_cores": 1.37, "is_disturbed": true"#,
    );
    test.write("calibration.json", disturbed);
    let answer = test.feedrate(&[CALIBRATE, &["--quiet"]].concat());
    let sentence = "Other processes used 1.4 cores meanwhile: do not trust these costs, and measure again on an idle machine.\n";
    assert_eq!(answer.stderr, format!("from the training\nwarning: {sentence}"));
    assert!(answer.stdout.contains(&format!("# calibrate: {sentence}")), "{}", answer.stdout);
    let json = test.feedrate(&[CALIBRATE, &["--json", "--quiet"]].concat()).json();
    assert_eq!((&json["other_cores"], &json["is_disturbed"]), (&1.37.into(), &true.into()));
}

#[test]
fn a_workload_gets_the_section_once_and_keeps_the_rest() {
    let test = with_training_script();
    let write = [CALIBRATE, &["-o", "workload.yaml"]].concat();
    let answer = test.feedrate(&write);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{}", answer.stderr);
    let whole = std::fs::read_to_string(test.path("workload.yaml")).unwrap();
    assert!(whole.starts_with(TINY) && whole.contains("\n  per_batch: 2.100e-3\n"), "{whole}");
    assert_eq!(test.feedrate(&["plan", "workload.yaml"]).code, 0);
    test.feedrate(&write).refuses(2, &["`workload.yaml` has a `client:` section", "--force"]);
    assert_eq!(std::fs::read_to_string(test.path("workload.yaml")).unwrap(), whole);
    // After a change of the code, `--force` replaces the section and keeps the user's lines.
    let slower = whole.replace("per_batch: 2.100e-3", "per_batch: 9");
    let slower = slower.replacen("# calibrate: ", "# mine\n# calibrate: ", 1);
    test.write("workload.yaml", slower + "workflow:\n  train: True\n");
    assert_eq!(test.feedrate(&[&write[..], &["--force"]].concat()).code, 0);
    let (rest, section) = whole.split_at(TINY.len());
    let again = format!("{rest}# mine\nworkflow:\n  train: True\n{section}");
    assert_eq!(std::fs::read_to_string(test.path("workload.yaml")).unwrap(), again);
    // The form that `--write-yaml` writes.
    let below: String = TINY.lines().map(|line| format!("  {line}\n")).collect();
    test.write("workload.yaml", format!("workload:\n{below}"));
    assert_eq!(test.feedrate(&write).code, 0);
    let planned = test.feedrate(&["plan", "workload.yaml"]);
    assert!(planned.code == 0 && planned.stdout.contains("\nclient "), "{}", planned.stdout);
}

#[test]
fn scripts_that_cannot_be_measured_are_refused() {
    let test = with_training_script();
    test.feedrate(&["calibrate", "train.py"]).refuses(2, &["names no function"]);
    test.feedrate(&["calibrate", "gone.py:make"]).refuses(2, &["there is no file `gone.py`"]);
    let missing_python = ["calibrate", "train.py:make", "--python", "./nobody"];
    test.feedrate(&missing_python).refuses(2, &["cannot start `./nobody`", "--python"]);
    test.feedrate(&[CALIBRATE, &["-o", "gone.yaml"]].concat())
        .refuses(2, &["cannot read workload"]);
    test.write("python", "#!/bin/sh\nexit 1\n");
    test.feedrate(CALIBRATE).refuses(1, &["could not be measured"]);
}

#[test]
fn the_python_helper_computes_costs_from_rows() {
    let test = Test::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = test.program(std::path::absolute(venv_python()).unwrap(), &[]);
    let output = command.arg(root.join("tests/it/calibrate.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
