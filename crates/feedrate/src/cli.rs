//! Arguments that several commands share. clap checks their syntax; the libraries check their values.

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
use feedrate_spec::units;
use feedrate_spec::workload::with_full_key;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Headings of options in the help.
pub(crate) const WORKLOAD: &str = "Workload";
pub(crate) const STORAGE: &str = "Storage";
pub(crate) const OUTPUT: &str = "Output";

/// Options of every command.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "General")]
pub(crate) struct GeneralArguments {
    /// Also print the plan, and the command of each run that starts.
    #[arg(short, long, global = true, conflicts_with = "quiet", hide_short_help = true)]
    verbose: bool,
    /// Print only warnings and errors on stderr, no progress or notes.
    #[arg(short, long, global = true, hide_short_help = true)]
    quiet: bool,
    /// Colour the output: auto (respects `NO_COLOR`), always or never.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        hide_short_help = true
    )]
    color: ColorChoice,
    /// Print help.
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
    /// Print help with rare options.
    #[arg(long, global = true, action = ArgAction::HelpShort)]
    help_all: Option<bool>,
    /// Print the version.
    #[arg(short = 'V', long, global = true, action = ArgAction::Version, hide_short_help = true)]
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

/// Finds the value of `--color` without parsing the command line, since the help and usage errors need it earlier.
pub(crate) fn color_choice(words: impl Iterator<Item = OsString>) -> ColorChoice {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let value =
        words.iter().enumerate().find_map(|(index, word)| match word.strip_prefix("--color")? {
            "" => words.get(index + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        });
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or_default()
}

/// State of the page cache before the epochs.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = STORAGE)]
pub(crate) struct CacheArguments {
    /// Drop the dataset from the page cache before each epoch.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Read the dataset into the page cache before the run.
    #[arg(long, conflicts_with = "cold", hide_short_help = true)]
    pub(crate) warm: bool,
}

impl CacheArguments {
    /// The cache policy for a plan.
    pub(crate) fn cache(self) -> Cache {
        match (self.cold, self.warm) {
            (true, _) => Cache::Cold,
            (false, true) => Cache::Warm,
            (false, false) => Cache::AsIs,
        }
    }
}

/// Parses a workload, which may have Hydra's form `workload=NAME`, or an override.
fn parse_workload(text: &str) -> Result<String, Infallible> {
    text.strip_prefix(HYDRA_WORKLOAD).map_or_else(|| parse_override(text), |name| Ok(name.into()))
}

/// Completes the key of an override that lacks its section or is the name that another program uses.
fn parse_override(text: &str) -> Result<String, Infallible> {
    Ok(with_full_key(text).map_or_else(|| text.into(), |(completed, _)| completed))
}

/// Prints a note for each override whose key was completed.
pub(crate) fn note_completed_keys(matches: &ArgMatches) {
    let typed = ["workload", "overrides"].map(|id| matches.try_get_raw(id).ok().flatten());
    let typed = typed.into_iter().flatten().flatten().map(|text| text.to_string_lossy());
    let completed = typed.filter_map(|text| Some((with_full_key(&text)?.1, text)));
    for (key, text) in completed.collect::<BTreeMap<_, _>>() {
        messages::note(format!("note: `{text}` sets `{key}`"));
    }
}

/// The workload, its overrides and scale, and the folder of its data.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataArguments {
    /// Bundled workload (`feedrate list`), YAML file or run folder.
    #[arg(required_unless_present = "data", default_value = "", hide_default_value = true, value_parser = parse_workload)]
    pub(crate) workload: String,
    /// Settings of the workload, such as `train.epochs=2`.
    #[arg(value_name = "KEY=VALUE", allow_hyphen_values = false, value_parser = parse_override)]
    pub(crate) overrides: Vec<String>,
    /// Accelerators [default: the workload's].
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count::<u32>, help_heading = WORKLOAD)]
    pub(crate) accelerators: Option<u32>,
    /// Fraction of the data to use.
    #[arg(long, value_name = "F", value_parser = parse_fraction, default_value_t = 1.0, help_heading = WORKLOAD)]
    pub(crate) scale: f64,
    /// Use only this fraction of each sample's bytes. The results are then marked as doubtful.
    #[arg(long, value_name = "F", value_parser = parse_fraction, default_value_t = 1.0, help_heading = WORKLOAD, hide_short_help = true)]
    pub(crate) shrink_records: f64,
    /// Folder of the datasets, on the storage to test.
    #[arg(long, value_name = "DIR", help_heading = STORAGE)]
    pub(crate) data: Option<PathBuf>,
    /// Read files in the data folder that feedrate did not generate; a few are checked first.
    #[arg(long, help_heading = STORAGE, hide_short_help = true)]
    pub(crate) foreign: bool,
    /// Print one JSON object on stdout.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Time of `${now:…}` in the workload, in seconds since 1970, for runs of a study.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, hide = true)]
    pub(crate) now: Option<i64>,
    /// Write the progress line to this file, for the parent process.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) live_file: Option<PathBuf>,
}

