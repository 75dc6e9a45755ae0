//! `feedrate slurm`: writes a batch script that runs a workload or a study. It calls no program of Slurm, since the script may be for another
//! machine.

mod script;
mod study;

use super::run::{RunArguments, SEPARATE_CALIBRATION};
use super::study::StudyLaunch;
use crate::cli::{DataArguments, LaunchArguments, given_options, parse_count};
use crate::exit::Exit;
use crate::messages::write_or_print;
use crate::progress::TERMINAL;
use clap::{Arg, ArgMatches, Args, ValueEnum};
use feedrate_results::place::model_name;
use feedrate_session::dlio::takes_precedence;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, is_file, resolve};
use feedrate_session::{catalog, dataset, launch};
use feedrate_spec::escape::bash_word;
use feedrate_spec::plan::{self, Duration};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use script::{Job, launch_function, results_folder};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Ratio of the time limit to the estimated time.
const MARGIN: f64 = 2.0;
/// Time added to the limit, in seconds, for slow starts, cold caches and job steps that wait in a queue.
const MARGIN_S: f64 = 600.0;

/// Help heading of the options for any job.
const JOB: &str = "Job";
/// Help heading of the options for the job of a workload.
const JOB_OF_WORKLOAD: &str = "Job of a workload";

/// `feedrate slurm`. Options that it shares with `run` and `study run` are passed on to the job.
#[derive(Debug, Args)]
#[command(
    after_help = "\
The options of `run`, or for a study of `study run`, are passed on; `--help-all` lists them.

Examples:
  feedrate slurm unet3d_h100 --nodes 4 --tasks-per-node 8 -o job.sh
  feedrate slurm study.csv --time 8:00:00 --nodes 4 -o job.sh",
    mut_args(adapt_option)
)]
pub(crate) struct SlurmArguments {
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    batch: BatchArguments,
    #[command(flatten)]
    workload_job: WorkloadJobArguments,
    #[command(flatten)]
    study_job: StudyJobArguments,
}

/// Adapts the options of `run` for the help: the workload may also be a study, and passed-on options are rare here.
fn adapt_option(argument: Arg) -> Arg {
    let is_workload = argument.get_id() == "workload";
    let heading = argument.get_help_heading().unwrap_or_default();
    let is_passed_on = ![JOB, JOB_OF_WORKLOAD].contains(&heading) && !argument.is_positional();
    let argument = argument.hide_short_help(is_passed_on);
    if is_workload { argument.value_name("WORKLOAD|STUDY.csv") } else { argument }
}

/// Options of the job of a workload.
#[derive(Debug, Args)]
#[command(next_help_heading = JOB_OF_WORKLOAD)]
struct WorkloadJobArguments {
    /// Run `dlio_benchmark` instead of `feedrate`.
    #[arg(long)]
    dlio: bool,
    /// Total storage rate of all nodes, for the time estimate.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, default_value = "500MB/s")]
    storage_rate: f64,
    /// Launcher of the processes.
    #[arg(long, value_enum, default_value_t = SlurmLauncher::Srun)]
    launcher: SlurmLauncher,
}

/// Options of the job of a study.
#[derive(Debug, Args)]
#[command(next_help_heading = "Job of a study")]
struct StudyJobArguments {
    /// Also run rows that failed before.
    #[arg(long)]
    retry: bool,
    #[command(flatten)]
    launch: StudyLaunch,
}

