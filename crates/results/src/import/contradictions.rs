//! Settings that the record and the `config.yaml` of a run state differently, because one of them was edited or belongs to another run.
//! `config.yaml` has the values that were used, so the overrides beside it are not compared.

use super::config;
use super::json;
use feedrate_measure::record::{Contradiction, Record};
use feedrate_spec::mlperf::{CoreConfig, canonical_json};
use feedrate_spec::plan::Plan;
use feedrate_spec::plan::schedule::steps_of_training;
use feedrate_spec::problem::{ProblemSeverity, Problems};
use feedrate_spec::workload::{
    CREDENTIALS, Strictness, Surroundings, TimeSpec, Workload, json_from_yaml, parse_in,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const CONFIG_FILE: &str = "config.yaml";
const CONFIG: &str = "`config.yaml`";
const PLAN: &str = "the plan of `record.json`";
const CORE_CONFIG: &str = "`core_config` of `record.json`";

/// Size limit of a `config.yaml`. The workload's own limits are lower.
const BYTES_MAX: u64 = 16 << 20;

/// Compares a record with `config.yaml` in Hydra's folder beside it, and the parts of the record with each other.
pub(super) fn contradictions(run: &Path, record: &Record) -> Vec<Contradiction> {
    if record.watched.is_some() {
        return Vec::new();
    }
    let mut statements = Statements::default();
    statements.add_plan(record);
    let problems = match read_config(run) {
        None => Vec::new(),
        Some(Err(error)) => vec![Contradiction { key: None, text: format!("{CONFIG}: {error}") }],
        Some(Ok(config)) => statements.add_config(record, &config),
    };
    let mut found = statements.contradictions();
    found.extend(problems);
    found.extend(wrong_steps(&record.plan));
    found
}

/// A `config.yaml`.
struct ConfigFile {
    text: String,
    /// The tree below `workload`, with interpolations as written.
    tree: Value,
}

/// Reads `config.yaml`; `None` if there is none.
fn read_config(run: &Path) -> Option<Result<ConfigFile, String>> {
    let (_, folder) = config::subfolder(run)?;
    let bytes = json::bytes(&folder.join(CONFIG_FILE), BYTES_MAX)?;
    let config = bytes.and_then(|bytes| {
        let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_string())?;
        let root = json_from_yaml(CONFIG_FILE, &text).map_err(|problem| problem.message)?;
        match root.get("workload") {
            Some(tree) if tree.is_object() => Ok(ConfigFile { tree: tree.clone(), text }),
            _ => Err("it has no settings below `workload`".into()),
        }
    });
    Some(config)
}

impl ConfigFile {
    fn has_interpolation(&self, key: &str) -> bool {
        let value = key.split('.').try_fold(&self.tree, |value, key| value.get(key));
        value.is_some_and(|value| value.to_string().contains("${"))
    }

    /// Reads the workload as a run does.
    fn workload(&self) -> Result<Workload, Problems> {
        let parsed = parse_in(CONFIG_FILE, &self.text, &[], Strictness::Warning, &Elsewhere);
        parsed.map(|(workload, _)| workload)
    }
}

/// The surroundings of a run that took place elsewhere. A run writes interpolations only where values may be credentials.
struct Elsewhere;

impl Surroundings for Elsewhere {
    fn variable(&self, _name: &str) -> Option<String> {
        Some(String::new())
    }

    fn time(&self, _format: &str) -> Option<String> {
        Some(String::new())
    }

    fn hydra(&self, _key: &str) -> Option<String> {
        Some(String::new())
    }
}

/// Checks that the counts in a plan give its number of steps.
fn wrong_steps(plan: &Plan) -> Option<Contradiction> {
    let Plan { dataset, loader, train, accelerators, .. } = plan;
    let is_limited = train.total_steps.is_some() || train.steps_per_epoch == 0;
    let steps = steps_of_training(dataset, loader, *accelerators);
    if plan.core_config.is_none() || is_limited || steps == train.steps_per_epoch {
        return None;
    }
    let text = format!(
        "{} files × {} samples with batches of {} on {accelerators} accelerators give {steps} steps per epoch, but {PLAN} has {}",
        dataset.files_train, dataset.samples_per_file, loader.batch_size, train.steps_per_epoch
    );
    Some(Contradiction { key: None, text })
}

