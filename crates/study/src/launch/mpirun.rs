//! The launcher `mpirun`: the MPI's own launcher starts the processes, on the machines that it is configured for.

use super::{LaunchError, LaunchJob, Launcher, Scripts, script};
use feedrate_spec::catalog::Member;

pub(super) static LAUNCHER: Launcher = Launcher {
    member: Member {
        name: "mpirun",
        summary: "A process for each accelerator, started by the MPI's own launcher: `mpirun`, or the command in the variable `MPIRUN`.",
        abilities: &[],
    },
    scripts,
};

fn scripts(job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
    let ranks = job.ranks();
    let arguments = job.launcher_arguments();
    let command = job.command();
    let body = format!("exec \"${{MPIRUN:-mpirun}}\" -n {ranks}{arguments} {command}");
    Ok(Scripts { run: script("", &job.options.prologue, &body), cleanup: None, files: Vec::new() })
}
