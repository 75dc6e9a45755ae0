//! The ABI of the MPI 5.0 standard, chapter 20: handles are pointers that hold small numbers (`mpi_abi.h` of MPICH 5).

use super::{Abi, Family, Levels};

/// Its values.
pub(in super::super) const STANDARD: Abi = Abi {
    family: Family::Mpich,
    world: 0x101,
    byte: 0x247,
    errors_return: 0x143,
    info_null: 0x130,
    shared: 221,
    read_only: 16,
    threads: Levels { funneled: 1024, serialized: 2048, multiple: 4096 },
    status_bytes: 32,
};