/// Slurm's options for any job.
#[derive(Debug, Args)]
#[command(next_help_heading = JOB)]
pub(super) struct BatchArguments {
    /// Write the script to this file instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// Partition of the cluster [default: the cluster's].
    #[arg(long, value_name = "NAME", value_parser = parse_word)]
    partition: Option<String>,
    /// Account to charge.
    #[arg(long, value_name = "NAME", value_parser = parse_word)]
    account: Option<String>,
    /// Number of nodes.
    #[arg(long, value_name = "N", value_parser = parse_nonzero, default_value_t = NonZeroU32::MIN)]
    nodes: NonZeroU32,
    /// Time limit in Slurm's format [default for a workload: twice the estimated time plus ten minutes].
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Submit an array of this many jobs, which run one after another. For a study, each makes one run.
    #[arg(long, value_name = "N", value_parser = parse_nonzero)]
    array: Option<NonZeroU32>,
    /// Processes per node.
    #[arg(long, value_name = "N", value_parser = parse_nonzero, default_value_t = NonZeroU32::MIN)]
    tasks_per_node: NonZeroU32,
    /// Cores per process [default: the cluster's, usually 1].
    #[arg(long, value_name = "N", value_parser = parse_nonzero)]
    cpus_per_task: Option<NonZeroU32>,
    /// Module to load. May be repeated.
    #[arg(long = "module", value_name = "NAME", value_parser = parse_modules)]
    modules: Vec<String>,
    /// Interface of srun: pmix for Open MPI, pmi2 for MPICH and its family.
    #[arg(long, value_enum, default_value_t = SlurmMpi::Pmix)]
    mpi: SlurmMpi,
    /// Working folder of the job [default: where `sbatch` is called].
    #[arg(long, value_name = "DIR", value_parser = parse_folder)]
    chdir: Option<PathBuf>,
}

fn parse_word(text: &str) -> Result<String, &'static str> {
    let is_word =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !"\"'\\#".contains(c));
    if is_word { Ok(text.into()) } else { Err("expected a single word without quotes") }
}

fn parse_modules(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("expected the name of a module") } else { Ok(text.into()) }
}

fn parse_folder(text: &str) -> Result<PathBuf, &'static str> {
    if text.is_empty() {
        return Err("expected a folder");
    }
    if text.contains(['"', '\\', '\n']) {
        return Err("a folder in a batch script cannot contain quotes, backslashes or line breaks");
    }
    Ok(text.into())
}

fn parse_rate(text: &str) -> Result<f64, &'static str> {
    let rate = units::parse_bytes_per_second(text).filter(|rate| *rate >= 1.0);
    rate.ok_or("write a rate as `500MB/s` or `2GiB/s`")
}

/// Launchers of a job's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SlurmLauncher {
    /// Slurm's launcher.
    Srun,
    /// Launcher of the MPI library.
    Mpirun,
}

/// Interfaces between Slurm and MPI libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SlurmMpi {
    /// For MPICH and its derivatives.
    Pmi2,
    /// For Open MPI.
    Pmix,
}

