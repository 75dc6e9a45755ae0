//! The official classes of MLPerf Storage: configurations whose results may be compared. Source: `editions.yaml` of `mlcommons/storage`,
//! release 3.0.

use super::core_config::{CoreConfig, canonical_json};
use super::{ACCELERATORS, words};
use crate::bundled;
use crate::workload::{KEYS, canonical_key, json_from_yaml};
use std::collections::BTreeMap;

/// Results of a class may be compared with each other, and with no others.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// Official name.
    pub id: &'static str,
    /// Official name of the model.
    pub model: &'static str,
    /// `model.name` of its configurations.
    pub model_name: &'static str,
    /// Emulated accelerator; `None` if the class does not depend on it.
    pub accelerator: Option<&'static str>,
    /// [`CoreConfig::hash`] of its configurations. Releases spell some keys differently.
    pub hashes: &'static [&'static str],
    /// Releases whose results belong to the class.
    pub editions: &'static [&'static str],
    /// The bundled workload with the configuration of the class; `None` if there is none.
    pub workload: Option<&'static str>,
}

/// All classes of the closed division. Other divisions have none.
pub const CLASSES: [Class; 16] = [
    Class {
        id: "unet3d-b200-A",
        model: "unet3d",
        model_name: "unet3d",
        accelerator: Some("b200"),
        hashes: &["0d3ad0dec188becd", "f636f5a57473fca2"],
        editions: &["3.0"],
        workload: Some("unet3d_b200"),
    },
    Class {
        id: "unet3d-h100-A",
        model: "unet3d",
        model_name: "unet3d",
        accelerator: Some("h100"),
        hashes: &["f4d46006aa421634", "0f3dd7a4bf6433a3"],
        editions: &["1.0", "2.0"],
        workload: Some("unet3d_h100"),
    },
    Class {
        id: "unet3d-a100-A",
        model: "unet3d",
        model_name: "unet3d",
        accelerator: Some("a100"),
        hashes: &["4c86124e6f33db13", "691cea309c4f2f52"],
        editions: &["1.0", "2.0"],
        workload: Some("unet3d_a100"),
    },
    Class {
        id: "retinanet-b200-A",
        model: "retinanet",
        model_name: "retinanet",
        accelerator: Some("b200"),
        hashes: &["20c73f53486caba0"],
        editions: &["3.0"],
        workload: Some("retinanet_b200"),
    },
    Class {
        id: "retinanet-mi355-A",
        model: "retinanet",
        model_name: "retinanet",
        accelerator: Some("mi355"),
        hashes: &["66c43604eb650987"],
        editions: &["3.0"],
        workload: Some("retinanet_mi355"),
    },
    Class {
        id: "resnet50-h100-A",
        model: "resnet50",
        model_name: "resnet50",
        accelerator: Some("h100"),
        hashes: &["c8ec10780f4c9bd7", "03a7be3df904e1e7"],
        editions: &["1.0", "2.0"],
        workload: Some("resnet50_h100"),
    },
    Class {
        id: "resnet50-a100-A",
        model: "resnet50",
        model_name: "resnet50",
        accelerator: Some("a100"),
        hashes: &["61ae77b994223584", "4a03838105aa5808"],
        editions: &["1.0", "2.0"],
        workload: Some("resnet50_a100"),
    },
    Class {
        id: "cosmoflow-h100-A",
        model: "cosmoflow",
        model_name: "cosmoflow",
        accelerator: Some("h100"),
        hashes: &["54541a1d49e87763", "4b7b36339a2a5b0d"],
        editions: &["1.0", "2.0"],
        workload: Some("cosmoflow_h100"),
    },
    Class {
        id: "cosmoflow-a100-A",
        model: "cosmoflow",
        model_name: "cosmoflow",
        accelerator: Some("a100"),
        hashes: &["329a3541eb5c1a36", "b49b896e947a408b"],
        editions: &["1.0", "2.0"],
        workload: Some("cosmoflow_a100"),
    },
    Class {
        id: "llama3-8b-A",
        model: "llama3-8b",
        model_name: "llama_8b",
        accelerator: None,
        hashes: &["68df04b7240e3fb0"],
        editions: &["2.0", "3.0"],
        workload: Some("llama3_8b"),
    },
    Class {
        id: "llama3-70b-A",
        model: "llama3-70b",
        model_name: "llama_70b",
        accelerator: None,
        hashes: &["3c53fe70d64f91d4"],
        editions: &["3.0"],
        workload: Some("llama3_70b"),
    },
    // Classes B have the mode `subset`, which release 2.0 required.
    Class {
        id: "llama3-70b-B",
        model: "llama3-70b",
        model_name: "llama_70b",
        accelerator: None,
        hashes: &["c48a92d225d70ce8"],
        editions: &["2.0"],
        workload: None,
    },
    Class {
        id: "llama3-405b-A",
        model: "llama3-405b",
        model_name: "llama_405b",
        accelerator: None,
        hashes: &["7adcfa87a5c4c8e6"],
        editions: &["3.0"],
        workload: Some("llama3_405b"),
    },
    Class {
        id: "llama3-405b-B",
        model: "llama3-405b",
        model_name: "llama_405b",
        accelerator: None,
        hashes: &["7e9f853cebd52aa6"],
        editions: &["2.0"],
        workload: None,
    },
    Class {
        id: "llama3-1t-A",
        model: "llama3-1t",
        model_name: "llama_1t",
        accelerator: None,
        hashes: &["45fd627ad9dc5f4c"],
        editions: &["3.0"],
        workload: Some("llama3_1t"),
    },
    Class {
        id: "llama3-1t-B",
        model: "llama3-1t",
        model_name: "llama_1t",
        accelerator: None,
        hashes: &["0918b2db633242db"],
        editions: &["2.0"],
        workload: None,
    },
];

