//! Finds and opens the MPI library: the requested one, otherwise one that belongs to the launcher's MPI implementation. The search begins in
//! the launcher's installation and continues with the dynamic linker.

use super::abi::{MPICH, STANDARD, open_mpi};
use super::calls::Calls;
use super::launcher::MpiLauncher;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::c_void;
use std::path::{Path, PathBuf};

/// Libraries of Open MPI 3 to 5.
const OPEN_MPI_NAMES: &[&str] = &["libmpi.so.40"];
/// Libraries of MPICH and its family: the name in <https://www.mpich.org/abi/>, then the names in Debian and in the standard.
const MPICH_NAMES: &[&str] =
    &["libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"];
/// Programs that start ranks. Their installations contain the MPI library.
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
/// Number of ancestor processes that are searched for a launcher. Shells, Python or profilers may run between the launcher and the rank.
const ANCESTORS_MAX: usize = 6;

/// An opened library.
pub(super) struct OpenedLibrary {
    pub(super) calls: Calls,
    pub(super) path: PathBuf,
}

/// The path of a library that could not be used, and the reason.
pub(super) type RejectedLibrary = (PathBuf, String);

/// Opens the first usable library of `candidates`.
pub(super) fn open_first(candidates: Vec<PathBuf>) -> Result<OpenedLibrary, Vec<RejectedLibrary>> {
    let mut rejected = Vec::new();
    for path in candidates {
        match open(&path) {
            Ok(calls) => return Ok(OpenedLibrary { calls, path }),
            Err(error) => rejected.push((path, error)),
        }
    }
    Err(rejected)
}

fn open(path: &Path) -> Result<Calls, String> {
    // SAFETY: an MPI library's initializers are meant to run in any process. The symbols are global because plug-ins look them up.
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    let library = opened.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        source.unwrap_or_else(|| error.to_string())
    })?;
    let abi = if address(&library, "ompi_mpi_comm_world").is_some() {
        open_mpi(|symbol| address(&library, symbol)).map_err(missing_symbol)?
    } else if has_standard_abi(path) {
        STANDARD
    } else {
        MPICH
    };
    let calls = Calls::find(&library, abi).map_err(missing_symbol)?;
    // Keeps the library loaded, since it registers functions that run when the process exits.
    std::mem::forget(library);
    Ok(calls)
}

fn address(library: &Library, symbol: &str) -> Option<usize> {
    // SAFETY: only the address is taken; the symbol is not read.
    let symbol = unsafe { library.get::<*mut c_void>(symbol.as_bytes()) };
    Some(symbol.ok()?.into_raw() as usize)
}

fn missing_symbol(symbol: &str) -> String {
    format!("symbol `{symbol}` not found")
}

/// Whether a library has the ABI of the MPI standard, by the file name that the standard prescribes.
fn has_standard_abi(path: &Path) -> bool {
    [Some(path.to_owned()), path.canonicalize().ok()].iter().flatten().any(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmpi_abi"))
    })
}

/// Returns the libraries to try, in order, for ranks started by `launcher`: existing files in `folders`, then names that the dynamic linker
/// resolves.
pub(super) fn candidates(launcher: Option<MpiLauncher>, folders: &[PathBuf]) -> Vec<PathBuf> {
    let names: Vec<&str> = match launcher {
        Some(MpiLauncher::OpenMpi) => OPEN_MPI_NAMES.to_vec(),
        Some(MpiLauncher::Hydra) => MPICH_NAMES.to_vec(),
        Some(MpiLauncher::SlurmPmi) => [MPICH_NAMES, OPEN_MPI_NAMES].concat(),
        _ => [OPEN_MPI_NAMES, MPICH_NAMES].concat(),
    };
    let paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let existing = paths.filter(|path| path.exists());
    existing.chain(names.iter().map(PathBuf::from)).collect()
}

/// Returns the library folders of the launcher's installation, if an ancestor of this process is an MPI launcher.
pub(super) fn launcher_folders() -> Vec<PathBuf> {
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

/// Returns the parent of a process: the fourth field of `/proc/<pid>/stat`, after a name that may contain parentheses.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_gets_the_libraries_of_its_kind() {
        let check = |launcher, first: &str, included: &[&str], excluded: &[&str]| {
            let names = candidates(launcher, &[]);
            let contains = |name: &&str| names.contains(&PathBuf::from(name));
            assert_eq!(names.first().map(PathBuf::as_path), Some(Path::new(first)));
            assert!(included.iter().all(contains), "{names:?}");
            assert!(!excluded.iter().any(contains), "{names:?}");
        };
        check(Some(MpiLauncher::OpenMpi), "libmpi.so.40", &[], &["libmpi.so.12"]);
        check(Some(MpiLauncher::Hydra), "libmpi.so.12", &["libmpi_abi.so.1"], &["libmpi.so.40"]);
        check(Some(MpiLauncher::SlurmPmi), "libmpi.so.12", &["libmpi.so.40"], &[]);
        check(Some(MpiLauncher::SlurmPmix), "libmpi.so.40", &["libmpi.so.12"], &[]);
        check(None, "libmpi.so.40", &["libmpich.so.12"], &[]);
    }

    #[test]
    fn existing_libraries_of_the_launcher_come_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libmpi.so.12"), b"").unwrap();
        let folders = [folder.path().to_owned()];
        let names = candidates(Some(MpiLauncher::Hydra), &folders);
        assert_eq!(names[0], folder.path().join("libmpi.so.12"));
        assert_eq!(names[1], Path::new("libmpi.so.12"));
    }

    #[test]
    fn a_file_that_is_not_an_mpi_library_is_reported_with_the_loaders_message() {
        let tried = open_first(vec![PathBuf::from("/etc/hostname")]).err().unwrap();
        assert!(tried[0].1.contains("/etc/hostname"), "{tried:?}");
        let libc = open_first(vec![PathBuf::from("libc.so.6")]).err().unwrap();
        assert_eq!(libc[0].1, "symbol `MPI_Init_thread` not found");
    }

    #[test]
    fn the_parent_of_this_process_is_found() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
