//! Datasets: generated once, reused, side by side, checked.

use crate::harness::{TINY, Test};

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
    assert_eq!(test.feedrate(&["verify", "workload.yaml"]).code, 0);
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
        let verify =
            test.feedrate(&["verify", "workload.yaml", &format, "dataset.num_samples_per_file=3"]);
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