/// The class of a configuration, or the reason why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The configuration belongs to this class.
    Official(&'static Class),
    /// The configuration belongs to no class.
    Changed {
        /// The class with the most similar configuration.
        nearest: &'static Class,
        /// Keys that differ from that configuration, in DLIO's notation.
        keys: Vec<String>,
    },
    /// The class is unknown, because the configuration lacks keys; all others agree with the class.
    Incomplete {
        /// The class with the most similar configuration.
        nearest: &'static Class,
        /// The missing keys.
        keys: Vec<String>,
    },
    /// The model has classes, but no published class for this accelerator.
    NoClass {
        /// The model.
        model: &'static str,
        /// The accelerator in the workload's name.
        accelerator: &'static str,
    },
}

impl Class {
    /// Returns `model.name` as canonical JSON.
    fn model_name_json(&self) -> String {
        canonical_json(&self.model_name.into())
    }
}

impl Identity {
    /// Identifies a configuration. The name of the workload may contain the model and the accelerator. Returns `None` if it is not a workload
    /// of MLPerf Storage, or if its model has no classes.
    pub fn new(config: &CoreConfig, workload: &str) -> Option<Self> {
        let accelerator = named_accelerator(workload);
        let hash = config.hash();
        let fits_name = |class: &Class| {
            class.accelerator.is_none_or(|known| accelerator.is_none_or(|named| named == known))
        };
        let mut classes = CLASSES.iter().filter(|class| fits_name(class));
        if let Some(class) = classes.find(|class| class.hashes.contains(&hash.as_str())) {
            return Some(Identity::Official(class));
        }
        let has_model = |class: &&Class| {
            let name = config.values.get("model.name");
            has_model(workload, class) || name.is_some_and(|name| *name == class.model_name_json())
        };
        let references = CLASSES.iter().filter(has_model);
        let of_model: Vec<(&Class, CoreConfig)> =
            references.filter_map(|class| Some((class, reference(class)?))).collect();
        let model = of_model.first()?.0.model;
        let is_candidate = |(class, reference): &&(&'static Class, CoreConfig)| {
            let is_known = class.accelerator.is_none() || accelerator.is_some();
            fits_name(class) && (is_known || are_equal(config, reference, "train.computation_time"))
        };
        let differences = of_model.iter().filter(is_candidate).map(|(class, reference)| {
            (*class, Differences::new(&reference.values, &config.values))
        });
        let nearest = differences.min_by_key(|(_, differences)| differences.count());
        match (nearest, accelerator) {
            (Some((nearest, differences)), _) => Some(differences.identity(nearest)),
            (None, Some(accelerator)) => Some(Identity::NoClass { model, accelerator }),
            (None, None) => None,
        }
    }
}

