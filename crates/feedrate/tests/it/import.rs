//! Logs of other programs' I/O.

use crate::harness::{Answer, Test};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

/// Twelve batches of two files of 5,000 bytes by the thread that trains, 20 ms of compute after each.
fn strace() -> String {
    let mut text = "5 1.000000 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    let mut now_us = 2_000_000_u64;
    for at in 0..24_u64 {
        let time = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let name = format!("/d/{}.npz", at * 7 % 24);
        text +=
            &format!("5 {} openat(AT_FDCWD, \"{name}\", O_RDONLY) = 3 <0.00005>\n", time(now_us));
        text += &format!("5 {} read(3, \"\", 8192) = 5000 <0.000200>\n", time(now_us + 100));
        now_us += if at % 2 == 1 { 21_000 } else { 1_000 };
    }
    text
}

#[test]
fn a_log_becomes_a_workload_that_runs() {
    let test = Test::new();
    test.write("job.strace", strace());
    let answer = test.feedrate(&["import", "job.strace", "-o", "job.yaml", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let told = answer.json();
    assert_eq!((&told["schema"], &told["kind"]), (&json!("import/2"), &json!("strace")));
    assert_eq!(told["access"]["reads"], 24);
    assert_eq!(told["access"]["unique_bytes"], 120_000);
    assert_eq!(told["access"]["files_by_ranks"], json!([{"ranks": 1, "files": 24}]));
    assert_eq!(told["job"]["compute_ns"], 20_000_000);
    assert_eq!((&told["lost"], &told["assumed"]), (&json!([]), &json!([])));
    let run = test.feedrate(&["run", "job.yaml", "--json", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run: Value = run.json();
    assert_eq!((&run["steps"], &run["epochs"]), (&json!(12), &json!(1)));
    let bytes = run["access"]["unique_bytes"].as_f64().unwrap();
    assert!((bytes / 120_000.0 - 1.0).abs() < 0.02, "{bytes}");
    let again = test.feedrate(&["import", "job.strace", "-o", "job.yaml"]);
    assert_eq!(again.code, 0, "it is the same: {}", again.stderr);
    test.write("job.yaml", "mine");
    let refused = test.feedrate(&["import", "job.strace", "-o", "job.yaml"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("is there already"), "{}", refused.stderr);
}

/// Two ranks that each read, of an HDF5 file, 64 pieces of 6,144 bytes in order, between pieces of 100 that are left out.
fn darshan() -> (String, String) {
    let (mut counters, mut segments) = ("# nprocs: 2\n".to_string(), String::new());
    for rank in 0..2 {
        for (counter, value) in [
            ("OPENS", 1),
            ("READS", 64),
            ("BYTES_READ", 64 * 6144),
            ("SEQ_READS", 63),
            ("MAX_BYTE_READ", 64 * 6244 - 101),
            ("ACCESS1_ACCESS", 6144),
            ("ACCESS1_COUNT", 64),
        ] {
            let line = format!("POSIX\t{rank}\t1\tPOSIX_{counter}\t{value}\t/d/a.h5\t/\text4");
            writeln!(counters, "{line}").unwrap();
        }
        segments += "# DXT, file_id: 1, file_name: /d/a.h5\n";
        for at in 0..64 {
            let offset = at * 6244;
            writeln!(segments, " X_POSIX {rank} read {at} {offset} 6144 {at}.1 {at}.2").unwrap();
        }
    }
    (counters, segments)
}

#[test]
fn ranks_that_read_the_same_do_so_again() {
    let test = Test::new();
    let here = test.path("a.h5").to_string_lossy().into_owned();
    let [counters, segments] =
        <[String; 2]>::from(darshan()).map(|log| log.replace("/d/a.h5", &here));
    test.write("a.h5", [0; 900_000]);
    test.write("job.darshan", counters);
    test.write("job.darshan.dxt", segments);
    for (program, ending) in [("darshan-parser", ""), ("darshan-dxt-parser", ".dxt")] {
        test.write(program, format!("#!/bin/sh\nexec /bin/cat \"$1{ending}\"\n"));
        set_permissions(test.path(program), Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = test.command(&["import", "job.darshan", "-o", "job.yaml"]);
    let output = command.env("PATH", test.path(".")).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("2 ranks") && told.contains("read once"), "{told}");
    assert!(told.contains("all ranks read the same, in an epoch"), "{told}");
    assert!(told.contains("`a.h5` has 900 kB, but the log has 399.5 kB per file"), "{told}");
    let run = test.feedrate(&["run", "job.yaml", "--json", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let access = &run.json()["access"];
    assert_eq!(access["files_by_ranks"], json!([{"ranks": 2, "files": 1}]));
    assert_eq!(access["sequential_share"], 1.0, "{access}");
    // 64 samples by each rank, a read each but for those at the ends of buffers.
    let reads = access["reads"].as_u64().unwrap();
    assert!((128..=136).contains(&reads), "{access}");
}

#[test]
fn python_reads_a_log_without_modules_of_the_working_directory() {
    let test = Test::new();
    test.write("job.darshan", "no log");
    test.write("darshan.py", "open('ran', 'w')\n");
    let python = test.program("python3", &["-c", "import sys; print(sys.executable)"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    std::fs::create_dir(test.path("bin")).unwrap();
    std::os::unix::fs::symlink(python.trim(), test.path("bin/python3")).unwrap();
    let mut command = test.command(&["import", "job.darshan"]);
    // An empty part of it is the working directory too.
    command.env("PATH", test.path("bin")).env("PYTHONPATH", ":/nowhere");
    let answer = Answer::of(&command.output().unwrap());
    answer.refuses(2, &["hint:"]);
    assert!(!test.path("ran").exists());
}

#[test]
fn what_is_no_log_is_refused_with_what_to_give() {
    let test = Test::new();
    test.write("noise", [0x1f, 0x8b, 3, 7, 255, 0, 9]);
    test.write("text", "hello\n".repeat(100));
    for name in ["noise", "text", "nothing", "."] {
        let answer = test.feedrate(&["import", name]);
        assert_eq!(answer.code, 2, "{name}: {}", answer.stderr);
        assert!(answer.stderr.contains("strace -f -ttt -T"), "{name}: {}", answer.stderr);
    }
}