/// Writes the script. Options for the commands in the job are taken from `matches`.
pub(super) fn slurm(arguments: &SlurmArguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let SlurmArguments { run, batch, workload_job, .. } = arguments;
    if run.client.is_some() {
        return refuse(
            "`--client` would run your code in each start of the job",
            SEPARATE_CALIBRATION,
        );
    }
    if Path::new(&run.data.workload).extension().is_some_and(|extension| extension == "csv") {
        return study::slurm(arguments, matches);
    }
    if let Some((option, _)) = given_options::<StudyJobArguments>(matches).first() {
        return refuse(
            format!("`{option}` is only for the job of a study"),
            "give the CSV of a study, or leave the option out",
        );
    }
    if run.run_dir.is_some() || run.study.is_some() {
        return refuse(
            "`--run-dir` cannot be used, since a job may be started several times",
            "give `--results`: each start creates a folder there",
        );
    }
    let tasks = batch.tasks()?;
    if workload_job.dlio {
        refuse_unknown_to_dlio(&run.data.workload, matches)?;
    }
    let per_rank = run.launch.accelerators_per_rank;
    let accelerators = launch::accelerators(tasks, run.data.accelerators, per_rank)?;
    let accelerators = if workload_job.dlio { accelerators.or(Some(tasks)) } else { accelerators };
    let request = Request { accelerators, ..run.request(tasks) };
    let resolved = resolve(&request)?;
    resolved.report_warnings(&TERMINAL);
    let (limit, limit_comment) = time_limit(arguments, &resolved)?;
    let processes = match tasks {
        1 => "one process".into(),
        count => format!("{} processes", units::count(count.into())),
    };
    let root = resolved.results_root(run.results.as_deref())?;
    let mut lines = vec![
        launch_function(batch, workload_job.launcher, tasks),
        results_folder(&bash_word(&root.display().to_string())),
    ];
    if workload_job.dlio {
        lines.extend(dlio_lines(arguments, &resolved, matches));
    } else {
        lines.extend(feedrate_lines(arguments, &resolved, matches));
    }
    batch.write(&Job {
        batch,
        name: &resolved.plan.workload,
        time: &limit,
        array: batch.array,
        about: vec![
            format!(
                "Runs the workload {} with {} in {processes}. Written by feedrate {}; submit it by `sbatch THIS_FILE`.",
                model_name(&run.data.workload),
                units::counted(resolved.plan.accelerators.into(), "accelerator"),
                env!("CARGO_PKG_VERSION"),
            ),
            limit_comment,
        ],
        requeued: "A requeued job appends to its output file, reuses generated files, and writes its results next to the earlier ones.",
        signals_script: workload_job.launcher == SlurmLauncher::Mpirun,
        lines,
    })
}

impl BatchArguments {
    /// Number of processes of the job.
    fn tasks(&self) -> Result<u32, Refusal> {
        self.nodes
            .checked_mul(self.tasks_per_node)
            .map(u32::from)
            .ok_or_else(|| Refusal::without_hint("`--nodes` × `--tasks-per-node` is too large"))
    }

    /// Path of a file for the script, absolute if `--chdir` is given.
    fn file_word(&self, file: &Path) -> String {
        match std::path::absolute(file) {
            Ok(path) if self.chdir.is_some() => bash_word(&path.display().to_string()),
            _ => bash_word(&file.display().to_string()),
        }
    }

    /// Writes the script to the `--output` file, or to stdout.
    fn write(&self, job: &Job) -> anyhow::Result<Exit> {
        write_or_print(self.output.as_deref(), &job.script(), self.force)?;
        Ok(Exit::Fine)
    }
}

/// Refuses options and workloads that `dlio_benchmark` cannot run.
fn refuse_unknown_to_dlio(workload: &str, matches: &ArgMatches) -> Result<(), Refusal> {
    let known = given_options::<LaunchArguments>(matches);
    let unknown = given_options::<RunArguments>(matches).into_iter().find(|option| {
        !known.contains(option) && !["--data", "--results"].contains(&option.0.as_str())
    });
    if let Some((flag, _)) = unknown {
        return refuse(
            format!("`dlio_benchmark` has no `{flag}`"),
            "leave it out, or leave out `--dlio`",
        );
    }
    if !is_file(workload) || !takes_precedence(&model_name(workload)) {
        return Ok(());
    }
    refuse(
        format!("`dlio_benchmark` would use its own workload of this name instead of `{workload}`"),
        "rename the file",
    )
}

