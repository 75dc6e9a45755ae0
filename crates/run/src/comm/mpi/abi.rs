//! The values of handles and constants, which differ between MPI libraries.
//!
//! A handle is stored as a `usize`. Open MPI's handles are pointers, and the standard's handles are pointers that hold numbers. MPICH's
//! are C ints: the calling conventions of 64-bit Linux pass them in the low half of the same registers, and on little-endian machines
//! a library that writes one writes the low half of a `usize` that was 0.

#[cfg(test)]
mod tests;

use super::launcher::MpiLauncher;
use std::ffi::c_int;

/// An MPI object.
pub(super) type Handle = usize;

/// Families of MPI libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MpiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH and libraries built on it. So far these are also the libraries with the standard's ABI.
    Mpich,
}

/// Values of one ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abi {
    /// Family of the libraries.
    pub(super) family: MpiFamily,
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
    /// Thread support levels.
    pub(super) threads: ThreadLevels,
    /// `sizeof(MPI_Status)`; at most the size of [`MpiStatus`].
    pub(super) status_bytes: usize,
}

/// Values of `MPI_THREAD_…`. A level includes the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadLevels {
    /// `MPI_THREAD_FUNNELED`: calls only from the thread that initialized MPI.
    pub(super) funneled: c_int,
    /// `MPI_THREAD_SERIALIZED`: calls from any thread, one at a time.
    pub(super) serialized: c_int,
    /// `MPI_THREAD_MULTIPLE`: calls from any thread.
    pub(super) multiple: c_int,
}

/// Memory for the largest `MPI_Status` of any library. Only the library reads it.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub(super) struct MpiStatus([u64; 8]);

impl Abi {
    /// Whether libraries of this ABI cannot get their rank from `launcher`. They would end the process or take it for the only rank.
    pub(super) fn is_foreign(&self, launcher: MpiLauncher) -> bool {
        match launcher {
            MpiLauncher::OpenMpi => self.family != MpiFamily::OpenMpi,
            MpiLauncher::Hydra => self.family != MpiFamily::Mpich,
            MpiLauncher::SlurmPmi
            | MpiLauncher::SlurmPmix
            | MpiLauncher::Slurm
            | MpiLauncher::Pmix => false,
        }
    }
}

/// The MPICH ABI: MPICH 3.1 to 5, Intel MPI, Cray MPICH, MVAPICH. Handles are C ints (`mpi.h` of MPICH, and
/// <https://www.mpich.org/abi/>).
pub(super) const MPICH: Abi = Abi {
    family: MpiFamily::Mpich,
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    info_null: 0x1c00_0000,
    shared: 1,
    read_only: 2,
    threads: ThreadLevels { funneled: 1, serialized: 2, multiple: 3 },
    status_bytes: 20,
};

/// The ABI of the MPI 5.0 standard, chapter 20: handles are pointers that hold small numbers (`mpi_abi.h` of MPICH 5).
pub(super) const STANDARD: Abi = Abi {
    family: MpiFamily::Mpich,
    world: 0x101,
    byte: 0x247,
    errors_return: 0x143,
    info_null: 0x130,
    shared: 221,
    read_only: 16,
    threads: ThreadLevels { funneled: 1024, serialized: 2048, multiple: 4096 },
    status_bytes: 32,
};

/// The ABI of Open MPI 3 to 5. Its handles are addresses of objects in the library (`OMPI_PREDEFINED_GLOBAL` in its `mpi.h`), which
/// `address` looks up by symbol name. `Err` is the name of a missing symbol.
pub(super) fn open_mpi(
    mut address: impl FnMut(&'static str) -> Option<Handle>,
) -> Result<Abi, &'static str> {
    let mut handle = |symbol: &'static str| address(symbol).ok_or(symbol);
    Ok(Abi {
        family: MpiFamily::OpenMpi,
        world: handle("ompi_mpi_comm_world")?,
        byte: handle("ompi_mpi_byte")?,
        errors_return: handle("ompi_mpi_errors_return")?,
        info_null: handle("ompi_mpi_info_null")?,
        shared: 0,
        read_only: 2,
        threads: ThreadLevels { funneled: 1, serialized: 2, multiple: 3 },
        status_bytes: 24,
    })
}
