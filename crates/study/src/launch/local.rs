//! The launcher `local`: all accelerators in one process on this machine.

use super::{LaunchError, LaunchJob, Launcher, Scripts, script};
use feedrate_spec::catalog::Member;

pub(super) static LAUNCHER: Launcher = Launcher {
    member: Member {
        name: "local",
        summary: "All accelerators in one process on this machine; no MPI is needed.",
        abilities: &[],
    },
    scripts,
};

fn scripts(job: &LaunchJob<'_>) -> Result<Scripts, LaunchError> {
    let options = job.options;
    if !options.arguments.is_empty() || options.accelerators_per_rank.is_some() {
        return Err(LaunchError {
            message: "launch `local` has one process and takes no launcher options".into(),
            hint: "leave these options out, or choose another launch (`feedrate list launches`)"
                .into(),
        });
    }
    let run = script("", &options.prologue, &format!("exec {}", job.command()));
    Ok(Scripts { run, cleanup: None, files: Vec::new() })
}
