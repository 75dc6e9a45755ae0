//! Finds the files that threads of this process use in a system call, to report a hanging storage. It reads `/proc` and does not access
//! the storage.

use feedrate_measure::record::file::read_folder;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// System calls whose first argument is a file descriptor.
const DESCRIPTOR_CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_getdents64,
    libc::SYS_flock,
    libc::SYS_fcntl,
];
/// System calls whose first argument is the descriptor of a folder, and the second a path in it.
const FOLDER_CALLS: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_readlinkat,
];
/// System calls whose first argument is a path.
const PATH_CALLS: &[i64] = &[
    libc::SYS_statfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
];
/// The kernel's limit on the length of a path.
const PATH_BYTES_MAX: usize = 4096;

/// Returns the files that threads of this process wait for, except files of the kernel's file systems.
pub fn blocked_files() -> BTreeSet<PathBuf> {
    let tasks = read_folder("/proc/self/task").into_iter().flatten().flatten();
    let calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
    let files = calls.filter_map(|call| file_of_call(&call));
    let kernel_roots = ["/proc", "/sys", "/dev"];
    let is_kernel_file = |file: &Path| kernel_roots.iter().any(|root| file.starts_with(root));
    files.filter(|file| file.is_absolute() && !is_kernel_file(file)).collect()
}

/// Returns the file of a system call, which `/proc` shows as its number and its arguments.
fn file_of_call(call: &str) -> Option<PathBuf> {
    let mut words = call.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    if DESCRIPTOR_CALLS.contains(&number) {
        descriptor(argument()?)
    } else if FOLDER_CALLS.contains(&number) {
        let folder = argument()?;
        let path = path_at(argument()?)?;
        Some(if path.is_absolute() { path } else { descriptor(folder)?.join(path) })
    } else if PATH_CALLS.contains(&number) {
        std::path::absolute(path_at(argument()?)?).ok()
    } else {
        None
    }
}

fn descriptor(number: u64) -> Option<PathBuf> {
    match number as i32 {
        libc::AT_FDCWD => std::env::current_dir().ok(),
        number => fs::read_link(format!("/proc/self/fd/{number}")).ok(),
    }
}

/// Reads a path from this process's memory. It uses `/proc/self/mem`, because the memory may be freed if the call has returned meanwhile.
fn path_at(address: u64) -> Option<PathBuf> {
    let mut bytes = [0; PATH_BYTES_MAX];
    let len = File::open("/proc/self/mem").ok()?.read_at(&mut bytes, address).ok()?;
    let path = std::str::from_utf8(bytes[..len].split(|byte| *byte == 0).next()?).ok()?;
    Some(Path::new(path).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs::OpenOptions;

    #[test]
    fn a_file_that_does_not_open_or_read_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let until_found = |found| {
            while blocked_files().contains(&pipe) != found {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| fs::read(&pipe).unwrap());
            until_found(true);
            let writes = OpenOptions::new().write(true).open(&pipe).unwrap();
            // The other thread is reading or about to.
            until_found(true);
            drop(writes);
            assert_eq!(reads.join().unwrap(), b"");
        });
        until_found(false);
    }
}
