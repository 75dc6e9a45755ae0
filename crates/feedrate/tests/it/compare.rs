//! `feedrate compare`: verdicts and exit codes for records with known times, for runs of feedrate and for DLIO's result files.

use crate::harness::{Answer, Test};
use serde_json::{Value, json};
use std::fs;

/// Twelve steps of 10 ms in memory.
const FED: &str = "\
model:
  name: fed
framework: pytorch
dataset:
  data_folder: data
  format: raw
  num_files_train: 12
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 1
train:
  computation_time: 0.01
storage:
  storage_type: memory
";

/// Reads take at least 30 ms per 4096 bytes, three times the compute time of a step.
const SLOW: &str = "storage.throttle.bytes_per_second=136533";

impl Test {
    fn runs(&self, results: &str, count: usize, more: &[&str]) {
        for _ in 0..count {
            self.run_json(&[&["--results", results], more].concat());
        }
    }

    /// Writes records with known times, each a changed copy of a real record. Each of the twelve steps waits `load_ns` and computes for 10 ms.
    fn write_records(&self, results: &str, load_ns: &[u64], change: impl Fn(&mut Value)) {
        self.runs("real", 1, &[]);
        let real = self.files_below("real", "record.json").remove(0);
        for (run, &load_ns) in load_ns.iter().enumerate() {
            let mut record: Value = serde_json::from_slice(&fs::read(&real).unwrap()).unwrap();
            record["started"] = format!("2026-11-21T10:00:0{run}.000000").into();
            let epoch = &mut record["epochs"][0];
            let end_ns = 12 * (load_ns + 10_000_000);
            (epoch["start_ns"], epoch["end_ns"]) = (0.into(), end_ns.into());
            let accelerator = &mut epoch["accelerators"][0];
            accelerator["stall"] =
                json!({"open_ns": 0, "read_ns": 0, "decode_ns": 0, "queue_ns": 12 * load_ns});
            let block = &mut accelerator["blocks"][0];
            (block["start_ns"], block["end_ns"]) = (0.into(), end_ns.into());
            block["load_ns"] = json!(vec![load_ns; 12]);
            block["compute_ns"] = json!(vec![10_000_000; 12]);
            block["barrier_ns"] = json!(vec![0; 12]);
            // Other tests keep the cores busy.
            record["epochs"][0]["host"]["cpu_busy_share"] = Value::Null;
            change(&mut record);
            fs::create_dir_all(self.path(&format!("{results}/{run}"))).unwrap();
            self.write(&format!("{results}/{run}/record.json"), record.to_string());
        }
        fs::remove_dir_all(self.path("real")).unwrap();
    }

    /// Runs `feedrate compare … --json`; returns the exit code and the report.
    fn compare(&self, arguments: &[&str]) -> (i32, Value) {
        let answer = self.feedrate(&[&["compare"], arguments, &["--json"]].concat());
        let report = serde_json::from_str(&answer.stdout);
        (answer.code, report.unwrap_or_else(|error| panic!("{error}: {answer:?}")))
    }
}

