//! Settings that the files of a run state differently, because one of them was edited or belongs to another run.

use super::config::{self, Config};
use feedrate_measure::record::Record;
use feedrate_spec::mlperf::canonical_value;
use feedrate_spec::plan::Plan;
use feedrate_spec::plan::schedule::steps_of_training;
use std::collections::BTreeMap;
use std::path::Path;

/// A setting that the files of a run state differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// Key in DLIO's notation; `None` if the values of several keys contradict each other.
    pub(crate) key: Option<String>,
    /// Each value with its place.
    pub(crate) text: String,
}

const CONFIG: &str = "`config.yaml`";
const OVERRIDES: &str = "`overrides.yaml`";
const PLAN: &str = "the plan of `record.json`";
const CORE_CONFIG: &str = "`core_config` of `record.json`";

/// Compares a record with the settings in Hydra's folder beside it, and the parts of the record with each other.
pub(crate) fn record_contradictions(run: &Path, record: &Record) -> Vec<Contradiction> {
    if record.watched.is_some() {
        return Vec::new();
    }
    let folder = config::subfolder(run).map(|(_, path)| path);
    let config = folder.map(|folder| Config::read(&folder, &mut Vec::new())).unwrap_or_default();
    let mut statements = Statements::default();
    statements.add_plan(&record.plan);
    statements.add_config(&config);
    let mut contradictions = statements.contradictions();
    contradictions.extend(wrong_steps(&record.plan));
    contradictions
}

