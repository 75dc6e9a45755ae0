//! Arguments that several commands share. Nothing is checked here that clap does not check.

use crate::messages::{self, Verbosity};
use crate::progress::{Progress, Terminal};
use crate::time;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, ColorChoice, ValueEnum};
use feedrate_measure::metric::Metric;
use feedrate_session::launch::LaunchOptions;
use feedrate_session::request::{HYDRA_WORKLOAD, Request};
use feedrate_spec::plan::Cache;
use feedrate_spec::workload::with_full_key;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Headings of options in the help.
pub(crate) const WHAT: &str = "What";
pub(crate) const STORAGE: &str = "Storage";
pub(crate) const OUTPUT: &str = "Output";

/// Options of every command.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "General")]
pub(crate) struct GeneralArguments {
    /// Tell the plan too, and the command of each run that starts.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Leave out progress and notes; warnings and errors stay.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Colour the output: auto (heeds `NO_COLOR`), always, never.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: ColorChoice,
    /// Print help.
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    /// Print the version.
    #[arg(short = 'V', long, global = true, action = ArgAction::Version)]
    version: Option<bool>,
}

impl GeneralArguments {
    pub(crate) fn verbosity(self) -> Verbosity {
        match (self.verbose, self.quiet) {
            (true, _) => Verbosity::Verbose,
            (false, true) => Verbosity::Quiet,
            (false, false) => Verbosity::Normal,
        }
    }
}

/// The value of `--color` on a command line: help and complaints need it, which come before the line is understood.
pub(crate) fn color_of(words: impl Iterator<Item = OsString>) -> ColorChoice {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let value =
        words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color")? {
            "" => words.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        });
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or_default()
}

/// State of the page cache before the epochs.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Cache")]
pub(crate) struct CacheArguments {
    /// Drop the dataset from the page cache before each epoch (metadata too where that is allowed), and check that it is gone.
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

fn workload_word(text: &str) -> Result<String, Infallible> {
    text.strip_prefix(HYDRA_WORKLOAD).map_or_else(|| override_word(text), |name| Ok(name.into()))
}

/// With the whole key, where its last word or another program's was typed.
fn override_word(text: &str) -> Result<String, Infallible> {
    Ok(with_full_key(text).map_or_else(|| text.into(), |(whole, _)| whole))
}

/// Say which keys were meant by other words.
pub(crate) fn tell_whole_keys(matches: &ArgMatches) {
    let typed = ["workload", "overrides"].map(|id| matches.try_get_raw(id).ok().flatten());
    let typed = typed.into_iter().flatten().flatten().map(|text| text.to_string_lossy());
    let known = typed.filter_map(|text| Some((with_full_key(&text)?.1, text)));
    for (key, text) in known.collect::<BTreeMap<_, _>>() {
        messages::note(format!("note: `{text}` sets `{key}`"));
    }
}

/// The workload, the folder of its data, its scale.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataArguments {
    /// A bundled workload (`feedrate list`), a YAML file, or the folder of a run.
    #[arg(required_unless_present = "data", default_value = "", hide_default_value = true, value_parser = workload_word)]
    pub(crate) workload: String,
    /// Settings that override the workload's: `reader.batch_size=4 train.epochs=2`.
    #[arg(value_name = "KEY=VALUE", allow_hyphen_values = false, value_parser = override_word)]
    pub(crate) overrides: Vec<String>,
    /// Emulated accelerators [default: the workload's number, else 1].
    #[arg(short = 'n', long, value_name = "N", help_heading = WHAT)]
    pub(crate) accelerators: Option<u32>,
    /// Use this share of the files and samples, and of a layered model's checkpoint: above 0, at most 1.
    #[arg(long, value_name = "F", default_value_t = 1.0, help_heading = WHAT)]
    pub(crate) scale: f64,
    /// Use this share of each sample's bytes. It changes the workload, so results are doubted.
    #[arg(long, value_name = "F", default_value_t = 1.0, help_heading = WHAT)]
    pub(crate) shrink_records: f64,
    /// Folder of the datasets, on the storage to be tested [default: the workload's `dataset.data_folder`].
    #[arg(long, value_name = "DIR", help_heading = STORAGE)]
    pub(crate) data: Option<PathBuf>,
    /// Read the files in the data folder as they are, whoever made them; a few are checked first.
    #[arg(long, help_heading = STORAGE)]
    pub(crate) foreign: bool,
    /// Print one JSON object on stdout.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Leave the line of progress in this file, for the process that shows it.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) live_file: Option<PathBuf>,
}

