//! A Slurm cluster of one node in a folder: munged, slurmctld and slurmd run for one test. The tests need root and Debian's packages, which
//! `cargo xtask setup` installs.

mod jobs;
mod studies;

use crate::harness::{Answer, Test};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Maximum wait for an event. Events come much sooner; the limit ends a test that would hang.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running cluster. Dropping it ends the daemons.
struct Cluster {
    daemons: Vec<Child>,
    /// Folder of the daemons and of the jobs.
    test: Test,
}

impl Cluster {
    fn start() -> Self {
        let test = Test::new();
        assert_eq!(
            fs::metadata(test.path("")).unwrap().uid(),
            0,
            "starting a Slurm cluster needs root\n  hint: run the tests as root"
        );
        // Clients of munged must be able to reach its socket.
        fs::set_permissions(test.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["state", "spool"] {
            fs::create_dir(test.path(folder)).unwrap();
        }
        test.write("slurm.conf", configuration(&test));
        test.write("munge.key", (0..=255).collect::<Vec<u8>>());
        fs::set_permissions(test.path("munge.key"), fs::Permissions::from_mode(0o400)).unwrap();
        let mut cluster = Cluster { daemons: Vec::new(), test };
        let path = |name: &str| cluster.test.path(name).display().to_string();
        let munge = [
            "--foreground".into(),
            format!("--key-file={}", path("munge.key")),
            format!("--socket={}", path("munge.sock")),
            format!("--pid-file={}", path("munged.pid")),
            format!("--log-file={}", path("munged.log")),
            format!("--seed-file={}", path("munged.seed")),
        ];
        let conf = path("slurm.conf");
        cluster.daemon("munged", &munge.iter().map(String::as_str).collect::<Vec<_>>());
        let socket = cluster.test.path("munge.sock");
        cluster.wait_until("munged answers", |_| socket.exists());
        cluster.daemon("slurmctld", &["-D", "-f", &conf]);
        cluster.daemon("slurmd", &["-D", "-f", &conf]);
        let is_idle =
            |cluster: &Cluster| cluster.slurm("sinfo", &["-h", "-o", "%T"]).stdout == "idle\n";
        cluster.wait_until("the node is idle", is_idle);
        cluster
    }

    fn daemon(&mut self, program: &str, arguments: &[&str]) {
        let log = || fs::File::create(self.test.path(&format!("{program}.out"))).unwrap();
        let child = Command::new(program)
            .args(arguments)
            .env("SLURM_CONF", self.test.path("slurm.conf"))
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot start `{program}`: {error}\n  hint: run `cargo xtask setup`")
            });
        self.daemons.push(child);
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.test.path(""))
            .env("SLURM_CONF", self.test.path("slurm.conf"))
            .env("FEEDRATE", FEEDRATE)
            .env("DLIO_BENCHMARK", DLIO_BENCHMARK)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("NO_COLOR", "1");
        command
    }

    fn slurm(&self, program: &str, arguments: &[&str]) -> Answer {
        Answer::from_output(&self.command(program, arguments).output().unwrap())
    }

    /// Writes the batch script for `arguments`, submits it, and returns the job's number.
    #[track_caller]
    fn submit(&self, arguments: &[&str]) -> String {
        let slurm = [&["slurm", "workload.yaml", "-o", "job.sh", "--force"], arguments].concat();
        let written = self.test.feedrate(&slurm);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let submitted = self.slurm("sbatch", &["--parsable", "--output=%A_%a.out", "job.sh"]);
        assert_eq!(submitted.code, 0, "{}", submitted.stderr);
        submitted.stdout.trim().to_string()
    }

    /// Slurm's values of `key` for a job, one for each task of an array.
    fn values(&self, job: &str, key: &str) -> Vec<String> {
        let shown = self.slurm("scontrol", &["--oneliner", "show", "job", job]).stdout;
        let values =
            shown.split_whitespace().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        values.map(str::to_string).collect()
    }

    /// Waits until a job has ended, and returns the final state of each task.
    #[track_caller]
    fn wait_for_end(&self, job: &str) -> Vec<String> {
        let is_over = |cluster: &Cluster| {
            let unfinished = ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED"];
            let states = cluster.values(job, "JobState");
            !states.is_empty() && states.iter().all(|state| !unfinished.contains(&state.as_str()))
        };
        self.wait_until(&format!("job {job} ends"), is_over);
        self.values(job, "JobState")
    }

    /// The output of a job so far.
    fn output(&self, job: &str) -> String {
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let names = fs::read_dir(self.test.path("")).unwrap().flatten().map(name);
        let mut names: Vec<String> =
            names.filter(|n| n.starts_with(&format!("{job}_")) && n.ends_with(".out")).collect();
        names.sort();
        names.iter().map(|name| fs::read_to_string(self.test.path(name)).unwrap()).collect()
    }

    /// The records below a folder of results, in the order of their paths.
    fn records(&self, folder: &str) -> Vec<serde_json::Value> {
        let mut found = Vec::new();
        find_files(&self.test.path(folder), "record.json", &mut found);
        found.sort();
        found.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
    }

    #[track_caller]
    fn wait_until(&self, condition: &str, is_true: impl Fn(&Cluster) -> bool) {
        let start = Instant::now();
        while !is_true(self) {
            // A check may start a program; without a pause, the checks would keep the jobs' processors busy.
            std::thread::sleep(POLL_INTERVAL);
            assert!(start.elapsed() < TIMEOUT, "timeout before {condition}:\n{}", self.logs());
        }
    }

    /// The output of jobs and daemons.
    fn logs(&self) -> String {
        let mut logs = String::new();
        let tasks =
            fs::read_dir(self.test.path("study.study/logs")).into_iter().flatten().flatten();
        let task_files =
            tasks.flat_map(|task| fs::read_dir(task.path()).into_iter().flatten().flatten());
        let files = fs::read_dir(self.test.path("")).unwrap().flatten();
        for path in files.chain(task_files).map(|entry| entry.path()) {
            let is_output = path.extension().is_some_and(|ending| ending == "out");
            if is_output || path.ends_with("stderr") || path.ends_with("stdout") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let last: Vec<&str> = text.lines().rev().take(20).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                logs += &format!("== {}\n{}\n", path.display(), last.join("\n"));
            }
        }
        logs
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Processes of a job are not children of a daemon, so they are cancelled first.
        self.slurm("scancel", &["--full", "--signal=KILL", "--user=root"]);
        self.slurm("scancel", &["--user=root"]);
        let start = Instant::now();
        while start.elapsed() < TIMEOUT && !self.slurm("squeue", &["-h"]).stdout.is_empty() {
            std::thread::sleep(POLL_INTERVAL);
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

const FEEDRATE: &str = env!("CARGO_BIN_EXE_feedrate");
const DLIO_BENCHMARK: &str = env!("CARGO_BIN_EXE_dlio_benchmark");

/// A minimal configuration: no accounting, no control groups, and possibly more CPUs than the machine has.
fn configuration(test: &Test) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let (host, folder) = (host.trim(), test.path("").display().to_string());
    let folder = folder.trim_end_matches('/');
    let [controller, node] = free_ports();
    format!(
        "\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
KillWait=10
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=100 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=60 State=UP
"
    )
}

/// Two free ports below the range that the system assigns to connections, so that no other program takes them before the daemons do.
fn free_ports() -> [u16; 2] {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let next = || {
        let tried = std::process::id().wrapping_mul(8) + TRIED.fetch_add(1, Relaxed);
        10_000 + (tried % 20_000) as u16
    };
    let free = || loop {
        let port = next();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    };
    [free(), free()]
}

/// The process with this rank in the cluster's only running job that runs `program`. It is found by its folder, since other clusters have
/// jobs with the same number.
fn find_task(cluster: &Cluster, rank: u32, program: &Path) -> Option<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let folder = fs::canonicalize(cluster.test.path("")).unwrap();
    let wanted = format!("SLURM_PROCID={rank}");
    ids.find(|id| {
        let link_is = |link: &str, path: &Path| {
            fs::read_link(format!("/proc/{id}/{link}")).is_ok_and(|found| found == path)
        };
        let environment = || fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        link_is("cwd", &folder)
            && link_is("exe", program)
            && environment().split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    })
}

pub(crate) fn find_files(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_files(&path, name, found);
        } else if path.ends_with(name) {
            found.push(path);
        }
    }
}