/// The time limit, and a comment on how it was determined.
fn time_limit(
    arguments: &SlurmArguments,
    resolved: &Resolved,
) -> Result<(String, String), Refusal> {
    if let Some(limit) = &arguments.batch.time {
        parse_time_limit(limit)?;
        return Ok((limit.clone(), "The time limit was given by `--time`.".into()));
    }
    let rate = arguments.workload_job.storage_rate;
    let estimate = catalog::estimate(&resolved.plan);
    let mut duration = plan::duration(&resolved.plan, &estimate, rate);
    if !generates_files(resolved) {
        duration.generation_s = 0.0;
    }
    let minutes = ((duration.total_s() * MARGIN + MARGIN_S) / 60.0).ceil() as u64;
    let limit = format!("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
    Ok((limit, limit_comment(&duration, rate)))
}

/// Parses a number of nodes, jobs, processes or cores.
fn parse_nonzero(text: &str) -> Result<NonZeroU32, String> {
    Ok(NonZeroU32::new(parse_count(text)?).unwrap_or(NonZeroU32::MIN))
}

/// Parses a time limit of sbatch into seconds: `MINUTES[:SECONDS]`, `HOURS:MINUTES:SECONDS`, `DAYS-HOURS[:MINUTES[:SECONDS]]`.
fn parse_time_limit(limit: &str) -> Result<u64, Refusal> {
    let (units, with_colons): (&[u64], _) = match limit.split_once('-') {
        Some((days, rest)) if !days.contains(':') => {
            (&[86_400, 3600, 60, 1], format!("{days}:{rest}"))
        }
        _ if limit.matches(':').count() == 2 => (&[3600, 60, 1], limit.to_string()),
        _ => (&[60, 1], limit.to_string()),
    };
    let numbers: Option<Vec<u64>> = with_colons.split(':').map(|part| part.parse().ok()).collect();
    let seconds = numbers.filter(|numbers| numbers.len() <= units.len()).and_then(|numbers| {
        let mut parts = numbers.iter().zip(units);
        parts.try_fold(0u64, |sum, (number, unit)| sum.checked_add(number.checked_mul(*unit)?))
    });
    seconds.ok_or_else(|| {
        Refusal::new(
            format!("`--time {limit}` is not a time limit"),
            "write minutes, `HH:MM:SS` or `DAYS-HH:MM:SS`",
        )
    })
}

/// Comment on the estimated time and the limit.
fn limit_comment(duration: &Duration, rate: f64) -> String {
    let phases = [
        ("generation", duration.generation_s),
        ("training", duration.training_s),
        ("evaluation", duration.evaluation_s),
        ("checkpoints", duration.checkpoints_s),
    ];
    let needed = phases.iter().filter(|(_, seconds)| *seconds > 0.0);
    let texts: Vec<String> =
        needed.map(|(name, seconds)| format!("{name} {}", units::seconds(*seconds))).collect();
    let estimate = if texts.is_empty() { "almost nothing".into() } else { texts.join(", ") };
    format!(
        "Estimated time: {estimate}, at a storage rate of {}. The limit is twice that plus {}.",
        units::bytes_per_second(rate),
        units::seconds(MARGIN_S)
    )
}

/// Whether files are generated before the run.
fn generates_files(resolved: &Resolved) -> bool {
    let plan = &resolved.plan;
    dataset::is_in_folder(plan) && !resolved.workload.dataset_foreign && !plan.is_checkpoint_only()
}

/// The workload as a word of bash. The path of a file is valid in the job's working folder.
fn workload_word(arguments: &SlurmArguments) -> String {
    let workload = &arguments.run.data.workload;
    if is_file(workload) {
        arguments.batch.file_word(Path::new(workload))
    } else {
        bash_word(workload)
    }
}

/// Options as words of bash, with `separator` between name and value.
fn option_words(
    options: &[(String, Option<String>)],
    separator: char,
) -> impl Iterator<Item = String> {
    options.iter().map(move |(name, value)| match value {
        Some(value) => format!("{name}{separator}{}", bash_word(value)),
        None => name.clone(),
    })
}

/// Lines of the script that run `feedrate`.
fn feedrate_lines(
    arguments: &SlurmArguments,
    resolved: &Resolved,
    matches: &ArgMatches,
) -> Vec<String> {
    let mut shared = given_options::<DataArguments>(matches);
    shared.extend(given_options::<LaunchArguments>(matches));
    let mut run_only = given_options::<RunArguments>(matches);
    run_only.retain(|option| !shared.contains(option) && option.0 != "--results");
    let mut common = vec![workload_word(arguments)];
    common.extend(arguments.run.data.overrides.iter().map(|text| bash_word(text)));
    common.extend(option_words(&shared, ' '));
    let common = common.join(" ");
    let mut run = vec!["--results \"$results\"".to_string()];
    run.extend(option_words(&run_only, ' '));
    let mut lines = vec!["feedrate=${FEEDRATE:-feedrate}".to_string()];
    if generates_files(resolved) {
        lines.push("# Files from an earlier start of the job are kept.".into());
        lines.push(format!("launch \"$feedrate\" generate {common}"));
    }
    lines.push(format!("launch \"$feedrate\" run {common} {}", run.join(" ")));
    lines
}

/// Lines of the script that run `dlio_benchmark`.
fn dlio_lines(
    arguments: &SlurmArguments,
    resolved: &Resolved,
    matches: &ArgMatches,
) -> Vec<String> {
    let data = &arguments.run.data;
    let name = model_name(&data.workload);
    let mut lines = vec!["dlio_benchmark=${DLIO_BENCHMARK:-dlio_benchmark}".to_string()];
    let mut options: Vec<String> =
        option_words(&given_options::<LaunchArguments>(matches), ' ').collect();
    if is_file(&data.workload) {
        lines.push("# DLIO looks for user workloads in a folder named `workload`.".into());
        lines.push("mkdir -p \"$results/config/workload\"".into());
        let copy = format!("\"$results\"/config/workload/{}", bash_word(&format!("{name}.yaml")));
        lines.push(format!("cp {} {copy}", workload_word(arguments)));
        options.push("--config-dir \"$results/config\"".into());
    }
    options.push(bash_word(&format!("workload={name}")));
    options.extend(data.overrides.iter().map(|text| bash_word(&dlio_override(text))));
    if let Some(folder) = &data.data {
        options.push(bash_word(&format!("++workload.dataset.data_folder={}", folder.display())));
    }
    let options = options.join(" ");
    let has_output = resolved.workload.output_folder.is_some();
    let command = |folder: &str, workflow: &str| {
        let mut text = format!("launch \"$dlio_benchmark\" {options} ++hydra.run.dir={folder}");
        if has_output {
            text = format!("{text} ++workload.output.folder={folder}");
        }
        format!("{text} ++workload.workflow.generate_data={workflow}")
    };
    if generates_files(resolved) {
        let only = "True ++workload.workflow.train=False ++workload.workflow.checkpoint=False";
        lines.push("# Files from an earlier start of the job are kept.".into());
        lines.push(command("\"$results/generate\"", only));
    }
    lines.push(command("\"$results/run\"", "False"));
    lines
}

/// An override in DLIO's syntax, which works whether or not the workload has the key.
fn dlio_override(text: &str) -> String {
    let (sign, key) = match text.strip_prefix('~') {
        Some(key) => ("~", key),
        None => ("++", text.trim_start_matches('+')),
    };
    format!("{sign}workload.{}", key.strip_prefix("workload.").unwrap_or(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_have_sbatchs_format() {
        for (limit, seconds) in [
            ("90", Some(5400)),
            ("1:30", Some(90)),
            ("2:00:05", Some(7205)),
            ("1-2", Some(93_600)),
            ("1-02:03:04", Some(93_784)),
            ("soon", None),
            ("", None),
            ("1:2:3:4", None),
        ] {
            assert_eq!(parse_time_limit(limit).ok(), seconds, "{limit}");
        }
    }

    #[test]
    fn overrides_have_dlios_syntax() {
        for (text, expected) in [
            ("train.epochs=2", "++workload.train.epochs=2"),
            ("+train.epochs=2", "++workload.train.epochs=2"),
            ("++workload.train.epochs=2", "++workload.train.epochs=2"),
            ("~train.epochs", "~workload.train.epochs"),
        ] {
            assert_eq!(dlio_override(text), expected);
        }
    }
}
