//! The job of a study, which runs what is pending in it.

use super::script::Job;
use super::{SlurmArguments, WorkloadJobArguments, seconds_of, words};
use crate::cli::{given, name_of};
use crate::command::run::RunArguments;
use crate::command::study::StudyHow;
use crate::exit::Exit;
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

/// A run that is begun may take a little longer than was thought, and still writes down what it measured.
const SPARE_S: u64 = 120;

/// Write the script. Options for `study run` are taken from `matches`.
pub(super) fn slurm(arguments: &SlurmArguments, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let SlurmArguments { run, batch, study_job, .. } = arguments;
    let study = Path::new(&run.data.workload);
    let mut handed_on = given::<StudyHow>(matches);
    refuse_unknown(&handed_on, &run.data.overrides, matches)?;
    let Some(time) = &batch.time else {
        return refuse(
            "the job of a study needs `--time`",
            format!(
                "`{}` estimates it",
                bash_command(&["feedrate", "study", "run", &run.data.workload, "--dry-run"])
            ),
        );
    };
    let launcher = match &study_job.start.launch {
        Some(name) => launch::find(name),
        None => LAUNCHES.iter().copied().find(|launcher| launcher.member.has(Ability::JobSteps)),
    };
    let uses_tasks = launcher.is_some_and(|launcher| launcher.member.has(Ability::JobSteps));
    let files = StudyFiles::new(study)?;
    let table = files.table()?;
    note_local_workloads(table.rows().map(|row| &*row.model), &files.csv, &TERMINAL);
    let launching = StudyState::read(&files)?.settings.map(|settings| settings.launching);
    study_job.start.refuse_untrusted(&launching.unwrap_or_default(), &files.hooks()?)?;
    let budget_s = budget_s(time)?;
    let tasks = batch.tasks()?;
    let per_rank = run.launch.accelerators_per_rank.unwrap_or(1).max(1);
    let needed = table.rows().map(|row| row.accelerators.div_ceil(per_rank)).max().unwrap_or(0);
    if uses_tasks && tasks < needed {
        return refuse(
            format!("a row of the study needs `{needed}` processes, and the job has {tasks}"),
            "give more `--nodes`, `--tasks-per-node` or `--accelerators-per-rank`; with `--launch local` one process carries all",
        );
    }
    let mut lines = Vec::new();
    if uses_tasks {
        lines.push(format!("export SLURM_MPI_TYPE={}", name_of(batch.mpi)));
        if let Some(cpus) = batch.cpus_per_task {
            lines.push(format!(
                "# Steps do not take it from the job.\nexport SRUN_CPUS_PER_TASK={cpus}"
            ));
        }
    }
    handed_on.retain(|option| option.0 != "--launch");
    let mut all = vec![batch.file_word(study)];
    all.extend(launcher.map(|launcher| format!("--launch {}", launcher.member.name)));
    all.extend(words(&handed_on, '='));
    all.extend(study_job.retry.then(|| "--retry".into()));
    all.extend(batch.array.map(|_| "--limit 1".into()));
    all.push(format!("--time-budget {budget_s}s"));
    lines.push(format!("exec \"${{FEEDRATE:-feedrate}}\" study run {}", all.join(" ")));
    let what_it_does = match batch.array {
        Some(_) => "Each job of the array makes the next pending run, if that ends in time.",
        None => "It begins no run that would not end in time; submit it again for what is left.",
    };
    batch.write(&Job {
        batch,
        name: &study.file_stem().unwrap_or_default().to_string_lossy(),
        time,
        array: batch.array,
        about: vec![
            format!(
                "Runs the study {}, written by feedrate {}: `sbatch THIS_FILE`.",
                study.display(),
                env!("CARGO_PKG_VERSION")
            ),
            what_it_does.into(),
        ],
        requeued: "A job that is requeued goes on in its output file, and with the runs that are pending.",
        is_script_told: true,
        lines,
    })
}

/// Refuse settings and options that `study run` does not have, other than those `known`.
fn refuse_unknown(
    known: &[(String, Option<String>)],
    settings: &[String],
    matches: &ArgMatches,
) -> Result<(), Refusal> {
    let mut options = given::<RunArguments>(matches);
    options.extend(given::<WorkloadJobArguments>(matches));
    let unknown = options.iter().find(|option| !known.contains(option)).map(|(name, _)| name);
    match settings.first().or(unknown) {
        None => Ok(()),
        Some(word) => refuse(
            format!("the job of a study takes no `{word}`"),
            "leave it out: the rows of the study set what runs",
        ),
    }
}

/// Time of the job that runs may take.
fn budget_s(time: &str) -> Result<u64, Refusal> {
    let limit_s = seconds_of(time)?;
    limit_s.checked_sub(SPARE_S).filter(|&budget_s| 0 < budget_s).ok_or_else(|| {
        let spare = units::seconds(SPARE_S as f64);
        Refusal::new(
            format!("in a job of `--time {time}` no run could begin"),
            format!("give more than {spare}: so much is kept for a run to end and be written down"),
        )
    })
}
