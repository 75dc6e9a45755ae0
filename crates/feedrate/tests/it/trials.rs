//! `feedrate advise --try` and `feedrate tune`: changes that are run against the workload.

use crate::harness::Test;
use serde_json::Value;

/// One reading thread waits 4 ms for each of 4 reads of a batch that is computed on for 8 ms.
const LATENCY: &str = "\
model:
  name: latency
framework: pytorch
dataset:
  data_folder: data
  format: npz
  num_files_train: 128
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 4
  read_threads: 1
train:
  epochs: 1
  computation_time: 0.008
storage:
  delay:
    read_seconds: 0.004
";

#[test]
fn advice_is_tried_and_what_was_made_for_it_is_removed() {
    let test = Test::with(LATENCY);
    let answer = test.feedrate(&["advise", "workload.yaml", "--try", "--budget", "40s", "--json"]);
    assert!([0, 4].contains(&answer.code), "{answer:?}");
    let report = answer.json();
    let baseline = report["baseline"]["mean_percent"].as_f64().unwrap();
    let advice = report["advice"].as_array().unwrap();
    let helps = advice.iter().find(|of| of["outcome"] == "helps");
    let helps = helps.unwrap_or_else(|| panic!("nothing helps: {report}"));
    assert!(baseline + 10.0 < helps["tried"]["mean_percent"].as_f64().unwrap(), "{report}");
    assert!(2 <= helps["tried"]["n"].as_u64().unwrap() && helps["tried"]["interval"][1].is_f64());
    for of in advice {
        let is_tried = of["outcome"] != "not_tried";
        assert_eq!(of["tried"].is_null(), !is_tried, "{of}");
        assert!(is_tried || of["reason"].is_string(), "{of}");
    }
    let left: Vec<_> = std::fs::read_dir(test.path("data")).unwrap().flatten().collect();
    assert!(
        left.iter().all(|of| !of.file_name().to_string_lossy().starts_with("trials-")),
        "{left:?}"
    );
    assert_eq!(left.len(), 1, "{left:?}");
    // The same outcomes stand in a report of the runs that were made.
    let answer = test.feedrate(&["report", report["results"].as_str().unwrap(), "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let page = answer.json();
    let [of] = &page["advice"].as_array().unwrap()[..] else { panic!("{page}") };
    let outcome =
        |of: &Value| (of["overrides"].clone(), of["outcome"].clone(), of["tried"].clone());
    let told: Vec<_> = of["changes"].as_array().unwrap().iter().map(outcome).collect();
    assert_eq!(told, advice.iter().map(outcome).collect::<Vec<_>>());
    assert!(page["opening"].as_array().unwrap().iter().any(|line| line["name"] == "Advice"));
}

#[test]
fn the_cheapest_setting_of_the_best_is_found_in_few_runs() {
    let test = Test::with(LATENCY);
    let keys = "reader.read_threads,reader.prefetch_size";
    let arguments = ["tune", "workload.yaml", "--keys", keys, "--budget", "40s", "--json"];
    let answer = test.feedrate(&arguments);
    assert!([0, 4].contains(&answer.code), "{answer:?}");
    let report = answer.json();
    let tried = report["tried"].as_array().unwrap();
    let mean = |of: &Value| of["tried"]["mean_percent"].as_f64().unwrap_or(0.0);
    let own = tried.iter().find(|of| of["overrides"].as_array().unwrap().is_empty()).unwrap();
    assert!(mean(own) + 10.0 < mean(&report["best"]), "{report}");
    assert!(report["yaml"].as_str().unwrap().contains("reader:\n  read_threads: "), "{report}");
    assert!(report["command"].as_str().unwrap().starts_with("feedrate run workload.yaml reader."));
    let bad = test.feedrate(&["tune", "workload.yaml", "--keys", "reader.read_thread"]);
    assert!(bad.code == 2 && bad.stderr.contains("did you mean `reader.read_threads`?"), "{bad:?}");
}