/// Whether the name of a workload says that it is one of a class.
pub fn is_named_after_class(workload: &str) -> bool {
    let accelerator = named_accelerator(workload);
    CLASSES.iter().any(|class| {
        has_model(workload, class)
            && class.accelerator.is_none_or(|known| accelerator == Some(known))
    })
}

fn named_accelerator(workload: &str) -> Option<&'static str> {
    words(workload).find_map(|word| ACCELERATORS.into_iter().find(|known| *known == word))
}

/// Whether the name of a workload begins with the model of a class.
fn has_model(workload: &str, class: &Class) -> bool {
    let named: Vec<String> = words(workload).collect();
    named.starts_with(&words(class.model).collect::<Vec<_>>())
}

fn are_equal(config: &CoreConfig, reference: &CoreConfig, key: &str) -> bool {
    let value = config.values.get(key);
    value.is_some() && value == reference.values.get(key)
}

/// Returns the configuration of a class.
fn reference(class: &Class) -> Option<CoreConfig> {
    let bundled = bundled::find(class.workload?)?;
    CoreConfig::new(&json_from_yaml(&bundled.file(), bundled.yaml).ok()?)
}

/// Keys of a configuration that differ from those of a class.
#[derive(Debug, Default)]
struct Differences {
    /// Keys with other values.
    changed: Vec<String>,
    /// Keys that only the class has.
    missing: Vec<String>,
    /// Keys that only the configuration has, with DLIO's default.
    redundant: Vec<String>,
    /// Keys that the class spells differently.
    respelled: Vec<String>,
}

impl Differences {
    fn new(reference: &BTreeMap<String, String>, config: &BTreeMap<String, String>) -> Self {
        let expected = with_current_keys(reference);
        let actual = with_current_keys(config);
        let mut differences = Differences::default();
        for (key, (written, value)) in &actual {
            let list = match expected.get(key) {
                Some((_, expected)) if expected != value => &mut differences.changed,
                Some((expected, _)) if expected != written => &mut differences.respelled,
                Some(_) => continue,
                None if is_default(key, value) => &mut differences.redundant,
                None => &mut differences.changed,
            };
            list.push(key.clone());
        }
        let missing = expected.keys().filter(|key| !actual.contains_key(*key));
        differences.missing = missing.cloned().collect();
        differences
    }

    fn count(&self) -> usize {
        self.changed.len() + self.missing.len() + self.redundant.len()
    }

    /// The identity of a configuration that has another hash than its nearest class. Missing keys prove nothing, because files of other
    /// releases and programs lack some; keys with defaults and other spellings matter only if there is no other difference.
    fn identity(self, nearest: &'static Class) -> Identity {
        let Differences { changed, missing, redundant, respelled } = self;
        match (changed.is_empty(), missing.is_empty()) {
            (false, _) => Identity::Changed { nearest, keys: changed },
            (true, false) => Identity::Incomplete { nearest, keys: missing },
            (true, true) if redundant.is_empty() => Identity::Changed { nearest, keys: respelled },
            (true, true) => Identity::Changed { nearest, keys: redundant },
        }
    }
}

/// Returns the values by the current names of their keys, with the keys as written.
fn with_current_keys(values: &BTreeMap<String, String>) -> BTreeMap<String, (&String, &String)> {
    let current = |key: &str| match key {
        // The name in release 1.0.
        "checkpoint.model_size" => "model.model_size_bytes".into(),
        _ => canonical_key(key),
    };
    values.iter().map(|(key, value)| (current(key), (key, value))).collect()
}

