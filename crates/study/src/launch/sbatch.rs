//! The launcher `sbatch`: a separate batch job for each run, submitted from any machine that can submit jobs.

use super::{LaunchError, LaunchJob, Launcher, Scripts, cancel_script, script};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::escape::bash_word;
use std::path::Path;

/// Name of the job's script in the folder of the run.
const JOB: &str = "job.sh";

pub(super) static LAUNCHER: Launcher = Launcher {
    member: Member {
        name: "sbatch",
        summary: "A Slurm job for each run, with a process for each accelerator; the study waits for its end.",
        abilities: &[Ability::Elsewhere],
    },
    scripts,
};

fn scripts(job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
    let file = job.folder.join(JOB).display().to_string();
    if file.contains(char::is_whitespace) {
        return Err(LaunchError {
            message: format!("`{file}` has a blank: the job could not be identified in the queue"),
            hint: "put the study's results into a folder without blanks in its name".into(),
        });
    }
    let name = bash_word(job.name);
    let script_file = bash_word(&file);
    let stdout = escape_path(job.stdout);
    let stderr = escape_path(job.stderr);
    // The runner decides on retries: a job requeued by Slurm would be an additional run.
    let submit = format!(
        "exec sbatch --wait --no-requeue --job-name={name} --ntasks={} --output={stdout} --error={stderr} --open-mode=append{} {script_file}",
        job.ranks(),
        job.launcher_arguments(),
    );
    // The job is found by its script, because its number is unknown if the submission was interrupted.
    let list = format!(
        "squeue --noheader --user=\"$(id -un)\" --name={name} --format='%i %o' | awk -v file={script_file} '$2 == file {{ print $1 }}'"
    );
    Ok(Scripts {
        run: script("", &[], &submit),
        cleanup: Some(cancel_script(&list)),
        files: vec![(
            JOB,
            script("", &job.options.prologue, &format!("exec {}", job.srun_step(""))),
        )],
    })
}

/// Escapes a path for sbatch, where `%` starts a placeholder.
fn escape_path(path: &Path) -> String {
    bash_word(&path.display().to_string().replace('%', "%%"))
}
