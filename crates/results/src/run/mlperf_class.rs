//! The official class of MLPerf Storage to which a run belongs, by its configuration.

use super::{Activity, Run};
use feedrate_spec::mlperf::{CoreConfig, Identity, is_named_after_class};
use schemars::JsonSchema;
use serde::Serialize;

/// The official class of a configuration. Results of a class may be compared with each other, and with no others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct MlperfClass {
    /// Official hash (`core-config-v1`) of the settings that determine the workload; `None` if they are unknown.
    pub core_config: Option<String>,
    /// The class; `None` if the configuration belongs to none, or if that is unknown.
    pub class: Option<&'static str>,
    /// Releases whose results belong to the class.
    pub comparable_with: Vec<&'static str>,
    /// The class with the most similar configuration, if the configuration belongs to none.
    pub nearest_class: Option<&'static str>,
    /// Keys that differ from the most similar class.
    pub differs: Vec<String>,
    /// Keys of the most similar class that the configuration lacks. The class is unknown.
    pub missing: Vec<String>,
    /// Model and accelerator without a published class.
    pub without_class: Option<String>,
}

impl MlperfClass {
    /// Finds the class of a configuration. Returns `None` if the workload is not one of MLPerf Storage, or if its model has no classes.
    pub fn new(config: Option<&CoreConfig>, workload: &str) -> Option<Self> {
        let Some(config) = config else {
            return is_named_after_class(workload).then(MlperfClass::default);
        };
        let known = MlperfClass { core_config: Some(config.hash()), ..MlperfClass::default() };
        Some(match Identity::new(config, workload)? {
            Identity::Official(class) => MlperfClass {
                class: Some(class.id),
                comparable_with: class.editions.to_vec(),
                ..known
            },
            Identity::Changed { nearest, keys } => {
                MlperfClass { nearest_class: Some(nearest.id), differs: keys, ..known }
            }
            Identity::Incomplete { nearest, keys } => {
                MlperfClass { nearest_class: Some(nearest.id), missing: keys, ..known }
            }
            Identity::NoClass { model, accelerator } => {
                MlperfClass { without_class: Some(format!("{model} on {accelerator}")), ..known }
            }
        })
    }
}

impl MlperfClass {
    /// Adds keys whose values are uncertain to those that differ from the class.
    fn without_settings(mut self, keys: Vec<String>) -> Self {
        if let Some(class) = self.class.take_if(|_| !keys.is_empty()) {
            self.comparable_with.clear();
            self.nearest_class = Some(class);
        }
        if self.nearest_class.is_some() {
            self.differs.extend(keys);
            self.differs.sort();
            self.differs.dedup();
        }
        self
    }
}

impl Run {
    /// Returns the settings of the class that the files of the run state differently.
    fn contradicted_core_keys(&self) -> Vec<String> {
        let is_core = |key: &String| {
            self.core_config.as_ref().is_some_and(|core| core.values.contains_key(key))
        };
        self.contradicted_keys().filter(is_core).collect()
    }

    /// Returns the keys that the files of the run state differently.
    pub(super) fn contradicted_keys(&self) -> impl Iterator<Item = String> {
        self.contradictions.iter().filter_map(|found| found.key.clone())
    }

    /// Returns the official class of the run. `None` if its workload has no classes, or if the run is no result of training or checkpoints.
    pub fn mlperf_class(&self) -> Option<MlperfClass> {
        let is_result = self.is_result() || self.activity == Activity::Checkpoints;
        let class =
            is_result.then(|| MlperfClass::new(self.core_config.as_ref(), &self.workload))??;
        let class = class.without_settings(self.contradicted_core_keys());
        // The classes belong to the closed division. A run of another division is compared with none of them.
        let is_closed = self.submission.as_ref().is_none_or(|found| found.division == "closed");
        (is_closed || class.class.is_none()).then_some(class)
    }

    /// Returns the keys that differ from the official class, whether by an override or in the workload's file. `None` if the model has no
    /// class, or if the class is unknown.
    pub(super) fn keys_outside_class(&self) -> Option<Vec<String>> {
        match Identity::new(self.core_config.as_ref()?, &self.workload)? {
            Identity::Official(_) => Some(Vec::new()),
            Identity::Changed { keys, .. } => Some(keys),
            Identity::Incomplete { .. } | Identity::NoClass { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Submission;
    use serde_json::json;

    /// A run of release 3.0 with these settings of the reader.
    fn run(workload: &str, reader: serde_json::Value) -> Run {
        let parameters = json!({
            "model": {"name": "retinanet", "type": "cnn"},
            "framework": "pytorch",
            "workflow": {"generate_data": false, "train": true, "checkpoint": false},
            "dataset": {"format": "jpeg", "num_samples_per_file": 1, "record_length_bytes": 322_957},
            "reader": reader,
            "train": {"epochs": 8, "computation_time": 0.04755},
            "metric": {"au": 0.85},
        });
        Run {
            activity: Activity::Training,
            steps: 500,
            workload: workload.into(),
            core_config: CoreConfig::new(&parameters),
            ..Run::default()
        }
    }

    #[test]
    fn the_class_of_a_run_follows_from_its_config() {
        let official = || json!({"data_loader": "pytorch", "batch_size": 24, "file_shuffle": "seed", "sample_shuffle": "seed"});
        let class = run("retinanet_b200", official()).mlperf_class().unwrap();
        assert_eq!((class.class, class.comparable_with), (Some("retinanet-b200-A"), vec!["3.0"]));
        assert_eq!(class.core_config.as_deref(), Some("20c73f53486caba0"));
        let mut reader = official();
        reader["sample_shuffle"] = json!("off");
        let changed = run("retinanet_b200", reader.clone()).mlperf_class().unwrap();
        assert_eq!((changed.class, changed.nearest_class), (None, Some("retinanet-b200-A")));
        assert_eq!(changed.differs, ["reader.sample_shuffle"]);
        let outside = |reader| run("retinanet_b200", reader).keys_outside_class();
        assert_eq!(outside(official()), Some(vec![]));
        assert_eq!(outside(reader.clone()), Some(changed.differs));
        drop(reader.as_object_mut().unwrap().remove("sample_shuffle"));
        let incomplete = run("retinanet_b200", reader).mlperf_class().unwrap();
        assert_eq!((incomplete.differs.len(), incomplete.missing.len()), (0, 1));
        let unknown = Run { core_config: None, ..run("retinanet_b200", official()) };
        assert_eq!(unknown.mlperf_class(), Some(MlperfClass::default()));
        let other = Run { core_config: None, ..run("mine", official()) };
        assert_eq!(other.mlperf_class(), None);
        let failed = Run { steps: 0, ..run("retinanet_b200", official()) };
        assert_eq!(failed.mlperf_class(), None);
        let submission = Submission {
            round: None,
            division: "open".into(),
            submitter: "X".into(),
            system: "fast-1".into(),
        };
        let open = Run { submission: Some(submission), ..run("retinanet_b200", official()) };
        assert_eq!(open.mlperf_class(), None);
    }
}