#[test]
fn each_verdict_has_its_exit_code() {
    let test = Test::with_workload(FED);
    test.write_records("fast", &[1_000_000, 1_010_000, 1_020_000], |_| {});
    test.write_records("slow", &[9_000_000, 9_010_000, 9_020_000], |record| {
        record["plan"]["storage"]["throttle_bytes_per_second"] = 136_533.0.into();
    });
    let au = ["--response", "au_all_steps"];
    let check = |arguments: &[&str], code: i32, verdict: &str| {
        let (found, report) = test.compare(&[arguments, &au].concat());
        assert_eq!(report["findings"][0]["verdict"], verdict, "{report}");
        assert_eq!((found, &report["met"]), (code, &Value::from(code == 0)), "{report}");
    };
    test.write_records("again", &[1_001_000, 1_011_000, 1_021_000], |_| {});
    check(&["fast", "again", "--within", "20%"], 0, "same");
    check(&["fast", "slow"], 3, "differs");
    check(&["slow", "fast", "--no-worse-than", "0.1"], 0, "not_worse");
    check(&["fast", "slow", "--no-worse-than", "10%"], 3, "differs");
    let (_, report) = test.compare(&["fast", "slow"]);
    let differs = &report["differs_in"];
    assert_eq!(differs[0]["setting"], "storage.throttle_bytes_per_second");
    assert_eq!((&differs[0]["a"], &differs[0]["b"]), (&Value::Null, &Value::from("136533")));
    assert_eq!(report["findings"].as_array().unwrap().len(), 2, "utilisation and throughput");
    assert_eq!(report["findings"][1]["a"]["values"].as_array().unwrap().len(), 3);
    let first = report["findings"][0]["a"]["values"][0].as_f64().unwrap();
    assert!((first - 1000.0 / 11.0).abs() < 1e-6, "10 of 11 ms: {first}");
}

