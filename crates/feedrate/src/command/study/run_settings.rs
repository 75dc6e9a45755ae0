//! Options that apply to all runs of a study, and the check of commands that are stored in the study.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use feedrate_results::state::LaunchSettings;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_study::launch::LAUNCHES;
use feedrate_study::settings::{AS_IS, SettingsOptions};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

/// States of the page cache before a run.
const CACHES: [(&str, &str); 3] = [
    ("cold", "Drop the dataset from the page cache before each epoch, and verify it"),
    ("warm", "Read the dataset into the page cache before the first epoch, and verify it"),
    (AS_IS, "Leave the page cache as it is"),
];

/// Help heading of these options.
const HEADING: &str = "Settings of all runs";

/// Settings of all runs of a study.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(in crate::command) struct StudyRunSettings {
    /// Folder of all results [default: results].
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Folder of the datasets [default: each workload's `dataset.data_folder`].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder whose `workload/NAME.yaml` take precedence over bundled workloads [default: `../config` beside the CSV].
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    config_dir: Option<PathBuf>,
    /// Use this fraction of the files and samples, unless the row sets one [default: 1].
    #[arg(long, value_name = "F", value_parser = parse_share)]
    scale: Option<f64>,
    /// Use only this fraction of each sample's bytes, with a doubt [default: 1].
    #[arg(long, value_name = "F", value_parser = parse_share, hide_short_help = true)]
    shrink_records: Option<f64>,
    /// Emulated accelerators per process under a launcher [default: 1].
    #[arg(long, value_name = "K", hide_short_help = true)]
    accelerators_per_rank: Option<u32>,
    #[command(flatten)]
    pub(in crate::command) launch: StudyLaunch,
}

impl StudyRunSettings {
    /// The given settings.
    pub(in crate::command) fn settings(&self) -> SettingsOptions {
        SettingsOptions {
            results: self.results.clone(),
            data: self.data.clone(),
            config_dir: self.config_dir.clone(),
            scale: self.scale,
            shrink_records: self.shrink_records,
            accelerators_per_rank: self.accelerators_per_rank,
            cache: self.launch.cache.clone(),
            launch: self.launch.launch.clone(),
            prologue: self.launch.prologue.clone(),
            launcher_arguments: self.launch.launcher_argument.clone(),
        }
    }
}

/// Settings of all runs that `feedrate run` has no options for.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(in crate::command) struct StudyLaunch {
    /// State of the page cache before each run, unless the row sets one [default: as-is].
    #[arg(long, value_parser = CACHES.map(|(name, help)| PossibleValue::new(name).help(help)))]
    cache: Option<String>,
    /// How to start processes; `feedrate list launches` explains the names [default: local].
    #[arg(long, value_name = "NAME", value_parser = launch_parser(), hide_possible_values = true)]
    pub(in crate::command) launch: Option<String>,
    /// Line of bash to run before each run, such as `module load openmpi`. May be repeated.
    #[arg(long, value_name = "LINE", hide_short_help = true)]
    prologue: Vec<String>,
    /// Extra argument for the launcher. May be repeated.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true, hide_short_help = true)]
    launcher_argument: Vec<String>,
    /// Allow commands that are stored in the study: hooks in its CSV, and the prologue and launcher arguments of earlier runs.
    #[arg(long, hide_short_help = true)]
    trust: bool,
}

impl StudyLaunch {
    /// Refuses a study with commands that were not given on this command line, since somebody else may have written them.
    pub(in crate::command) fn refuse_untrusted(
        &self,
        launching: &LaunchSettings,
        hooks: &BTreeMap<String, String>,
    ) -> Result<(), Refusal> {
        let commands = self.stored_commands(launching, hooks);
        if self.trust || commands.is_empty() {
            return Ok(());
        }
        refuse(
            format!(
                "the study contains commands that were not given on this command line:\n  {}",
                commands.join("\n  ")
            ),
            "read them, and add `--trust` to run them",
        )
    }

    /// Commands in the study that a shell or a launcher would execute, except those given on this command line.
    pub(super) fn stored_commands(
        &self,
        launching: &LaunchSettings,
        hooks: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let mut commands = Vec::new();
        // Quoted, so that a line break cannot hide part of a command.
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

fn launch_parser() -> PossibleValuesParser {
    LAUNCHES.iter().map(|launcher| launcher.member.name).into()
}

fn parse_share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share| 0.0 < *share && *share <= 1.0);
    share.ok_or("give a number above 0 and at most 1")
}
