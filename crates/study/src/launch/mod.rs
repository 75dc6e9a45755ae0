//! How the processes of one run are started: one file a way, one row in [`LAUNCHES`]. A way writes bash; it starts nothing itself.
//!
//! To add one: copy `mpirun.rs`, add its `mod` line and its row; the contract tests run on it.

mod local;
mod mpirun;
mod srun;
mod sbatch;
#[cfg(test)]
mod tests;

use crate::bash::script;
use feedrate_results::state::Launching;
use feedrate_spec::catalog::Member;
use feedrate_spec::escape::{bash_command, bash_word};
use std::path::Path;

/// Every way, the default first.
pub static LAUNCHES: &[&Launcher] =
    &[&local::LAUNCHER, &mpirun::LAUNCHER, &srun::LAUNCHER, &sbatch::LAUNCHER];

/// The way of this name.
pub fn find(name: &str) -> Option<&'static Launcher> {
    LAUNCHES.iter().copied().find(|launcher| launcher.member.name == name)
}

/// A way to start a run.
#[derive(Debug)]
pub struct Launcher {
    /// Name and summary.
    pub member: Member,
    /// The scripts of a run. An error: it cannot start this run, or not from here.
    pub scripts: fn(&LaunchJob<'_>) -> Result<Scripts, LaunchError>,
}

impl Launcher {
    /// Script that ends what a run called `name`, with its own files in `folder`, has left outside this machine's processes. It is
    /// written anew: a script found in `folder` may come from others.
    pub fn cleanup(
        &self,
        name: &str,
        folder: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let job = LaunchJob {
            program: Path::new("feedrate"),
            arguments: &[],
            accelerators: 1,
            name,
            folder,
            stdout: folder,
            stderr: folder,
            options: &Launching::default(),
            variable,
        };
        (self.scripts)(&job).ok()?.cleanup
    }
}

/// One run.
#[derive(Clone, Copy)]
pub struct LaunchJob<'a> {
    /// The program `feedrate`, by a path that holds wherever the run is started.
    pub program: &'a Path,
    /// Its arguments, `run` first, without the number of accelerators.
    pub arguments: &'a [String],
    /// Emulated accelerators.
    pub accelerators: u32,
    /// Name in queues; no other run that goes on at the same time has this name.
    pub name: &'a str,
    /// An absolute folder for its own files, which is there.
    pub folder: &'a Path,
    /// Where its output goes; a batch job writes there itself.
    pub stdout: &'a Path,
    /// Where its messages go.
    pub stderr: &'a Path,
    /// Options of the user.
    pub options: &'a Launching,
    /// Variables of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Scripts that start a run and end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// Ends when the run does, with its code.
    pub run: String,
    /// Ends what of the run is no process below the script: after it was told to stop, and after it was killed. Does nothing where
    /// there is nothing.
    pub cleanup: Option<String>,
    /// More files of its folder: (name, text).
    pub files: Vec<(&'static str, String)>,
}

/// A run that cannot be started in this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LaunchError {
    /// A lowercase fragment.
    pub message: String,
    /// A remedy.
    pub hint: String,
}

impl LaunchJob<'_> {
    /// Processes of a launcher that starts several.
    fn ranks(&self) -> u32 {
        let per_rank = self.options.accelerators_per_rank.unwrap_or(1).max(1);
        self.accelerators.div_ceil(per_rank)
    }

    /// The program and all its arguments, as words of bash.
    fn command(&self) -> String {
        let program = [self.program.display().to_string()];
        let words = [&program[..], self.arguments].concat();
        format!("{} --accelerators {}", bash_command(&words), self.accelerators)
    }

    /// More arguments of the launcher as words of bash, each after a blank.
    fn launcher_arguments(&self) -> String {
        let words = self.options.arguments.iter();
        words.map(|word| format!(" {}", bash_word(word))).collect()
    }

    /// Slurm's command for a step; it takes `more` words.
    fn step(&self, more: &str) -> String {
        let ranks = self.ranks();
        let mpi = if ranks > 1 { " --mpi=\"${SLURM_MPI_TYPE:-pmix}\"" } else { "" };
        format!("srun --ntasks={ranks}{mpi}{more} {}", self.command())
    }
}

/// Slurm's jobs and steps are cancelled and waited for: `list` tells their numbers.
fn cancel(list: &str) -> String {
    let body = format!(
        "\
listed() {{
    {list}
}}
while ids=$(listed) && [ -n \"$ids\" ]; do
    # What is ending already needs no second word.
    xargs scancel <<<\"$ids\" || true
    sleep 1
done"
    );
    script("", &[], &body)
}
