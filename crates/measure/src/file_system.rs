//! Abilities of file systems that decide where the bytes of a run came from: whether the kernel counts reads of them in `read_bytes` of
//! `/proc/self/io`, which memory may serve them, and whether they keep their files in memory.
//!
//! The kernel adds to `read_bytes` in `task_io_account_read`. `submit_bio` (block/blk-core.c) calls it for a process's requests
//! to block devices, and NFS calls it too (fs/nfs/read.c, direct.c). FUSE and virtiofs have not called it since Linux 5.8. 9p, Ceph, SMB
//! and AFS count in netfs (fs/netfs), often in a kernel thread instead of the process. OpenZFS counts the bytes that `read` returns,
//! including those from its cache. Lustre, GPFS, BeeGFS and other file systems outside the kernel differ by version.

/// NFS, and file systems on block devices, where `submit_bio` counts reads. Stacked and in-memory file systems are counted correctly too:
/// overlayfs and ecryptfs read through another file system, and tmpfs has no device.
const COUNTED: [&str; 33] = [
    "bcachefs", "btrfs", "cramfs", "ecryptfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs",
    "gfs2", "hfs", "hfsplus", "iso9660", "jfs", "minix", "msdos", "nfs", "nfs4", "nilfs2", "ntfs3",
    "ocfs2", "overlay", "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "udf", "ufs", "vfat",
    "xfs", "zonefs",
];

/// Whether `read_bytes` counts a process's reads from a file system of this type, named as in `/proc/self/mountinfo`. Returns false for
/// unknown types, so that device bytes are unknown instead of 0.
pub fn counts_device_reads(file_system: &str) -> bool {
    COUNTED.contains(&file_system)
}

/// Network file systems whose reads are not counted, and whose clients keep data only in the page cache.
const CACHED_IN_PAGES: [&str; 5] = ["afs", "ceph", "cifs", "lustre", "smb3"];

/// Whether the page cache is the only memory of this machine that serves reads of a file system of this type. Programs behind FUSE, hosts
/// behind virtiofs and 9p, and GPFS, BeeGFS and ZFS have caches of their own. Returns false for unknown types.
pub fn caches_only_in_pages(file_system: &str) -> bool {
    counts_device_reads(file_system) || CACHED_IN_PAGES.contains(&file_system)
}

/// Whether a file system of this type keeps all files in memory, so that they cannot be removed from the page cache.
pub fn is_in_memory(file_system: &str) -> bool {
    ["tmpfs", "ramfs", "rootfs"].contains(&file_system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_bytes_are_known_where_the_kernel_counts_reads() {
        for (file_system, expected) in [
            ("ext4", true),
            ("xfs", true),
            ("btrfs", true),
            ("overlay", true),
            ("tmpfs", true),
            ("nfs", true),
            ("nfs4", true),
            ("fuse", false),
            ("fuseblk", false),
            ("fuse.bindfs", false),
            ("fuse.sshfs", false),
            ("fuse.glusterfs", false),
            ("virtiofs", false),
            ("9p", false),
            ("ceph", false),
            ("cifs", false),
            ("smb3", false),
            ("lustre", false),
            ("gpfs", false),
            ("beegfs", false),
            ("zfs", false),
            ("of_the_future", false),
            ("fuse.rclone", false),
            ("f2fs", true),
            ("", false),
        ] {
            assert_eq!(counts_device_reads(file_system), expected, "{file_system}");
        }
    }

    #[test]
    fn caches_outside_of_the_page_cache_are_hidden() {
        for (file_system, expected) in [
            ("ext4", true),
            ("overlay", true),
            ("nfs4", true),
            ("lustre", true),
            ("ceph", true),
            ("fuse.bindfs", false),
            ("virtiofs", false),
            ("9p", false),
            ("gpfs", false),
            ("zfs", false),
            ("of_the_future", false),
        ] {
            assert_eq!(caches_only_in_pages(file_system), expected, "{file_system}");
        }
    }

    #[test]
    fn only_file_systems_without_a_device_are_in_memory() {
        for (file_system, expected) in [
            ("tmpfs", true),
            ("ramfs", true),
            ("rootfs", true),
            ("ext4", false),
            ("overlay", false),
            ("fuse.bindfs", false),
            ("nfs4", false),
        ] {
            assert_eq!(is_in_memory(file_system), expected, "{file_system}");
        }
    }
}
