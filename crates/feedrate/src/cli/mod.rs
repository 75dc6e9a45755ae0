//! The command line: every command and flag, with its help.

mod study;
mod analyze;
mod compare;
mod plot;
mod report;
mod scale;

pub(crate) use analyze::AnalyzeArguments;
pub(crate) use compare::CompareArguments;
pub(crate) use plot::PlotArguments;
pub(crate) use report::ReportArguments;
pub(crate) use scale::{ACCELERATORS, ScaleArguments};
pub(crate) use study::{
    Blocks, Cache, Datasets, Order, StudyCommand, StudyHow, StudyNewArguments, StudyRunArguments,
    StudyShowArguments, StudySlurmArguments, StudyStatusArguments,
};

use clap::{Args, Parser, Subcommand};
use feedrate_spec::plan;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Can this storage feed these accelerators, and if not, why not and what would help?
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 the run failed; 2 bad usage or workload; 3 done, but what was asked for does not hold; 130 interrupted.";

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate what is missing, train, and say whether the storage kept up.
    Run(RunArguments),
    /// Make the dataset only.
    Generate(GenerateArguments),
    /// Show what would run: files, bytes, steps, memory, doubts.
    Plan(DataArguments),
    /// Read the whole dataset and compare every byte with what generation wrote.
    Verify(DataArguments),
    /// Summarise a finished run again from its record.
    Show(ShowArguments),
    /// Write the report that DLIO's postprocessor makes of a run.
    Postprocess(PostprocessArguments),
    /// Make a study: a design of many runs, and run what is pending in it.
    #[command(subcommand)]
    Study(StudyCommand),
    /// Recompute the numbers of result folders, ours, DLIO's or MLPerf Storage's, and say what is wrong with them.
    Analyze(AnalyzeArguments),
    /// Say whether two results, or two studies, are the same, with intervals and an exit code.
    Compare(CompareArguments),
    /// Say what results show, what is doubtful about them and how they were made, as a page, a document or tables.
    Report(ReportArguments),
    /// Find the largest number of accelerators that the storage feeds.
    Scale(ScaleArguments),
    /// Draw a plot of runs or of a study, as SVG or PNG.
    Plot(PlotArguments),
    /// List workloads, formats, storages, engines, loaders, launches, designs, plots, keys, metrics or doubts.
    List(ListArguments),
    /// Describe one workload, format, storage, loader, key, metric or doubt.
    Describe(DescribeArguments),
    /// Show this machine as a table of component and specification.
    System(SystemArguments),
    /// Write a batch script for Slurm that generates and runs a workload.
    Slurm(SlurmArguments),
    /// Run a script and end all that it started with it; the end of stdin is the word to stop.
    #[command(hide = true)]
    Supervise(SuperviseArguments),
    /// Measure a checksum on this machine, for the benchmarks.
    #[command(hide = true)]
    BenchCrc(BenchArguments),
}

/// The workload, the folder of its data, its scale.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataArguments {
    /// A bundled workload's name (`feedrate list workloads`), or a YAML file.
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

/// `feedrate generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) launch: LaunchArguments,
}

/// `feedrate run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) launch: LaunchArguments,
    /// Folder that results go to [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Folder of this run's own results, which holds none yet [default: one called after the time, under the results].
    #[arg(long, value_name = "DIR", conflicts_with = "results")]
    pub(crate) run_dir: Option<PathBuf>,
    /// The run's place in its study, as JSON, for its record.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) study: Option<PathBuf>,
    /// Drop the dataset from the page cache before each epoch, and check that it is gone.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Read the dataset into the page cache before the first epoch, and check that it is there.
    #[arg(long, conflicts_with = "cold")]
    pub(crate) warm: bool,
    /// Compare every byte read with what generation wrote.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Exit with 3 if au_all_steps is below this percentage.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) fail_below_au: Option<f64>,
}

impl RunArguments {
    /// Treatment of the page cache.
    pub(crate) fn cache(&self) -> plan::Cache {
        match (self.cold, self.warm) {
            (true, _) => plan::Cache::Cold,
            (false, true) => plan::Cache::Warm,
            (false, false) => plan::Cache::AsIs,
        }
    }
}

/// How the processes of a run find each other; without a launcher there is one.
#[derive(Debug, Args)]
pub(crate) struct LaunchArguments {
    /// Emulated accelerators of each process that a launcher such as mpirun started [default: 1].
    #[arg(long, value_name = "K", conflicts_with = "accelerators")]
    pub(crate) accelerators_per_rank: Option<u32>,
    /// The MPI library to open under a launcher [default: the one that is found].
    #[arg(long, value_name = "PATH")]
    pub(crate) mpi_library: Option<PathBuf>,
    /// Seconds that a process waits for the others in a step before it says who is missing.
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    pub(crate) rank_timeout: f64,
}

/// `feedrate show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The folder of a run.
    pub(crate) run: PathBuf,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `feedrate postprocess`.
