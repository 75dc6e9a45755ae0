//! `feedrate import`: I/O logs of other programs become workloads.

use crate::harness::{Answer, Test};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

/// A log of twelve batches of two files of 5,000 bytes. The training thread reads them, and computes for 20 ms after each.
fn strace_log() -> String {
    let mut text = "5 1.000000 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    let mut now_us = 2_000_000_u64;
    for index in 0..24_u64 {
        let time = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let name = format!("/d/{}.npz", index * 7 % 24);
        text +=
            &format!("5 {} openat(AT_FDCWD, \"{name}\", O_RDONLY) = 3 <0.00005>\n", time(now_us));
        text += &format!("5 {} read(3, \"\", 8192) = 5000 <0.000200>\n", time(now_us + 100));
        now_us += if index % 2 == 1 { 21_000 } else { 1_000 };
    }
    text
}

#[test]
fn a_log_becomes_a_workload_that_runs() {
    let test = Test::new();
    test.write("job.strace", strace_log());
    let answer = test.feedrate(&["import", "job.strace", "-o", "job.yaml", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let output = answer.json();
    assert_eq!((&output["schema"], &output["kind"]), (&json!("import/2"), &json!("strace")));
    assert_eq!(output["access"]["reads"], 24);
    assert_eq!(output["access"]["unique_bytes"], 120_000);
    assert_eq!(output["access"]["files_by_ranks"], json!([{"ranks": 1, "files": 24}]));
    assert_eq!(output["job"]["compute_ns"], 20_000_000);
    assert_eq!((&output["lost"], &output["assumed"]), (&json!([]), &json!([])));
    let answer = &output["answer"];
    assert_eq!((&answer["kind"], &answer["time_of"]), (&json!("no"), &json!("training")));
    let page = test.feedrate(&["import", "job.strace"]).stdout;
    assert!(page.starts_with("I/O is not the problem: it took"), "{page}");
    for words in [
        // 24 files of 5 kB from the first open, at 2 s, to the end of the last read, 243.3 ms later.
        " at 493.2 kB/s, 99 files/s\n",
        "Start-up      1 s until the first data file\n",
        "24 reads of 1K-10K bytes (100 % of bytes)",
        " of the whole time, mean of 1 reader · ",
        "`feedrate diagnose --data DIR --client SCRIPT:FUNCTION` separates them\n",
    ] {
        assert!(page.contains(words), "no `{words}` in {page}");
    }
    let run = test.feedrate(&["run", "job.yaml", "--json", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run: Value = run.json();
    assert_eq!((&run["steps"], &run["epochs"]), (&json!(12), &json!(1)));
    let bytes = run["access"]["unique_bytes"].as_f64().unwrap();
    assert!((bytes / 120_000.0 - 1.0).abs() < 0.02, "{bytes}");
    let again = test.feedrate(&["import", "job.strace", "-o", "job.yaml"]);
    assert_eq!(again.code, 0, "an equal file is no error: {}", again.stderr);
    test.write("job.yaml", "mine");
    let refused = test.feedrate(&["import", "job.strace", "-o", "job.yaml"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("is there already"), "{}", refused.stderr);
}

/// Counters and segments of a Darshan log. Two ranks read the same 64 pieces of 6,144 bytes of an HDF5 file in order, and skip 100 bytes
/// between them.
fn darshan_logs() -> (String, String) {
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
        for index in 0..64 {
            let offset = index * 6244;
            writeln!(segments, " X_POSIX {rank} read {index} {offset} 6144 {index}.1 {index}.2")
                .unwrap();
        }
    }
    (counters, segments)
}

/// The start of a Darshan log: its version, and the number that all logs have.
const DARSHAN_HEADER: &[u8] = b"3.41\0\0\0\0\x37\x35\x64\0\0\0\0\0";

/// Imports a Darshan log, given the output of its parsers, into `job.yaml`. Returns the page.
fn import_darshan(test: &Test, counters: &str, segments: &str) -> String {
    test.write("job.darshan", DARSHAN_HEADER);
    test.write("job.darshan.counters", counters);
    test.write("job.darshan.dxt", segments);
    for (program, ending) in [("darshan-parser", ".counters"), ("darshan-dxt-parser", ".dxt")] {
        test.write(program, format!("#!/bin/sh\nexec /bin/cat \"$1{ending}\"\n"));
        set_permissions(test.path(program), Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = test.command(&["import", "job.darshan", "-o", "job.yaml"]);
    let output = command.env("PATH", test.path(".")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn more_repetitions_than_a_workload_can_have_are_limited() {
    let test = Test::new();
    let mut counters = "# nprocs: 1\n".to_string();
    for (counter, value) in [("OPENS", 1), ("READS", 200_000), ("BYTES_READ", 200_000)] {
        writeln!(counters, "POSIX\t0\t1\tPOSIX_{counter}\t{value}\t/d/a.raw\t/\text4").unwrap();
    }
    let mut segments = "# DXT, file_id: 1, file_name: /d/a.raw\n".to_string();
    for index in 0..200_000 {
        writeln!(segments, " X_POSIX 0 read {index} 0 1 {index}.1 {index}.2").unwrap();
    }
    let page = import_darshan(&test, &counters, &segments);
    let assumed =
        "100,000 epochs, the most of such a workload: the job read each byte 200,000 times";
    assert!(page.contains(assumed), "{page}");
    let planned = test.feedrate(&["plan", "job.yaml"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
}

#[test]
fn ranks_that_read_the_same_bytes_are_emulated() {
    let test = Test::new();
    let here = test.path("a.h5").to_string_lossy().into_owned();
    let [counters, segments] =
        <[String; 2]>::from(darshan_logs()).map(|log| log.replace("/d/a.h5", &here));
    test.write("a.h5", [0; 900_000]);
    let page = import_darshan(&test, &counters, &segments);
    assert!(page.contains("2 ranks") && page.contains("read once"), "{page}");
    assert!(page.contains("in each epoch, all ranks read the same"), "{page}");
    assert!(page.contains("`a.h5` has 900 kB, but the log has 399.5 kB per file"), "{page}");
    let run = test.feedrate(&["run", "job.yaml", "--json", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let access = &run.json()["access"];
    assert_eq!(access["files_by_ranks"], json!([{"ranks": 2, "files": 1}]));
    assert_eq!(access["sequential_share"], 1.0, "{access}");
    // Each rank reads 64 samples with about one read each.
    let reads = access["reads"].as_u64().unwrap();
    assert!((128..=136).contains(&reads), "{access}");
}

#[test]
fn no_python_module_in_the_working_directory_is_loaded() {
    let test = Test::new();
    test.write("job.darshan", DARSHAN_HEADER);
    test.write("darshan.py", "open('ran', 'w')\n");
    let python = test.program("python3", &["-c", "import sys; print(sys.executable)"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    std::fs::create_dir(test.path("bin")).unwrap();
    std::os::unix::fs::symlink(python.trim(), test.path("bin/python3")).unwrap();
    let mut command = test.command(&["import", "job.darshan"]);
    // An empty entry of PYTHONPATH means the working directory.
    command.env("PATH", test.path("bin")).env("PYTHONPATH", ":/nowhere");
    let answer = Answer::from_output(&command.output().unwrap());
    answer.refuses(2, &["hint:"]);
    assert!(!test.path("ran").exists());
}

#[test]
fn commands_for_runs_and_workloads_name_import_for_a_log() {
    let test = Test::new();
    test.write("job.strace", strace_log());
    std::fs::create_dir(test.path("logs")).unwrap();
    test.write("logs/out.17", strace_log());
    std::fs::create_dir(test.path("named")).unwrap();
    test.write("named/job.strace", strace_log());
    let import = |log: &str| test.feedrate(&["import", log]).stdout;
    assert_eq!(import("named"), import("job.strace"));
    for command in ["show", "diagnose", "advise", "plan"] {
        for log in ["job.strace", "logs"] {
            test.feedrate(&[command, log])
                .refuses(2, &["is the I/O log of a job", &format!("`feedrate import {log}`")]);
        }
    }
    for command in ["analyze", "report"] {
        test.feedrate(&[command, "job.strace"])
            .refuses(2, &["`job.strace` is the I/O log of a job", "`feedrate import job.strace`"]);
    }
}

#[test]
fn a_log_that_is_cut_off_is_named_in_the_first_line() {
    let test = Test::new();
    test.write("job.strace", strace_log() + "5 9.0 read(3, \"");
    let page = test.feedrate(&["import", "job.strace"]).stdout;
    let first = page.lines().next().unwrap();
    assert!(first.ends_with("; the log is cut off"), "{page}");
}

#[test]
fn a_folder_may_hold_compressed_logs() {
    let test = Test::new();
    std::fs::create_dir(test.path("logs")).unwrap();
    test.write("logs/job.log", strace_log());
    test.feedrate(&["import", "logs"])
        .refuses(2, &["`logs` contains no supported log", "`.strace` or `.strace.gz`"]);
    std::fs::rename(test.path("logs/job.log"), test.path("job.strace")).unwrap();
    let gzip = test.program("gzip", &["-k", "job.strace"]).status().unwrap();
    assert!(gzip.success());
    std::fs::rename(test.path("job.strace.gz"), test.path("logs/job.strace.gz")).unwrap();
    let import = |log: &str| test.feedrate(&["import", log]).stdout;
    assert_eq!(import("logs"), import("job.strace"));
}

#[test]
fn the_command_for_a_job_with_unknown_batches_sets_them() {
    let test = Test::new();
    test.write(
        "job.strace",
        "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n\
         5 2.0 openat(AT_FDCWD, \"/d/a.npz\", O_RDONLY) = 3 <0.1>\n\
         5 3.0 read(3, \"\", 5000) = 5000 <0.1>\n",
    );
    let page = test.feedrate(&["import", "job.strace", "-o", "job.yaml"]).stdout;
    let command = "`feedrate run job.yaml --compute TIME reader.batch_size=N`";
    assert!(page.contains(command), "{page}");
}

#[test]
fn files_that_are_no_logs_are_refused_with_a_hint() {
    let test = Test::new();
    test.write("noise", [0x1f, 0x8b, 3, 7, 255, 0, 9]);
    test.write("text", "hello\n".repeat(100));
    test.write("empty", "");
    test.feedrate(&["import", "empty"]).refuses(2, &["`empty` is empty"]);
    test.feedrate(&["import", "nois"]).refuses(2, &["`nois` does not exist", "`noise`"]);
    for name in ["noise", "text", "nothing", "."] {
        let answer = test.feedrate(&["import", name]);
        assert_eq!(answer.code, 2, "{name}: {}", answer.stderr);
        assert!(answer.stderr.contains("strace -f -ttt -T"), "{name}: {}", answer.stderr);
    }
    test.write("text.darshan", "a text of several words\n");
    let mut command = test.command(&["import", "text.darshan"]);
    // No program that reads Darshan's logs is needed to see this.
    let refused = Answer::from_output(&command.env("PATH", "/nowhere").output().unwrap());
    refused.refuses(2, &["`text.darshan` contains something else", "hint:"]);
}