impl DataArguments {
    /// The request.
    pub(crate) fn request(&self) -> Request {
        Request {
            workload: self.workload.clone(),
            overrides: self.overrides.clone(),
            accelerators: self.accelerators,
            scale: self.scale,
            shrink_records: self.shrink_records,
            data: self.data.clone(),
            foreign: self.foreign,
            ..Request::default()
        }
        .separate_overrides()
    }

    /// Where progress goes.
    pub(crate) fn progress(&self) -> Progress {
        match &self.live_file {
            Some(file) => Progress::File(file.clone()),
            None => Progress::Shown,
        }
    }

    /// Receives messages and progress.
    pub(crate) fn listener(&self) -> Terminal {
        Terminal { progress: self.progress() }
    }
}

/// Plain words for what a training's script says of its loop.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StepArguments {
    /// Compute time of a step, such as `50ms`: `train.computation_time`.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, help_heading = WHAT)]
    compute: Option<f64>,
    /// Samples in a batch: `reader.batch_size`.
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub(crate) batch: Option<u64>,
    /// Reading threads of an accelerator, PyTorch's `num_workers`: `reader.read_threads`.
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub(crate) workers: Option<u64>,
}

impl StepArguments {
    /// The same as settings, once.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = String> {
        let own = std::mem::take(self);
        let compute = own.compute.map(|seconds| format!("train.computation_time={seconds}"));
        let batch = own.batch.map(|batch| format!("reader.batch_size={batch}"));
        let workers = own.workers.map(|workers| format!("reader.read_threads={workers}"));
        [compute, batch, workers].into_iter().flatten()
    }
}

/// How the processes of a run find each other; without a launcher there is one.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "MPI")]
pub(crate) struct LaunchArguments {
    /// Emulated accelerators in each process that mpirun, srun or the like starts [default: 1].
    #[arg(long, value_name = "K", conflicts_with = "accelerators")]
    pub(crate) accelerators_per_rank: Option<u32>,
    /// The MPI library to load under a launcher [default: the one that is found].
    #[arg(long, value_name = "PATH")]
    pub(crate) mpi_library: Option<PathBuf>,
    /// Time that a process waits for the others in a step before it names those that are missing.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "600s")]
    pub(crate) rank_timeout: f64,
}

impl LaunchArguments {
    /// The options, with what the launcher says of this process.
    pub(crate) fn options(&self) -> LaunchOptions {
        LaunchOptions {
            launched: crate::launched(),
            accelerators_per_rank: self.accelerators_per_rank,
            mpi_library: self.mpi_library.clone(),
            rank_timeout_s: self.rank_timeout,
        }
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

/// The metric of this name.
pub(crate) fn metric(name: &str) -> Result<&'static Metric, String> {
    Metric::find(name).map_err(|error| format!("{error}: {}", error.hint()))
}

/// Parses the name of one of `all`; the help lists each with its meaning.
pub(crate) fn names_parser<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
    meaning: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values =
        all.map(|value| PossibleValue::new(name(value)).help(meaning(value).trim_end_matches('.')));
    PossibleValuesParser::new(values).try_map(move |text| {
        all.into_iter().find(|value| name(*value) == text).ok_or("no such name")
    })
}

/// A value as the command line has it.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}
