//! Tests of logs in which files are opened several times.

use super::*;

/// The calls of `np.load(…, mmap_mode='r')`, which opens a file three times, and reads its header twice.
fn numpy_maps(file: usize, start_ms: usize) -> String {
    let calls = [
        format!("openat(AT_FDCWD, \"/d/img_{file:02}.npy\", O_RDONLY|O_CLOEXEC) = 3"),
        "newfstatat(3, \"\", {st_mode=S_IFREG|0644, st_size=196736, ...}, AT_EMPTY_PATH) = 0"
            .into(),
        "lseek(3, 0, SEEK_CUR) = 0".into(),
        "read(3, \"\\223NUMPY\\1\\0v\\0\"..., 4096) = 4096".into(),
        format!("openat(AT_FDCWD, \"/d/img_{file:02}.npy\", O_RDONLY|O_CLOEXEC) = 4"),
        "lseek(4, 0, SEEK_CUR) = 0".into(),
        "read(4, \"\\223NUMPY\\1\\0v\\0\"..., 4096) = 4096".into(),
        "close(4) = 0".into(),
        format!("openat(AT_FDCWD, \"/d/img_{file:02}.npy\", O_RDONLY|O_CLOEXEC) = 4"),
        "lseek(4, 0, SEEK_END) = 196736".into(),
        "mmap(NULL, 196736, PROT_READ, MAP_SHARED, 4, 0) = 0x7f0a3694a000".into(),
        "close(4) = 0".into(),
        "close(3) = 0".into(),
    ];
    let lines = calls.iter().enumerate().map(|(index, call)| {
        let us = 1000 * start_ms + 100 * index;
        format!("5 {}.{:06} {call} <0.000020>\n", 10 + us / 1_000_000, us % 1_000_000)
    });
    lines.collect()
}

#[test]
fn several_opens_for_one_use_of_a_file_are_one_epoch() {
    let start = "5 1.000000 execve(\"/bin/python\", [\"python\"], NULL) = 0 <0.1>\n";
    let job = |files: usize, epochs: usize| {
        let uses = (0..files * epochs).map(|index| numpy_maps(index % files, 15 * index));
        let log = import("t.strace", &(start.to_string() + &uses.collect::<String>())).unwrap();
        let io = counters_of_run(&log.record);
        assert_eq!(
            (io.opens, io.reads),
            (3 * (files * epochs) as u64, 2 * (files * epochs) as u64)
        );
        log.job
    };
    let once = job(40, 1);
    assert_eq!((once.files, once.epochs, once.mapped_bytes), (40, Some(1), 40 * 196_736));
    assert_eq!(once.batch.and_then(|batch| batch.files), Some(1));
    assert_eq!(job(40, 3).epochs, Some(3));
    // The mapping ends a use, so a single file is not used once for all time.
    assert_eq!(job(1, 3).epochs, Some(3));
}

#[test]
fn opens_that_read_samples_of_a_file_are_uses_of_their_own() {
    let epochs = |offsets: &[u64], file_bytes: u64| {
        let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
        for (index, offset) in offsets.iter().enumerate() {
            let at = 10 + index;
            text += &format!(
                "5 {at}.0 openat(AT_FDCWD, \"/d/a.h5\", O_RDONLY) = 3 <0.1>\n\
                 5 {at}.1 fstat(3, {{st_mode=S_IFREG|0644, st_size={file_bytes}, ...}}) = 0 <0.1>\n\
                 5 {at}.3 pread64(3, \"\", 100000, {offset}) = 100000 <0.1>\n5 {at}.5 close(3) = 0 <0.1>\n"
            );
        }
        import("t.strace", &text).unwrap().job.epochs
    };
    assert_eq!(epochs(&[0, 100_000, 200_000, 300_000], 400_000), Some(1));
    assert_eq!(epochs(&[0, 100_000, 0, 100_000], 200_000), Some(2));
    assert_eq!(epochs(&[0, 0, 0], 100_000), Some(3));
}

#[test]
fn a_library_may_inspect_the_end_of_a_file_before_it_opens_it_again() {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    for index in 0..20 {
        let path = format!("/d/{index:02}.npz");
        let at = 10 + index;
        text += &format!(
            "5 {at}.00 openat(AT_FDCWD, \"{path}\", O_RDONLY) = 3 <0.01>\n\
             5 {at}.05 lseek(3, 0, SEEK_END) = 200000 <0.01>\n\
             5 {at}.10 pread64(3, \"PK\", 22, 199978) = 22 <0.01>\n5 {at}.20 close(3) = 0 <0.01>\n\
             5 {at}.30 openat(AT_FDCWD, \"{path}\", O_RDONLY) = 3 <0.01>\n\
             5 {at}.40 read(3, \"PK\", 200000) = 200000 <0.01>\n5 {at}.50 close(3) = 0 <0.01>\n"
        );
    }
    let job = import("t.strace", &text).unwrap().job;
    assert_eq!((job.files, job.epochs), (20, Some(1)));
    assert_eq!(job.batch.and_then(|batch| batch.files), Some(1));
}

#[test]
fn workers_that_open_one_file_each_are_separate_readers() {
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n\
        5 1.1 clone(flags=SIGCHLD) = 6 <0.1>\n\
        5 1.2 clone(flags=SIGCHLD) = 7 <0.1>\n"
        .to_string();
    for worker in [6, 7] {
        let open = "openat(AT_FDCWD, \"/d/a.h5\", O_RDONLY) = 3 <0.000010>";
        text += &format!("{worker} 2.00000{worker} {open}\n");
    }
    for read in 0..40_u64 {
        let worker = 6 + read % 2;
        let offset = read * 1000;
        text += &format!(
            "{worker} 2.0{read:02}000 pread64(3, \"\", 1000, {offset}) = 1000 <0.000900>\n"
        );
    }
    let log = import("t", &text).unwrap();
    let job = &log.job;
    assert_eq!((job.files, job.readers, job.trains_and_reads), (1, Some(2), Some(false)));
}
