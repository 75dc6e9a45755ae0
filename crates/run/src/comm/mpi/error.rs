//! Reasons why ranks did not come together, and what to do.

use super::launcher::{Launched, Launcher};
use crate::comm::CommError;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The reason why there are no ranks.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A launcher, and no MPI library.
    #[error("{}", no_library(launched.as_ref(), tried))]
    NoLibrary {
        /// By whom.
        launched: Option<Launched>,
        /// The files looked for, and why they would not do.
        tried: Vec<(PathBuf, String)>,
    },
    /// The library does not know the launcher: each process takes itself for the only one.
    #[error(
        "{} started rank {}{}, and the MPI library says rank {rank} of {size}: {library}",
        launched.by, launched.rank, of_size(launched.size)
    )]
    Mismatch {
        /// The launcher's word.
        launched: Launched,
        /// Its path and words.
        library: String,
        /// According to the library.
        rank: u32,
        /// According to the library.
        size: u32,
    },
    /// The library is of another family than the launcher.
    #[error(
        "{} started rank {}{}, and the MPI library is not of its kind: {library}",
        launched.by, launched.rank, of_size(launched.size)
    )]
    Foreign {
        /// The launcher's word.
        launched: Launched,
        /// Its path and words.
        library: String,
    },
    /// It was built without threads.
    #[error("the MPI library cannot be used by a process with threads: {library}")]
    Threads {
        /// Its path and words.
        library: String,
    },
    /// MPI can be initialized once.
    #[error("this process has joined its ranks before")]
    Again,
    /// Ranks did not find each other.
    #[error(transparent)]
    Comm(#[from] CommError),
}

impl ConnectError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConnectError::NoLibrary { launched, .. } => Some(match launched {
                Some(launched) => format!(
                    "give the library of the MPI that started the ranks by `--mpi-library PATH`: {}",
                    files_of(launched.by)
                ),
                None => "`--mpi-library` wants the path of a libmpi.so".to_owned(),
            }),
            ConnectError::Foreign { launched, .. } | ConnectError::Mismatch { launched, .. } => {
                Some(remedy(launched.by))
            }
            ConnectError::Threads { .. } => {
                Some("use one that grants MPI_THREAD_FUNNELED or more".to_owned())
            }
            ConnectError::Again => None,
            ConnectError::Comm(error) => error.hint().map(str::to_owned),
        }
    }

    /// Whether this process is the one to tell the user, where all ranks meet the same error.
    pub fn tells(&self) -> bool {
        match self {
            ConnectError::NoLibrary { launched: Some(launched), .. }
            | ConnectError::Foreign { launched, .. }
            | ConnectError::Mismatch { launched, .. } => launched.rank == 0,
            _ => true,
        }
    }
}

fn no_library(launched: Option<&Launched>, tried: &[(PathBuf, String)]) -> String {
    let mut text = match launched {
        Some(launched) => format!(
            "{} started rank {}{}, and no MPI library can be opened",
            launched.by,
            launched.rank,
            of_size(launched.size)
        ),
        None => "the MPI library cannot be opened".to_owned(),
    };
    for (path, why) in tried {
        // The loader's words often begin with the path.
        let name = path.display().to_string();
        let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why);
        let _ = write!(text, "; `{name}`: {why}");
    }
    text
}

fn of_size(size: Option<u32>) -> String {
    size.map_or_else(String::new, |size| format!(" of {size}"))
}

fn files_of(launcher: Launcher) -> &'static str {
    match launcher {
        Launcher::OpenMpi => "libmpi.so.40 in its lib folder",
        Launcher::Hydra => "libmpi.so.12 or libmpi_abi.so.1 in its lib folder",
        _ => "libmpi.so.40 of Open MPI, libmpi.so.12 or libmpi_abi.so.1 of MPICH and its family",
    }
}

fn remedy(launcher: Launcher) -> String {
    match launcher {
        Launcher::OpenMpi | Launcher::Hydra | Launcher::Pmix => format!(
            "start with the `mpirun` of the same MPI, or name the launcher's own library by `--mpi-library PATH`: {}",
            files_of(launcher)
        ),
        Launcher::Slurm => "start with `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH and its family); \
                            `srun --mpi=list` tells what there is"
            .to_owned(),
        Launcher::SlurmPmi => "`--mpi=pmi2` goes with MPICH and its family: name such a library by `--mpi-library PATH`, \
                               or start with `srun --mpi=pmix` for Open MPI"
            .to_owned(),
        Launcher::SlurmPmix => "`--mpi=pmix` goes with Open MPI: name such a library by `--mpi-library PATH`, or start \
                                with `srun --mpi=pmi2` for MPICH and its family"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launcher_has_its_remedy() {
        let check = |by, words: &str| {
            let launched = Launched { rank: 0, size: Some(4), local_size: None, by };
            let error =
                ConnectError::Mismatch { launched, library: "l".to_owned(), rank: 0, size: 1 };
            let hint = error.hint().unwrap();
            assert!(hint.contains(words), "{hint}");
        };
        check(Launcher::OpenMpi, "libmpi.so.40");
        check(Launcher::Hydra, "libmpi_abi.so.1");
        check(Launcher::Slurm, "srun --mpi=pmix");
        check(Launcher::SlurmPmi, "srun --mpi=pmix");
        check(Launcher::SlurmPmix, "srun --mpi=pmi2");
    }

    #[test]
    fn what_was_tried_is_told_once() {
        let error = ConnectError::NoLibrary {
            launched: Some(Launched {
                rank: 3,
                size: Some(4),
                local_size: None,
                by: Launcher::Hydra,
            }),
            tried: vec![("libmpi.so.12".into(), "libmpi.so.12: no such file".to_owned())],
        };
        assert_eq!(
            error.to_string(),
            "MPICH's mpirun started rank 3 of 4, and no MPI library can be opened; `libmpi.so.12`: no such file"
        );
        assert!(!error.tells());
    }
}
