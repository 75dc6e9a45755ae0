//! `feedrate study slurm`: a batch script that runs a study, or goes on with it. Asks Slurm nothing.

use super::script::{BatchJob, Told, Work, name_of, script};
use super::{file_word, job, seconds_of, tasks, write};
use crate::cli::{StudyHow, StudySlurmArguments};
use crate::exit::{Exit, UsageError};
use clap::ValueEnum;
use feedrate_results::files::StudyFiles;
use feedrate_results::row::Row;
use feedrate_spec::units;
use feedrate_study::bash::quoted;
use feedrate_study::launch;

/// The way that uses all that Slurm gives the job.
const LAUNCH: &str = "srun";
/// A run that is begun may take a little longer than was thought, and still writes down what it measured.
const SPARE_S: u64 = 120;

/// Write the script.
pub(crate) fn study(arguments: &StudySlurmArguments) -> anyhow::Result<Exit> {
    let files = StudyFiles::new(&arguments.study)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    let launch = arguments.how.launch.as_deref().unwrap_or(LAUNCH);
    if launch::find(launch).is_none() {
        return Err(UsageError {
            message: format!("there is no launch `{launch}`"),
            hint: Some("`feedrate list launches` tells which there are".into()),
        }
        .into());
    }
    let budget_s = budget_s(&arguments.time)?;
    refuse_too_many(arguments, launch, &rows)?;
    let stem = arguments.study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let array = arguments.array.map(u32::from);
    let job = job(&arguments.batch, &stem, arguments.time.clone(), array)?;
    let work = work(arguments, &job, launch, budget_s);
    write(&arguments.batch, &script(&job, &work))
}

/// Time of the job that runs may take.
fn budget_s(time: &str) -> Result<u64, UsageError> {
    let limit_s = seconds_of(time)?;
    limit_s.checked_sub(SPARE_S).filter(|&budget_s| 0 < budget_s).ok_or_else(|| UsageError {
        message: format!("in a job of `--time {time}` no run could begin"),
        hint: Some(format!(
            "give more than {}: so much is kept for a run to end and be written down",
            units::seconds(SPARE_S as f64)
        )),
    })
}

/// A row that no job of this size can run.
fn refuse_too_many(
    arguments: &StudySlurmArguments,
    launch: &str,
    rows: &[Row],
) -> Result<(), UsageError> {
    let tasks = tasks(&arguments.batch)?;
    let per_rank = arguments.how.accelerators_per_rank.unwrap_or(1).max(1);
    let needed = rows.iter().map(|row| row.accelerators.div_ceil(per_rank)).max().unwrap_or(0);
    if launch != LAUNCH || needed <= tasks {
        return Ok(());
    }
    Err(UsageError {
        message: format!("a row of the study needs `{needed}` processes, and the job has {tasks}"),
        hint: Some(
            "give more `--nodes`, `--tasks-per-node` or `--accelerators-per-rank`; with `--launch local` one process carries all"
                .into(),
        ),
    })
}

fn work(arguments: &StudySlurmArguments, job: &BatchJob, launch: &str, budget_s: u64) -> Work {
    let name = arguments.study.display();
    let version = env!("CARGO_PKG_VERSION");
    let mut about =
        vec![format!("Runs the study {name}, written by feedrate {version}: `sbatch THIS_FILE`.")];
    about.push(match job.array {
        Some(_) => "Each job of the array makes the next pending run, if that ends in time.".into(),
        None => {
            "It begins no run that would not end in time; submit it again for what is left.".into()
        }
    });
    let mut lines = Vec::new();
    if launch == LAUNCH {
        lines.push(format!("export SLURM_MPI_TYPE={}", name_of(arguments.batch.mpi)));
        if let Some(cpus) = job.cpus_per_task {
            lines.push(format!(
                "# Steps do not take it from the job.\nexport SRUN_CPUS_PER_TASK={cpus}"
            ));
        }
    }
    let mut words =
        vec![file_word(&arguments.study, &arguments.batch), format!("--launch {launch}")];
    words.extend(how_words(&arguments.how));
    words.extend(arguments.retry.then(|| "--retry".into()));
    words.extend(arguments.quiet_wait.map(|seconds| format!("--quiet-wait {seconds}")));
    words.extend(job.array.map(|_| "--limit 1".into()));
    words.push(format!("--time-budget {budget_s}"));
    lines.push(format!("exec \"${{FEEDRATE:-feedrate}}\" study run {}", words.join(" ")));
    Work {
        about,
        requeued: "A job that is requeued goes on in its output file, and with the runs that are pending.",
        told: Told::Script,
        lines,
    }
}

/// Arguments of `study run` about how runs are made, but for the launch.
fn how_words(how: &StudyHow) -> Vec<String> {
    let mut words = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={}", quoted(&value))));
    };
    flag("--results", how.results.as_ref().map(|folder| folder.display().to_string()));
    flag("--data", how.data.as_ref().map(|folder| folder.display().to_string()));
    flag("--scale", how.scale.map(|share| share.to_string()));
    flag("--shrink-records", how.shrink_records.map(|share| share.to_string()));
    let cache = how.cache.and_then(|cache| cache.to_possible_value());
    flag("--cache", cache.map(|cache| cache.get_name().to_string()));
    for line in &how.prologue {
        flag("--prologue", Some(line.clone()));
    }
    for word in &how.launcher_argument {
        flag("--launcher-argument", Some(word.clone()));
    }
    flag("--accelerators-per-rank", how.accelerators_per_rank.map(|count| count.to_string()));
    words
}
