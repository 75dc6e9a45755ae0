//! Arguments that several commands share. Nothing is checked here that clap does not check.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use feedrate_spec::plan::Cache;
use std::ffi::OsStr;
use std::path::PathBuf;

/// State of the page cache before the epochs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CacheArguments {
    /// Drop the dataset from the page cache before each epoch, check that it is gone, and drop dentries and inodes where that is
    /// allowed.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Read the dataset into the page cache before the first epoch, and check that it is there.
    #[arg(long, conflicts_with = "cold")]
    pub(crate) warm: bool,
}

impl CacheArguments {
    /// As a plan has it.
    pub(crate) fn cache(self) -> Cache {
        match (self.cold, self.warm) {
            (true, _) => Cache::Cold,
            (false, true) => Cache::Warm,
            (false, false) => Cache::AsIs,
        }
    }
}

/// The workload, the folder of its data, its scale.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataArguments {
    /// A bundled workload's name (`feedrate list workloads`), a YAML file, or the folder of a run for what it ran.
    #[arg(required_unless_present = "data", default_value = "", hide_default_value = true)]
    pub(crate) workload: String,
    /// Overrides as Hydra writes them: `reader.batch_size=4`, `++workload.train.epochs=2`.
    #[arg(value_name = "KEY=VALUE", allow_hyphen_values = false)]
    pub(crate) overrides: Vec<String>,
    /// Emulated accelerators [default: the workload's own number, else 1].
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) accelerators: Option<u32>,
    /// Folder that datasets lie in [default: the workload's `dataset.data_folder`].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Share of the files and samples to use, and of the tensors of layered models in checkpoints, above 0 and at most 1.
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Share of each record's bytes to use; this changes the workload, and is doubted.
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    pub(crate) shrink_records: f64,
    /// Use the files in the data folder as they are, without a manifest, after a probe.
    #[arg(long)]
    pub(crate) foreign: bool,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl DataArguments {
    /// A workload as it is.
    pub(crate) fn from_name(workload: &str) -> Self {
        DataArguments {
            workload: workload.into(),
            overrides: Vec::new(),
            accelerators: None,
            data: None,
            scale: 1.0,
            shrink_records: 1.0,
            foreign: false,
            json: false,
            quiet: false,
        }
    }

    /// The same as words of a command line, but for the number of accelerators.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![self.workload.clone()];
        words.extend(self.overrides.iter().cloned());
        if let Some(folder) = &self.data {
            words.extend(["--data".into(), folder.display().to_string()]);
        }
        for (flag, share) in [("--scale", self.scale), ("--shrink-records", self.shrink_records)] {
            if share != 1.0 {
                words.extend([flag.into(), share.to_string()]);
            }
        }
        for (flag, is_given) in
            [("--foreign", self.foreign), ("--json", self.json), ("--quiet", self.quiet)]
        {
            words.extend(is_given.then(|| flag.into()));
        }
        words
    }
}

/// How the processes of a run find each other; without a launcher there is one.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct LaunchArguments {
    /// Emulated accelerators of each process that a launcher such as mpirun started [default: 1].
    #[arg(long, value_name = "K", conflicts_with = "accelerators")]
    pub(crate) accelerators_per_rank: Option<u32>,
    /// The MPI library to open under a launcher [default: the one that is found].
    #[arg(long, value_name = "PATH")]
    pub(crate) mpi_library: Option<PathBuf>,
    /// Seconds that a process waits for the others in a step before it says who is missing.
    #[arg(long, value_name = "SECONDS", default_value_t = LaunchArguments::default().rank_timeout)]
    pub(crate) rank_timeout: f64,
}

impl Default for LaunchArguments {
    fn default() -> Self {
        LaunchArguments { accelerators_per_rank: None, mpi_library: None, rank_timeout: 600.0 }
    }
}

/// The options of the arguments `A` that the user gave and that are no defaults, as `--name` and the value, for another command line that takes them.
pub(crate) fn given<A: Args>(matches: &ArgMatches) -> Vec<(String, Option<String>)> {
    let mut given = Vec::new();
    for argument in A::augment_args(clap::Command::default()).get_opts() {
        let id = argument.get_id().as_str();
        let is_known = matches.try_contains_id(id).is_ok();
        if !is_known || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let name = format!("--{}", argument.get_long().unwrap_or(id));
        if !argument.get_action().takes_values() {
            given.push((name, None));
            continue;
        }
        let defaults = argument.get_default_values();
        for value in matches.get_raw(id).into_iter().flatten() {
            if defaults.iter().any(|default| is_same(value, default)) {
                continue;
            }
            given.push((name.clone(), Some(value.to_string_lossy().into_owned())));
        }
    }
    given
}

/// Equal as text or as a number.
fn is_same(one: &OsStr, other: &OsStr) -> bool {
    let [number, other_number] = [one, other].map(|text| text.to_str()?.parse::<f64>().ok());
    one == other || (number.is_some() && number == other_number)
}

/// A value as the command line has it.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}
