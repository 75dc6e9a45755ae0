//! Open MPI 3 to 5: handles are addresses of objects in the library (`OMPI_PREDEFINED_GLOBAL` in its `mpi.h`).

use super::{Abi, Family, Handle, Levels};

/// Its handles, by the address of each symbol; `Err` names the one that is not there.
pub(in super::super) fn open_mpi(
    mut address: impl FnMut(&'static str) -> Option<Handle>,
) -> Result<Abi, &'static str> {
    let mut handle = |symbol: &'static str| address(symbol).ok_or(symbol);
    Ok(Abi {
        family: Family::OpenMpi,
        world: handle("ompi_mpi_comm_world")?,
        byte: handle("ompi_mpi_byte")?,
        errors_return: handle("ompi_mpi_errors_return")?,
        info_null: handle("ompi_mpi_info_null")?,
        shared: 0,
        read_only: 2,
        threads: Levels { funneled: 1, serialized: 2, multiple: 3 },
        status_bytes: 24,
    })
}