/// Whether a key has DLIO's default, as canonical JSON.
fn is_default(key: &str, value: &str) -> bool {
    let info = KEYS.iter().find(|info| info.path == key);
    info.is_some_and(|info| canonical_json(&info.default.into()) == value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Override, Strictness, given_json, parse};
    use serde_json::json;

    /// Identifies a bundled workload with overrides.
    fn identify(name: &str, overrides: &[&str]) -> Option<Identity> {
        let overrides: Vec<Override> =
            overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
        let yaml = bundled::find(name).unwrap().yaml;
        let (workload, _) = parse(name, yaml, &overrides, Strictness::Error).unwrap();
        Identity::new(&CoreConfig::new(&given_json(&workload)).unwrap(), name)
    }

    #[track_caller]
    fn check(name: &str, overrides: &[&str], expected: &str) {
        let text = match identify(name, overrides) {
            None => "not MLPerf's".into(),
            Some(Identity::Official(class)) => class.id.into(),
            Some(Identity::Changed { nearest, keys }) => {
                format!("{} not {}", keys.join(" "), nearest.id)
            }
            Some(Identity::Incomplete { nearest, keys }) => {
                format!("{}? lacks {}", nearest.id, keys.join(" "))
            }
            Some(Identity::NoClass { model, accelerator }) => {
                format!("{model} has no {accelerator}")
            }
        };
        assert_eq!(text, expected, "{name} {overrides:?}");
    }

    /// The hashes are the official ones, so the bundled files have the official keys and values.
    #[test]
    fn every_class_is_the_class_of_its_bundled_workload() {
        for class in CLASSES.iter() {
            let Some(workload) = class.workload else { continue };
            check(workload, &[], class.id);
            assert!(is_named_after_class(workload), "{workload}");
            let values = reference(class).unwrap().values;
            assert_eq!(values["model.name"], class.model_name_json(), "{workload}");
        }
        let with_workload = CLASSES.iter().filter(|class| class.workload.is_some());
        assert_eq!(with_workload.count(), 13);
        for class in CLASSES.iter() {
            for hash in class.hashes {
                let owners = CLASSES.iter().filter(|other| other.hashes.contains(hash));
                assert_eq!(owners.count(), 1, "{hash}");
            }
        }
    }

    #[test]
    fn a_changed_key_is_named() {
        check(
            "unet3d_b200",
            &["dataset.num_files_train=9", "reader.read_threads=9"],
            "unet3d-b200-A",
        );
        check("unet3d_b200", &["workflow.checkpoint=True"], "unet3d-b200-A");
        check("unet3d_b200", &["reader.batch_size=8"], "reader.batch_size not unet3d-b200-A");
        check(
            "unet3d_b200",
            &["reader.sample_shuffle=off", "++checkpoint.fsync=True"],
            "checkpoint.fsync reader.sample_shuffle not unet3d-b200-A",
        );
        check("unet3d_b200", &["++checkpoint.fsync=False"], "checkpoint.fsync not unet3d-b200-A");
        check("unet3d_b200", &["~metric.au"], "unet3d-b200-A? lacks metric.au");
        check("unet3d_h100_custom", &[], "model.name not unet3d-h100-A");
        check("unet3d_mi355", &[], "unet3d has no mi355");
        check("unet3d_v100", &[], "unet3d has no v100");
        check("llama3_8b", &["checkpoint.fsync=False"], "checkpoint.fsync not llama3-8b-A");
        check("llama3_8b", &["checkpoint.num_checkpoints_read=0"], "llama3-8b-A");
        for other in ["quickstart", "flux_b200", "dlrm_b200", "cosmoflow_io", "llama_7b"] {
            check(other, &[], "not MLPerf's");
        }
    }

    /// A configuration of release 1.0.
    #[test]
    fn keys_of_release_1_0_are_known() {
        let config = |format: &str| {
            json!({
                "model": "unet3d",
                "framework": "pytorch",
                "workflow": {"generate_data": false, "train": true, "checkpoint": true, "profiling": false},
                "dataset": {
                    "data_folder": "/mnt", "format": format, "num_files_train": 14_000, "num_samples_per_file": 1,
                    "record_length": 146_600_628, "record_length_stdev": 68_341_808, "record_length_resize": 2_097_152,
                },
                "reader": {
                    "data_loader": "pytorch", "batch_size": 7, "read_threads": 4, "file_shuffle": "seed", "sample_shuffle": "seed",
                },
                "train": {"epochs": 5, "computation_time": 0.323},
                "checkpoint": {
                    "checkpoint_folder": "a", "checkpoint_after_epoch": 5, "epochs_between_checkpoints": 2, "model_size": 499_153_191,
                },
                "metric": {"au": 0.9},
                "profiling": {"profiler": "none"},
            })
        };
        let identify = |format| {
            Identity::new(&CoreConfig::new(&config(format)).unwrap(), "unet3d_h100").unwrap()
        };
        assert!(
            matches!(identify("npz"), Identity::Official(class) if class.id == "unet3d-h100-A")
        );
        let Identity::Changed { keys, .. } = identify("npy") else { panic!("`npy` is official") };
        assert_eq!(keys, ["dataset.format"]);
    }
}
