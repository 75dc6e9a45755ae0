//! The MPICH ABI: MPICH 3.1 to 5, Intel MPI, Cray MPICH, MVAPICH. Handles are C ints (`mpi.h` of MPICH, and
//! <https://www.mpich.org/abi/>).

use super::{Abi, Family, Levels};

/// Its values.
pub(in super::super) const MPICH: Abi = Abi {
    family: Family::Mpich,
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    info_null: 0x1c00_0000,
    shared: 1,
    read_only: 2,
    threads: Levels { funneled: 1, serialized: 2, multiple: 3 },
    status_bytes: 20,
};