/// Whether options of the command line changed values of the workload in the plan.
struct Changes {
    counts: bool,
    record_bytes: bool,
}

impl Changes {
    fn new(record: &Record) -> Self {
        let plan = &record.plan;
        let doubts = plan.doubts.iter().chain(&record.doubts);
        let has = |option: &str, doubt: &str| {
            let core = plan.core_config.as_ref();
            core.is_some_and(|core| core.values.contains_key(option))
                || doubts.clone().any(|found| found.name == doubt)
        };
        let request = record.data_request.as_ref();
        let is_scaled = request.is_some_and(|request| request.scale != 1.0);
        let is_shrunk = request.is_some_and(|request| request.shrink_records != 1.0);
        Changes {
            counts: is_scaled || has("--scale", "scaled") || !plan.dataset.file_samples.is_empty(),
            record_bytes: is_shrunk || has("--shrink-records", "records_shrunk"),
        }
    }
}

/// Returns the values of a plan that are also values of its workload.
fn plan_values(record: &Record, changes: &Changes) -> Vec<(&'static str, Value)> {
    let Plan { dataset, loader, train, .. } = &record.plan;
    let mut values = vec![
        ("reader.batch_size", json!(loader.batch_size)),
        ("reader.read_threads", json!(loader.workers)),
        ("train.epochs", json!(train.epochs)),
        ("train.computation_time", time(&train.compute)),
    ];
    if !changes.counts {
        values.push(("dataset.num_files_train", json!(dataset.files_train)));
        values.push(("dataset.num_samples_per_file", json!(dataset.samples_per_file)));
    }
    if !changes.record_bytes {
        values.push(("dataset.record_length_bytes", json!(dataset.record_bytes)));
    }
    values
}

/// Returns the value of a workload's key as it is in plans for the accelerators of `plan`. `None` if another key replaces it.
fn workload_value(workload: &Workload, key: &str, plan: &Plan) -> Option<Value> {
    let w = workload;
    let replaces_length =
        !w.dataset_record_dims.is_empty() || !w.dataset_parquet_columns.is_empty();
    Some(match key {
        "reader.batch_size" => json!(w.reader_batch_size),
        "reader.read_threads" => json!(w.reader_read_threads),
        "train.epochs" => json!(w.train_epochs),
        "dataset.num_files_train" => {
            let factor = if w.dataset_scaling == "weak" { plan.accelerators } else { 1 };
            json!(w.dataset_num_files_train.saturating_mul(factor.into()))
        }
        "dataset.num_samples_per_file" => json!(w.dataset_num_samples_per_file),
        "dataset.record_length_bytes" if !replaces_length => {
            json!(w.dataset_record_length_bytes.max(1.0))
        }
        // Some kinds of compute take no time.
        "train.computation_time" if w.compute.is_none() || plan.train.compute != TimeSpec::None => {
            time(&w.train_computation_time)
        }
        _ => return None,
    })
}

