//! Options of how the runs of a study are made.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use feedrate_results::state::Launching;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_study::launch::LAUNCHES;
use feedrate_study::settings::{AS_IS, SettingsOptions};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

/// The page cache before a run.
const CACHES: [(&str, &str); 3] = [
    ("cold", "The dataset is dropped from it before each epoch, and that is checked"),
    ("warm", "The dataset is read once before, and that is checked"),
    (AS_IS, "Whatever it holds"),
];

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

impl StudyHow {
    /// The settings that are given.
    pub(in crate::command) fn settings(&self) -> SettingsOptions {
        SettingsOptions {
            results: self.results.clone(),
            data: self.data.clone(),
            scale: self.scale,
            shrink_records: self.shrink_records,
            accelerators_per_rank: self.accelerators_per_rank,
            cache: self.start.cache.clone(),
            launch: self.start.launch.clone(),
            prologue: self.start.prologue.clone(),
            launcher_arguments: self.start.launcher_argument.clone(),
        }
    }
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
