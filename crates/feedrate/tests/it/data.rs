//! Datasets: generated once, reused, side by side, checked.

use crate::harness::{TINY, Test};
use serde_json::Value;

#[test]
fn a_dataset_is_made_once_and_reused() {
    let test = Test::with(TINY);
    test.run_json(&[]);
    let files = test.data_files(".npz");
    assert_eq!(files.len(), 8);
    let made: Vec<_> = files.iter().map(|f| f.metadata().unwrap().modified().unwrap()).collect();
    test.run_json(&["reader.batch_size=2"]);
    let now: Vec<_> = files.iter().map(|f| f.metadata().unwrap().modified().unwrap()).collect();
    assert_eq!(made, now);
}

#[test]
fn datasets_of_other_settings_lie_side_by_side() {
    let test = Test::with(TINY);
    test.run_json(&[]);
    test.run_json(&["dataset.record_length_bytes=8192"]);
    assert_eq!(test.data_files("manifest.json").len(), 2);
    assert_eq!(test.data_files(".npz").len(), 16);
}

#[test]
fn an_interrupted_generation_is_continued() {
    let test = Test::with(TINY);
    test.feedrate(&["generate", "workload.yaml"]);
    let manifest = &test.data_files("manifest.json")[0];
    let text = std::fs::read_to_string(manifest).unwrap();
    assert!(text.contains("\"complete\""), "{text}");
    std::fs::write(manifest, text.replace("\"complete\"", "\"generating\"")).unwrap();
    let lost = &test.data_files(".npz")[3];
    std::fs::remove_file(lost).unwrap();
    let answer = test.feedrate(&["generate", "workload.yaml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(lost.exists());
    assert_eq!(test.feedrate(&["generate", "--verify", "workload.yaml"]).code, 0);
}

#[test]
fn every_byte_can_be_verified_while_training() {
    for format in ["npz", "npy", "indexed_binary"] {
        let test = Test::with(TINY);
        let format = format!("dataset.format={format}");
        let arguments = [
            "--verify",
            &format,
            "dataset.num_samples_per_file=3",
            "reader.sample_shuffle=seed",
            "reader.read_threads=2",
        ];
        let json = test.run_json(&arguments);
        assert_eq!(json["complete"], true);
        let verify = test.feedrate(&[
            "generate",
            "--verify",
            "workload.yaml",
            &format,
            "dataset.num_samples_per_file=3",
        ]);
        assert_eq!(verify.code, 0, "{}", verify.stderr);
    }
}

#[test]
fn a_foreign_dataset_is_used_as_it_is() {
    let test = Test::with(TINY);
    test.feedrate(&["generate", "workload.yaml"]);
    let dataset = test.data_files("manifest.json")[0].parent().unwrap().to_path_buf();
    std::fs::remove_file(dataset.join("manifest.json")).unwrap();
    let folder = dataset.to_string_lossy().into_owned();
    let json = test.run_json(&["--foreign", "--data", &folder]);
    assert_eq!(json["complete"], true);
    assert!(!dataset.join("manifest.json").exists());
}

#[test]
fn memory_and_null_need_no_folder() {
    let test = Test::with(TINY);
    assert_eq!(test.run_json(&["storage.storage_type=memory", "--verify"])["complete"], true);
    let json = test.run_json(&["storage.storage_type='null'", "dataset.format='null'"]);
    assert_eq!(json["bytes"]["logical"], 2 * 8 * 4096);
    assert!(!test.path("data").exists());
}

/// How often this machine dropped dentries and inodes: tests beside this one may do so.
fn drops() -> u64 {
    let vmstat = std::fs::read_to_string("/proc/vmstat").unwrap();
    let drops = vmstat.lines().find_map(|line| line.strip_prefix("drop_slab ")).unwrap();
    drops.parse().unwrap()
}

fn metadata_doubt(json: &Value) -> Option<&Value> {
    json["doubts"].as_array().unwrap().iter().find(|doubt| doubt["name"] == "metadata_warm")
}

fn first_epoch(test: &Test, json: &Value) -> Value {
    let path = test.path(json["run_dir"].as_str().unwrap()).join("record.json");
    let record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    record["epochs"][0].clone()
}

/// Of files that were made before, by another process, and of those that feedrate opens itself.
#[test]
fn files_that_were_opened_or_made_since_the_last_drop_are_told() {
    let test = Test::with(TINY);
    let many = ["dataset.num_files_train=2000", "dataset.record_length_bytes=64", "train.epochs=1"];
    assert_eq!(test.feedrate(&[&["generate", "workload.yaml"], &many[..]].concat()).code, 0);
    let manifest = test.data_files("manifest.json")[0].clone();
    let made_on = &serde_json::from_slice::<Value>(&std::fs::read(&manifest).unwrap()).unwrap();
    let made_on = made_on["made_on"].as_array().unwrap();
    assert_eq!((made_on.len(), made_on[0]["files"].as_u64()), (1, Some(2000)));
    let json = test.run_json(&many);
    if made_on[0]["drops"] == drops() {
        let doubt = metadata_doubt(&json).unwrap();
        let of = (&doubt["facts"]["opened_files"], &doubt["facts"]["dataset_files"]);
        assert_eq!((of.0.as_u64(), of.1.as_u64()), (Some(2000), Some(2000)));
    }
    assert_eq!(first_epoch(&test, &json)["accelerators"][0]["io"]["preparation_opens"], 20 + 20);

    let folder = manifest.parent().unwrap().to_string_lossy().into_owned();
    std::fs::remove_file(&manifest).unwrap();
    let json = test.run_json(&[&["--foreign", "--data", &folder], &many[..]].concat());
    assert_eq!(metadata_doubt(&json), None, "nothing is known of who opened them before");
    assert_eq!(json["access"]["preparation_opens"], 16 + 20 + 20);
    assert_eq!(first_epoch(&test, &json)["host"]["metadata_opened_files"], 0);
}

#[test]
fn a_cold_run_drops_dentries_and_inodes_or_says_that_it_could_not() {
    let test = Test::with(TINY);
    let json = test.run_json(&["--cold", "train.epochs=2"]);
    let (doubt, host) = (metadata_doubt(&json), &first_epoch(&test, &json)["host"]);
    if host["metadata_dropped"] == true {
        assert_eq!((doubt, host["metadata_opened_files"].as_u64()), (None, Some(0)));
    } else {
        let evidence = doubt.unwrap()["evidence"].as_str().unwrap();
        assert!(evidence.contains("not allowed to drop them before 2 epochs"), "{evidence}");
    }
    assert_eq!(
        json["access"]["preparation_opens"],
        8 * 6,
        "emptied and looked at before and after, twice"
    );
}
