//! The settings that a run of another program recorded, to compare them with those that were requested.

use super::config::{self, Config};
use super::json;
use super::names::SUMMARY;
use super::reported::Reported;
use std::collections::BTreeMap;
use std::path::Path;

/// Settings that a run of another program recorded.
#[derive(Debug, Default)]
pub(crate) struct RecordedSettings {
    /// Normalized texts of the values; see [`Config::settings`].
    pub(crate) values: BTreeMap<String, String>,
    /// Number of accelerators in the summary.
    pub(crate) accelerators: Option<u64>,
}

/// Reads the settings of a run: its config, or its overrides if there is no config. What cannot be read is unknown.
pub(crate) fn recorded_settings(run_dir: &Path) -> RecordedSettings {
    let ignored = &mut Vec::new();
    let config = config::subfolder(run_dir).map(|(_, folder)| Config::read(&folder, ignored));
    let config = config.unwrap_or_default();
    let summary = json::read(run_dir, SUMMARY, ignored).map(Reported::new);
    RecordedSettings {
        values: config.settings(),
        accelerators: summary.and_then(|summary| summary.count("num_accelerators")),
    }
}
