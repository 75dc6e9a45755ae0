//! A batch job of its own for each run, from any machine that can submit one.

use super::{LaunchError, LaunchJob, Launcher, Scripts, cancel, script};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::escape::bash_word;
use std::path::Path;

/// The job's script, in the run's folder.
const JOB: &str = "job.sh";

pub(super) static LAUNCHER: Launcher = Launcher {
    member: Member {
        name: "sbatch",
        summary: "A Slurm job for each run, which is submitted and waited for; one process for each accelerator.",
        abilities: &[Ability::Elsewhere],
    },
    scripts,
};

fn scripts(job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
    let file = job.folder.join(JOB).display().to_string();
    if file.contains(char::is_whitespace) {
        return Err(LaunchError {
            message: format!("`{file}` has a blank, by which a job could not be told from another"),
            hint: "put the study's results into a folder without blanks in its name".into(),
        });
    }
    let (name, file) = (bash_word(job.name), bash_word(&file));
    let (stdout, stderr) = (pattern(job.stdout), pattern(job.stderr));
    // Who started it starts it again: a job that Slurm requeues would be a run that nobody asked for.
    let submit = format!(
        "exec sbatch --wait --no-requeue --job-name={name} --ntasks={} --output={stdout} --error={stderr} --open-mode=append{} {file}",
        job.ranks(),
        job.launcher_arguments(),
    );
    // By its script: the number is not known when submission itself was broken off.
    let list = format!(
        "squeue --noheader --user=\"$(id -un)\" --name={name} --format='%i %o' | awk -v file={file} '$2 == file {{ print $1 }}'"
    );
    Ok(Scripts {
        run: script("", &[], &submit),
        cleanup: Some(cancel(&list)),
        files: vec![(JOB, script("", &job.options.prologue, &format!("exec {}", job.step(""))))],
    })
}

/// A path as sbatch takes it, for whom `%` begins a number of the job.
fn pattern(path: &Path) -> String {
    bash_word(&path.display().to_string().replace('%', "%%"))
}
