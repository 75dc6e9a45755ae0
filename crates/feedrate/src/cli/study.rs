//! Arguments of `feedrate study`. Nothing is checked here that clap does not check.

use super::BatchArguments;
use clap::{Args, Subcommand, ValueEnum};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Commands about studies.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Write the runs of a design as CSV, to be run by `feedrate study run`.
    New(StudyNewArguments),
    /// Run what is pending in a study, and mark it as done.
    Run(StudyRunArguments),
    /// Write a batch script for Slurm that runs a study, or as many of its runs as its time allows.
    Slurm(StudySlurmArguments),
    /// Show how far a study is: rows, factors, models and processes, time left.
    Status(StudyStatusArguments),
    /// Show runs of a study: what they came to, and every attempt at them.
    Show(StudyShowArguments),
}

/// `feedrate study status`.
#[derive(Debug, Args)]
pub(crate) struct StudyStatusArguments {
    /// The study's CSV.
    pub(crate) study: PathBuf,
    /// Every row, however many there are.
    #[arg(long)]
    pub(crate) all: bool,
    /// How well each experiment's response is known, and how many runs it takes until half its 95 % interval is so small a share of it: `ci=2%`.
    #[arg(long, value_name = "PRECISION")]
    pub(crate) until: Option<String>,
    /// The response of `--until`.
    #[arg(long, value_name = "NAME", default_value = "au_all_steps_percent", requires = "until")]
    pub(crate) response: String,
    /// The difference between two experiments that their runs shall tell, with `--until`.
    #[arg(long, value_name = "SHARE", default_value = "5%", requires = "until")]
    pub(crate) difference: String,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `feedrate study show`.
#[derive(Debug, Args)]
pub(crate) struct StudyShowArguments {
    /// The study's CSV.
    pub(crate) study: PathBuf,
    /// Which: `#6` by place, or by model, experiment (`4_batch_size_1`) or both (`unet3d/4`), with `*`.
    #[arg(required = true)]
    pub(crate) runs: Vec<String>,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `feedrate study run`. How runs are made is kept with the study: it is said once, and holds for all of its runs.
#[derive(Debug, Args)]
pub(crate) struct StudyRunArguments {
    /// The study's CSV.
    pub(crate) study: PathBuf,
    /// Rows to run: `#6` by place, or by model, experiment (`4_batch_size_1`) or both (`unet3d/4`), with `*`. May be given several times.
    #[arg(long, value_name = "ROWS")]
    pub(crate) only: Vec<String>,
    /// Runs, at most.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Begin no run that would end later than this: `90`, `30m`, `8h`.
    #[arg(long, value_name = "TIME")]
    pub(crate) time_budget: Option<String>,
    /// Say what would run, how long it would take, and whether it fits the disk.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Run again what failed.
    #[arg(long)]
    pub(crate) retry: bool,
    /// Add replicates until half the 95 % interval of the response is so small a share of it: `ci=2%`.
    #[arg(long, value_name = "PRECISION")]
    pub(crate) until: Option<String>,
    /// The response of `--until`.
    #[arg(long, value_name = "NAME", default_value = "au_all_steps_percent", requires = "until")]
    pub(crate) response: String,
    /// Runs of an experiment, at most, with `--until`.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "until")]
    pub(crate) max_replicates: u64,
    /// What becomes of datasets that this study made.
    #[arg(long, value_enum, default_value_t = Datasets::MakeRoom)]
    pub(crate) datasets: Datasets,
    /// Wait so long before each run for disk and processors to be quiet; a run that begins in spite of noise is doubted. 0 does not look.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) quiet_wait: f64,
    #[command(flatten)]
    pub(crate) how: StudyHow,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `feedrate study slurm`. What it shares with `study run` is handed on to the job.
#[derive(Debug, Args)]
pub(crate) struct StudySlurmArguments {
    /// The study's CSV.
    pub(crate) study: PathBuf,
    /// Time limit, as Slurm writes it; `feedrate study run --dry-run` tells what a study takes.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: String,
    /// So many jobs, one after another, as an array, each of which makes one run.
    #[arg(long, value_name = "N")]
    pub(crate) array: Option<NonZeroU32>,
    /// Run again what failed.
    #[arg(long)]
    pub(crate) retry: bool,
    /// Wait so long before each run for disk and processors to be quiet [default: as of `study run`].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) quiet_wait: Option<f64>,
    #[command(flatten)]
    pub(crate) batch: BatchArguments,
    #[command(flatten)]
    pub(crate) how: StudyHow,
}

/// How the runs of a study are made.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How runs are made, the same for all of a study")]
pub(crate) struct StudyHow {
    /// Folder that results go to [default: results].
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Folder that datasets lie in [default: each workload's `dataset.data_folder`].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Share of the files and samples to use, of rows that say nothing else [default: 1].
    #[arg(long, value_name = "F")]
    pub(crate) scale: Option<f64>,
    /// Share of each record's bytes to use; this changes the workload, and is doubted [default: 1].
    #[arg(long, value_name = "F")]
    pub(crate) shrink_records: Option<f64>,
    /// Page cache before each run, of rows that say nothing else [default: as-is].
    #[arg(long, value_enum)]
    pub(crate) cache: Option<Cache>,
    /// How the processes of a run are started: a name from `feedrate list launches` [default: local].
    #[arg(long, value_name = "NAME")]
    pub(crate) launch: Option<String>,
    /// A line of bash before each run: `module load openmpi`. May be given several times.
    #[arg(long, value_name = "LINE")]
    pub(crate) prologue: Vec<String>,
    /// One more argument of the launcher. May be given several times.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) launcher_argument: Vec<String>,
    /// Emulated accelerators of each process that a launcher starts [default: 1].
    #[arg(long, value_name = "K")]
    pub(crate) accelerators_per_rank: Option<u32>,
}

/// Policy for datasets that a study made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Datasets {
    /// All stay.
    Keep,
    /// All stay until their place is needed; then the one goes first that is needed least.
    MakeRoom,
    /// Each goes as soon as no pending run needs it.
    DeleteUnneeded,
}

/// The page cache before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cache {
    /// The dataset is dropped from it before each epoch, and that is checked.
    Cold,
    /// The dataset is read once before, and that is checked.
    Warm,
    /// Whatever it holds.
    AsIs,
}

/// `feedrate study new`.
#[derive(Debug, Args)]
pub(crate) struct StudyNewArguments {
    /// A design file, in TOML or YAML; without one the design is said by flags. A flag goes before what the file says.
    #[arg(value_name = "DESIGN")]
    pub(crate) file: Option<PathBuf>,
    /// The study's CSV `-` for stdout [default: the name of the design file with `.csv`, else study.csv, in this folder].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the CSV if it is there, with all that it says of runs done.
    #[arg(long)]
    pub(crate) force: bool,
    /// Kind of design: a name from `feedrate list designs`.
    #[arg(long, value_name = "NAME")]
    pub(crate) design: Option<String>,
    /// An option of the kind of design: `p=2`, `generators=D=AB,E=AC`, `points=40`. May be given several times.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,
    /// The workload of the baseline.
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) model: Option<String>,
    /// Epochs of the baseline [default: the workload's].
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<u32>,
    /// Emulated accelerators of the baseline [default: 1].
    #[arg(short = 'n', long, alias = "accelerators", value_name = "N")]
    pub(crate) processes: Option<u32>,
    /// Something the baseline sets: `reader.batch_size=4`. May be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// A factor and its levels: `reader.read_threads=1,4,8`, `processes=1,2,4`; a range is `KEY=LOW..HIGH`, with `:log` behind it
    /// on a logarithmic scale. May be given several times.
    #[arg(long = "factor", value_name = "KEY=LEVELS")]
    pub(crate) factors: Vec<String>,
    /// A command of its own for the factor `study.hook.NAME`; it finds the level in `$1`. May be given several times.
    #[arg(long = "hook", value_name = "NAME=COMMAND")]
    pub(crate) hooks: Vec<String>,
    /// Runs of each point [default: 1].
    #[arg(long, value_name = "N")]
    pub(crate) replicates: Option<u32>,
    /// Whether each replicate is a block of its own, with all points once [default: replicates].
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "replicates")]
    pub(crate) blocks: Option<Blocks>,
    /// Order of the runs in each block [default: random].
    #[arg(long, value_name = "HOW")]
    pub(crate) order: Option<Order>,
    /// Seed of the random order, and of random designs [default: 1].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// A run of the baseline at the start and the end of each block, and after every N runs, to see a drift [default: none].
    #[arg(long, value_name = "N")]
    pub(crate) sentinel: Option<u32>,
    /// Runs in the middle of all numeric factors, in each block [default: none].
    #[arg(long, value_name = "N")]
    pub(crate) centre_points: Option<u32>,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Meaning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Blocks {
    /// A replicate.
    Replicates,
    /// There is one block of all runs.
    None,
}

/// In which order runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Drawn by the seed.
    Random,
    /// As the design has them.
    Standard,
}