/// Compares the overrides with the config, where they should have taken effect.
pub(crate) fn config_contradictions(config: &Config) -> Vec<Contradiction> {
    let mut statements = Statements::default();
    statements.add_config(config);
    statements.contradictions()
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

/// Values with their places by key, in canonical JSON.
#[derive(Default)]
struct Statements {
    by_key: BTreeMap<String, Vec<(String, &'static str)>>,
}

impl Statements {
    /// Adds a value. Lists, maps and references to other keys are left out, since equal ones may be written differently.
    fn add(&mut self, key: &str, value: String, place: &'static str) {
        let is_comparable = !value.starts_with(['[', '{']) && !value.contains("${");
        if is_comparable && !["null", "\"\""].contains(&value.as_str()) {
            self.by_key.entry(key.into()).or_default().push((value, place));
        }
    }

    /// Adds the values in Hydra's files. Of several overrides of a key, the last takes effect.
    fn add_config(&mut self, config: &Config) {
        let mut values = config.leaves();
        for (key, value) in config.core_config().map(|core| core.values).unwrap_or_default() {
            values.remove(&key);
            self.add(&key, value, CONFIG);
        }
        for (key, value) in values.iter().filter(|(_, value)| !value.starts_with(['[', '{'])) {
            self.add(key, canonical_value(value), CONFIG);
        }
        let overrides = config.overrides.iter().flatten().filter_map(|text| {
            let (key, value) =
                text.trim_start_matches('+').strip_prefix("workload.")?.split_once('=')?;
            Some((key.trim(), value.trim().trim_matches(['\'', '"'])))
        });
        let last: BTreeMap<&str, &str> = overrides.collect();
        for (key, value) in last.into_iter().filter(|(_, value)| !value.starts_with(['[', '{'])) {
            self.add(key, canonical_value(value), OVERRIDES);
        }
    }

    /// Adds the values of a plan that are those of the workload, except for scaled runs and files of other programs.
    fn add_plan(&mut self, plan: &Plan) {
        let Plan { dataset, loader, train, .. } = plan;
        let mut counts =
            vec![("reader.batch_size", loader.batch_size), ("train.epochs", train.epochs.into())];
        if let Some(core) = &plan.core_config {
            let options = core.values.keys().any(|key| key.starts_with("--"));
            if !options && dataset.named_train.is_none() {
                counts.push(("dataset.num_files_train", dataset.files_train));
                counts.push(("dataset.num_samples_per_file", dataset.samples_per_file));
            }
            for (key, value) in core.values.iter().filter(|(key, _)| !key.starts_with("--")) {
                self.add(key, value.clone(), CORE_CONFIG);
            }
        }
        if !plan.is_checkpoint_only() {
            for (key, count) in counts.into_iter().filter(|(_, count)| 0 < *count) {
                self.add(key, count.to_string(), PLAN);
            }
        }
    }

    /// Returns the keys with different values.
    fn contradictions(self) -> Vec<Contradiction> {
        let contradicted = self.by_key.into_iter().filter(|(_, stated)| {
            stated.iter().any(|(value, _)| !value.eq_ignore_ascii_case(&stated[0].0))
        });
        let contradictions = contradicted.map(|(key, stated)| {
            let mut places: Vec<(String, Vec<&str>)> = Vec::new();
            for (value, place) in stated {
                match places.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&value)) {
                    Some((_, known_places)) => known_places.push(place),
                    None => places.push((value, vec![place])),
                }
            }
            let values = places.iter().map(|(value, places)| {
                format!("`{}` in {}", value.trim_matches('"'), places.join(" and "))
            });
            let text = format!("`{key}`: {}", values.collect::<Vec<_>>().join(", "));
            Contradiction { key: Some(key), text }
        });
        contradictions.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::mlperf::CoreConfig;
    use feedrate_spec::plan::DatasetPlan;
    use feedrate_spec::plan::LoaderPlan;
    use serde_json::json;

    const YAML: &str = "workload:\n  reader: {batch_size: 24, file_shuffle: seed}\n  dataset: {format: jpeg, num_files_train: 480, data_folder: /a}\n  train: {epochs: 8, computation_time: 0.04755}\n";

    /// A record of 480 files in batches of 24, and the settings beside it.
    fn record(scale: Option<f64>) -> Record {
        let parameters = json!({
            "reader": {"batch_size": 24, "file_shuffle": "seed"}, "dataset": {"format": "jpeg"},
            "train": {"epochs": 8, "computation_time": 0.04755},
        });
        let mut core_config = CoreConfig::new(&parameters).unwrap();
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
                ..DatasetPlan::default()
            },
            loader: LoaderPlan { batch_size: 24, ..LoaderPlan::default() },
            ..Plan::default()
        };
        let mut record = Record { plan, ..Record::default() };
        record.plan.train.epochs = 8;
        record.plan.train.steps_per_epoch = if scale.is_some() { 2 } else { 20 };
        record
    }

    #[track_caller]
    fn check(record: &Record, config: &str, overrides: &str, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let hydra = folder.path().join("dlio_config");
        std::fs::create_dir(&hydra).unwrap();
        std::fs::write(hydra.join("config.yaml"), config).unwrap();
        std::fs::write(hydra.join("overrides.yaml"), overrides).unwrap();
        let found = record_contradictions(folder.path(), record);
        let texts: Vec<&str> = found.iter().map(|found| &*found.text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn edits_of_the_settings_beside_a_record_are_found() {
        check(&record(None), YAML, "- workload=retinanet_b200\n", &[]);
        check(&record(None), "", "", &[]);
        check(
            &record(None),
            &YAML.replace("batch_size: 24", "batch_size: 12"),
            "- ++workload.reader.batch_size=12\n",
            &[
                "`reader.batch_size`: `24` in `core_config` of `record.json` and the plan of `record.json`, `12` in `config.yaml` and `overrides.yaml`",
            ],
        );
        check(
            &record(None),
            &YAML.replace("format: jpeg", "format: png"),
            "",
            &["`dataset.format`: `jpeg` in `core_config` of `record.json`, `png` in `config.yaml`"],
        );
        check(
            &record(None),
            &YAML.replace("480", "960"),
            "",
            &[
                "`dataset.num_files_train`: `480` in the plan of `record.json`, `960` in `config.yaml`",
            ],
        );
    }

    #[test]
    fn notations_scales_and_repeated_overrides_are_no_contradictions() {
        let odd = YAML.replace("24", "'24.0'").replace("0.04755", "4.755e-2");
        check(&record(None), &odd, "", &[]);
        // The number of files in the config is that of the whole dataset.
        check(&record(Some(0.1)), YAML, "", &[]);
        let overrides = "- ++workload.reader.batch_size=12\n- ++workload.reader.batch_size=24\n- ++workload.dataset.data_folder=${x}\n- ++workload.a=[1,2]\n";
        check(&record(None), YAML, overrides, &[]);
        check(
            &record(None),
            YAML,
            "- '++workload.reader.file_shuffle=off'\n",
            &[
                "`reader.file_shuffle`: `seed` in `core_config` of `record.json` and `config.yaml`, `off` in `overrides.yaml`",
            ],
        );
    }

    #[test]
    fn edits_within_a_record_are_found() {
        let mut edited = record(None);
        edited.plan.loader.batch_size = 12;
        check(
            &edited,
            "",
            "",
            &[
                "`reader.batch_size`: `24` in `core_config` of `record.json`, `12` in the plan of `record.json`",
                "480 files × 1 samples with batches of 12 on 1 accelerators give 40 steps per epoch, but the plan of `record.json` has 20",
            ],
        );
    }
}
