//! A row of a study: one run that is asked for. Knows nothing of what came of it but whether it is done.

use crate::setting::Setting;

/// One run that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// A bundled workload, or a YAML file.
    pub model: String,
    /// Epochs to train; `None` leaves them to the workload.
    pub epochs: Option<u32>,
    /// Emulated accelerators.
    pub processes: u32,
    /// What it sets beside, in the order it was written.
    pub settings: Vec<Setting>,
    /// Number among rows that ask for the same; `None` where the study has no such column.
    pub replicate: Option<u32>,
    /// The block of runs it belongs to.
    pub block: Option<u32>,
    /// Its place in the order of running; rows without one keep that of the file.
    pub order: Option<u32>,
    /// Seed of the order of samples.
    pub seed: Option<u64>,
    /// Share of the files to use, above 0 and at most 1.
    pub scale: Option<f64>,
    /// The author's words.
    pub note: String,
    /// Whether it has been run.
    pub done: bool,
}

impl Row {
    /// A pending run of `model`.
    pub fn new(model: impl Into<String>, processes: u32) -> Self {
        Row {
            model: model.into(),
            epochs: None,
            processes,
            settings: Vec::new(),
            replicate: None,
            block: None,
            order: None,
            seed: None,
            scale: None,
            note: String::new(),
            done: false,
        }
    }

    /// What makes it the run it is. Rows of the same key ask for the same run again; block, order and note do not change what is run.
    pub fn key(&self) -> RowKey {
        let mut settings = self.settings.clone();
        settings.sort();
        let settings: Vec<String> = settings.iter().map(Setting::text).collect();
        let or_none = |value: Option<String>| value.unwrap_or_default();
        let parts = [
            self.model.clone(),
            or_none(self.epochs.map(|epochs| epochs.to_string())),
            self.processes.to_string(),
            settings.join(" "),
            or_none(self.scale.map(|scale| scale.to_string())),
            or_none(self.seed.map(|seed| seed.to_string())),
            or_none(self.replicate.map(|number| number.to_string())),
        ];
        RowKey(parts.join("|"))
    }

    /// What replicates have in common: all of the key but seed and number.
    pub fn experiment_key(&self) -> RowKey {
        Row { seed: None, replicate: None, ..self.clone() }.key()
    }
}

/// See [`Row::key`].
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct RowKey(pub String);
