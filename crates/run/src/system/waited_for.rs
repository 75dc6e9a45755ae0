//! Files that threads of this process are in a system call for, as `/proc` shows them: for whoever tells what a storage does not
//! answer. Touches no storage.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Calls whose first argument is a descriptor.
const OF_FILE: &[i64] = &[
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
/// Calls whose first argument is a folder's descriptor, and the second a path in it.
const IN_FOLDER: &[i64] = &[
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
/// Calls whose first argument is a path.
const OF_PATH: &[i64] = &[
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
/// The kernel's own limit.
const PATH_BYTES_MAX: usize = 4096;

/// The files, but those of the kernel itself.
pub fn waited_for() -> BTreeSet<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
    let files = calls.filter_map(|call| file_of(&call));
    let of_kernel = ["/proc", "/sys", "/dev"];
    files
        .filter(|file| file.is_absolute() && !of_kernel.iter().any(|root| file.starts_with(root)))
        .collect()
}

/// The file of a call, which is written as its number and its arguments.
fn file_of(call: &str) -> Option<PathBuf> {
    let mut words = call.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    if OF_FILE.contains(&number) {
        descriptor(argument()?)
    } else if IN_FOLDER.contains(&number) {
        let (folder, name) = (argument()?, argument()?);
        let name = path_at(name)?;
        Some(if name.is_absolute() { name } else { descriptor(folder)?.join(name) })
    } else if OF_PATH.contains(&number) {
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

/// The path in this process's memory; whoever gave it may have gone on, so what is there is read as a file.
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
            while waited_for().contains(&pipe) != found {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| fs::read(&pipe).unwrap());
            until_found(true);
            let writes = OpenOptions::new().write(true).open(&pipe).unwrap();
            // The other thread reads by now, or will.
            until_found(true);
            drop(writes);
            assert_eq!(reads.join().unwrap(), b"");
        });
        until_found(false);
    }
}
