//! `feedrate slurm`: a batch script that runs a workload or a study. Calls no program of Slurm: the script is for another machine.

mod script;
mod study;

use super::run::RunArguments;
use super::study::StudyStart;
use crate::cli::{DataArguments, LaunchArguments, given};
use crate::exit::Exit;
use crate::messages::write_or_print;
use crate::progress::TERMINAL;
use clap::{Arg, ArgMatches, Args, ValueEnum};
use feedrate_results::place::model_name;
use feedrate_session::dlio::takes_precedence;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, is_file, resolve};
use feedrate_session::{catalog, dataset, launch, result_folder};
use feedrate_spec::escape::bash_word;
use feedrate_spec::plan::{self, Duration};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use script::{Job, launch_function, results_folder};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The limit is so many times what was estimated,
const MARGIN: f64 = 2.0;
/// and this more: queueing of steps, caches, one slow start.
const MARGIN_S: f64 = 600.0;

/// Heading of the options of a job.
const JOB: &str = "Job";

/// `feedrate slurm`. What it shares with `run` and `study run` is handed on to the job.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  feedrate slurm unet3d_h100 --nodes 4 --tasks-per-node 8 -o job.sh
  feedrate slurm study.csv --time 8:00:00 --nodes 4 -o job.sh",
    mut_args(with_study)
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

/// Names the study too where a workload can be given.
fn with_study(argument: Arg) -> Arg {
    let is_workload = argument.get_id() == "workload";
    if is_workload { argument.value_name("WORKLOAD|STUDY.csv") } else { argument }
}

/// Options of the job of a workload.
#[derive(Debug, Args)]
#[command(next_help_heading = "Job of a workload")]
struct WorkloadJobArguments {
    /// Run `dlio_benchmark` instead of `feedrate`.
    #[arg(long)]
    dlio: bool,
    /// Storage rate of all nodes together, for the estimate of the time.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "500MB/s")]
    storage_rate: f64,
    /// Launcher of the processes.
    #[arg(long, value_enum, default_value_t = SlurmLauncher::Srun)]
    launcher: SlurmLauncher,
}

/// Options of the job of a study.
#[derive(Debug, Args)]
#[command(next_help_heading = "Job of a study")]
struct StudyJobArguments {
    /// Run again what failed.
    #[arg(long)]
    retry: bool,
    #[command(flatten)]
    start: StudyStart,
}

/// Options for Slurm, of any job.
#[derive(Debug, Args)]
#[command(next_help_heading = JOB)]
pub(super) struct BatchArguments {
    /// Write the script to this file, not to stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// Partition [default: the cluster's].
    #[arg(long, value_name = "NAME", value_parser = word)]
    partition: Option<String>,
    /// Account to charge.
    #[arg(long, value_name = "NAME", value_parser = word)]
    account: Option<String>,
    /// Nodes.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    nodes: NonZeroU32,
    /// Time limit, as Slurm writes it [default: of a workload, twice the estimate of its plan and ten minutes].
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Submit the job this often, one after another, as an array; of a study, each makes one run.
    #[arg(long, value_name = "N")]
    array: Option<NonZeroU32>,
    /// Processes on each node.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    tasks_per_node: NonZeroU32,
    /// Cores of each process [default: the cluster's, mostly 1].
    #[arg(long, value_name = "N")]
    cpus_per_task: Option<NonZeroU32>,
    /// Load this module; may be repeated.
    #[arg(long = "module", value_name = "NAME", value_parser = modules)]
    modules: Vec<String>,
    /// Interface of srun and the MPI library: pmix for Open MPI, pmi2 for MPICH and its family.
    #[arg(long, value_enum, default_value_t = SlurmMpi::Pmix)]
    mpi: SlurmMpi,
    /// Folder that the job starts in [default: where `sbatch` is called].
    #[arg(long, value_name = "DIR", value_parser = folder)]
    chdir: Option<PathBuf>,
}

fn word(text: &str) -> Result<String, &'static str> {
    let is_word =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !"\"'\\#".contains(c));
    if is_word { Ok(text.into()) } else { Err("it is no single word") }
}

