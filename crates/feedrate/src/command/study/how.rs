//! How the runs of a study are made: what was asked now, against what its earlier runs were made with.

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use feedrate_results::state::{Launching, StudySettings, StudyState};
use feedrate_session::output::refuse_root;
use feedrate_session::resolve::entropy;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_study::launch::LAUNCHES;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// The page cache before a run.
const CACHES: [(&str, &str); 3] = [
    ("cold", "The dataset is dropped from it before each epoch, and that is checked"),
    ("warm", "The dataset is read once before, and that is checked"),
    (AS_IS, "Whatever it holds"),
];
/// Nothing is done to the cache.
pub(super) const AS_IS: &str = "as-is";

/// How the runs of a study are made.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How to make the runs, all of a study in the same way")]
pub(in crate::command) struct StudyHow {
    /// Folder of all results [default: results].
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Folder of the datasets [default: each workload's `dataset.data_folder`].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use this share of the files and samples, for rows that say nothing else [default: 1].
    #[arg(long, value_name = "F", value_parser = share)]
    scale: Option<f64>,
    /// Use this share of each sample's bytes. It changes the workload, so results are doubted [default: 1].
    #[arg(long, value_name = "F", value_parser = share)]
    shrink_records: Option<f64>,
    /// Emulated accelerators in each process that a launcher starts [default: 1].
    #[arg(long, value_name = "K")]
    accelerators_per_rank: Option<u32>,
    #[command(flatten)]
    pub(in crate::command) start: StudyStart,
}

/// How the runs of a study are started, by options that `feedrate run` does not have.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How to make the runs, all of a study in the same way")]
pub(in crate::command) struct StudyStart {
    /// Page cache before each run, for rows that say nothing else [default: as-is].
    #[arg(long, value_parser = CACHES.map(|(name, help)| PossibleValue::new(name).help(help)))]
    cache: Option<String>,
    /// How processes are started; `feedrate list launches` has all [default: local].
    #[arg(long, value_name = "NAME", value_parser = launches(), hide_possible_values = true)]
    pub(in crate::command) launch: Option<String>,
    /// Line of bash before each run, such as `module load openmpi`. May be repeated.
    #[arg(long, value_name = "LINE")]
    prologue: Vec<String>,
    /// Further argument of the launcher. May be repeated.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    launcher_argument: Vec<String>,
    /// Run the commands that come with the study: hooks of its CSV, and the prologue and launcher arguments of its earlier runs.
    #[arg(long)]
    trust: bool,
}

impl StudyStart {
    /// Refuse a study with commands that were not given on this command line: it may come from others.
    pub(in crate::command) fn refuse_untrusted(
        &self,
        launching: &Launching,
        hooks: &BTreeMap<String, String>,
    ) -> Result<(), Refusal> {
        let commands = self.commands_of_study(launching, hooks);
        if self.trust || commands.is_empty() {
            return Ok(());
        }
        refuse(
            format!(
                "the study brings commands that were not given on this command line:\n  {}",
                commands.join("\n  ")
            ),
            "read them, and add `--trust` to run them",
        )
    }

    /// Everything of a study that a shell or a launcher would execute, but for what was given on this command line.
    pub(super) fn commands_of_study(
        &self,
        launching: &Launching,
        hooks: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let mut commands = Vec::new();
        // Quoted, so that no line break can hide a part.
        if self.prologue.is_empty() {
            commands.extend(launching.prologue.iter().map(|line| format!("--prologue {line:?}")));
        }
        if self.launcher_argument.is_empty() {
            let words = launching.arguments.iter();
            commands.extend(words.map(|word| format!("--launcher-argument {word:?}")));
        }
        commands.extend(hooks.iter().map(|(name, command)| format!("hook {name}: {command:?}")));
        commands
    }
}

fn launches() -> PossibleValuesParser {
    LAUNCHES.iter().map(|launcher| launcher.member.name).into()
}

fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share| 0.0 < *share && *share <= 1.0);
    share.ok_or("give a number above 0 and at most 1")
}

/// The settings of all runs of the study in `csv`. What was said once is kept; another word is refused once there are results.
pub(super) fn settings(
    how: &StudyHow,
    csv: &Path,
    state: &StudyState,
) -> anyhow::Result<StudySettings> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let mut settings = state.settings.clone().unwrap_or_else(|| new(csv, &here));
    let mut changes = Changes { are_open: !state.has_results(), refused: Vec::new() };
    let absolute = |path: &PathBuf| here.join(path);
    changes.take("--results", how.results.as_ref().map(absolute), &mut settings.results);
    changes.take("--data", how.data.as_ref().map(absolute).map(Some), &mut settings.data);
    changes.take("--scale", how.scale, &mut settings.scale);
    changes.take("--shrink-records", how.shrink_records, &mut settings.shrink_records);
    changes.take("--cache", how.start.cache.clone(), &mut settings.cache);
    let launching = &mut settings.launching;
    changes.take("--launch", how.start.launch.clone(), &mut launching.launch);
    changes.take("--prologue", given(&how.start.prologue), &mut launching.prologue);
    changes.take(
        "--launcher-argument",
        given(&how.start.launcher_argument),
        &mut launching.arguments,
    );
    let per_rank = how.accelerators_per_rank.map(Some);
    changes.take("--accelerators-per-rank", per_rank, &mut launching.accelerators_per_rank);
    refuse_root(&settings.results, "`--results`")?;
    // It becomes an option of `feedrate run`.
    if CACHES.iter().all(|(name, _)| *name != settings.cache) {
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
