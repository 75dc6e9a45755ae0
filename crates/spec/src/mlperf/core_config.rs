//! The identity of a configuration by `core-config-v1`, the hash with which MLPerf Storage decides whether two runs had the same workload.
//! Source: `core_config_keys.yaml` and `provenance.py` of `mlcommons/storage`, release 3.0.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Number of bytes of the SHA-256 sum in a hash.
const HASH_BYTES: usize = 8;

/// Keys of training that determine the workload; `.*` includes all keys of a section. Neither sizes of the dataset nor numbers of threads
/// belong to it, nor settings that the official tools make. The last three of `dataset` are spellings of release 1.0.
const TRAINING_KEYS: [&str; 22] = [
    "framework",
    "metric.au",
    "model.*",
    "workflow.*",
    "dataset.format",
    "dataset.num_samples_per_file",
    "dataset.record_length_bytes",
    "dataset.record_length_bytes_stdev",
    "dataset.record_length_bytes_resize",
    "dataset.record_length",
    "dataset.record_length_stdev",
    "dataset.record_length_resize",
    "reader.data_loader",
    "reader.batch_size",
    "reader.file_shuffle",
    "reader.sample_shuffle",
    "reader.shuffle_size",
    "train.epochs",
    "train.computation_time",
    "train.computation_time_stdev",
    "train.total_training_steps",
    "checkpoint.*",
];

/// Keys of runs that only write and read checkpoints, likewise.
const CHECKPOINTING_KEYS: [&str; 4] = ["framework", "model.*", "workflow.*", "checkpoint.*"];

/// Keys of these sections that do not determine the workload of training.
const TRAINING_EXCLUDED: [&str; 1] = ["checkpoint.checkpoint_folder"];

/// Keys of these sections that do not determine the workload of checkpoints. Writing and reading may be separate runs.
const CHECKPOINTING_EXCLUDED: [&str; 3] = [
    "checkpoint.checkpoint_folder",
    "checkpoint.num_checkpoints_write",
    "checkpoint.num_checkpoints_read",
];

/// The settings that determine a workload of MLPerf Storage. Runs whose settings are equal have the same workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CoreConfig {
    /// Values by DLIO's dotted keys, in canonical JSON: numbers and booleans may have been written as text.
    pub values: BTreeMap<String, String>,
}

impl CoreConfig {
    /// Takes the settings from DLIO's `parameters`, the tree below `workload`. Returns `None` if none of them determines the workload.
    pub fn new(parameters: &Value) -> Option<Self> {
        let mut values = flatten(parameters);
        let is = |key: &str, value: &str| values.get(key).is_some_and(|found| found == value);
        let only_checkpoints = is("workflow.train", "false") && is("workflow.checkpoint", "true");
        let (included, excluded) = if only_checkpoints {
            (&CHECKPOINTING_KEYS[..], &CHECKPOINTING_EXCLUDED[..])
        } else {
            (&TRAINING_KEYS[..], &TRAINING_EXCLUDED[..])
        };
        values.retain(|key, _| !excluded.contains(&&**key) && is_included(key, included));
        (!values.is_empty()).then_some(CoreConfig { values })
    }

    /// Adds an option of the command line that changes the workload, so that the configuration belongs to no class. `value` is `None` if unknown.
    pub fn add_option(&mut self, option: &str, value: Option<f64>) {
        self.values.insert(option.into(), value.map_or("null".into(), float_text));
    }

    /// Returns the options that were added, such as `--scale`.
    pub fn options(&self) -> impl Iterator<Item = &String> {
        self.values.keys().filter(|key| key.starts_with("--"))
    }

    /// Returns the hash: the first 16 hexadecimal digits of the SHA-256 sum of the settings as JSON.
    pub fn hash(&self) -> String {
        let fields = self.values.iter().map(|(key, value)| format!("{}:{value}", json_text(key)));
        let json = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        let sum = Sha256::digest(json);
        sum.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the canonical values of a tree by dotted key. Only maps are entered.
fn flatten(parameters: &Value) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut pending = vec![(String::new(), parameters)];
    while let Some((section, node)) = pending.pop() {
        for (key, value) in node.as_object().into_iter().flatten() {
            let path = format!("{section}{key}");
            if value.is_object() {
                pending.push((format!("{path}."), value));
            } else {
                values.insert(path, canonical_json(value));
            }
        }
    }
    values
}

fn is_included(key: &str, included: &[&str]) -> bool {
    included.iter().any(|entry| match entry.strip_suffix('*') {
        Some(section) => key.starts_with(section),
        None => key == *entry,
    })
}

/// Returns a value as JSON, so that `7`, `7.0` and `"7"` are equal, and so are `true` and `"True"`.
pub fn canonical_json(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match (number.is_f64(), number.as_f64()) {
            (true, Some(float)) => float_text(float),
            _ => number.to_string(),
        },
        Value::String(text) => canonical_text(text.trim()),
        Value::Array(items) => {
            let items = items.iter().map(canonical_json);
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json_text(key), canonical_json(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
    }
}

fn canonical_text(text: &str) -> String {
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return text.to_ascii_lowercase();
    }
    let number = || {
        let digits = without_separators(text)?;
        whole_number(&digits).or_else(|| digits.parse().ok().map(float_text))
    };
    number().unwrap_or_else(|| json_text(text))
}

/// Removes underscores between digits, which Python accepts in numbers; `None` if there are underscores elsewhere.
fn without_separators(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('_').collect();
    let is_between_digits = parts.windows(2).all(|pair| {
        pair[0].ends_with(|c: char| c.is_ascii_digit())
            && pair[1].starts_with(|c: char| c.is_ascii_digit())
    });
    is_between_digits.then(|| parts.concat())
}

/// Normalises the notation of an integer of any length; `None` if the text is not one.
fn whole_number(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    Some(if significant.is_empty() { "0".into() } else { format!("{sign}{significant}") })
}

/// Formats a float as Python's `json.dumps`, and a whole float as an integer.
fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if number == 0.0 {
        return "0".into();
    }
    if number.fract() == 0.0 {
        return format!("{number:.0}");
    }
    let shortest = format!("{number:?}");
    match shortest.split_once("e-") {
        Some((mantissa, exponent)) => format!("{mantissa}e-{exponent:0>2}"),
        None => shortest,
    }
}

