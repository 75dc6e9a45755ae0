//! `feedrate calibrate` with a script in the place of Python that returns fixed measurements. calibrate.py checks the arithmetic of the real
//! helper; it needs `.venv`, but no torch.

use crate::harness::{Answer, TINY, Test, venv_python};
use crate::schema::assert_matches_schema;
use feedrate_engine::job::ReadJob;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::example;
use feedrate_spec::plan::ClientPlan;
use feedrate_spec::workload::TimeSpec;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CALIBRATION: &str = r#"{"client": {"per_sample": 0.0001466, "per_byte": 6.372e-10, "per_batch": 0.0021, "handover_bytes_per_second": 1164669494.5,
    "shared_bytes_per_second": 2345678901.2, "pin_bytes_per_second": null,
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
  shared_bytes_per_second: 2345678901
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
    let disturbance = "other processes used 1.4 cores meanwhile: do not trust these costs, and measure again on an idle machine";
    assert_eq!(answer.stderr, format!("from the training\nwarning: {disturbance}\n"));
    let comment = format!("# calibrate: Warning: {disturbance}.\n");
    assert!(answer.stdout.contains(&comment), "{}", answer.stdout);
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

/// The loader's batch size, workers and prefetching are used unless others are given.
#[test]
fn a_run_measures_the_client_first() {
    let test = with_training_script();
    let client = ["--client", "train.py:make_loader", "--python", "./python"];
    let run = |more: &[&str]| {
        let compute = ["train.computation_time=0.001", "train.epochs=1"];
        let json = test.run_json(&[&client[..], &compute[..], more].concat());
        let folder = test.path(json["run_dir"].as_str().unwrap());
        let record = std::fs::read(folder.join("record.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        (json, record["plan"]["loader"].clone())
    };
    let (json, loader) = run(&[]);
    assert_eq!((&loader["batch_size"], &loader["workers"]), (&4.into(), &1.into()));
    assert_eq!(loader["client"]["per_sample_s"], 0.0001466);
    assert_eq!(loader["client"]["shared_bytes_per_second"], 2345678901_f64);
    let says = json["answer"]["client"]["says"].as_str().unwrap();
    assert!(says.starts_with("Client: calibrated (tests the job). "), "{says}");
    assert!(says.contains(" could feed it: ") && says.contains("; your code gets "), "{says}");
    assert_eq!(loader["prefetch_size"], 2, "the workload's");
    let prefetching = CALIBRATION.replacen('{', "{\"prefetch_factor\": 3, ", 1);
    test.write("calibration.json", prefetching);
    assert_eq!(run(&[]).1["prefetch_size"], 3);
    let (_, loader) = run(&["reader.batch_size=2", "client.per_sample=0.001"]);
    assert_eq!((&loader["batch_size"], &loader["workers"]), (&2.into(), &1.into()));
    let costs = &loader["client"];
    assert_eq!((&costs["per_sample_s"], &costs["per_batch_s"]), (&0.001.into(), &0.0021.into()));
    test.feedrate(&["run", "workload.yaml", "--client", "train.py"])
        .refuses(2, &["names no function"]);
}

/// A measured client shares nothing with one of the workload, not even costs that were not measured.
#[test]
fn a_measured_client_replaces_the_workloads() {
    let test = with_training_script();
    let client = ["--client", "train.py:make_loader", "--python", "./python", "train.epochs=1"];
    for section in [
        "client: pytorch-npz\n",
        "client: {per_sample: 0.01, pin_bytes_per_second: 1e6, start_per_epoch: 1.5}\n",
    ] {
        test.write("workload.yaml", format!("{TINY}{section}"));
        let json = test.run_json(&client);
        let folder = test.path(json["run_dir"].as_str().unwrap());
        let record = std::fs::read(folder.join("record.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        let costs = &record["plan"]["loader"]["client"];
        assert_eq!(costs["per_sample_s"], 0.0001466, "{costs}");
        assert_eq!(costs["start_per_epoch_s"], 0.0, "{costs}");
        assert!(costs.get("name").is_none() && costs.get("pin_bytes_per_second").is_none());
    }
}

/// The user's code is not run for a command that is refused, nor for a plan.
#[test]
fn the_client_is_measured_only_for_a_run_that_can_start() {
    let test = with_training_script();
    test.write("python", "#!/bin/sh\ntouch started\nexit 1\n");
    let run = |words: &[&str]| {
        let client = ["--client", "train.py:make_loader", "--python", "./python"];
        test.command(&[&["run"], words, &client].concat())
    };
    let answer = |words: &[&str]| Answer::from_output(&run(words).output().unwrap());
    answer(&["gone.yaml"]).refuses(2, &["gone.yaml"]);
    answer(&["workload.yaml", "bogus.key=3"]).refuses(2, &["bogus.key"]);
    let plan = answer(&["workload.yaml", "--dry-run"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    assert!(plan.stderr.contains("not measured in a dry run"), "{}", plan.stderr);
    let ranks = [0, 1].map(|rank: i32| {
        let mut ranked = run(&["workload.yaml"]);
        ranked.env("OMPI_COMM_WORLD_RANK", rank.to_string()).env("OMPI_COMM_WORLD_SIZE", "2");
        Answer::from_output(&ranked.output().unwrap())
    });
    ranks[0].refuses(2, &["several processes were started", "feedrate calibrate"]);
    assert_eq!((ranks[1].code, ranks[1].stderr.as_str()), (2, ""));
    assert!(!test.path("started").exists());
    answer(&["workload.yaml"]).refuses(1, &["could not be measured"]);
    assert!(test.path("started").exists());
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

/// A misspelt function is found before PyTorch or the script are imported.
#[test]
fn a_misspelt_function_gets_a_suggestion() {
    let test = with_training_script();
    test.write("train.py", "import nothing\ndef make_loader(): pass\ndef other(): pass\n");
    let calibrate = |source: &str| {
        let python = venv_python();
        test.feedrate(&["calibrate", source, "--python", python.to_str().unwrap()])
    };
    let answer = calibrate("train.py:make_loadr");
    answer.refuses(2, &["`train.py` has no function `make_loadr`", "did you mean `make_loader`?"]);
    calibrate("train.py:xyz").refuses(2, &["give one of make_loader, other"]);
}

/// Runs a script of this folder and returns its output.
fn run_script(name: &str) -> String {
    let test = Test::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = test.program(std::path::absolute(venv_python()).unwrap(), &["-B"]);
    let output = command.arg(root.join("tests/it").join(name)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_python_helper_computes_costs_from_rows() {
    run_script("calibrate.py");
}

/// contention.py simulates loops whose workers share a token bucket, and calibrates them. If a step lasts as long as the bucket needs for a batch,
/// and the workers are just saturated, loops of constant times may fall into step in several ways; hence a few cells may miss.
#[test]
fn calibrated_clients_stop_scaling_where_their_loops_do() {
    let output = run_script("contention.py");
    assert_eq!(output.lines().count(), 60);
    let (mut cells, mut missed) = (0, Vec::new());
    for line in output.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        for (workers, au_percent) in case["au_percent"].as_object().unwrap() {
            let emulated = emulated_au_percent(&case, workers.parse().unwrap());
            let gap = emulated - au_percent.as_f64().unwrap();
            assert!(gap.abs() <= 6.0, "{workers} workers: {emulated} %, {gap} points off: {case}");
            cells += 1;
            if gap.abs() > 3.0 {
                missed.push(format!("{workers} workers: {emulated} %, {gap} points off: {case}"));
            }
        }
    }
    assert!(100 * missed.len() <= cells, "{} of {cells}:\n{}", missed.len(), missed.join("\n"));
}

/// The utilisation in virtual time with the client of a case, for batches of four samples of a million bytes.
fn emulated_au_percent(case: &Value, workers: u32) -> f64 {
    let cost = |key: &str| case["client"][key].as_f64();
    let mut plan = example::plan(1, 400);
    plan.dataset.format = "null".into();
    plan.storage.kind = "null".into();
    plan.storage.engine = None;
    plan.loader.batch_size = 4;
    plan.dataset.files_train *= 4;
    plan.loader.piece_bytes = 4 << 20;
    plan.loader.workers = workers;
    plan.loader.batches_in_flight = 2 * workers;
    plan.loader.client = Some(ClientPlan {
        per_sample_s: cost("per_sample").unwrap(),
        per_byte_s: cost("per_byte").unwrap(),
        per_batch_s: cost("per_batch").unwrap(),
        handover_bytes_per_second: cost("handover_bytes_per_second"),
        shared_bytes_per_second: cost("shared_bytes_per_second"),
        receive_per_batch_s: cost("receive_per_batch").unwrap(),
        receive_per_byte_s: cost("receive_per_byte").unwrap(),
        ..ClientPlan::default()
    });
    plan.train.compute = TimeSpec::Constant { mean: case["step_s"].as_f64().unwrap() };
    let job = ReadJob::without_files(&plan).unwrap();
    let epochs = SimulatedDriver::new(job, SimulatedStorage::default()).run_epoch(400).unwrap();
    let block = &epochs[0].blocks[0];
    let compute_ns: u64 = block.compute_ns.iter().sum();
    100.0 * compute_ns as f64 / (block.end_ns - block.start_ns) as f64
}
