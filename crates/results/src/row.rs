//! A row of a study: one requested run. It does not know the run's results, only whether the row is done.

use crate::setting::Setting;
use feedrate_spec::problem::Problem;
use feedrate_spec::workload::canonical_key;

/// Note of a row that warms up.
pub const WARM_UP: &str = "warm-up";
/// Note of a row that warms up for `run --repeat`. Its run is no replicate, unless the user names its folder.
pub const UNCOUNTED_WARM_UP: &str = "warm-up, not counted";

/// One requested run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Name of a bundled workload, or path of a YAML file.
    pub model: String,
    /// Epochs to train; `None` uses the workload's value.
    pub epochs: Option<u32>,
    /// Number of emulated accelerators.
    pub accelerators: u32,
    /// Overrides, in the order they were written.
    pub settings: Vec<Setting>,
    /// Number of the replicate among rows with the same settings; `None` if the study has no such column.
    pub replicate: Option<u32>,
    /// Number of the block that the row belongs to.
    pub block: Option<u32>,
    /// Position in the order of execution. Rows without a position run in file order.
    pub order: Option<u32>,
    /// Seed of the sample order.
    pub seed: Option<u64>,
    /// Share of the files to use, above 0 and at most 1.
    pub scale: Option<f64>,
    /// Free text of the study's author.
    pub note: String,
    /// Whether the row has been run.
    pub done: bool,
}

impl Row {
    /// Creates a pending row for `model`.
    pub fn new(model: impl Into<String>, accelerators: u32) -> Self {
        Row { model: model.into(), accelerators, ..Row::default() }
    }

    /// Returns the key of the requested run: its settings, replicate and block. Order and note are not part of it, since they do not
    /// change the run.
    pub fn key(&self) -> RowKey {
        let mut settings = self.settings.clone();
        settings.sort();
        let settings: Vec<String> = settings.iter().map(Setting::text).collect();
        let parts = [
            self.model.clone(),
            text(self.epochs),
            self.accelerators.to_string(),
            settings.join(" "),
            text(self.scale),
            text(self.seed),
            text(self.replicate),
        ];
        let block = self.block.map_or(String::new(), |block| format!("|{block}"));
        RowKey(parts.join("|") + &block)
    }

    /// Reports keys that the row sets more than once, by overrides or by a column and an override.
    pub fn repeated_keys(&self) -> Vec<Problem> {
        let columns = [
            ("train.epochs", "epochs", self.epochs.is_some()),
            ("train.seed", "seed", self.seed.is_some()),
        ];
        let mut problems = Vec::new();
        for (i, setting) in self.settings.iter().enumerate() {
            let key = canonical_key(&setting.key);
            let column = columns.iter().find(|(path, _, is_set)| *is_set && *path == key);
            if let Some((_, column, _)) = column {
                let message = format!("is set by the column `{column}` too");
                problems.push(Problem::error(key, message).hint("set it in one of the two places"));
            } else if self.settings[..i].iter().any(|other| canonical_key(&other.key) == key) {
                let hint = "leave one out, or make two rows";
                problems.push(Problem::error(key, "is set twice").hint(hint));
            }
        }
        problems
    }

    /// Returns the part of the key that replicates share: everything except seed, replicate and block.
    pub fn experiment_key(&self) -> RowKey {
        Row { seed: None, replicate: None, block: None, ..self.clone() }.key()
    }
}

/// Formats a value as the text of a cell; `None` is an empty cell.
pub(crate) fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Identifies the run that a row requests; see [`Row::key`].
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct RowKey(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_set_once() {
        for (overrides, expected) in [
            (&["reader.batch_size=1", "train.computation_time=1"][..], ""),
            (&["reader.batch_size=1", "reader.batch_size=2"], "reader.batch_size: is set twice"),
            (
                &["reader.batch_size=1", "~data_reader.batch_size"],
                "reader.batch_size: is set twice",
            ),
            (
                &["dataset.record_length=1", "dataset.record_length_bytes=2"],
                "dataset.record_length_bytes: is set twice",
            ),
            (&["study.cache=cold", "study.cache=warm"], "study.cache: is set twice"),
            (&["train.epochs=1"], "train.epochs: is set by the column `epochs`"),
            (&["train.seed=1"], ""),
        ] {
            let settings = overrides.iter().map(|text| Setting::parse(text).unwrap()).collect();
            let row = Row { epochs: Some(2), settings, ..Row::new("w", 1) };
            let found: String = row.repeated_keys().iter().map(Problem::to_string).collect();
            assert_eq!(found.is_empty(), expected.is_empty(), "{overrides:?}: {found}");
            assert!(found.contains(expected), "{overrides:?}: {found}");
        }
    }
}
