//! Formats a batch script: options for Slurm, and the lines of bash that the job runs. This module decides and reads nothing.

use super::{BatchArguments, SlurmLauncher};
use crate::cli::name_of;
use feedrate_spec::escape::bash_command;
use feedrate_study::bash;
use std::fmt::Write;
use std::num::NonZeroU32;

/// A batch job.
pub(super) struct Job<'a> {
    /// Slurm's options.
    pub(super) batch: &'a BatchArguments,
    /// Name in the queue.
    pub(super) name: &'a str,
    /// Value of `--time`.
    pub(super) time: &'a str,
    /// Number of jobs in an array.
    pub(super) array: Option<NonZeroU32>,
    /// Comment lines on the script and its time limit.
    pub(super) about: Vec<String>,
    /// Comment line that says what a requeued job does.
    pub(super) requeued: &'static str,
    /// Whether the script, not the job's steps, receives Slurm's signal before the time limit.
    pub(super) signals_script: bool,
    /// Lines of bash that the job runs.
    pub(super) lines: Vec<String>,
}

impl Job<'_> {
    /// Text of the script.
    pub(super) fn script(&self) -> String {
        let about: String = self.about.iter().map(|line| format!("# {line}\n")).collect();
        let head = format!("{about}{}\n", self.options());
        // Names of modules contain no blanks, so `--module "a b"` means two modules.
        let words = |names: &str| bash_command(&names.split_whitespace().collect::<Vec<_>>());
        let modules = self.batch.modules.iter();
        let modules: Vec<String> =
            modules.map(|names| format!("module load {}", words(names))).collect();
        bash::script(&head, &modules, &format!("\n{}", self.lines.join("\n")))
    }

    fn options(&self) -> String {
        let batch = self.batch;
        let name: String = self.name.chars().filter(|c| !c.is_whitespace()).collect();
        let chdir = batch.chdir.as_ref().map(|folder| format!("\"{}\"", folder.display()));
        let options = [
            ("job-name", Some(format!("feedrate-{name}"))),
            ("partition", batch.partition.clone()),
            ("account", batch.account.clone()),
            ("chdir", chdir),
            ("nodes", Some(batch.nodes.to_string())),
            ("ntasks-per-node", Some(batch.tasks_per_node.to_string())),
            ("cpus-per-task", batch.cpus_per_task.map(|cpus| cpus.to_string())),
            ("time", Some(self.time.to_string())),
        ];
        let mut text = String::new();
        for (name, value) in options {
            text.extend(value.map(|value| format!("#SBATCH --{name}={value}\n")));
        }
        if let Some(jobs) = self.array {
            text += "# One after another, since parallel jobs would compete for the storage.\n";
            let _ = writeln!(text, "#SBATCH --array=1-{jobs}%1");
        }
        let _ = write!(
            text,
            "\
# {}
#SBATCH --requeue
#SBATCH --open-mode=append
# One minute before the time limit, a signal makes the run stop and save its results.
#SBATCH --signal={}TERM@60
",
            self.requeued,
            if self.signals_script { "B:" } else { "" },
        );
        text
    }
}

/// Bash function `launch COMMAND`, which starts the processes of a command.
pub(super) fn launch_function(
    batch: &BatchArguments,
    launcher: SlurmLauncher,
    tasks: u32,
) -> String {
    match launcher {
        SlurmLauncher::Srun => {
            let mut command = String::from("srun");
            if tasks > 1 {
                let _ = write!(command, " --mpi={}", name_of(batch.mpi));
            }
            if let Some(cpus) = batch.cpus_per_task {
                // Since Slurm 22.05, srun does not inherit this option from the job.
                let _ = write!(command, " --cpus-per-task={cpus}");
            }
            format!("launch() {{\n    {command} \"$@\"\n}}\n")
        }
        SlurmLauncher::Mpirun => format!(
            "\
# Processes of mpirun are not steps of the job, so the script receives the signal and forwards it.
launch() {{
    mpirun -n {tasks} \"$@\" &
    local pid=$! code=0
    trap 'kill -TERM \"$pid\"' TERM
    wait \"$pid\" || code=$?
    while kill -0 \"$pid\" 2>/dev/null; do
        code=0
        wait \"$pid\" || code=$?
    done
    trap - TERM
    return \"$code\"
}}
"
        ),
    }
}

/// Lines that set `$results` to a new folder for each start of the job. `results` is the parent folder as a word of bash.
pub(super) fn results_folder(results: &str) -> String {
    format!(
        "\
job=$SLURM_JOB_ID
if [ -n \"${{SLURM_ARRAY_TASK_ID:-}}\" ]; then
    job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
fi
results={results}/job-$job
mkdir -p \"$results\"
results=$results/start-$((${{SLURM_RESTART_COUNT:-0}} + 1))
mkdir \"$results\"
"
    )
}
