//! The text of a batch script: what is asked of Slurm, and what is done in the job. Decides nothing, reads nothing.

use super::{BatchArguments, SlurmLauncher};
use crate::cli::name_of;
use feedrate_spec::escape::bash_command;
use feedrate_study::bash;
use std::fmt::Write;
use std::num::NonZeroU32;

/// A batch job.
pub(super) struct Job<'a> {
    /// Options of Slurm.
    pub(super) batch: &'a BatchArguments,
    /// In queues.
    pub(super) name: &'a str,
    /// `--time`.
    pub(super) time: &'a str,
    /// Repetitions, one after another.
    pub(super) array: Option<NonZeroU32>,
    /// Description of the script and of its time limit: lines of a comment.
    pub(super) about: Vec<String>,
    /// Behaviour when the job is requeued: a line of a comment.
    pub(super) requeued: &'static str,
    /// A minute before the time is over the script is told, instead of all steps of the job.
    pub(super) is_script_told: bool,
    /// Lines of bash.
    pub(super) lines: Vec<String>,
}

impl Job<'_> {
    /// The script.
    pub(super) fn script(&self) -> String {
        let about: String = self.about.iter().map(|line| format!("# {line}\n")).collect();
        let head = format!("{about}{}\n", self.options());
        // No module's name has a blank: `--module "a b"` names two.
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
        if let Some(times) = self.array {
            text +=
                "# One after another: side by side they would take the storage from each other.\n";
            let _ = writeln!(text, "#SBATCH --array=1-{times}%1");
        }
        let _ = write!(
            text,
            "\
# {}
#SBATCH --requeue
#SBATCH --open-mode=append
# A minute before its time is over the run is told to stop, and still writes down what it measured.
#SBATCH --signal={}TERM@60
",
            self.requeued,
            if self.is_script_told { "B:" } else { "" },
        );
        text
    }
}

/// A function of bash: `launch COMMAND` starts a command's processes.
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
                // Since 22.05 srun does not take it from the job.
                let _ = write!(command, " --cpus-per-task={cpus}");
            }
            format!("launch() {{\n    {command} \"$@\"\n}}\n")
        }
        SlurmLauncher::Mpirun => format!(
            "\
# What mpirun started is no step of Slurm's: the signal comes here, and is handed on.
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

/// `$results` becomes a new folder of this start of the job, below `results`, which is quoted.
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