fn modules(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("name a module") } else { Ok(text.into()) }
}

fn folder(text: &str) -> Result<PathBuf, &'static str> {
    if text.is_empty() {
        return Err("name a folder");
    }
    if text.contains(['"', '\\', '\n']) {
        return Err("a batch script holds no folder with quotes or backslashes in its name");
    }
    Ok(text.into())
}

fn rate(text: &str) -> Result<f64, &'static str> {
    let rate = units::parse_bytes_per_second(text).filter(|rate| *rate >= 1.0);
    rate.ok_or("write a rate as `500MB/s` or `2GiB/s`")
}

/// Launchers of a job's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SlurmLauncher {
    /// Slurm itself.
    Srun,
    /// The MPI's own.
    Mpirun,
}

/// Slurm's ways to help MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SlurmMpi {
    /// For MPICH and its family.
    Pmi2,
    /// For Open MPI.
    Pmix,
}

/// Write the script. Options for the commands in the job are taken from `matches`.
pub(super) fn slurm(arguments: &SlurmArguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let SlurmArguments { run, batch, workload_job, .. } = arguments;
    if Path::new(&run.data.workload).extension().is_some_and(|extension| extension == "csv") {
        return study::slurm(arguments, matches);
    }
    if let Some((option, _)) = given::<StudyJobArguments>(matches).first() {
        return refuse(
            format!("`{option}` is for the job of a study"),
            "name the CSV of the study, or leave it out",
        );
    }
    if run.run_dir.is_some() || run.study.is_some() {
        return refuse(
            "`--run-dir` is of one run, and a job may be started several times",
            "give `--results`: each start makes a folder of its own there",
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
    let (time, about_time) = time(arguments, &resolved)?;
    let processes = match tasks {
        1 => "one process".into(),
        many => format!("{} processes", units::count(many.into())),
    };
    let root = result_folder::root(run.results.as_deref(), &resolved.workload)?;
    let mut lines = vec![
        launch_function(batch, workload_job.launcher, tasks),
        results_folder(&bash_word(&root.display().to_string())),
    ];
    if workload_job.dlio {
        lines.extend(of_dlio(arguments, &resolved, matches));
    } else {
        lines.extend(of_feedrate(arguments, &resolved, matches));
    }
    batch.write(&Job {
        batch,
        name: &resolved.plan.workload,
        time: &time,
        array: batch.array,
        about: vec![
            format!(
                "Runs the workload {} with {} in {processes}, written by feedrate {}: `sbatch THIS_FILE`.",
                model_name(&run.data.workload),
                units::counted(resolved.plan.accelerators.into(), "accelerator"),
                env!("CARGO_PKG_VERSION"),
            ),
            about_time,
        ],
        requeued: "A job that is requeued goes on in its output file, finds the files that it made, and puts its results beside the earlier ones.",
        is_script_told: workload_job.launcher == SlurmLauncher::Mpirun,
        lines,
    })
}

impl BatchArguments {
    /// All processes of the job.
    fn tasks(&self) -> Result<u32, Refusal> {
        self.nodes.checked_mul(self.tasks_per_node).map(u32::from).ok_or_else(|| {
            Refusal::without_hint("`--nodes` times `--tasks-per-node` is more than can be counted")
        })
    }

    /// A file as the job finds it, from wherever it starts.
    fn file_word(&self, file: &Path) -> String {
        match std::path::absolute(file) {
            Ok(path) if self.chdir.is_some() => bash_word(&path.display().to_string()),
            _ => bash_word(&file.display().to_string()),
        }
    }

    /// Write the script to the file that is wanted, or to stdout.
    fn write(&self, job: &Job) -> anyhow::Result<Exit> {
        write_or_print(self.output.as_deref(), &job.script(), self.force)?;
        Ok(Exit::Fine)
    }
}

fn refuse_unknown_to_dlio(workload: &str, matches: &ArgMatches) -> Result<(), Refusal> {
    let known = given::<LaunchArguments>(matches);
    let unknown = given::<RunArguments>(matches).into_iter().find(|option| {
        !known.contains(option) && !["--data", "--results"].contains(&option.0.as_str())
    });
    if let Some((flag, _)) = unknown {
        return refuse(
            format!("`dlio_benchmark` knows no `{flag}`"),
            "leave it out, or leave out `--dlio`",
        );
    }
    if !is_file(workload) || !takes_precedence(&model_name(workload)) {
        return Ok(());
    }
    refuse(
        format!("`dlio_benchmark` takes its own workload of this name instead of `{workload}`"),
        "give the file another name",
    )
}

/// The time limit, and where it comes from.
fn time(arguments: &SlurmArguments, resolved: &Resolved) -> Result<(String, String), Refusal> {
    if let Some(limit) = &arguments.batch.time {
        seconds_of(limit)?;
        return Ok((limit.clone(), "The time limit was given.".into()));
    }
    let rate = arguments.workload_job.storage_rate;
    let estimate = catalog::estimate(&resolved.plan);
    let mut duration = plan::duration(&resolved.plan, &estimate, rate);
    if !generates(resolved) {
        duration.generation_s = 0.0;
    }
    let minutes = ((duration.total_s() * MARGIN + MARGIN_S) / 60.0).ceil() as u64;
    let (days, hours) = (minutes / 1440, minutes / 60 % 24);
    Ok((format!("{days}-{hours:02}:{:02}:00", minutes % 60), about(&duration, rate)))
}

/// A time limit as sbatch takes it: `MINUTES[:SECONDS]`, `HOURS:MINUTES:SECONDS`, `DAYS-HOURS[:MINUTES[:SECONDS]]`.
fn seconds_of(limit: &str) -> Result<u64, Refusal> {
    let (units, limit_of): (&[u64], _) = match limit.split_once('-') {
        Some((days, rest)) if !days.contains(':') => {
            (&[86_400, 3600, 60, 1], format!("{days}:{rest}"))
        }
        _ if limit.matches(':').count() == 2 => (&[3600, 60, 1], limit.to_string()),
        _ => (&[60, 1], limit.to_string()),
    };
    let numbers: Option<Vec<u64>> = limit_of.split(':').map(|part| part.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() <= units.len());
    let known = numbers.and_then(|numbers| {
        let mut parts = numbers.iter().zip(units);
        parts.try_fold(0u64, |sum, (number, unit)| sum.checked_add(number.checked_mul(*unit)?))
    });
    known.ok_or_else(|| {
        Refusal::new(
            format!("`--time {limit}` is no time"),
            "write minutes, `HH:MM:SS` or `DAYS-HH:MM:SS`",
        )
    })
}

fn about(duration: &Duration, rate: f64) -> String {
    let parts = [
        ("generation", duration.generation_s),
        ("training", duration.training_s),
        ("evaluation", duration.evaluation_s),
        ("checkpoints", duration.checkpoints_s),
    ];
    let parts = parts.iter().filter(|(_, seconds)| *seconds > 0.0);
    let parts: Vec<String> =
        parts.map(|(name, seconds)| format!("{name} {}", units::seconds(*seconds))).collect();
    let parts = if parts.is_empty() { "next to nothing".into() } else { parts.join(", ") };
    format!(
        "Time: {parts}, on a storage that moves {}; twice that, and {} more.",
        units::bytes_per_second(rate),
        units::seconds(MARGIN_S)
    )
}

/// Whether files are made before the run.
fn generates(resolved: &Resolved) -> bool {
    let plan = &resolved.plan;
    dataset::is_in_folder(plan) && !resolved.workload.dataset_foreign && !plan.is_checkpoint_only()
}

/// The workload as the job finds it: a file from wherever the job starts.
fn workload_word(arguments: &SlurmArguments) -> String {
    let workload = &arguments.run.data.workload;
    if is_file(workload) {
        arguments.batch.file_word(Path::new(workload))
    } else {
        bash_word(workload)
    }
}

/// Options as words of bash, the value of each behind `joint`.
fn words(options: &[(String, Option<String>)], joint: char) -> impl Iterator<Item = String> {
    options.iter().map(move |(name, value)| match value {
        Some(value) => format!("{name}{joint}{}", bash_word(value)),
        None => name.clone(),
    })
}

fn of_feedrate(
    arguments: &SlurmArguments,
    resolved: &Resolved,
    matches: &ArgMatches,
) -> Vec<String> {
    let mut both = given::<DataArguments>(matches);
    both.extend(given::<LaunchArguments>(matches));
    let mut of_run = given::<RunArguments>(matches);
    of_run.retain(|option| !both.contains(option) && option.0 != "--results");
    let mut common = vec![workload_word(arguments)];
    common.extend(arguments.run.data.overrides.iter().map(|text| bash_word(text)));
    common.extend(words(&both, ' '));
    let common = common.join(" ");
    let mut run = vec!["--results \"$results\"".to_string()];
    run.extend(words(&of_run, ' '));
    let mut lines = vec!["feedrate=${FEEDRATE:-feedrate}".to_string()];
    if generates(resolved) {
        lines.push("# Files that an earlier start of the job has made are kept.".into());
        lines.push(format!("launch \"$feedrate\" generate {common}"));
    }
    lines.push(format!("launch \"$feedrate\" run {common} {}", run.join(" ")));
    lines
}

fn of_dlio(arguments: &SlurmArguments, resolved: &Resolved, matches: &ArgMatches) -> Vec<String> {
    let data = &arguments.run.data;
    let name = model_name(&data.workload);
    let mut lines = vec!["dlio_benchmark=${DLIO_BENCHMARK:-dlio_benchmark}".to_string()];
    let mut all: Vec<String> = words(&given::<LaunchArguments>(matches), ' ').collect();
    if is_file(&data.workload) {
        lines.push("# DLIO finds workloads of others in a folder called `workload`.".into());
        lines.push("mkdir -p \"$results/config/workload\"".into());
        let copy = format!("\"$results\"/config/workload/{}", bash_word(&format!("{name}.yaml")));
        lines.push(format!("cp {} {copy}", workload_word(arguments)));
        all.push("--config-dir \"$results/config\"".into());
    }
    all.push(bash_word(&format!("workload={name}")));
    all.extend(data.overrides.iter().map(|text| bash_word(&as_dlio(text))));
    if let Some(folder) = &data.data {
        all.push(bash_word(&format!("++workload.dataset.data_folder={}", folder.display())));
    }
    let all = all.join(" ");
    let has_output = resolved.workload.output_folder.is_some();
    let command = |folder: &str, workflow: &str| {
        let mut text = format!("launch \"$dlio_benchmark\" {all} ++hydra.run.dir={folder}");
        if has_output {
            text = format!("{text} ++workload.output.folder={folder}");
        }
        format!("{text} ++workload.workflow.generate_data={workflow}")
    };
    if generates(resolved) {
        let only = "True ++workload.workflow.train=False ++workload.workflow.checkpoint=False";
        lines.push("# Files that an earlier start of the job has made are kept.".into());
        lines.push(command("\"$results/generate\"", only));
    }
    lines.push(command("\"$results/run\"", "False"));
    lines
}

/// An override as DLIO takes it wherever the workload has the key or not.
fn as_dlio(text: &str) -> String {
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
    fn time_limits_are_read_as_sbatch_reads_them() {
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
            assert_eq!(seconds_of(limit).ok(), seconds, "{limit}");
        }
    }

    #[test]
    fn overrides_are_written_as_dlio_takes_them() {
        for (text, expected) in [
            ("train.epochs=2", "++workload.train.epochs=2"),
            ("+train.epochs=2", "++workload.train.epochs=2"),
            ("++workload.train.epochs=2", "++workload.train.epochs=2"),
            ("~train.epochs", "~workload.train.epochs"),
        ] {
            assert_eq!(as_dlio(text), expected);
        }
    }
}
