//! Processes that the MPI's own launcher starts, on the machines it knows of.

use super::{Launch, LaunchError, LaunchJob, Scripts, script};
use feedrate_spec::catalog::Member;

pub(super) struct Mpirun;

static MEMBER: Member = Member {
    name: "mpirun",
    summary: "A process for each accelerator by the MPI's own launcher: `mpirun`, or what the variable `MPIRUN` names.",
    abilities: &[],
};

impl Launch for Mpirun {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn scripts(&self, job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
        let (ranks, more, command) = (job.ranks(), job.launcher_arguments(), job.command());
        let body = format!("exec \"${{MPIRUN:-mpirun}}\" -n {ranks}{more} {command}");
        Ok(Scripts {
            run: script("", &job.options.prologue, &body),
            cleanup: None,
            files: Vec::new(),
        })
    }
}
