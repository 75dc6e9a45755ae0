//! The launcher `srun`: each run is a step of the Slurm job in which the study runs.

use super::{LaunchError, LaunchJob, Launcher, Scripts, cancel_script, script};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::escape::bash_word;

pub(super) static LAUNCHER: Launcher = Launcher {
    member: Member {
        name: "srun",
        summary: "A process for each accelerator, as a step of the Slurm job in which the study runs.",
        abilities: &[Ability::JobSteps],
    },
    scripts,
};

fn scripts(job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
    if (job.variable)("SLURM_JOB_ID").is_none() {
        return Err(LaunchError {
            message: "launch `srun` starts steps of a Slurm job, but no job is active".into(),
            hint: "start the study in a job (`feedrate slurm STUDY.csv`, `salloc`), or choose launch `sbatch`".into(),
        });
    }
    let name = bash_word(job.name);
    let options = format!(" --job-name={name}{}", job.launcher_arguments());
    let run = script("", &job.options.prologue, &format!("exec {}", job.srun_step(&options)));
    // A step outlives a killed srun. squeue's option `--name` would match the name of the job, not of the step.
    let list = format!(
        "squeue --noheader --steps --jobs=\"$SLURM_JOB_ID\" --format='%i %j' | awk -v name={name} '$2 == name {{ print $1 }}'"
    );
    Ok(Scripts { run, cleanup: Some(cancel_script(&list)), files: Vec::new() })
}
