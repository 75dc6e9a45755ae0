//! The settings of a DLIO run, read from `config.yaml` and `overrides.yaml` in Hydra's folder. Callers supply DLIO's defaults for missing keys.

use super::json;
use feedrate_spec::escape;
use feedrate_spec::mlperf::CoreConfig;
use feedrate_spec::problem::Location;
use feedrate_spec::workload::{canonical_key, json_from_yaml};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of Hydra's folder in DLIO and in MLPerf Storage 2.
pub const HYDRA_FOLDERS: [&str; 2] = [".hydra", "dlio_config"];
/// Name of Hydra's folder in MLPerf Storage 1.
pub(super) const MLPERF_1_FOLDER: &str = "configs";
/// Suffix of the file in which `mlpstorage` stores its resolved parameters.
pub(super) const METADATA_SUFFIX: &str = "_metadata.json";
/// Size limit of a settings file.
const BYTES_MAX: u64 = 1 << 20;

/// The settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The settings below `workload`; null if there is no `config.yaml`.
    workload: Value,
    /// Overrides, verbatim and in their order; `None` if there is no `overrides.yaml`.
    pub overrides: Option<Vec<String>>,
    /// The emulated accelerator, as `mlpstorage` stored it; `None` if there is a `config.yaml`.
    pub accelerator: Option<String>,
}

/// Finds Hydra's folder in the folder of a run and returns its name and path.
pub(super) fn subfolder(run: &Path) -> Option<(&'static str, PathBuf)> {
    let names = HYDRA_FOLDERS.into_iter().chain([MLPERF_1_FOLDER]);
    let mut found = names.map(|name| (name, run.join(name)));
    found.find(|(_, path)| {
        ["config.yaml", "overrides.yaml"].iter().any(|name| path.join(name).is_file())
    })
}

impl Config {
    /// Reads the settings in Hydra's folder. Unreadable files are added to `problems`.
    pub(super) fn read(folder: &Path, problems: &mut Vec<String>) -> Self {
        let mut read_text = |name: &str| {
            let text = json::bytes(&folder.join(name), BYTES_MAX)?
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not text".into()));
            text.map_err(|error| problems.push(format!("`{name}`: {error}"))).ok()
        };
        let config = read_text("config.yaml");
        let overrides = read_text("overrides.yaml");
        let overrides = overrides.map(|text| {
            items(&text).unwrap_or_else(|error| {
                problems.push(format!("`overrides.yaml`: {error}"));
                Vec::new()
            })
        });
        let parsed = config.map_or(Ok(Value::Null), |config| from_yaml(&config)).map_err(|error| {
            problems.push(format!("`config.yaml`: {error}"));
        });
        let mut root = parsed.unwrap_or_default();
        let workload = root.get_mut("workload").map(Value::take).unwrap_or_default();
        Config { workload, overrides, accelerator: None }
    }

    /// Falls back to the parameters that `mlpstorage` stored if there is no `config.yaml`.
    pub(super) fn or_mlpstorage_metadata(self, run: &Path, names: &[String]) -> Self {
        let name = names.iter().find(|name| name.ends_with(METADATA_SUFFIX));
        let Some(name) = name else { return self };
        if self.is_known() {
            return self;
        }
        let mut found = json::read(run, name, &mut Vec::new()).unwrap_or_default();
        let workload = found.get_mut("parameters").map(Value::take).unwrap_or_default();
        let accelerator = found.get("accelerator").and_then(Value::as_str).map(Into::into);
        Config { workload, accelerator, ..self }
    }

    /// Returns whether the run has a config.
    pub fn is_known(&self) -> bool {
        self.workload.is_object()
    }

    fn get(&self, path: &str) -> Option<&Value> {
        let value = path.split('.').try_fold(&self.workload, |value, key| value.get(key))?;
        (!value.is_null()).then_some(value)
    }

    fn first(&self, paths: &[&str]) -> Option<&Value> {
        paths.iter().find_map(|path| self.get(path))
    }

    /// Returns the number at the first of `paths` that is set.
    pub fn number(&self, paths: &[&str]) -> Option<f64> {
        self.first(paths).map(json::number).filter(|number| number.is_finite())
    }