impl DataArguments {
    /// Converts the arguments into a request.
    pub(crate) fn request(&self) -> Request {
        Request {
            workload: self.workload.clone(),
            overrides: self.overrides.clone(),
            accelerators: self.accelerators,
            scale: self.scale,
            shrink_records: self.shrink_records,
            data: self.data.clone(),
            foreign: self.foreign,
            now_s: self.now,
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

    /// Listener that prints messages and shows progress.
    pub(crate) fn listener(&self) -> Terminal {
        Terminal::new(self.progress())
    }
}

/// Options for settings of the training loop, named as in training scripts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StepArguments {
    /// Compute time per step, such as `50ms`.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, help_heading = WORKLOAD)]
    compute: Option<f64>,
    /// Samples per batch (`reader.batch_size`).
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>, help_heading = WORKLOAD)]
    pub(crate) batch: Option<u64>,
    /// Reading threads, as PyTorch's `num_workers`.
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>, help_heading = WORKLOAD)]
    pub(crate) workers: Option<u64>,
}

impl StepArguments {
    /// Turns the options into overrides, and clears them.
    pub(crate) fn take_overrides(&mut self) -> impl Iterator<Item = String> {
        let given = std::mem::take(self);
        let compute = given.compute.map(|seconds| format!("train.computation_time={seconds}"));
        let batch = given.batch.map(|batch| format!("reader.batch_size={batch}"));
        let workers = given.workers.map(|workers| format!("reader.read_threads={workers}"));
        [compute, batch, workers].into_iter().flatten()
    }
}

/// Options for runs of several processes, which a launcher starts.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "MPI")]
pub(crate) struct LaunchArguments {
    /// Emulated accelerators per process under a launcher such as mpirun or srun [default: 1].
    #[arg(long, value_name = "K", value_parser = parse_count::<u32>, conflicts_with = "accelerators", hide_short_help = true)]
    pub(crate) accelerators_per_rank: Option<u32>,
    /// MPI library to load under a launcher [default: search for one].
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) mpi_library: Option<PathBuf>,
    /// Time to wait for other processes in a step. Then the missing processes are reported.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "600s", hide_short_help = true)]
    pub(crate) rank_timeout: f64,
}

impl LaunchArguments {
    /// Converts the arguments into options. Adds the rank and size that the launcher gave this process.
    pub(crate) fn options(&self) -> LaunchOptions {
        LaunchOptions {
            launched: crate::launched(),
            accelerators_per_rank: self.accelerators_per_rank,
            mpi_library: self.mpi_library.clone(),
            rank_timeout_s: self.rank_timeout,
        }
    }
}

/// Options of `A` that the user gave and that differ from the defaults, as `--name` and value, to pass on to another command.
pub(crate) fn given_options<A: Args>(matches: &ArgMatches) -> Vec<(String, Option<String>)> {
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
            if defaults.iter().any(|default| is_equal(value, default)) {
                continue;
            }
            given.push((name.clone(), Some(value.to_string_lossy().into_owned())));
        }
    }
    given
}

/// Whether two values are equal as text or as numbers.
fn is_equal(value: &OsStr, default: &OsStr) -> bool {
    let number = |text: &OsStr| text.to_str()?.parse::<f64>().ok();
    value == default || (number(value).is_some() && number(value) == number(default))
}

/// Parses a fraction, such as `0.05`.
fn parse_fraction(text: &str) -> Result<f64, String> {
    let percent = || text.strip_suffix('%')?.trim().parse::<f64>().ok();
    text.parse().map_err(|_| match percent() {
        Some(percent) => format!("write `{}`", units::round_noise(percent / 100.0)),
        None => "write a fraction, such as `0.05`".into(),
    })
}

/// Parses a size with its unit. A number alone, including `1e9`, is refused, because it is more often meant in GB or GiB than in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let is_number_alone = text.trim().parse::<f64>().is_ok();
    if is_number_alone || !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return Err("write a size with its unit, as in `256GiB` or `200GB`".into());
    }
    let found = units::parse_bytes(text).filter(|&bytes| bytes >= 1.0);
    found.map(|bytes| bytes as u64).ok_or_else(|| "write a size, as in `256GiB` or `200GB`".into())
}

/// Parses a number of things, of which there is at least one.
pub(crate) fn parse_count<T: TryFrom<u64> + ToString>(text: &str) -> Result<T, String> {
    if text.parse() == Ok(0_u64) {
        return Err("the smallest number is 1".into());
    }
    if let Some(count) = text.parse().ok().and_then(|count: u64| T::try_from(count).ok()) {
        return Ok(count);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the number is too large".into());
    }
    let whole = units::parse_bytes(text).filter(|number| (1.0..1e15).contains(number));
    let count = whole.and_then(|number| T::try_from(number as u64).ok());
    Err(match count {
        Some(count) if !text.contains('.') => {
            format!("it is not a number without a unit: write `{}`", count.to_string())
        }
        _ => "it is not a whole number".into(),
    })
}

/// Finds a metric by its name.
pub(crate) fn metric(name: &str) -> Result<&'static Metric, String> {
    Metric::find(name).map_err(|error| format!("{error}: {}", error.hint()))
}

/// Parser for the name of one of `all`. The help lists each name with its meaning.
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

/// Name of an enum's value on the command line.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}
