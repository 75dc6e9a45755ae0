//! The values of handles and constants, which differ from one MPI library to the next. One file an ABI. Calls nothing.
//!
//! A handle is a `usize` everywhere. Open MPI's are pointers, the standard's are pointers that hold numbers; MPICH's are C
//! ints, which the calling conventions of 64-bit Linux pass in the low half of the same registers, and which little-endian
//! memory keeps in the low half of a `usize` that was 0.

mod mpich;
mod open_mpi;
mod standard;
#[cfg(test)]
mod tests;

pub(super) use mpich::MPICH;
pub(super) use open_mpi::open_mpi;
pub(super) use standard::STANDARD;

use super::launcher::Launcher;
use std::ffi::c_int;

/// An MPI object.
pub(super) type Handle = usize;

/// The makers of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Open MPI's own.
    OpenMpi,
    /// MPICH and what is built on it; those with the standard's ABI, so far.
    Mpich,
}

/// Values of one kind of library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abi {
    /// Its maker.
    pub(super) family: Family,
    /// `MPI_COMM_WORLD`.
    pub(super) world: Handle,
    /// `MPI_BYTE`.
    pub(super) byte: Handle,
    /// `MPI_ERRORS_RETURN`.
    pub(super) errors_return: Handle,
    /// `MPI_INFO_NULL`.
    pub(super) info_null: Handle,
    /// `MPI_COMM_TYPE_SHARED`.
    pub(super) shared: c_int,
    /// `MPI_MODE_RDONLY`.
    pub(super) read_only: c_int,
    /// Levels of threads.
    pub(super) threads: Levels,
    /// `sizeof(MPI_Status)`; at most that of [`Status`].
    pub(super) status_bytes: usize,
}

/// Values of `MPI_THREAD_…`; a library that gives a higher one gives the lower ones too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    /// `MPI_THREAD_FUNNELED`: calls from the thread that initialized.
    pub(super) funneled: c_int,
    /// `MPI_THREAD_SERIALIZED`: calls from any thread, one at a time.
    pub(super) serialized: c_int,
    /// `MPI_THREAD_MULTIPLE`: calls from any thread.
    pub(super) multiple: c_int,
}

/// Holds the largest `MPI_Status` there is. Only the library reads it.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub(super) struct Status([u64; 8]);

impl Abi {
    /// Whether its libraries cannot be told their rank by `launcher`: they end the process, or take it for the only one.
    pub(super) fn is_foreign(&self, launcher: Launcher) -> bool {
        match launcher {
            Launcher::OpenMpi => self.family != Family::OpenMpi,
            Launcher::Hydra => self.family != Family::Mpich,
            Launcher::SlurmPmi | Launcher::SlurmPmix | Launcher::Slurm | Launcher::Pmix => false,
        }
    }
}
