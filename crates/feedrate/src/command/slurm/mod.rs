//! `feedrate slurm`: a batch script that generates and runs a workload. Asks Slurm nothing: the script is for another machine.

mod script;
mod study;

pub(crate) use study::study;

use crate::cli::{BatchArguments, LaunchArguments, SlurmArguments, SlurmLauncher};
use crate::dlio;
use crate::exit::{Exit, UsageError};
use crate::launch;
use crate::messages;
use crate::resolve::{PlanOptions, Resolved, is_file, resolve_for};
use crate::results;
use feedrate_data::storage::{STORAGES, StorageError};
use feedrate_results::place::model_name;
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::{self, Duration};
use feedrate_spec::units;
use feedrate_study::bash::quoted;
use script::{BatchJob, Processes, Told, Work, folder, launch as launch_by, script};
use std::path::Path;

/// The limit is so many times what was estimated,
const MARGIN: f64 = 2.0;
/// and this more: queueing of steps, caches, one slow start.
const MARGIN_S: f64 = 600.0;

/// Write the script.
pub(crate) fn slurm(arguments: &SlurmArguments) -> anyhow::Result<Exit> {
    if arguments.run.run_dir.is_some() || arguments.run.study.is_some() {
        return Err(UsageError {
            message: "`--run-dir` is of one run, and a job may be started several times".into(),
            hint: Some("give `--results`: each start makes a folder of its own there".into()),
        }
        .into());
    }
    let tasks = tasks(&arguments.batch)?;
    if arguments.dlio {
        refuse_unknown_to_dlio(arguments)?;
    }
    let (cache, verify) = (arguments.run.cache(), arguments.run.verify);
    let wish = PlanOptions { processes: Some(tasks), cache, verify, generate_only: false };
    let per_rank = arguments.run.launch.accelerators_per_rank;
    let accelerators = launch::accelerators(tasks, arguments.run.data.accelerators, per_rank)?;
    let accelerators = if arguments.dlio { accelerators.or(Some(tasks)) } else { accelerators };
    let resolved = resolve_for(&arguments.run.data, accelerators, wish)?;
    let time = time(arguments, &resolved)?;
    let work = work(arguments, &resolved, tasks, &time);
    let array = arguments.array.map(u32::from);
    let job = job(&arguments.batch, &resolved.plan.workload, time.limit, array)?;
    write(&arguments.batch, &script(&job, &work))
}

/// To the file that is wanted, or to stdout.
fn write(batch: &BatchArguments, text: &str) -> anyhow::Result<Exit> {
    match &batch.output {
        Some(file) => {
            std::fs::write(file, text).map_err(|source| StorageError::new("write", file, source))?
        }
        None => messages::print(text.trim_end()),
    }
    Ok(Exit::Fine)
}

fn tasks(batch: &BatchArguments) -> Result<u32, UsageError> {
    batch.nodes.checked_mul(batch.tasks_per_node).map(u32::from).ok_or_else(|| {
        let message = "`--nodes` times `--tasks-per-node` is more than can be counted".into();
        UsageError { message, hint: None }
    })
}

fn refuse_unknown_to_dlio(arguments: &SlurmArguments) -> Result<(), UsageError> {
    let data = &arguments.run.data;
    let given = [
        (data.accelerators.is_some(), "--accelerators"),
        (data.scale != 1.0, "--scale"),
        (data.shrink_records != 1.0, "--shrink-records"),
        (data.foreign, "--foreign"),
        (data.json, "--json"),
        (data.quiet, "--quiet"),
        (arguments.run.cold, "--cold"),
        (arguments.run.warm, "--warm"),
        (arguments.run.verify, "--verify"),
        (arguments.run.fail_below_au.is_some(), "--fail-below-au"),
    ];
    if let Some((_, flag)) = given.iter().find(|(is_given, _)| *is_given) {
        return Err(UsageError {
            message: format!("`dlio_benchmark` knows no `{flag}`"),
            hint: Some("leave it out, or leave out `--dlio`".into()),
        });
    }
    if !is_file(&data.workload) || !dlio::hides(&model_name(&data.workload)) {
        return Ok(());
    }
    Err(UsageError {
        message: format!(
            "`dlio_benchmark` takes its own workload of this name instead of `{}`",
            data.workload
        ),
        hint: Some("give the file another name".into()),
    })
}

