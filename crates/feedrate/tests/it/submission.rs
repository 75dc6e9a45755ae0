//! `feedrate analyze` on stand-ins for submissions to MLPerf Storage 3.0, in the layout of `mlpstorage`: `Rules.md` 2.1,
//! `generate_output_location`, and the metadata of its class `Benchmark`. That release wrote no `provenance.json`.

use crate::harness::Test;
use feedrate_results::import::fake::Fake;
use feedrate_spec::bundled;
use feedrate_spec::workload::json_from_yaml;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Six runs of unet3d on four B200s with 14,000 files, of which the first is the warm-up.
struct Submission {
    system: &'static str,
    /// An edit of the official template: a line and what replaces it.
    edit: Option<[&'static str; 2]>,
    /// Additional `--params` of the command line.
    parameters: &'static [&'static str],
}

const SYSTEMS: [Submission; 4] = [
    Submission { system: "official", edit: None, parameters: &["reader.read_threads=8"] },
    Submission {
        system: "edited",
        edit: Some(["sample_shuffle: seed", "sample_shuffle: off"]),
        parameters: &[],
    },
    Submission { system: "overridden", edit: None, parameters: &["train.epochs=4"] },
    Submission {
        system: "slowed",
        // The step of an H100.
        edit: Some(["computation_time: 0.162", "computation_time: 0.323"]),
        parameters: &[],
    },
];

impl Submission {
    /// Returns the template in the folder of the tools, which lacks keys that only feedrate has.
    fn template(&self) -> String {
        let lines = bundled::find("unet3d_b200").unwrap().yaml.lines();
        let official =
            lines.filter(|line| *line != "  decode: False").collect::<Vec<_>>().join("\n");
        let [from, to] = self.edit.unwrap_or_default();
        assert!(official.contains(from));
        official.replacen(from, to, usize::from(self.edit.is_some()))
    }

    /// Returns the overrides of a run: those of the user, then those that `mlpstorage` adds.
    fn overrides(&self) -> Vec<&'static str> {
        let own = [
            "dataset.skip_listing=True",
            "dataset.listing_validation_interval=10",
            "dataset.data_folder=/mnt/data/unet3d",
        ];
        [&["dataset.num_files_train=14000"], self.parameters, &own].concat()
    }

    /// Returns the template with the overrides of the user, as `mlpstorage` stores it.
    fn parameters(&self) -> Value {
        let mut parameters = json_from_yaml("template", &self.template()).unwrap();
        for parameter in [&["dataset.num_files_train=14000"], self.parameters].concat() {
            let (path, value) = parameter.split_once('=').unwrap();
            let (section, key) = path.split_once('.').unwrap();
            // The tool takes all values of the command line as text.
            parameters[section][key] = value.into();
        }
        parameters
    }

    fn write(&self, root: &Path, number: u32) -> Vec<PathBuf> {
        let results = format!("closed/acme/results/{}/training/unet3d", self.system);
        let parameters = self.parameters();
        let runs = (0..6).map(|run| {
            // Two runs of 5 minutes would not fit between two starts.
            let minutes = 10 * (6 * number + run);
            let start_s = 60.0 * f64::from(minutes);
            let time = format!("20251130_{:02}{:02}00", minutes / 60, minutes % 60);
            let fake = Fake {
                files: 14_000,
                record_length: 146_600_628,
                compute_s: 0.162,
                load_s: |_, step| if step == 0 { 2.0 } else { 0.001 },
                // Runs with equal times would count as copies.
                slower: 1.0 + f64::from(6 * number + run) / 1e4,
                start_s,
                epochs: parameters["train"]["epochs"]
                    .to_string()
                    .trim_matches('"')
                    .parse()
                    .unwrap(),
                overrides: self.overrides(),
                ..Fake::default()
            };
            let folder = fake.write(root, &format!("{results}/run/{time}"));
            self.replace_settings(&folder);
            let metadata = json!({
                "benchmark_type": "training",
                "model": "unet3d",
                "command": "run",
                "run_datetime": time,
                "num_processes": 4,
                "accelerator": "b200",
                "result_dir": format!("/results/{results}/run/{time}"),
                "parameters": parameters,
                "override_parameters": {"dataset.num_files_train": "14000"},
                "system_info": null,
                "runtime": 1000.0,
                "verification": "CLOSED",
                "executed_command": "dlio_benchmark workload=unet3d_b200",
                "args": {"mode": "closed", "orgname": "acme", "systemname": self.system},
            });
            let put = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
            put(&format!("training_{time}_metadata.json"), &metadata.to_string());
            put("training_run.stdout.log", "");
            put("training_run.stderr.log", "");
            put(".mlps-code-image", "code-0a1b2c3d");
            folder
        });
        let runs = runs.collect();
        fs::write(root.join(&results).join("run/results.json"), "[]").unwrap();
        runs
    }

    /// Replaces the settings of the fixture by those that Hydra stores: the template with all overrides.
    fn replace_settings(&self, run: &Path) {
        let hydra = run.join("dlio_config");
        fs::rename(run.join(".hydra"), &hydra).unwrap();
        let mut workload = json_from_yaml("template", &self.template()).unwrap();
        for text in self.overrides() {
            let (path, value) = text.split_once('=').unwrap();
            let (section, key) = path.split_once('.').unwrap();
            workload[section][key] = value.into();
        }
        // JSON is YAML.
        fs::write(hydra.join("config.yaml"), json!({"workload": workload}).to_string()).unwrap();
        let overrides = fs::read_to_string(hydra.join("overrides.yaml")).unwrap();
        assert!(overrides.contains("workload=fake"));
        let overrides = overrides.replace("workload=fake", "workload=unet3d_b200");
        // The tools leave the workflow to the template.
        let kept = overrides.lines().filter(|line| !line.contains("workload.workflow"));
        fs::write(hydra.join("overrides.yaml"), kept.collect::<Vec<_>>().join("\n")).unwrap();
        fs::write(hydra.join("hydra.yaml"), "hydra: {}").unwrap();
    }
}