/// A constant time is a number, as in a workload.
fn time(time: &TimeSpec) -> Value {
    match time {
        TimeSpec::None => json!("none"),
        TimeSpec::Constant { mean } => json!(mean),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// Values with their places by key, in canonical JSON. `None` where the key is missing.
#[derive(Default)]
struct Statements {
    by_key: BTreeMap<String, Vec<(Option<String>, &'static str)>>,
}

impl Statements {
    fn add(&mut self, key: &str, value: Option<String>, place: &'static str) {
        self.by_key.entry(key.into()).or_default().push((value, place));
    }

    /// Adds the values of a record's plan and of its `core_config`.
    fn add_plan(&mut self, record: &Record) {
        let plan = &record.plan;
        for (key, value) in core_values(plan.core_config.as_ref()) {
            self.add(key, Some(value.clone()), CORE_CONFIG);
        }
        if plan.is_checkpoint_only() {
            return;
        }
        for (key, value) in plan_values(record, &Changes::new(record)) {
            let stated = self.by_key.get(key).and_then(|stated| stated[0].0.as_deref());
            // Texts in `core_config` may be numbers in another notation, and other keys may add to a number.
            let is_number = |text: &str| text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if stated.is_none_or(|text| value.is_number() && is_number(text)) {
                self.add(key, Some(canonical_json(&value)), PLAN);
            }
        }
    }

    /// Adds the values in a `config.yaml`. Returns the problems of values that no run accepts.
    fn add_config(&mut self, record: &Record, config: &ConfigFile) -> Vec<Contradiction> {
        let plan = &record.plan;
        if plan.core_config.is_some() {
            let core = CoreConfig::new(&config.tree);
            let found: BTreeMap<_, _> = core_values(core.as_ref()).collect();
            let recorded = core_values(plan.core_config.as_ref()).map(|(key, _)| key);
            let mut keys: Vec<&String> = recorded.chain(found.keys().copied()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                if !self.by_key.contains_key(key) {
                    self.add(key, None, CORE_CONFIG);
                }
                self.add(key, found.get(key).map(|value| (*value).clone()), CONFIG);
            }
        }
        let workload = match config.workload() {
            Ok(workload) => workload,
            Err(problems) => return unusable_values(config, problems),
        };
        if plan.is_checkpoint_only() {
            return Vec::new();
        }
        for (key, value) in plan_values(record, &Changes::new(record)) {
            let Some(found) = workload_value(&workload, key, plan) else { continue };
            // A value in `core_config` was compared as written.
            let is_core = self
                .by_key
                .get(key)
                .is_some_and(|all| all.iter().any(|(_, place)| *place == CONFIG));
            if found != value && !is_core {
                self.add(key, Some(canonical_json(&found)), CONFIG);
            }
        }
        Vec::new()
    }

    /// Returns the keys with different values.
    fn contradictions(self) -> Vec<Contradiction> {
        let contradicted = self
            .by_key
            .into_iter()
            .filter(|(_, stated)| stated.iter().any(|(value, _)| *value != stated[0].0));
        let contradictions = contradicted.map(|(key, stated)| {
            let mut places: Vec<(Option<String>, Vec<&str>)> = Vec::new();
            for (value, place) in stated {
                match places.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, known_places)) => known_places.push(place),
                    None => places.push((value, vec![place])),
                }
            }
            let values = places.iter().map(|(value, places)| {
                let places = places.join(" and ");
                match value {
                    Some(value) => format!("`{}` in {places}", value.trim_matches('"')),
                    None => format!("missing in {places}"),
                }
            });
            let text = format!("`{key}`: {}", values.collect::<Vec<_>>().join(", "));
            Contradiction { key: Some(key), text }
        });
        contradictions.collect()
    }
}

/// Returns the settings without the options of the command line.
fn core_values(core: Option<&CoreConfig>) -> impl Iterator<Item = (&String, &String)> {
    core.into_iter().flat_map(|core| &core.values).filter(|(key, _)| !key.starts_with("--"))
}