    /// Returns a size in bytes that is plausible for a sample.
    pub(super) fn bytes(&self, paths: &[&str]) -> Option<f64> {
        self.number(paths).filter(|bytes| (0.0..1e15).contains(bytes))
    }

    /// Returns a count, or `default` if it is not set. `None` if there is no config or the value is not a count.
    pub fn count(&self, paths: &[&str], default: u64) -> Option<u64> {
        if !self.is_known() {
            return None;
        }
        match self.first(paths) {
            None => Some(default),
            Some(_) => self.number(paths).filter(|n| (0.0..9e15).contains(n)).map(|n| n as u64),
        }
    }

    /// Returns the compute time of a step in seconds; `None` if it is drawn at random or not set.
    pub fn compute_s(&self) -> Option<f64> {
        let drawn = ["computation_time.type", "computation_time.stdev", "computation_time_stdev"];
        if drawn.iter().any(|key| self.has(&format!("train.{key}"))) {
            return None;
        }
        self.mean_compute_s()
    }

    /// Returns the mean compute time of a step in seconds, whether or not it is drawn at random.
    pub fn mean_compute_s(&self) -> Option<f64> {
        let mean = self.number(&["train.computation_time.mean", "train.computation_time"]);
        mean.map(f64::abs)
    }

    /// Returns the text at the first of `paths` that is set. Numbers and booleans are formatted as JSON.
    pub fn text(&self, paths: &[&str]) -> Option<String> {
        match self.first(paths)? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string()),
            _ => None,
        }
    }

    /// Returns a boolean in the notation of YAML or Python, or `default` if it is not set.
    pub fn boolean(&self, path: &str, default: bool) -> bool {
        match self.text(&[path]).as_deref() {
            Some("true" | "True") => true,
            Some("false" | "False") => false,
            _ => default,
        }
    }

    /// Returns the settings by which MLPerf Storage identifies the workload. `None` if the run has no config.
    pub fn core_config(&self) -> Option<CoreConfig> {
        CoreConfig::new(&self.workload)
    }

    /// Returns whether `path` is set.
    pub fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// Returns the settings as normalized text by [`setting_key`]. Without a config, those of the overrides are returned.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let overrides = self.overrides.iter().flatten().filter_map(|text| {
            let (_, value) = text.split_once('=')?;
            let value = value.trim().trim_matches(['\'', '"']);
            Some((override_path(text)?.to_string(), normalized_text(value)))
        });
        let given = if self.is_known() { self.leaves() } else { overrides.collect() };
        let mut settings = BTreeMap::new();
        for (key, value) in given {
            // DLIO prefers `data_reader` to `reader`.
            if key.starts_with("data_reader.") {
                settings.insert(setting_key(&key), value);
            } else {
                settings.entry(setting_key(&key)).or_insert(value);
            }
        }
        settings
    }

    /// Returns all values as text, by dotted key. Lists are formatted as JSON.
    pub fn leaves(&self) -> BTreeMap<String, String> {
        leaves(&self.workload, text)
    }
}

/// Returns all non-null values of a tree, formatted by `text`, by dotted key.
pub(crate) fn leaves(tree: &Value, text: fn(&Value) -> String) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    let mut pending = vec![(String::new(), tree)];
    while let Some((path, node)) = pending.pop() {
        match node {
            Value::Null => {}
            Value::Object(fields) => pending.extend(fields.iter().map(|(key, field)| {
                (if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, field)
            })),
            value => drop(leaves.insert(path, text(value))),
        }
    }
    leaves
}

/// Returns the key under which DLIO and this crate know a setting, without aliases.
pub(crate) fn setting_key(key: &str) -> String {
    match key {
        "train.computation_time.mean" => "train.computation_time".into(),
        "model" => "model.name".into(),
        key => canonical_key(key),
    }
}

/// Returns the key of an override: `dataset.format` for `++workload.dataset.format=png`. `None` if it is not a setting of the workload.
pub(crate) fn override_key(text: &str) -> Option<String> {
    override_path(text).map(setting_key)
}

fn override_path(text: &str) -> Option<&str> {
    let path = text.trim_start_matches(['+', '~']).split('=').next()?;
    Some(path.strip_prefix("workload.")?.trim())
}

