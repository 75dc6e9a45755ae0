//! Errors of connecting the ranks, with hints.

use super::launcher::{Launched, MpiLauncher};
use crate::comm::CommError;
use std::fmt::Write as _;
use std::path::PathBuf;

/// An error of connecting the ranks.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No MPI library could be opened.
    #[error("{}", no_library(launched.as_ref(), tried))]
    NoLibrary {
        /// The launcher's description of this process.
        launched: Option<Launched>,
        /// The files that were tried, and why each failed.
        tried: Vec<(PathBuf, String)>,
    },
    /// The library does not fit the launcher: it is of another family, or takes each process for the only rank.
    #[error("{} started rank {}{}, and the MPI library {problem}", launched.launcher, launched.rank, size_text(launched.size))]
    Unfit {
        /// The launcher's description of this process.
        launched: Launched,
        /// Predicate that describes the library.
        problem: String,
    },
    /// The library was built without support for threads.
    #[error("the MPI library cannot be used by a process with threads: {library}")]
    Threads {
        /// Its path and version.
        library: String,
    },
    /// MPI was initialized before in this process.
    #[error("this process has joined its ranks before")]
    Again,
    /// The ranks could not connect.
    #[error(transparent)]
    Comm(#[from] CommError),
}

impl ConnectError {
    /// Returns advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConnectError::NoLibrary { launched, .. } => Some(match launched {
                Some(launched) => format!(
                    "give the library of the MPI that started the ranks by `--mpi-library PATH`: {}",
                    library_files(launched.launcher)
                ),
                None => "`--mpi-library` wants the path of a libmpi.so".to_owned(),
            }),
            ConnectError::Unfit { launched, .. } => Some(remedy(launched.launcher)),
            ConnectError::Threads { .. } => {
                Some("use one that grants MPI_THREAD_FUNNELED or more".to_owned())
            }
            ConnectError::Again => None,
            ConnectError::Comm(error) => error.hint().map(str::to_owned),
        }
    }

    /// Whether this process reports the error. Errors that all ranks have are reported by rank 0 only.
    pub fn must_report(&self) -> bool {
        match self {
            ConnectError::NoLibrary { launched: Some(launched), .. }
            | ConnectError::Unfit { launched, .. } => launched.rank == 0,
            _ => true,
        }
    }
}

fn no_library(launched: Option<&Launched>, tried: &[(PathBuf, String)]) -> String {
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
        // Messages of the loader often begin with the path.
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
            "start with the `mpirun` of the same MPI, or name the launcher's own library by `--mpi-library PATH`: {}",
            library_files(launcher)
        ),
        MpiLauncher::Slurm => "start with `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH and its family); \
                            `srun --mpi=list` lists the available ones"
            .to_owned(),
        MpiLauncher::SlurmPmi => "`--mpi=pmi2` goes with MPICH and its family: name such a library by `--mpi-library PATH`, \
                               or start with `srun --mpi=pmix` for Open MPI"
            .to_owned(),
        MpiLauncher::SlurmPmix => "`--mpi=pmix` goes with Open MPI: name such a library by `--mpi-library PATH`, or start \
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
            let launched = Launched { rank: 0, size: Some(4), local_size: None, launcher };
            let error = ConnectError::Unfit { launched, problem: "is not of its kind".to_owned() };
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
            launched: Some(Launched {
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
