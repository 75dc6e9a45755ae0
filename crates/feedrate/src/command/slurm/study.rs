//! The batch script of a study, which runs its pending rows.

use super::script::Job;
use super::{SlurmArguments, WorkloadJobArguments, option_words, parse_time_limit};
use crate::cli::{given_options, name_of};
use crate::command::run::RunArguments;
use crate::command::study::StudyRunSettings;
use crate::exit::Exit;
use crate::messages;
use crate::progress::TERMINAL;
use clap::ArgMatches;
use feedrate_results::files::StudyFiles;
use feedrate_results::state::StudyState;
use feedrate_spec::catalog::Ability;
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_study::launch::{self, LAUNCHES};
use feedrate_study::row_command::note_local_workloads;
use std::path::Path;

/// Time before the limit, in seconds, in which no run starts, so that the last run can finish and save its results.
const SPARE_S: u64 = 120;

/// Writes the script. Options for `study run` are taken from `matches`.
pub(super) fn slurm(arguments: &SlurmArguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let SlurmArguments { run, batch, study_job, .. } = arguments;
    let study = Path::new(&run.data.workload);
    let mut passed_on = given_options::<StudyRunSettings>(matches);
    refuse_unknown(&passed_on, &run.data.overrides, matches)?;
    let Some(time) = &batch.time else {
        return refuse(
            "the job of a study needs `--time`",
            format!(
                "estimate it by `{}`",
                bash_command(&["feedrate", "study", "run", &run.data.workload, "--dry-run"])
            ),
        );
    };
    let launcher = match &study_job.launch.launch {
        Some(name) => launch::find(name),
        None => LAUNCHES.iter().copied().find(|launcher| launcher.member.has(Ability::JobSteps)),
    };
    let uses_tasks = launcher.is_some_and(|launcher| launcher.member.has(Ability::JobSteps));
    let files = StudyFiles::new(study)?;
    let table = files.table()?;
    let settings = StudyState::read(&files)?.settings;
    let config_dir = settings.as_ref().and_then(|settings| settings.config_dir.as_deref());
    let models = table.rows().map(|row| &*row.model);
    note_local_workloads(models, &files.csv, config_dir, &TERMINAL);
    let launching = settings.map(|settings| settings.launching);
    study_job.launch.refuse_untrusted(&launching.unwrap_or_default(), &files.hooks()?)?;
    let budget_s = budget_s(time)?;
    let tasks = batch.tasks()?;
    let per_rank = run.launch.accelerators_per_rank.unwrap_or(1).max(1);
    let needed = table.rows().map(|row| row.accelerators.div_ceil(per_rank)).max().unwrap_or(0);
    if uses_tasks && tasks < needed {
        return refuse(
            format!("a row of the study needs {needed} processes, but the job has {tasks}"),
            "increase `--nodes`, `--tasks-per-node` or `--accelerators-per-rank`, or use one process by `--launch local`",
        );
    }
    if uses_tasks && needed < tasks {
        messages::say(format!(
            "warning: the job has {tasks} tasks, but no row of the study needs more than {needed}; processors of the others stay unused"
        ));
    }
    let mut lines = Vec::new();
    if uses_tasks {
        lines.push(format!("export SLURM_MPI_TYPE={}", name_of(batch.mpi)));
        if let Some(cpus) = batch.cpus_per_task {
            lines.push(format!(
                "# Steps do not inherit this option from the job.\nexport SRUN_CPUS_PER_TASK={cpus}"
            ));
        }
    }
    passed_on.retain(|option| option.0 != "--launch");
    let mut options = vec![batch.file_word(study)];
    options.extend(launcher.map(|launcher| format!("--launch {}", launcher.member.name)));
    options.extend(option_words(&passed_on, '='));
    options.extend(study_job.retry.then(|| "--retry".into()));
    options.extend(batch.array.map(|_| "--limit 1".into()));
    options.push(format!("--time-budget {budget_s}s"));
    lines.push(format!("exec \"${{FEEDRATE:-feedrate}}\" study run {}", options.join(" ")));
    let time_comment = match batch.array {
        Some(_) => "Each job of the array makes the next pending run, if there is enough time.",
        None => {
            "No run starts that would exceed the time limit; submit again for the remaining ones."
        }
    };
    batch.write(&Job {
        batch,
        name: &study.file_stem().unwrap_or_default().to_string_lossy(),
        time,
        array: batch.array,
        about: vec![
            format!(
                "Runs the study {}. Written by feedrate {}; submit it by `sbatch THIS_FILE`.",
                study.display(),
                env!("CARGO_PKG_VERSION")
            ),
            time_comment.into(),
        ],
        requeued: "A requeued job appends to its output file, and continues with the pending runs.",
        signals_script: true,
        lines,
    })
}

/// Refuses settings, and options that are not in `known`, the options of `study run`.
fn refuse_unknown(
    known: &[(String, Option<String>)],
    settings: &[String],
    matches: &ArgMatches,
) -> Result<(), Refusal> {
    let mut options = given_options::<RunArguments>(matches);
    options.extend(given_options::<WorkloadJobArguments>(matches));
    let unknown = options.iter().find(|option| !known.contains(option)).map(|(name, _)| name);
    match settings.first().or(unknown) {
        None => Ok(()),
        Some(word) => refuse(
            format!("`{word}` cannot be used for the job of a study"),
            "leave it out: the rows of the study determine the runs",
        ),
    }
}

/// Time of the job that is available for runs, in seconds.
fn budget_s(time: &str) -> Result<u64, Refusal> {
    let limit_s = parse_time_limit(time)?;
    limit_s.checked_sub(SPARE_S).filter(|&budget_s| 0 < budget_s).ok_or_else(|| {
        let spare = units::seconds(SPARE_S as f64);
        Refusal::new(
            format!("`--time {time}` is too short for any run"),
            format!("give more than {spare}, which are kept for the last run to finish and save its results"),
        )
    })
}
