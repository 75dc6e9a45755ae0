//! The settings of a DLIO run: `config.yaml` and `overrides.yaml` of Hydra's folder. DLIO's own defaults fill the gaps. Judges nothing.

use super::json;
use feedrate_spec::escape;
use feedrate_spec::problem::Place;
use feedrate_spec::workload::json_from_yaml;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Hydra's folder, as DLIO and MLPerf Storage 2 name it.
pub(crate) const HYDRA_FOLDERS: [&str; 2] = [".hydra", "dlio_config"];
/// As MLPerf Storage 1 names it.
pub(super) const OF_MLPERF_1: &str = "configs";
/// End of the name of the file of `mlpstorage` that has what it made of its arguments.
pub(super) const OF_MLPSTORAGE: &str = "_metadata.json";
const BYTES_MAX: u64 = 1 << 20;

/// The settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Below `workload`; null where there is no `config.yaml`.
    workload: Value,
    /// As they were given, in their order; `None` where there is no `overrides.yaml`.
    pub overrides: Option<Vec<String>>,
}

/// Hydra's folder in the folder of a run.
pub(super) fn subfolder(run: &Path) -> Option<(&'static str, PathBuf)> {
    let names = HYDRA_FOLDERS.into_iter().chain([OF_MLPERF_1]);
    let mut found = names.map(|name| (name, run.join(name)));
    found.find(|(_, path)| {
        ["config.yaml", "overrides.yaml"].iter().any(|name| path.join(name).is_file())
    })
}

impl Config {
    /// Read from Hydra's folder; files that cannot be read are told.
    pub(super) fn read(folder: &Path, problems: &mut Vec<String>) -> Self {
        let [config, overrides] = ["config.yaml", "overrides.yaml"].map(|name| {
            let read = json::bytes(&folder.join(name), BYTES_MAX)?
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is no text".into()));
            read.map_err(|error| problems.push(format!("`{name}`: {error}"))).ok()
        });
        let read = config.map_or(Ok(Value::Null), |config| from_yaml(&config));
        let read = read.map_err(|error| problems.push(format!("`config.yaml`: {error}")));
        let mut root = read.unwrap_or_default();
        let workload = root.get_mut("workload").map(Value::take).unwrap_or_default();
        Config { workload, overrides: overrides.map(|text| items(&text)) }
    }

    /// That which `mlpstorage` wrote into its own file, where Hydra's is not there.
    pub(super) fn or_of_metadata(self, run: &Path, names: &[String]) -> Self {
        let name = names.iter().find(|name| name.ends_with(OF_MLPSTORAGE));
        let Some(name) = name else { return self };
        if self.is_known() {
            return self;
        }
        let mut found = json::read(run, name, &mut Vec::new()).unwrap_or_default();
        let workload = found.get_mut("parameters").map(Value::take).unwrap_or_default();
        Config { workload, ..self }
    }

    /// Whether there is one.
    pub fn is_known(&self) -> bool {
        self.workload.is_object()
    }

    fn at(&self, path: &str) -> Option<&Value> {
        let found = path.split('.').try_fold(&self.workload, |at, key| at.get(key))?;
        (!found.is_null()).then_some(found)
    }

    fn either(&self, paths: &[&str]) -> Option<&Value> {
        paths.iter().find_map(|path| self.at(path))
    }

    /// The number at the first of `paths` that is given.
    pub fn number(&self, paths: &[&str]) -> Option<f64> {
        self.either(paths).map(json::number).filter(|number| number.is_finite())
    }

    /// A number of bytes that a sample may have.
    pub(super) fn bytes(&self, paths: &[&str]) -> Option<f64> {
        self.number(paths).filter(|bytes| (0.0..1e15).contains(bytes))
    }

    /// A count; `default` where it is not given, and nothing where there is no config.
    pub fn count(&self, paths: &[&str], default: u64) -> Option<u64> {
        if !self.is_known() {
            return None;
        }
        match self.either(paths) {
            None => Some(default),
            Some(_) => self.number(paths).filter(|n| (0.0..9e15).contains(n)).map(|n| n as u64),
        }
    }

