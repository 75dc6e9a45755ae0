//! How the runs of a study are made: what was asked now, against what its earlier runs were made with.

use crate::cli::{Cache, StudyHow};
use crate::exit::UsageError;
use crate::resolve::entropy;
use anyhow::Context;
use feedrate_results::state::{Launching, StudySettings, StudyState};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// The settings of all runs of the study in `csv`. What was said once is kept; another word is refused once there are results.
pub(super) fn settings(
    how: &StudyHow,
    csv: &Path,
    state: &StudyState,
) -> anyhow::Result<StudySettings> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let before = state.settings.clone().unwrap_or_else(|| new(csv, &here));
    let mut choice = Choice { is_open: !state.has_results(), changed: Vec::new() };
    let absolute = |path: &Option<PathBuf>| path.as_ref().map(|path| here.join(path));
    let launching = &before.launching;
    let settings = StudySettings {
        results: choice.of("--results", absolute(&how.results), &before.results),
        data: choice.of("--data", absolute(&how.data).map(Some), &before.data),
        scale: choice.of("--scale", how.scale, &before.scale),
        shrink_records: choice.of("--shrink-records", how.shrink_records, &before.shrink_records),
        cache: choice.of("--cache", how.cache.map(|cache| name(cache).into()), &before.cache),
        launching: Launching {
            launch: choice.of("--launch", how.launch.clone(), &launching.launch),
            prologue: choice.of("--prologue", given(&how.prologue), &launching.prologue),
            arguments: choice.of(
                "--launcher-argument",
                given(&how.launcher_argument),
                &launching.arguments,
            ),
            accelerators_per_rank: choice.of(
                "--accelerators-per-rank",
                how.accelerators_per_rank.map(Some),
                &launching.accelerators_per_rank,
            ),
        },
        ..before.clone()
    };
    choice.end()?;
    for (flag, share) in
        [("--scale", settings.scale), ("--shrink-records", settings.shrink_records)]
    {
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("`{flag} {share}` is no share");
            let hint = Some("give a number above 0 and at most 1".into());
            return Err(UsageError { message, hint }.into());
        }
    }
    Ok(settings)
}

/// Go where the study was begun: relative paths of workloads count from there.
pub(super) fn enter(settings: &StudySettings) -> anyhow::Result<()> {
    let folder = &settings.folder;
    std::env::set_current_dir(folder).with_context(|| {
        format!(
            "cannot go to `{}`, where the study was begun and its workloads are looked for",
            folder.display()
        )
    })
}

/// Those of a study of which nothing is said.
pub(super) fn new(csv: &Path, here: &Path) -> StudySettings {
    StudySettings {
        csv: csv.to_path_buf(),
        id: format!("{:016x}", entropy()),
        folder: here.to_path_buf(),
        results: here.join("results"),
        data: None,
        scale: 1.0,
        shrink_records: 1.0,
        cache: name(Cache::AsIs).into(),
        launching: Launching {
            launch: "local".into(),
            prologue: Vec::new(),
            arguments: Vec::new(),
            accelerators_per_rank: None,
        },
    }
}

/// As in the CSV.
pub(super) fn name(cache: Cache) -> &'static str {
    match cache {
        Cache::Cold => "cold",
        Cache::Warm => "warm",
        Cache::AsIs => "as-is",
    }
}

fn given(words: &[String]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.to_vec())
}

/// Choice between the words given now and the earlier ones; a study with results keeps those.
struct Choice {
    is_open: bool,
    changed: Vec<String>,
}

impl Choice {
    fn of<T: Clone + PartialEq + Debug>(&mut self, flag: &str, asked: Option<T>, before: &T) -> T {
        match asked {
            Some(asked) if self.is_open || asked == *before => asked,
            Some(asked) => {
                self.changed.push(format!("`{flag}` is {asked:?} now, and was {before:?}"));
                before.clone()
            }
            None => before.clone(),
        }
    }

    fn end(self) -> Result<(), UsageError> {
        if self.changed.is_empty() {
            return Ok(());
        }
        Err(UsageError {
            message: format!(
                "the earlier runs of this study were made in another way:\n  {}",
                self.changed.join("\n  ")
            ),
            hint: Some(
                "leave it out, or copy the CSV, and give the copy `--results` of its own".into(),
            ),
        })
    }
}