/// Describes values that no run accepts. Credentials are left out, and so are interpolations that may belong to credentials.
fn unusable_values(config: &ConfigFile, problems: Problems) -> Vec<Contradiction> {
    let has_secrets = config.has_interpolation(CREDENTIALS);
    let is_shown = |key: &str| {
        let is_secret = has_secrets && config.has_interpolation(key);
        !key.starts_with(CREDENTIALS) && !is_secret
    };
    let errors = problems
        .0
        .into_iter()
        .filter(|problem| problem.severity == ProblemSeverity::Error && is_shown(&problem.key));
    let contradictions = errors.map(|problem| Contradiction {
        text: format!("`{}` in {CONFIG}: {}", problem.key, problem.message),
        key: Some(problem.key),
    });
    contradictions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::record::DataRequest;
    use feedrate_spec::plan::{DatasetPlan, LoaderPlan, PlanDoubt};

    const YAML: &str = "workload:\n  reader: {batch_size: 24, file_shuffle: seed}\n  dataset: {format: jpeg, num_files_train: 480, data_folder: /a}\n  train: {epochs: 8, computation_time: 0.04755}\n";

    /// The record of a run with the settings of [`YAML`]: 480 files in batches of 24.
    fn record(scale: Option<f64>) -> Record {
        let mut core_config =
            CoreConfig::new(&json_from_yaml("", YAML).unwrap()["workload"]).unwrap();
        if scale.is_some() {
            core_config.add_option("--scale", scale);
        }
        let plan = Plan {
            core_config: Some(core_config),
            accelerators: 1,
            // Undecoded images are read as plain bytes.
            dataset: DatasetPlan {
                format: "raw".into(),
                files_train: if scale.is_some() { 48 } else { 480 },
                samples_per_file: 1,
                record_bytes: 65536.0,
                ..DatasetPlan::default()
            },
            loader: LoaderPlan { batch_size: 24, workers: 1, ..LoaderPlan::default() },
            ..Plan::default()
        };
        let mut record = Record { plan, ..Record::default() };
        record.plan.train.epochs = 8;
        record.plan.train.compute = TimeSpec::Constant { mean: 0.04755 };
        record.plan.train.steps_per_epoch = if scale.is_some() { 2 } else { 20 };
        record
    }

    /// The record of a workload that is not MLPerf's.
    fn other() -> Record {
        let mut other = record(None);
        other.plan.core_config = None;
        other
    }

    fn texts(record: &Record, config: &[u8]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let hydra = folder.path().join("dlio_config");
        std::fs::create_dir(&hydra).unwrap();
        std::fs::write(hydra.join("config.yaml"), config).unwrap();
        // An override that had no effect on the config changes nothing.
        std::fs::write(hydra.join("overrides.yaml"), "- reader.batch_size=12\n").unwrap();
        contradictions(folder.path(), record).into_iter().map(|found| found.text).collect()
    }

    #[track_caller]
    fn check(record: &Record, from: &str, to: &str, expected: &[&str]) {
        assert!(YAML.contains(from), "{from}");
        assert_eq!(texts(record, YAML.replace(from, to).as_bytes()), expected);
    }

    #[test]
    fn edits_of_the_config_beside_a_record_are_found() {
        check(&record(None), "", "", &[]);
        check(&other(), "", "", &[]);
        check(
            &record(None),
            "batch_size: 24",
            "batch_size: 12",
            &[
                "`reader.batch_size`: `24` in `core_config` of `record.json` and the plan of `record.json`, `12` in `config.yaml`",
            ],
        );
        check(
            &record(None),
            "format: jpeg, ",
            "",
            &[
                "`dataset.format`: `jpeg` in `core_config` of `record.json`, missing in `config.yaml`",
            ],
        );
        check(
            &record(None),
            "epochs: 8",
            "epochs: 8, total_training_steps: 5",
            &[
                "`train.total_training_steps`: missing in `core_config` of `record.json`, `5` in `config.yaml`",
            ],
        );
        let files =
            "`dataset.num_files_train`: `480` in the plan of `record.json`, `960` in `config.yaml`";
        let threads =
            "`reader.read_threads`: `1` in the plan of `record.json`, `99` in `config.yaml`";
        let time = "`train.computation_time`: `0.04755` in the plan of `record.json`, `0.01` in `config.yaml`";
        let bytes = "`dataset.record_length_bytes`: `65536` in the plan of `record.json`, `1024` in `config.yaml`";
        for record in [record(None), other()] {
            check(&record, "480", "960", &[files]);
            check(&record, "batch_size", "read_threads: 99, batch_size", &[threads]);
        }
        check(&other(), "0.04755", "0.01", &[time]);
        check(&other(), "format: jpeg", "format: jpeg, record_length: 1024", &[bytes]);
    }

    #[test]
    fn values_that_no_run_accepts_are_found() {
        for value in ["null", "[12]", "{a: 1}", "'${oc.env:BATCH}'", "'${workload.train.epochs}'"] {
            for record in [record(None), other()] {
                let config = YAML.replace("batch_size: 24", &format!("batch_size: {value}"));
                let found = texts(&record, config.as_bytes());
                assert!(
                    found.iter().any(|text| text.contains("`reader.batch_size`")),
                    "{value}: {found:?}"
                );
            }
        }
        let long = format!("{YAML}# {}\n", "x".repeat(16 << 20));
        for config in ["", "workload: [", "workload: 3", "a: 1", &long] {
            let found = texts(&other(), config.as_bytes());
            assert!(
                matches!(&found[..], [text] if text.starts_with("`config.yaml`: ")),
                "{found:?}"
            );
        }
        assert_eq!(texts(&other(), b"workload: \xff"), ["`config.yaml`: it is not text"]);
    }

    #[test]
    fn credentials_are_not_shown_and_interpolations_for_them_are_no_contradictions() {
        let secret = "storage: {storage_options: {key: hunter2, more: '${oc.env:KEY}'}}";
        let config = format!("{YAML}  {secret}\n");
        assert!(texts(&other(), config.as_bytes()).is_empty());
        let threads =
            config.replace("batch_size", "read_threads: '${oc.decode:${oc.env:KEY}}', batch_size");
        assert!(texts(&other(), threads.as_bytes()).is_empty());
    }

    #[test]
    fn notations_and_options_are_no_contradictions() {
        check(&record(None), "24", "0x18", &[]);
        check(&record(None), "0.04755", "4.755e-2", &[]);
        // The number of files in the config is that of the whole dataset.
        check(&record(Some(0.1)), "", "", &[]);
        let mut scaled = other();
        scaled.plan.dataset.files_train = 48;
        scaled.data_request = Some(DataRequest {
            data_root: String::new(),
            scale: 0.1,
            shrink_records: 0.5,
            foreign: false,
        });
        scaled.plan.dataset.record_bytes = 32768.0;
        check(&scaled, "", "", &[]);
        scaled.data_request = None;
        let doubt = |name: &str| PlanDoubt {
            name: name.into(),
            evidence: String::new(),
            advice: String::new(),
        };
        scaled.doubts = vec![doubt("scaled"), doubt("records_shrunk")];
        check(&scaled, "", "", &[]);
        let mut weak = other();
        weak.plan.accelerators = 2;
        weak.plan.dataset.files_train = 960;
        check(&weak, "format: jpeg", "format: jpeg, scaling: weak", &[]);
        let mut idle = other();
        idle.plan.train.compute = TimeSpec::None;
        check(&idle, "train: {", "compute: none\n  train: {", &[]);
        check(
            &idle,
            "",
            "",
            &[
                "`train.computation_time`: `none` in the plan of `record.json`, `0.04755` in `config.yaml`",
            ],
        );
    }

    #[test]
    fn edits_within_a_record_are_found() {
        let mut edited = record(None);
        edited.plan.loader.batch_size = 12;
        let folder = tempfile::tempdir().unwrap();
        let found = contradictions(folder.path(), &edited);
        let found: Vec<&str> = found.iter().map(|found| &*found.text).collect();
        assert_eq!(
            found,
            [
                "`reader.batch_size`: `24` in `core_config` of `record.json`, `12` in the plan of `record.json`",
                "480 files × 1 samples with batches of 12 on 1 accelerators give 40 steps per epoch, but the plan of `record.json` has 20",
            ]
        );
    }
}