/// Quotes text as Python's `json.dumps`, which escapes all characters that are not printable ASCII.
fn json_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            ' '..='~' => quoted.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hash(parameters: &Value) -> String {
        CoreConfig::new(parameters).unwrap().hash()
    }

    /// Expected texts are those of Python's `json.dumps` after the official normalisation.
    #[test]
    fn values_have_one_canonical_text() {
        for (value, expected) in [
            (json!(7), "7"),
            (json!(7.0), "7"),
            (json!(" 7 "), "7"),
            (json!("+007"), "7"),
            (json!("1_000"), "1000"),
            (json!("1__000"), "\"1__000\""),
            (json!("7.0e0"), "7"),
            (json!("-0.0"), "0"),
            (json!(1e22), "10000000000000000000000"),
            (json!("123456789012345678901234567890"), "123456789012345678901234567890"),
            (json!(0.04755), "0.04755"),
            (json!("0.00350"), "0.0035"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(1.5e-10), "1.5e-10"),
            (json!("nan"), "NaN"),
            (json!("-inf"), "-Infinity"),
            (json!("TRUE"), "true"),
            (json!(false), "false"),
            (json!("off"), "\"off\""),
            (json!("_"), "\"_\""),
            (json!(null), "null"),
            (json!([1.0, "x", "2"]), "[1,\"x\",2]"),
            (json!("é\u{1f600}\u{7f}\n\"\\"), r#""\u00e9\ud83d\ude00\u007f\n\"\\""#),
        ] {
            assert_eq!(canonical_json(&value), expected, "{value}");
        }
    }

    #[test]
    fn settings_of_a_site_do_not_change_the_hash() {
        let official = json!({
            "model": {"name": "x"},
            "dataset": {"format": "npz", "num_files_train": 7200},
            "reader": {"batch_size": 7, "read_threads": 4},
            "checkpoint": {"checkpoint_folder": "a", "checkpoint_after_epoch": 5},
        });
        let site = json!({
            "checkpoint": {"checkpoint_after_epoch": "5", "checkpoint_folder": "/mnt/b"},
            "dataset": {
                "format": "npz", "num_files_train": 148_000, "data_folder": "/mnt", "skip_listing": true,
                "listing_validation_interval": 100, "num_files_generated": 148_000,
            },
            "model": {"name": "x"},
            "profiling": {"profiler": "none"},
            "reader": {"batch_size": 7.0, "read_threads": 32, "odirect": true},
            "storage": {
                "storage_type": "s3", "storage_root": "bucket", "s3_force_path_style": true,
                "storage_options": {"storage_library": "s3dlio", "uri_scheme": "s3"},
            },
        });
        assert_eq!(hash(&official), hash(&site));
        let mut changed = official.clone();
        changed["reader"]["batch_size"] = json!(8);
        assert_ne!(hash(&official), hash(&changed));
    }

    #[test]
    fn writing_and_reading_of_checkpoints_have_the_same_hash() {
        let run = |write: u64, read: u64, train: bool| {
            json!({
                "workflow": {"train": train, "checkpoint": true},
                "checkpoint": {"num_checkpoints_write": write, "num_checkpoints_read": read, "fsync": true},
                "train": {"epochs": write},
            })
        };
        assert_eq!(hash(&run(10, 0, false)), hash(&run(0, 10, false)));
        assert_ne!(hash(&run(10, 0, true)), hash(&run(0, 10, true)));
    }

    #[test]
    fn parameters_without_settings_of_a_workload_have_no_identity() {
        for parameters in [json!({}), json!(null), json!(3), json!({"storage": {"a": 1}})] {
            assert_eq!(CoreConfig::new(&parameters), None, "{parameters}");
        }
        // Releases up to 1.0 name the model in this way, which is in no list of keys.
        assert_eq!(CoreConfig::new(&json!({"model": "unet3d"})), None);
    }
}
