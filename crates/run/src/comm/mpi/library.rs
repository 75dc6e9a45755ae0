//! Finds the MPI library to open: the one that was asked for, the one that lies beside the launcher, or those the system's loader
//! knows, of the kind that the launcher belongs to.

use super::abi::{MPICH, STANDARD, open_mpi};
use super::calls::Calls;
use super::launcher::MpiLauncher;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::c_void;
use std::path::{Path, PathBuf};

/// Libraries of Open MPI 3 to 5.
const OPEN_MPI_NAMES: &[&str] = &["libmpi.so.40"];
/// Libraries of MPICH and its family, as <https://www.mpich.org/abi/> names them, then those of Debian and of the standard.
const MPICH_NAMES: &[&str] =
    &["libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"];
/// Processes that start ranks; their libraries lie beside them.
const LAUNCHERS: &[&str] = &[
    "mpirun",
    "mpiexec",
    "mpiexec.hydra",
    "mpirun.mpich",
    "mpiexec.mpich",
    "hydra_pmi_proxy",
    "mpirun.openmpi",
    "orterun",
    "orted",
    "prterun",
    "prted",
    "prte",
];
/// Wrappers between launcher and rank that are looked past: shells, Python, profilers.
const ANCESTORS_MAX: usize = 6;

/// An opened library.
pub(super) struct OpenedLibrary {
    pub(super) calls: Calls,
    pub(super) path: PathBuf,
}

/// A file that was tried, and why it would not do.
pub(super) type Tried = (PathBuf, String);

/// Open the first of `candidates` that will do.
pub(super) fn open_first(candidates: Vec<PathBuf>) -> Result<OpenedLibrary, Vec<Tried>> {
    let mut tried = Vec::new();
    for path in candidates {
        match open(&path) {
            Ok(calls) => return Ok(OpenedLibrary { calls, path }),
            Err(why) => tried.push((path, why)),
        }
    }
    Err(tried)
}

fn open(path: &Path) -> Result<Calls, String> {
    // SAFETY: an MPI library's initializers are meant to run in any process. Global: its plug-ins look for its symbols.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    let library = library.map_err(|error| {
        let words = std::error::Error::source(&error).map(ToString::to_string);
        words.unwrap_or_else(|| error.to_string())
    })?;
    let abi = if address(&library, "ompi_mpi_comm_world").is_some() {
        open_mpi(|symbol| address(&library, symbol)).map_err(missing)?
    } else if is_standard(path) {
        STANDARD
    } else {
        MPICH
    };
    let calls = Calls::find(&library, abi).map_err(missing)?;
    // Libraries register what runs at the process's end: they must stay.
    std::mem::forget(library);
    Ok(calls)
}

fn address(library: &Library, symbol: &str) -> Option<usize> {
    // SAFETY: only the address is taken; nothing is read there.
    let symbol = unsafe { library.get::<*mut c_void>(symbol.as_bytes()) };
    Some(symbol.ok()?.into_raw() as usize)
}

fn missing(symbol: &str) -> String {
    format!("`{symbol}` is not in it")
}

/// The standard's libraries are told by their name, which it prescribes.
fn is_standard(path: &Path) -> bool {
    [Some(path.to_owned()), path.canonicalize().ok()].iter().flatten().any(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmpi_abi"))
    })
}

/// Where to look for the library of ranks that `launcher` started; `beside`: folders of libraries beside it.
pub(super) fn candidates(launcher: Option<MpiLauncher>, beside: &[PathBuf]) -> Vec<PathBuf> {
    let names: Vec<&str> = match launcher {
        Some(MpiLauncher::OpenMpi) => OPEN_MPI_NAMES.to_vec(),
        Some(MpiLauncher::Hydra) => MPICH_NAMES.to_vec(),
        Some(MpiLauncher::SlurmPmi) => [MPICH_NAMES, OPEN_MPI_NAMES].concat(),
        _ => [OPEN_MPI_NAMES, MPICH_NAMES].concat(),
    };
    let there = beside.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let there: Vec<PathBuf> = there.filter(|path| path.exists()).collect();
    there.into_iter().chain(names.iter().map(PathBuf::from)).collect()
}

/// Folders of libraries beside the process that started this one, if that is an MPI's.
pub(super) fn beside_launcher() -> Vec<PathBuf> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS_MAX {
        if let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) {
            let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if LAUNCHERS.contains(&name.as_str()) {
                let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
                return vec![prefix.join("lib"), prefix.join("lib64")];
            }
        }
        match parent_of(pid) {
            Some(parent) if parent > 1 => pid = parent,
            _ => break,
        }
    }
    Vec::new()
}

/// The fourth field of `/proc/<pid>/stat`, behind a name that may hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_gets_the_libraries_of_its_kind() {
        let check = |launcher, first: &str, holds: &[&str], lacks: &[&str]| {
            let names = candidates(launcher, &[]);
            assert_eq!(names.first().map(PathBuf::as_path), Some(Path::new(first)));
            assert!(holds.iter().all(|name| names.contains(&PathBuf::from(name))), "{names:?}");
            assert!(!lacks.iter().any(|name| names.contains(&PathBuf::from(name))), "{names:?}");
        };
        check(Some(MpiLauncher::OpenMpi), "libmpi.so.40", &[], &["libmpi.so.12"]);
        check(Some(MpiLauncher::Hydra), "libmpi.so.12", &["libmpi_abi.so.1"], &["libmpi.so.40"]);
        check(Some(MpiLauncher::SlurmPmi), "libmpi.so.12", &["libmpi.so.40"], &[]);
        check(Some(MpiLauncher::SlurmPmix), "libmpi.so.40", &["libmpi.so.12"], &[]);
        check(None, "libmpi.so.40", &["libmpich.so.12"], &[]);
    }

    #[test]
    fn libraries_beside_the_launcher_come_first_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libmpi.so.12"), b"").unwrap();
        let beside = [folder.path().to_owned()];
        let names = candidates(Some(MpiLauncher::Hydra), &beside);
        assert_eq!(names[0], folder.path().join("libmpi.so.12"));
        assert_eq!(names[1], Path::new("libmpi.so.12"));
    }

    #[test]
    fn what_is_no_library_is_told_with_the_loaders_words() {
        let tried = open_first(vec![PathBuf::from("/etc/hostname")]).err().unwrap();
        assert!(tried[0].1.contains("/etc/hostname"), "{tried:?}");
        let libc = open_first(vec![PathBuf::from("libc.so.6")]).err().unwrap();
        assert_eq!(libc[0].1, "`MPI_Init_thread` is not in it");
    }

    #[test]
    fn a_parent_is_found_behind_a_name_with_brackets() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