fn write_all(test: &Test) -> Vec<PathBuf> {
    let root = test.path("submissions");
    let systems = SYSTEMS.iter().zip(0..);
    let runs = systems.flat_map(|(system, number)| system.write(&root, number)).collect();
    // The code of the submission has runs as fixtures of its tests.
    let fixtures = "code-images/code-0a1b2c3d/tests/fixtures/sample_results/training/unet3d";
    Fake::default().write(&root, fixtures);
    runs
}

/// Returns the settings that `analyze` calls changed, by the system of the run.
fn changed_by_system(test: &Test) -> Vec<(String, Value, Value)> {
    let found = test.feedrate(&["analyze", "submissions", "--json"]).json();
    let runs = found["runs"].as_array().unwrap().iter();
    let mut changed: Vec<(String, Value, Value)> = runs
        .map(|run| {
            let rules = run["mlperf"]["rules"].as_array().unwrap();
            let rule = rules.iter().find(|rule| rule["name"] == "changed settings").unwrap();
            let system = run["submission"]["system"].as_str().unwrap();
            (system.into(), rule["keeps"].clone(), rule["names"].clone())
        })
        .collect();
    changed.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(changed.len(), 6 * SYSTEMS.len());
    changed.dedup();
    changed
}

fn expected() -> Vec<(String, Value, Value)> {
    vec![
        ("edited".into(), json!(false), json!(["`reader.sample_shuffle`"])),
        ("official".into(), json!(true), json!([])),
        ("overridden".into(), json!(false), json!(["`train.epochs`"])),
        ("slowed".into(), json!(false), json!(["`train.computation_time`"])),
    ]
}

#[test]
fn edited_templates_are_found_in_submissions_of_3_0() {
    let test = Test::new();
    write_all(&test);
    assert_eq!(changed_by_system(&test), expected());
    let found = test.feedrate(&["analyze", "submissions", "--json"]).json();
    let [unet3d] = &found["mlperf"].as_array().unwrap()[..] else { panic!("{}", found["mlperf"]) };
    assert_eq!(
        (&unet3d["kept"], &unet3d["not_kept"], &unet3d["unknown"]),
        (&json!(5), &json!(15), &json!(0))
    );
    let shown = test.feedrate(&["analyze", "submissions"]).stdout;
    insta::assert_snapshot!(
        shown.lines().take_while(|line| !line.starts_with("Answer")).collect::<Vec<_>>().join("\n")
    );
}

/// Without Hydra's settings, the metadata of `mlpstorage` shows them.
#[test]
fn the_metadata_of_mlpstorage_shows_edited_templates() {
    let test = Test::new();
    for run in write_all(&test) {
        fs::remove_dir_all(run.join("dlio_config")).unwrap();
    }
    assert_eq!(changed_by_system(&test), expected());
}
