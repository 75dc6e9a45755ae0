//! Launchers, which start the processes of a run. Each launcher has a file and a row in [`LAUNCHES`]. Launchers only write bash scripts; `supervise` runs them.
//!
//! To add a launcher: copy `mpirun.rs`, add its `mod` line and its row; the contract tests run on it.

mod local;
mod mpirun;
mod srun;
mod sbatch;
#[cfg(test)]
mod tests;

use crate::bash::script;
use feedrate_results::state::LaunchSettings;
use feedrate_spec::catalog::Member;
use feedrate_spec::escape::{bash_command, bash_word};
use std::path::Path;

/// Every launcher, the default first.
pub static LAUNCHES: &[&Launcher] =
    &[&local::LAUNCHER, &mpirun::LAUNCHER, &srun::LAUNCHER, &sbatch::LAUNCHER];

/// The launcher with this name.
pub fn find(name: &str) -> Option<&'static Launcher> {
    LAUNCHES.iter().copied().find(|launcher| launcher.member.name == name)
}

/// A way to start the processes of a run.
#[derive(Debug)]
pub struct Launcher {
    /// Name and summary.
    pub member: Member,
    /// Writes the scripts of a run. Fails if the launcher cannot start this run on this machine.
    pub scripts: fn(&LaunchJob<'_>) -> Result<Scripts, LaunchError>,
}

impl Launcher {
    /// Returns the script that cancels the queued jobs of a run called `name`, whose files are in `folder`. The script is not read from `folder`, because other
    /// users may write there.
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
            options: &LaunchSettings::default(),
            variable,
        };
        (self.scripts)(&job).ok()?.cleanup
    }
}

/// The run to start.
#[derive(Clone, Copy)]
pub struct LaunchJob<'a> {
    /// Path of the program `feedrate`, valid on every machine of the run.
    pub program: &'a Path,
    /// Arguments, starting with `run`, without the number of accelerators.
    pub arguments: &'a [String],
    /// Emulated accelerators.
    pub accelerators: u32,
    /// Name of the run's jobs in a queue; unique among simultaneous runs.
    pub name: &'a str,
    /// Absolute path of an existing folder for the files of the run.
    pub folder: &'a Path,
    /// File for the output of the run. A batch job writes it itself.
    pub stdout: &'a Path,
    /// File for the messages of the run.
    pub stderr: &'a Path,
    /// Options of the user.
    pub options: &'a LaunchSettings,
    /// Reads environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// The scripts that start and end a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// Starts the run, waits for its end and exits with its code.
    pub run: String,
    /// Cancels jobs of the run that are not child processes of the script, after it was stopped or killed. Succeeds if there are none.
    pub cleanup: Option<String>,
    /// Further files to write to the folder: (name, text).
    pub files: Vec<(&'static str, String)>,
}

/// The reason why a launcher cannot start a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LaunchError {
    /// The problem, as a lowercase fragment.
    pub message: String,
    /// A remedy.
    pub hint: String,
}

impl LaunchJob<'_> {
    /// Number of processes (MPI ranks) to start; `local` ignores it.
    fn ranks(&self) -> u32 {
        let per_rank = self.options.accelerators_per_rank.unwrap_or(1).max(1);
        self.accelerators.div_ceil(per_rank)
    }

    /// The program and all its arguments, quoted for bash.
    fn command(&self) -> String {
        let program = [self.program.display().to_string()];
        let words = [&program[..], self.arguments].concat();
        format!("{} --accelerators {}", bash_command(&words), self.accelerators)
    }

    /// The user's arguments of the launcher, quoted for bash, each after a blank.
    fn launcher_arguments(&self) -> String {
        let words = self.options.arguments.iter();
        words.map(|word| format!(" {}", bash_word(word))).collect()
    }

    /// The srun command of a Slurm job step, with further `options`, which start with a blank.
    fn srun_step(&self, options: &str) -> String {
        let ranks = self.ranks();
        let mpi = if ranks > 1 { " --mpi=\"${SLURM_MPI_TYPE:-pmix}\"" } else { "" };
        format!("srun --ntasks={ranks}{mpi}{options} {}", self.command())
    }
}

/// Returns a script that cancels Slurm jobs or steps and waits for their end. The command `list` prints their numbers.
fn cancel_script(list: &str) -> String {
    let body = format!(
        "\
listed() {{
    {list}
}}
while ids=$(listed) && [ -n \"$ids\" ]; do
    # A job that is already ending makes scancel fail.
    xargs scancel <<<\"$ids\" || true
    sleep 1
done"
    );
    script("", &[], &body)
}