#[test]
fn dlios_result_files_are_compared_like_records() {
    let test = Test::with_workload(FED);
    test.runs("a", 2, &[]);
    test.runs("b", 2, &["reader.batch_size=2"]);
    let arguments =
        ["a", "b", "--response", "au_all_steps", "--response", "delivered_bytes_per_second"];
    let of_records = test.compare(&arguments).1;
    for folder in ["a", "b"] {
        for record in test.files_below(folder, "record.json") {
            fs::remove_file(record).unwrap();
        }
    }
    let of_files = test.compare(&arguments).1;
    for side in ["a", "b"] {
        assert_eq!(of_records["findings"][0][side]["provenance"], "measured");
        assert_eq!(of_files["findings"][0][side]["provenance"], "recomputed");
        assert_eq!(of_files["findings"][1][side]["provenance"], "estimated");
    }
    let output = test.feedrate(&[&["compare"], &arguments[..]].concat()).stdout;
    assert!(
        output.contains("inconclusive: A and B differ in batch_size; `--across KEY`"),
        "{output}"
    );
    assert!(output.contains("Doubts of A  ") && output.contains("Doubts of B  "), "{output}");
    test.feedrate(&["compare", "a", "b", "--across", "prefetch"])
        .refuses(2, &["`--across prefetch`"]);
    assert!(
        output.contains(", recomputed, n = 2") && output.contains(", estimated, n = 2"),
        "{output}"
    );
    let values = |report: &Value, side: &str| -> Vec<f64> {
        let values = report["findings"][0][side]["values"].as_array().unwrap();
        values.iter().map(|value| value.as_f64().unwrap()).collect()
    };
    for side in ["a", "b"] {
        let (records, files) = (values(&of_records, side), values(&of_files, side));
        assert_eq!((records.len(), files.len()), (2, 2), "{of_files}");
        // Times in DLIO's files are in microseconds.
        let near = records.iter().zip(&files).all(|(a, b)| (a - b).abs() < 0.005 * a);
        assert!(near, "{records:?} from records, {files:?} from files");
    }
    let differs = of_files["differs_in"].as_array().unwrap();
    let batch =
        differs.iter().find(|difference| difference["setting"] == "loader.batch_size").unwrap();
    assert_eq!((&batch["a"], &batch["b"]), (&"1".into(), &"2".into()));
    fs::create_dir_all(test.path("made/.hydra")).unwrap();
    test.write(
        "made/.hydra/config.yaml",
        "workload: {workflow: {generate_data: true, train: false}}\n",
    );
    let answer = test.feedrate(&["compare", "made", "a"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    for words in ["Left out of A  `made`: it generated data without training", "Only in B: "] {
        assert!(answer.stdout.contains(words), "no `{words}` in: {}", answer.stdout);
    }
}

#[test]
fn one_run_on_each_side_is_inconclusive() {
    let test = Test::with_workload(FED);
    test.runs("fast", 1, &[]);
    test.runs("slow", 1, &[SLOW]);
    let answer = test.feedrate(&["compare", "fast", "slow"]);
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let output = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Differs in storage.throttle_bytes_per_second: `none` in A, `136533` in B",
        "au_all_steps_percent inconclusive: n = 1 in A, n = 1 in B",
        "Question: the same within 2 %: not shown",
    ] {
        assert!(output.contains(words), "no `{words}` in: {}", answer.stdout);
    }
    assert!(!answer.stdout.contains('['), "an interval of one run: {}", answer.stdout);
}

#[test]
fn interrupted_runs_are_listed_and_not_compared() {
    let test = Test::with_workload(FED);
    test.runs("a", 2, &[]);
    let path = &test.files_below("a", "record.json")[1];
    let mut record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    record["complete"] = false.into();
    record["stopped_because"] = "interrupted".into();
    std::fs::write(path, record.to_string()).unwrap();
    test.runs("b", 2, &[]);
    let (code, report) = test.compare(&["b", "a"]);
    assert_eq!(code, 4);
    let left_out = &report["left_out_of_b"][0];
    assert!(left_out["why"].as_str().unwrap().contains("interrupted"), "{report}");
    let side = &report["findings"][0]["b"];
    assert_eq!((&side["runs"], &side["invalid"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(report["findings"][0]["verdict"], "cannot_tell");
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let test = Test::with_workload(FED);
    test.runs("a", 1, &[]);
    let words = ["are the same run", "hint:"];
    test.feedrate(&["compare", "a", "a"]).refuses(2, &words);
    let record = test.files_below("a", "record.json").remove(0);
    fs::create_dir_all(test.path("copy/run")).unwrap();
    fs::copy(record, test.path("copy/run/record.json")).unwrap();
    test.feedrate(&["compare", "a", "copy"]).refuses(2, &words);
}

#[test]
fn two_studies_are_compared_by_their_csv() {
    let test = Test::with_workload(FED);
    let row = |replicate: u32| format!("workload.yaml,1,1,,{replicate},N\n");
    let rows = [1, 2, 3].map(row).concat();
    for name in ["a.csv", "b.csv"] {
        test.write(name, format!("model,epochs,processes,overrides,replicate,run\n{rows}"));
        let answer = test.feedrate(&["study", "run", name, "--quiet"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    let (_, report) = test.compare(&["a.csv", "b.csv", "--paired", "--response", "au_all_steps"]);
    let finding = &report["findings"][0];
    assert_eq!((&finding["a"]["runs"], &finding["b"]["runs"]), (&3.into(), &3.into()), "{report}");
    assert!(finding["difference"]["low"].is_number(), "{report}");
    test.write("b.csv", "model,epochs,processes,overrides,replicate,run\nworkload.yaml,1,1,,9,Y\n");
    let (_, report) = test.compare(&["a.csv", "b.csv"]);
    let why = report["left_out_of_b"][0]["why"].as_str().unwrap();
    assert_eq!(why, "the study has no result of workload/1 replicate 9");
}

#[test]
fn bad_arguments_are_refused() {
    let test = Test::with_workload(FED);
    std::fs::create_dir(test.path("empty")).unwrap();
    for (arguments, words) in [
        (&["nowhere", "empty"][..], &["`nowhere`", "hint:"][..]),
        (&["empty", "empty"], &["holds no result"]),
        (&["empty", "empty", "--within", "2"], &["'2' for '--within <SHARE>'", "`2%`"]),
        (&["empty", "empty", "--response", "speed"], &["no response `speed`", "duration_s"]),
        (&["empty", "empty", "--within", "1%", "--no-worse-than", "1%"], &["cannot be used with"]),
    ] {
        let answer: Answer = test.feedrate(&[&["compare"], arguments].concat());
        answer.refuses(2, words);
    }
}