#[derive(Debug, Args)]
pub(crate) struct PostprocessArguments {
    /// The folder of a run.
    pub(crate) run: PathBuf,
    /// The report's file, `-` for stdout [default: `DLIO_WORKLOAD_report.txt` in the run's folder].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `feedrate list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Kind of thing to list.
    #[arg(value_enum, default_value_t = Family::Workloads)]
    pub(crate) family: Family,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `feedrate describe`.
#[derive(Debug, Args)]
pub(crate) struct DescribeArguments {
    /// A name from any list, or `FAMILY NAME`.
    #[arg(required = true, num_args = 1..=2)]
    pub(crate) name: Vec<String>,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `feedrate system`.
#[derive(Debug, Args)]
pub(crate) struct SystemArguments {
    /// A folder whose storage is described.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) data: PathBuf,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `feedrate slurm`. What it shares with `run` is handed on to the job.
#[derive(Debug, Args)]
pub(crate) struct SlurmArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) batch: BatchArguments,
    /// Run `dlio_benchmark` instead of `feedrate`.
    #[arg(long)]
    pub(crate) dlio: bool,
    /// Time limit, as Slurm writes it [default: an estimate from the plan, doubled, and ten minutes].
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Storage rate assumed for that estimate, all nodes together.
    #[arg(long, value_name = "RATE", default_value = "500MB/s")]
    pub(crate) storage_rate: String,
    /// Launcher of the processes.
    #[arg(long, value_enum, default_value_t = SlurmLauncher::Srun)]
    pub(crate) launcher: SlurmLauncher,
    /// Repeat the job so often, one after another, as an array.
    #[arg(long, value_name = "N")]
    pub(crate) array: Option<NonZeroU32>,
}

/// Options for Slurm, whatever runs in the job.
#[derive(Debug, Args)]
pub(crate) struct BatchArguments {
    /// Write the script to this file instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Partition [default: the cluster's].
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Account that is charged.
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Nodes.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    pub(crate) nodes: NonZeroU32,
    /// Processes on each node.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    pub(crate) tasks_per_node: NonZeroU32,
    /// Cores of each process [default: the cluster's, mostly 1].
    #[arg(long, value_name = "N")]
    pub(crate) cpus_per_task: Option<NonZeroU32>,
    /// A module to load; may be given several times.
    #[arg(long = "module", value_name = "NAME")]
    pub(crate) modules: Vec<String>,
    /// How srun and the MPI library speak: pmix for Open MPI, pmi2 for MPICH and its family.
    #[arg(long, value_enum, default_value_t = SlurmMpi::Pmix)]
    pub(crate) mpi: SlurmMpi,
    /// Folder the job starts in [default: the one `sbatch` is called in].
    #[arg(long, value_name = "DIR")]
    pub(crate) chdir: Option<PathBuf>,
}

/// Launchers of a job's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SlurmLauncher {
    /// Slurm itself.
    Srun,
    /// The MPI's own.
    Mpirun,
}

/// Slurm's ways to help MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SlurmMpi {
    /// For MPICH and its family.
    Pmi2,
    /// For Open MPI.
    Pmix,
}

/// `feedrate supervise`.
#[derive(Debug, Args)]
pub(crate) struct SuperviseArguments {
    /// Command that bash runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// Run by bash when the script did not end well, and all that it started is gone.
    #[arg(long, value_name = "FILE")]
    pub(crate) cleanup: Option<PathBuf>,
    /// Output is added to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdout: PathBuf,
    /// Messages are added to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) stderr: PathBuf,
    /// Locked while anything that was started lives.
    #[arg(long, value_name = "FILE")]
    pub(crate) running: PathBuf,
    /// Time from the word to stop until what is left is killed.
    #[arg(long, value_name = "SECONDS", default_value_t = feedrate_study::supervise::GRACE.as_secs_f64())]
    pub(crate) grace: f64,
}

/// `feedrate bench-crc`.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// How long to measure.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Checksum to measure.
    #[arg(long, value_enum, default_value_t = Checksum::Crc32)]
    pub(crate) checksum: Checksum,
}

/// Checksums that formats use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Checksum {
    /// CRC-32, of zip and so of npz.
    Crc32,
    /// CRC-32C, of tfrecord.
    Crc32c,
}

/// Things that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Family {
    /// Bundled workloads.
    Workloads,
    /// File formats.
    Formats,
    /// Storages.
    Storages,
    /// Engines that read files.
    Engines,
    /// Loaders.
    Loaders,
    /// Formats of checkpoints.
    Checkpoints,
    /// Ways of computing.
    Computes,
    /// Ways of communicating.
    Comms,
    /// Ways of starting the runs of a study.
    Launches,
    /// Designs of studies.
    Designs,
    /// Plots of runs and studies.
    Plots,
    /// Workload keys.
    Keys,
    /// Metrics.
    Metrics,
    /// Doubts.
    Doubts,
}