/// Formats a value so that values which are equal in DLIO have equal texts.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => normalized_text(text),
        // Formats 146600628 and 146600628.0 alike.
        value => value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string()),
    }
}

/// Normalizes the notation of a value: `True` becomes `true`, and `1.0` becomes `1`.
pub fn normalized_text(text: &str) -> String {
    match (text, text.parse::<f64>()) {
        ("True", _) => "true".into(),
        ("False", _) => "false".into(),
        (_, Ok(number)) if number.is_finite() => number.to_string(),
        _ => text.into(),
    }
}

fn from_yaml(text: &str) -> Result<Value, String> {
    let value = json_from_yaml("config.yaml", text).map_err(|problem| match problem.location {
        Some(Location::File { line, .. }) => format!("line {line}: {}", problem.message),
        _ => problem.message,
    })?;
    // Serialised again to escape control characters in texts.
    let json = serde_json::to_vec(&value).map_err(|error| error.to_string())?;
    serde_json::from_slice(&escape::escape_json_texts(&json)).map_err(|error| error.to_string())
}

/// Parses a YAML list of texts, which may have several lines.
fn items(text: &str) -> Result<Vec<String>, String> {
    let Value::Array(items) = from_yaml(text)? else { return Ok(Vec::new()) };
    let items = items.into_iter().filter_map(|item| match item {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    });
    Ok(items.filter(|item| !item.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config { workload: from_yaml(text).unwrap()["workload"].take(), ..Config::default() }
    }

    #[test]
    fn values_are_found_and_defaults_fill_gaps() {
        let config = config(
            "workload:\n  dataset: {record_length_bytes: 1.5e6, format: npz}\n  reader:\n    batch_size: 7\n    file_shuffle: off\n  workflow: {train: false, checkpoint: True}\n",
        );
        assert_eq!(config.number(&["dataset.record_length_bytes"]), Some(1.5e6));
        assert_eq!(config.count(&["reader.batch_size"], 1), Some(7));
        assert_eq!(config.count(&["reader.read_threads"], 1), Some(1));
        assert_eq!(config.text(&["reader.file_shuffle"]).as_deref(), Some("off"));
        assert!(
            !config.boolean("workflow.train", true) && config.boolean("workflow.checkpoint", false)
        );
        assert_eq!(config.count(&["dataset.format"], 1), None, "a word is no count");
        for odd in ["- 1", "workload: 3", "workload: [1]", "3"] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("config.yaml"), odd).unwrap();
            let config = Config::read(folder.path(), &mut Vec::new());
            assert!(!config.is_known() && !config.has("dataset"), "{odd}");
        }
        assert_eq!(Config::default().count(&["reader.batch_size"], 1), None);
    }

    #[test]
    fn overrides_are_a_list_of_texts() {
        // PyYAML begins a new line after 80 columns.
        let text = "- workload=unet3d\n- ++workload.reader.batch_size=1\n- '++workload.a=[1, 2]'\n- \"b=1\"\n-\n- 'c=it''s a folder\n  with spaces'\n- d=a\n  b\n";
        let expected = [
            "workload=unet3d",
            "++workload.reader.batch_size=1",
            "++workload.a=[1, 2]",
            "b=1",
            "c=it's a folder with spaces",
            "d=a b",
        ];
        assert_eq!(items(text).unwrap(), expected);
        assert_eq!(items("[]\n").unwrap(), [""; 0]);
    }

    #[test]
    fn an_error_names_the_line_and_has_no_hint() {
        for text in ["a: [", "a: b: c", "&a [*a]", "\0"] {
            let error = from_yaml(text).unwrap_err();
            assert!(error.starts_with("line ") && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn empty_files_and_unknown_tags_are_read() {
        for text in ["", "# none\n", "null"] {
            assert_eq!(from_yaml(text).unwrap(), Value::Null, "{text}");
        }
        let text = "workload:\n  model: !!python/object:a.B {name: x}\n  t: !Tag 1e-3\n";
        let config = config(text);
        assert_eq!(config.text(&["model.name"]).as_deref(), Some("x"));
        assert_eq!(config.text(&["t"]).as_deref(), Some("1e-3"));
    }
}
