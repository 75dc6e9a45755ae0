//! Settings that all runs of a study share. Compares the options of a command with the settings of earlier runs, because results of different settings
//! are not comparable.

use anyhow::Context;
use feedrate_results::files::{FilesError, Lock, StudyFiles};
use feedrate_results::state::{LaunchSettings, StudySettings, StudyState};
use feedrate_session::dlio::WORKLOAD_FOLDER;
use feedrate_session::output::refuse_root;
use feedrate_session::resolve::entropy;
use feedrate_session::surroundings;
use feedrate_spec::refusal::refuse;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// States of the page cache before a run.
const CACHES: [&str; 3] = ["cold", "warm", AS_IS];
/// The cache is left unchanged.
pub const AS_IS: &str = "as-is";

/// Attempts to lock a study. A killed runner releases its lock within a second.
const LOCK_ATTEMPTS: u32 = 50;
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Settings that the user gives for a study. Omitted settings keep their values.
#[derive(Clone, Debug, Default)]
pub struct SettingsOptions {
    /// Folder of all results.
    pub results: Option<PathBuf>,
    /// Folder of the datasets.
    pub data: Option<PathBuf>,
    /// Folder with workloads in `workload/`.
    pub config_dir: Option<PathBuf>,
    /// Share of the files and samples.
    pub scale: Option<f64>,
    /// Share of each sample's bytes.
    pub shrink_records: Option<f64>,
    /// Emulated accelerators in each process that a launcher starts.
    pub accelerators_per_rank: Option<u32>,
    /// `cold`, `warm` or `as-is`.
    pub cache: Option<String>,
    /// Name of a launcher.
    pub launch: Option<String>,
    /// Lines of bash before each run.
    pub prologue: Vec<String>,
    /// Further arguments of the launcher.
    pub launcher_arguments: Vec<String>,
}

/// Locks the study. Waits for a moment, because a killed runner may still hold the lock.
pub fn lock(files: &StudyFiles) -> Result<Lock, FilesError> {
    for _ in 0..LOCK_ATTEMPTS {
        match files.lock() {
            Err(FilesError::Locked { .. }) => thread::sleep(LOCK_RETRY),
            locked => return locked,
        }
    }
    files.lock()
}

/// Returns the settings of all runs of the study in `csv`: the stored settings, changed by `options`.
///
/// # Errors
/// A setting would change although the study has results, or is invalid.
pub fn resolve(
    options: &SettingsOptions,
    csv: &Path,
    state: &StudyState,
) -> anyhow::Result<StudySettings> {
    let working_dir = std::env::current_dir().context("cannot determine the working directory")?;
    let mut settings = state.settings.clone().unwrap_or_else(|| defaults(csv, &working_dir));
    let mut changes = Changes { are_allowed: !state.has_results(), refused: Vec::new() };
    let absolute = |path: &PathBuf| working_dir.join(path);
    changes.apply("--results", options.results.as_ref().map(absolute), &mut settings.results);
    changes.apply("--data", options.data.as_ref().map(absolute).map(Some), &mut settings.data);
    let config_dir = options.config_dir.as_ref().map(absolute);
    if let Some(folder) =
        config_dir.as_ref().filter(|folder| !folder.join(WORKLOAD_FOLDER).is_dir())
    {
        return refuse(
            format!("`--config-dir {}` has no folder `workload`", folder.display()),
            "give a folder with workloads in `workload/NAME.yaml`",
        );
    }
    changes.apply("--config-dir", config_dir.map(Some), &mut settings.config_dir);
    changes.apply("--scale", options.scale, &mut settings.scale);
    changes.apply("--shrink-records", options.shrink_records, &mut settings.shrink_records);
    changes.apply("--cache", options.cache.clone(), &mut settings.cache);
    let launching = &mut settings.launching;
    changes.apply("--launch", options.launch.clone(), &mut launching.launch);
    changes.apply("--prologue", non_empty(&options.prologue), &mut launching.prologue);
    changes.apply(
        "--launcher-argument",
        non_empty(&options.launcher_arguments),
        &mut launching.arguments,
    );
    let per_rank = options.accelerators_per_rank.map(Some);
    changes.apply("--accelerators-per-rank", per_rank, &mut launching.accelerators_per_rank);
    refuse_root(&settings.results, "`--results`")?;
    // Checked because the stored value becomes an option of `feedrate run`.
    if !CACHES.contains(&&*settings.cache) {
        return refuse(
            format!("the settings of the study have {:?} for the page cache", settings.cache),
            "remove `settings.json` from its folder, or give `--cache`",
        );
    }
    if !changes.refused.is_empty() {
        return refuse(
            format!(
                "the earlier runs of this study were made with other settings:\n  {}",
                changes.refused.join("\n  ")
            ),
            "leave the option out, or copy the CSV and set another `--results` for the copy",
        );
    }
    Ok(settings)
}

/// Changes to the folder in which the study was started. Paths of workloads are relative to it.
pub fn change_to_start_folder(settings: &StudySettings) -> anyhow::Result<()> {
    let folder = &settings.folder;
    std::env::set_current_dir(folder).with_context(|| {
        format!("cannot change to `{}`, where the study was started", folder.display())
    })
}

/// Settings of a new study in `csv`, started in the folder `working_dir`.
pub fn defaults(csv: &Path, working_dir: &Path) -> StudySettings {
    StudySettings {
        csv: csv.to_path_buf(),
        id: format!("{:016x}", entropy()),
        folder: working_dir.to_path_buf(),
        results: working_dir.join("results"),
        mlperf_folder: None,
        data: None,
        config_dir: None,
        scale: 1.0,
        shrink_records: 1.0,
        cache: AS_IS.into(),
        now_s: Some(surroundings::now_s()),
        launching: LaunchSettings { launch: "local".into(), ..LaunchSettings::default() },
    }
}

fn non_empty(words: &[String]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.to_vec())
}

/// Formats a setting as the user writes it.
fn format_setting(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')')) {
        Some(given) => given.into(),
        None if text == "None" => "not given".into(),
        None => text,
    }
}

/// Changes to settings. A study with results refuses them.
struct Changes {
    are_allowed: bool,
    /// A sentence for each refused change.
    refused: Vec<String>,
}

impl Changes {
    fn apply<T: PartialEq + Debug>(&mut self, flag: &str, requested: Option<T>, setting: &mut T) {
        match requested {
            Some(value) if self.are_allowed => *setting = value,
            Some(value) if value != *setting => {
                let now = format_setting(&value);
                let before = format_setting(setting);
                self.refused.push(format!("`{flag}` is {now} now, and was {before}"));
            }
            _ => {}
        }
    }
}
