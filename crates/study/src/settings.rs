//! How the runs of a study are made: what is given now, against what its earlier runs were made with.

use anyhow::Context;
use feedrate_results::files::{FilesError, Lock, StudyFiles};
use feedrate_results::state::{Launching, StudySettings, StudyState};
use feedrate_session::output::refuse_root;
use feedrate_session::resolve::entropy;
use feedrate_spec::refusal::refuse;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// States of the page cache before a run.
const CACHES: [&str; 3] = ["cold", "warm", AS_IS];
/// Nothing is done to the cache.
pub const AS_IS: &str = "as-is";

/// Attempts to get the lock of a runner that was killed: it is gone within a second.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(20);

/// Settings of a study that the user gives; what is left out stays as it is.
#[derive(Clone, Debug, Default)]
pub struct SettingsOptions {
    /// Folder of all results.
    pub results: Option<PathBuf>,
    /// Folder of the datasets.
    pub data: Option<PathBuf>,
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

/// The study's lock. A runner that was killed may hold it for another moment.
pub fn lock(files: &StudyFiles) -> Result<Lock, FilesError> {
    for _ in 0..LOOKS {
        match files.lock() {
            Err(FilesError::Locked { .. }) => thread::sleep(LOOK),
            locked => return locked,
        }
    }
    files.lock()
}

/// The settings of all runs of the study in `csv`. What was said once is kept; another word is refused once there are results.
pub fn settings(
    options: &SettingsOptions,
    csv: &Path,
    state: &StudyState,
) -> anyhow::Result<StudySettings> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let mut settings = state.settings.clone().unwrap_or_else(|| new(csv, &here));
    let mut changes = Changes { are_open: !state.has_results(), refused: Vec::new() };
    let absolute = |path: &PathBuf| here.join(path);
    changes.take("--results", options.results.as_ref().map(absolute), &mut settings.results);
    changes.take("--data", options.data.as_ref().map(absolute).map(Some), &mut settings.data);
    changes.take("--scale", options.scale, &mut settings.scale);
    changes.take("--shrink-records", options.shrink_records, &mut settings.shrink_records);
    changes.take("--cache", options.cache.clone(), &mut settings.cache);
    let launching = &mut settings.launching;
    changes.take("--launch", options.launch.clone(), &mut launching.launch);
    changes.take("--prologue", given(&options.prologue), &mut launching.prologue);
    changes.take(
        "--launcher-argument",
        given(&options.launcher_arguments),
        &mut launching.arguments,
    );
    let per_rank = options.accelerators_per_rank.map(Some);
    changes.take("--accelerators-per-rank", per_rank, &mut launching.accelerators_per_rank);
    refuse_root(&settings.results, "`--results`")?;
    // It becomes an option of `feedrate run`.
    if !CACHES.contains(&&*settings.cache) {
        return refuse(
            format!("the settings of the study have {:?} for the page cache", settings.cache),
            "remove `settings.json` from its folder, or give `--cache`",
        );
    }
    if !changes.refused.is_empty() {
        return refuse(
            format!(
                "the earlier runs of this study were made in another way:\n  {}",
                changes.refused.join("\n  ")
            ),
            "leave it out, or copy the CSV, and give the copy `--results` of its own",
        );
    }
    Ok(settings)
}

/// Go where the study was begun: relative paths of workloads count from there.
pub fn enter(settings: &StudySettings) -> anyhow::Result<()> {
    let folder = &settings.folder;
    std::env::set_current_dir(folder).with_context(|| {
        format!(
            "cannot go to `{}`, where the study was begun and its workloads are looked for",
            folder.display()
        )
    })
}

/// Those of a study of which nothing is said.
pub fn new(csv: &Path, here: &Path) -> StudySettings {
    StudySettings {
        csv: csv.to_path_buf(),
        id: format!("{:016x}", entropy()),
        folder: here.to_path_buf(),
        results: here.join("results"),
        data: None,
        scale: 1.0,
        shrink_records: 1.0,
        cache: AS_IS.into(),
        launching: Launching { launch: "local".into(), ..Launching::default() },
    }
}

fn given(words: &[String]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.to_vec())
}

/// As it was written, where it was given.
fn shown(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')')) {
        Some(given) => given.into(),
        None if text == "None" => "not given".into(),
        None => text,
    }
}

/// Changes to the settings, which a study with results refuses.
struct Changes {
    are_open: bool,
    refused: Vec<String>,
}

impl Changes {
    fn take<T: PartialEq + Debug>(&mut self, flag: &str, asked: Option<T>, setting: &mut T) {
        match asked {
            Some(asked) if self.are_open => *setting = asked,
            Some(asked) if asked != *setting => {
                let (now, before) = (shown(&asked), shown(setting));
                self.refused.push(format!("`{flag}` is {now} now, and was {before}"));
            }
            _ => {}
        }
    }
}