fn job(
    batch: &BatchArguments,
    name: &str,
    time: String,
    array: Option<u32>,
) -> Result<BatchJob, UsageError> {
    let word = |flag: &str, text: &Option<String>| match text {
        Some(text) if !is_word(text) => {
            Err(UsageError { message: format!("`{flag} {text}` is no single word"), hint: None })
        }
        text => Ok(text.clone()),
    };
    let chdir = batch.chdir.as_ref().map(|folder| folder.display().to_string());
    if let Some(folder) = chdir.as_ref().filter(|folder| folder.contains(['"', '\\', '\n'])) {
        return Err(UsageError {
            message: format!("`--chdir {folder}` cannot be written into a batch script"),
            hint: Some("choose a folder without quotes and backslashes in its name".into()),
        });
    }
    let name: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    Ok(BatchJob {
        name: format!("feedrate-{name}"),
        partition: word("--partition", &batch.partition)?,
        account: word("--account", &batch.account)?,
        chdir,
        nodes: batch.nodes.into(),
        tasks_per_node: batch.tasks_per_node.into(),
        cpus_per_task: batch.cpus_per_task.map(u32::from),
        time,
        array,
        modules: batch.modules.clone(),
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !"\"'\\#".contains(c))
}

/// A time limit, and where it comes from.
struct Time {
    limit: String,
    about: String,
}

fn time(arguments: &SlurmArguments, resolved: &Resolved) -> Result<Time, UsageError> {
    if let Some(limit) = &arguments.time {
        seconds_of(limit)?;
        return Ok(Time { limit: limit.clone(), about: "The time limit was given.".into() });
    }
    let rate = units::parse_bytes_per_second(&arguments.storage_rate).filter(|rate| *rate >= 1.0);
    let rate = rate.ok_or_else(|| UsageError {
        message: format!("`--storage-rate {}` is no rate", arguments.storage_rate),
        hint: Some("write it as `500MB/s` or `2GiB/s`".into()),
    })?;
    let estimate = plan::estimate(&resolved.plan, &resolved.catalog);
    let mut duration = plan::duration(&resolved.plan, &estimate, rate);
    if !generates(arguments, resolved) {
        duration.generation_s = 0.0;
    }
    let minutes = ((duration.total_s() * MARGIN + MARGIN_S) / 60.0).ceil() as u64;
    let (days, hours) = (minutes / 1440, minutes / 60 % 24);
    Ok(Time {
        limit: format!("{days}-{hours:02}:{:02}:00", minutes % 60),
        about: about(&duration, rate),
    })
}

/// A time limit as sbatch takes it: `MINUTES[:SECONDS]`, `HOURS:MINUTES:SECONDS`, `DAYS-HOURS[:MINUTES[:SECONDS]]`.
fn seconds_of(limit: &str) -> Result<u64, UsageError> {
    let numbers = |text: &str| text.split(':').map(|part| part.parse().ok()).collect();
    let seconds = |units: &[u64], text: &str| {
        let numbers: Option<Vec<u64>> = numbers(text);
        let numbers = numbers.filter(|numbers| numbers.len() <= units.len())?;
        numbers
            .iter()
            .zip(units)
            .try_fold(0u64, |sum, (number, unit)| sum.checked_add(number.checked_mul(*unit)?))
    };
    let known = match limit.split_once('-') {
        Some((days, rest)) => seconds(&[86_400], days)
            .zip(seconds(&[3600, 60, 1], rest))
            .and_then(|(days, rest)| days.checked_add(rest)),
        None if limit.matches(':').count() == 2 => seconds(&[3600, 60, 1], limit),
        None => seconds(&[60, 1], limit),
    };
    known.ok_or_else(|| UsageError {
        message: format!("`--time {limit}` is no time"),
        hint: Some("write minutes, `HH:MM:SS` or `DAYS-HH:MM:SS`".into()),
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
fn generates(arguments: &SlurmArguments, resolved: &Resolved) -> bool {
    let kind = STORAGES.iter().find(|kind| kind.member.name == resolved.plan.storage.kind);
    let in_folder = kind.is_some_and(|kind| kind.member.has(Ability::InFolder));
    in_folder && !arguments.run.data.foreign && !resolved.plan.is_checkpoints_alone()
}

fn work(arguments: &SlurmArguments, resolved: &Resolved, tasks: u32, time: &Time) -> Work {
    let plan = &resolved.plan;
    let about = vec![
        format!(
            "Runs the workload {} with {} in {}, written by feedrate {}: `sbatch THIS_FILE`.",
            model_name(&arguments.run.data.workload),
            units::counted(plan.accelerators.into(), "accelerator"),
            match tasks {
                1 => "one process".into(),
                many => format!("{} processes", units::count(many.into())),
            },
            env!("CARGO_PKG_VERSION"),
        ),
        time.about.clone(),
    ];
    let results = results::root(arguments.run.results.as_deref(), &resolved.workload);
    let processes = Processes {
        tasks,
        launcher: arguments.launcher,
        mpi: arguments.batch.mpi,
        cpus: arguments.batch.cpus_per_task.map(u32::from),
    };
    let mut lines = vec![launch_by(&processes), folder(&quoted(&results.display().to_string()))];
    lines.extend(if arguments.dlio {
        of_dlio(arguments, resolved)
    } else {
        of_feedrate(arguments, resolved)
    });
    Work {
        about,
        requeued: "A job that is requeued goes on in its output file, finds the files that it made, and puts its results beside the earlier ones.",
        told: match arguments.launcher {
            SlurmLauncher::Srun => Told::Steps,
            SlurmLauncher::Mpirun => Told::Script,
        },
        lines,
    }
}

/// The workload as the job finds it: a file from wherever the job starts.
fn workload_word(arguments: &SlurmArguments) -> String {
    let workload = &arguments.run.data.workload;
    if is_file(workload) {
        file_word(Path::new(workload), &arguments.batch)
    } else {
        quoted(workload)
    }
}

/// A file as the job finds it, from wherever it starts.
fn file_word(file: &Path, batch: &BatchArguments) -> String {
    match std::path::absolute(file) {
        Ok(path) if batch.chdir.is_some() => quoted(&path.display().to_string()),
        _ => quoted(&file.display().to_string()),
    }
}

fn of_feedrate(arguments: &SlurmArguments, resolved: &Resolved) -> Vec<String> {
    let data = &arguments.run.data;
    let mut words = vec![workload_word(arguments)];
    words.extend(data.overrides.iter().map(|text| quoted(text)));
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {}", quoted(&value))));
    };
    flag("--accelerators", data.accelerators.map(|count| count.to_string()));
    flag("--data", data.data.as_ref().map(|folder| folder.display().to_string()));
    flag("--scale", (data.scale != 1.0).then(|| data.scale.to_string()));
    let shrink = data.shrink_records;
    flag("--shrink-records", (shrink != 1.0).then(|| shrink.to_string()));
    words.extend(launch_words(&arguments.run.launch));
    let both = [(data.json, "--json"), (data.quiet, "--quiet")];
    words.extend(both.iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| (*flag).into()));
    let words = words.join(" ");
    let mut run = String::from("--results \"$results\"");
    for (is_given, flag) in [
        (data.foreign, "--foreign"),
        (arguments.run.cold, "--cold"),
        (arguments.run.warm, "--warm"),
        (arguments.run.verify, "--verify"),
    ] {
        if is_given {
            run = format!("{run} {flag}");
        }
    }
    if let Some(percent) = arguments.run.fail_below_au {
        run = format!("{run} --fail-below-au {percent}");
    }
    let mut lines = vec!["feedrate=${FEEDRATE:-feedrate}".to_string()];
    if generates(arguments, resolved) {
        lines.push("# Files that an earlier start of the job has made are kept.".into());
        lines.push(format!("launch \"$feedrate\" generate {words}"));
    }
    lines.push(format!("launch \"$feedrate\" run {words} {run}"));
    lines
}

fn launch_words(launch: &LaunchArguments) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(count) = launch.accelerators_per_rank {
        words.push(format!("--accelerators-per-rank {count}"));
    }
    if let Some(library) = &launch.mpi_library {
        words.push(format!("--mpi-library {}", quoted(&library.display().to_string())));
    }
    if launch.rank_timeout != launch::TIMEOUT.as_secs_f64() {
        words.push(format!("--rank-timeout {}", launch.rank_timeout));
    }
    words
}

fn of_dlio(arguments: &SlurmArguments, resolved: &Resolved) -> Vec<String> {
    let data = &arguments.run.data;
    let name = model_name(&data.workload);
    let mut lines = vec!["dlio_benchmark=${DLIO_BENCHMARK:-dlio_benchmark}".to_string()];
    let mut words = launch_words(&arguments.run.launch);
    if is_file(&data.workload) {
        lines.push("# DLIO finds workloads of others in a folder called `workload`.".into());
        lines.push("mkdir -p \"$results/config/workload\"".into());
        let copy = format!("\"$results\"/config/workload/{}", quoted(&format!("{name}.yaml")));
        lines.push(format!("cp {} {copy}", workload_word(arguments)));
        words.push("--config-dir \"$results/config\"".into());
    }
    words.push(quoted(&format!("workload={name}")));
    words.extend(data.overrides.iter().map(|text| quoted(&as_dlio(text))));
    if let Some(folder) = &data.data {
        words.push(quoted(&format!("++workload.dataset.data_folder={}", folder.display())));
    }
    let words = words.join(" ");
    let folders = |name: &str| {
        let mut text = format!("++hydra.run.dir=\"$results/{name}\"");
        if resolved.workload.output_folder.is_some() {
            text = format!("{text} ++workload.output.folder=\"$results/{name}\"");
        }
        text
    };
    if generates(arguments, resolved) {
        lines.push("# Files that an earlier start of the job has made are kept.".into());
        lines.push(format!(
            "launch \"$dlio_benchmark\" {words} {} ++workload.workflow.generate_data=True \
             ++workload.workflow.train=False ++workload.workflow.checkpoint=False",
            folders("generate")
        ));
    }
    lines.push(format!(
        "launch \"$dlio_benchmark\" {words} {} ++workload.workflow.generate_data=False",
        folders("run")
    ));
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
