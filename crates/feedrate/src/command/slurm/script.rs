//! The text of a batch script: what is asked of Slurm, and what is done in the job. Decides nothing, reads nothing.

use crate::cli::{SlurmLauncher, SlurmMpi};
use feedrate_study::bash::{self, quoted};
use std::fmt::Write;

/// Options of a batch job.
#[derive(Clone, Debug)]
pub(super) struct BatchJob {
    /// `--job-name`.
    pub(super) name: String,
    /// `--partition`.
    pub(super) partition: Option<String>,
    /// `--account`.
    pub(super) account: Option<String>,
    /// `--chdir`.
    pub(super) chdir: Option<String>,
    /// `--nodes`.
    pub(super) nodes: u32,
    /// `--ntasks-per-node`.
    pub(super) tasks_per_node: u32,
    /// `--cpus-per-task`.
    pub(super) cpus_per_task: Option<u32>,
    /// `--time`.
    pub(super) time: String,
    /// Repetitions, one after another.
    pub(super) array: Option<u32>,
    /// Loaded in this order.
    pub(super) modules: Vec<String>,
}

/// The processes of a command in a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processes {
    /// How many.
    pub(super) tasks: u32,
    /// Launcher.
    pub(super) launcher: SlurmLauncher,
    /// Plugin by which they find each other.
    pub(super) mpi: SlurmMpi,
    /// CPUs of each.
    pub(super) cpus: Option<u32>,
}

/// Work of a job: a workload, or a study.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Description of the script and of its time limit: lines of a comment.
    pub(super) about: Vec<String>,
    /// Behaviour when the job is requeued: a line of a comment.
    pub(super) requeued: &'static str,
    /// Who is told a minute before the time is over.
    pub(super) told: Told,
    /// Lines of bash.
    pub(super) lines: Vec<String>,
}

/// Who is told to stop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// All steps of the job.
    Steps,
    /// The script.
    Script,
}

/// The script.
pub(super) fn script(job: &BatchJob, work: &Work) -> String {
    let mut head = String::new();
    for line in &work.about {
        let _ = writeln!(head, "# {line}");
    }
    let head = head + &options(job, work) + "\n";
    let mut modules = Vec::new();
    for module in &job.modules {
        modules.push(format!("module load {}", quoted(module)));
    }
    bash::script(&head, &modules, &format!("\n{}", work.lines.join("\n")))
}

fn options(job: &BatchJob, work: &Work) -> String {
    let mut text = String::new();
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "#SBATCH --{name}={value}");
        }
    };
    option("job-name", Some(job.name.clone()));
    option("partition", job.partition.clone());
    option("account", job.account.clone());
    option("chdir", job.chdir.as_ref().map(|folder| format!("\"{folder}\"")));
    option("nodes", Some(job.nodes.to_string()));
    option("ntasks-per-node", Some(job.tasks_per_node.to_string()));
    option("cpus-per-task", job.cpus_per_task.map(|cpus| cpus.to_string()));
    option("time", Some(job.time.clone()));
    if let Some(times) = job.array {
        text += "# One after another: side by side they would take the storage from each other.\n";
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
        work.requeued,
        match work.told {
            Told::Steps => "",
            Told::Script => "B:",
        }
    );
    text
}

/// A function of bash: `launch COMMAND` starts a command's processes.
pub(super) fn launch(processes: &Processes) -> String {
    let tasks = processes.tasks;
    match processes.launcher {
        SlurmLauncher::Srun => {
            let mut command = String::from("srun");
            if tasks > 1 {
                let _ = write!(command, " --mpi={}", name_of(processes.mpi));
            }
            if let Some(cpus) = processes.cpus {
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

/// As srun writes it.
pub(super) fn name_of(mpi: SlurmMpi) -> &'static str {
    match mpi {
        SlurmMpi::Pmi2 => "pmi2",
        SlurmMpi::Pmix => "pmix",
    }
}

/// `$results` becomes a new folder of this start of the job, below `results`, which is quoted.
pub(super) fn folder(results: &str) -> String {
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
