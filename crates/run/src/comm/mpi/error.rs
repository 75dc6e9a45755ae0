//! Errors that occur when the ranks connect, with hints for the user.

use super::launcher::{LaunchedRank, MpiLauncher};
use crate::comm::CommError;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The ranks could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No MPI library could be opened.
    #[error("{}", no_library_text(launched.as_ref(), tried))]
    NoLibrary {
        /// The launcher's description of this process.
        launched: Option<LaunchedRank>,
        /// The files that were tried, and why each failed.
        tried: Vec<(PathBuf, String)>,
    },
    /// The library does not match the launcher: it belongs to another MPI implementation, or it regards each process as the only rank.
    #[error("{} started rank {}{}, and the MPI library {problem}", launched.launcher, launched.rank, size_text(launched.size))]
    WrongLibrary {
        /// The launcher's description of this process.
        launched: LaunchedRank,
        /// Description of the library that completes the sentence "the MPI library …".
        problem: String,
    },
    /// The library was built without support for threads.
    #[error("the MPI library does not support multithreaded processes: {library}")]
    NoThreadSupport {
        /// Path and version of the library.
        library: String,
    },
    /// MPI was initialized before in this process.
    #[error("this process has already connected to its ranks")]
    AlreadyConnected,
    /// The ranks could not connect.
    #[error(transparent)]
    Comm(#[from] CommError),
}

impl ConnectError {
    /// Returns a hint on how to fix the cause, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConnectError::NoLibrary { launched, .. } => Some(match launched {
                Some(launched) => format!(
                    "use `--mpi-library PATH` with the library of the MPI that started the ranks: {}",
                    library_files(launched.launcher)
                ),
                None => "`--mpi-library` expects the path of a libmpi.so".to_owned(),
            }),
            ConnectError::WrongLibrary { launched, .. } => Some(remedy(launched.launcher)),
            ConnectError::NoThreadSupport { .. } => Some(
                "use a library that supports MPI_THREAD_FUNNELED or a higher thread level"
                    .to_owned(),
            ),
            ConnectError::AlreadyConnected => None,
            ConnectError::Comm(error) => error.hint().map(str::to_owned),
        }
    }

    /// Whether this process reports the error. Errors that occur on all ranks are reported by rank 0 only.
    pub fn must_report(&self) -> bool {
        match self {
            ConnectError::NoLibrary { launched: Some(launched), .. }
            | ConnectError::WrongLibrary { launched, .. } => launched.rank == 0,
            _ => true,
        }
    }
}

fn no_library_text(launched: Option<&LaunchedRank>, tried: &[(PathBuf, String)]) -> String {
    let mut text = match launched {
        Some(launched) => format!(
            "{} started rank {}{}, and no MPI library can be opened",
            launched.launcher,
            launched.rank,
            size_text(launched.size)
        ),
        None => "the MPI library cannot be opened".to_owned(),
    };
    for (path, error) in tried {
        // Messages of the dynamic linker often begin with the path.
        let name = path.display().to_string();
        let reason = error.strip_prefix(&format!("{name}: ")).unwrap_or(error);
        let _ = write!(text, "; `{name}`: {reason}");
    }
    text
}

fn size_text(size: Option<u32>) -> String {
    size.map_or_else(String::new, |size| format!(" of {size}"))
}

fn library_files(launcher: MpiLauncher) -> &'static str {
    match launcher {
        MpiLauncher::OpenMpi => "libmpi.so.40 in its lib folder",
        MpiLauncher::Hydra => "libmpi.so.12 or libmpi_abi.so.1 in its lib folder",
        _ => "libmpi.so.40 of Open MPI, libmpi.so.12 or libmpi_abi.so.1 of MPICH and its family",
    }
}

fn remedy(launcher: MpiLauncher) -> String {
    match launcher {
        MpiLauncher::OpenMpi | MpiLauncher::Hydra | MpiLauncher::Pmix => format!(
            "start with the `mpirun` of the same MPI, or use `--mpi-library PATH` with the launcher's library: {}",
            library_files(launcher)
        ),
        MpiLauncher::Slurm => "start with `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH and its family); \
                            `srun --mpi=list` lists the available ones"
            .to_owned(),
        MpiLauncher::SlurmPmi => "`--mpi=pmi2` requires MPICH or its family: use `--mpi-library PATH` with such a library, \
                               or start with `srun --mpi=pmix` for Open MPI"
            .to_owned(),
        MpiLauncher::SlurmPmix => "`--mpi=pmix` requires Open MPI: use `--mpi-library PATH` with such a library, or start \
                                with `srun --mpi=pmi2` for MPICH and its family"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launcher_has_its_remedy() {
        let check = |launcher, words: &str| {
            let launched = LaunchedRank { rank: 0, size: Some(4), local_size: None, launcher };
            let error = ConnectError::WrongLibrary {
                launched,
                problem: "belongs to another MPI".to_owned(),
            };
            let hint = error.hint().unwrap();
            assert!(hint.contains(words), "{hint}");
        };
        check(MpiLauncher::OpenMpi, "libmpi.so.40");
        check(MpiLauncher::Hydra, "libmpi_abi.so.1");
        check(MpiLauncher::Slurm, "srun --mpi=pmix");
        check(MpiLauncher::SlurmPmi, "srun --mpi=pmix");
        check(MpiLauncher::SlurmPmix, "srun --mpi=pmi2");
    }

    #[test]
    fn the_path_of_a_tried_library_is_shown_once() {
        let error = ConnectError::NoLibrary {
            launched: Some(LaunchedRank {
                rank: 3,
                size: Some(4),
                local_size: None,
                launcher: MpiLauncher::Hydra,
            }),
            tried: vec![("libmpi.so.12".into(), "libmpi.so.12: no such file".to_owned())],
        };
        assert_eq!(
            error.to_string(),
            "MPICH's mpirun started rank 3 of 4, and no MPI library can be opened; `libmpi.so.12`: no such file"
        );
        assert!(!error.must_report());
    }
}
