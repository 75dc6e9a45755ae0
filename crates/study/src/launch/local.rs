//! All accelerators in one process of this machine.

use super::{Launch, LaunchError, LaunchJob, Scripts, script};
use feedrate_spec::catalog::Member;

pub(super) struct Local;

static MEMBER: Member = Member {
    name: "local",
    summary: "All accelerators in one process on this machine; no MPI is needed.",
    abilities: &[],
};

impl Launch for Local {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn scripts(&self, job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
        let options = job.options;
        if !options.arguments.is_empty() || options.accelerators_per_rank.is_some() {
            return Err(LaunchError {
                message: "launch `local` has one process and no launcher to tell anything".into(),
                hint:
                    "leave those arguments out, or choose another launch (`feedrate list launches`)"
                        .into(),
            });
        }
        let run = script("", &options.prologue, &format!("exec {}", job.command()));
        Ok(Scripts { run, cleanup: None, files: Vec::new() })
    }
}