    /// Compute of a step in seconds; `None` where it is drawn, and has no configured length.
    pub fn compute_s(&self) -> Option<f64> {
        let drawn = ["computation_time.type", "computation_time.stdev", "computation_time_stdev"];
        if drawn.iter().any(|key| self.has(&format!("train.{key}"))) {
            return None;
        }
        self.mean_compute_s()
    }

    /// The same in the mean, where it is drawn.
    pub fn mean_compute_s(&self) -> Option<f64> {
        let mean = self.number(&["train.computation_time.mean", "train.computation_time"]);
        mean.map(f64::abs)
    }

    /// Text at the first of `paths` that is given; numbers and truths as they are written.
    pub fn text(&self, paths: &[&str]) -> Option<String> {
        match self.either(paths)? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string()),
            _ => None,
        }
    }

    /// A truth, as YAML or Python write it.
    pub fn truth(&self, path: &str, default: bool) -> bool {
        match self.text(&[path]).as_deref() {
            Some("true" | "True") => true,
            Some("false" | "False") => false,
            _ => default,
        }
    }

    /// Whether anything is given at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.at(path).is_some()
    }

    /// All values as texts, by the path of their key; lists as JSON.
    pub fn leaves(&self) -> BTreeMap<String, String> {
        leaves(&self.workload, text)
    }
}

/// All values of a tree but null, by the path of their key.
pub(crate) fn leaves(tree: &Value, text: fn(&Value) -> String) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    let mut open = vec![(String::new(), tree)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Object(fields) => open.extend(fields.iter().map(|(key, value)| {
                (if at.is_empty() { key.clone() } else { format!("{at}.{key}") }, value)
            })),
            value => drop(leaves.insert(at, text(value))),
        }
    }
    leaves
}

/// Equal to DLIO is equal text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => same_text(text),
        // 146600628 and 146600628.0.
        value => value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string()),
    }
}

/// A value of an override as the config would have it: `True` is `true`, `1.0` is `1`.
pub fn same_text(text: &str) -> String {
    match (text, text.parse::<f64>()) {
        ("True", _) => "true".into(),
        ("False", _) => "false".into(),
        (_, Ok(number)) if number.is_finite() => number.to_string(),
        _ => text.into(),
    }
}

fn from_yaml(text: &str) -> Result<Value, String> {
    let found = json_from_yaml("config.yaml", text);
    let found = found.map_err(|problem| match problem.place {
        Some(Place::File { line, .. }) => format!("line {line}: {}", problem.message),
        _ => problem.message,
    })?;
    // Its texts without control characters.
    let json = serde_json::to_vec(&found).map_err(|error| error.to_string())?;
    serde_json::from_slice(&escape::json_texts(&json)).map_err(|error| error.to_string())
}

/// The items of a YAML list of texts, as Hydra writes it: one a line.
fn items(text: &str) -> Vec<String> {
    let items = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let items = items.map(|item| {
        let quotes = ['\'', '"'];
        let inside = quotes.iter().find_map(|&q| item.trim().strip_prefix(q)?.strip_suffix(q));
        inside.unwrap_or(item.trim()).to_string()
    });
    items.filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config { workload: from_yaml(text).unwrap()["workload"].take(), overrides: None }
    }

    #[test]
    fn what_is_given_is_found_and_dlios_defaults_fill_the_rest() {
        let config = config(
            "workload:\n  dataset: {record_length_bytes: 1.5e6, format: npz}\n  reader:\n    batch_size: 7\n    file_shuffle: off\n  workflow: {train: false, checkpoint: True}\n",
        );
        assert_eq!(config.number(&["dataset.record_length_bytes"]), Some(1.5e6));
        assert_eq!(config.count(&["reader.batch_size"], 1), Some(7));
        assert_eq!(config.count(&["reader.read_threads"], 1), Some(1));
        assert_eq!(config.text(&["reader.file_shuffle"]).as_deref(), Some("off"));
        assert!(
            !config.truth("workflow.train", true) && config.truth("workflow.checkpoint", false)
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
    fn overrides_are_a_list_of_lines() {
        let text = "- workload=unet3d\n- ++workload.reader.batch_size=1\n- '++workload.a=[1, 2]'\n- \"b=1\"\n-\n";
        let expected =
            ["workload=unet3d", "++workload.reader.batch_size=1", "++workload.a=[1, 2]", "b=1"];
        assert_eq!(items(text), expected);
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
