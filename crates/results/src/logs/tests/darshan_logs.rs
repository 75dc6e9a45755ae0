//! Tests of importing Darshan's logs from the output of its parsers.

use super::*;

/// Counters of two ranks that read the same file of 8 KB: rank 0 completely in two reads, rank 1 the first half.
pub(super) const COUNTERS: &str = "\
# darshan log version: 3.41
# nprocs: 2
POSIX\t0\t11\tPOSIX_OPENS\t1\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_READS\t2\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_BYTES_READ\t8192\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_CONSEC_READS\t1\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_SEQ_READS\t1\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_MAX_BYTE_READ\t8191\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_SIZE_READ_1K_10K\t2\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_ACCESS1_ACCESS\t4096\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_ACCESS1_COUNT\t2\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_F_OPEN_START_TIMESTAMP\t0.5\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_F_READ_END_TIMESTAMP\t2.5\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_F_READ_TIME\t0.5\t/d/a.h5\t/\text4
POSIX\t0\t11\tPOSIX_F_META_TIME\t0.25\t/d/a.h5\t/\text4
POSIX\t1\t11\tPOSIX_OPENS\t1\t/d/a.h5\t/\text4
POSIX\t1\t11\tPOSIX_READS\t1\t/d/a.h5\t/\text4
POSIX\t1\t11\tPOSIX_BYTES_READ\t4096\t/d/a.h5\t/\text4
POSIX\t1\t12\tPOSIX_READS\t-1\t/d/b.h5\t/\text4
";
pub(super) const SEGMENTS: &str = "\
# DXT, file_id: 11, file_name: /d/a.h5
# DXT, rank: 0, hostname: n
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_POSIX       0  write        0               0             100      0.4000      0.5000
 X_POSIX       0   read        0               0            4096      1.0000      1.2500
 X_POSIX       0   read        1            4096            4096      2.0000      2.2500
# DXT, file_id: 11, file_name: /d/a.h5
 X_POSIX       1   read        0               0            4096      1.0000      1.2500
";

fn darshan(counters: &str, segments: &str) -> ImportedLog {
    let parts = vec![part("darshan-parser", counters), part("darshan-dxt-parser", segments)];
    detect_kind("job.darshan", "").unwrap().import(parts).unwrap()
}

#[test]
fn counters_of_darshan_become_a_record() {
    let log = darshan(COUNTERS, SEGMENTS);
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes), (2, 3, 12_288));
    assert_eq!((io.access.following, io.access.consecutive, io.access.sizes[2]), (1, 1, 2));
    assert_eq!((io.read_ns, io.open_ns), (500_000_000, 250_000_000));
    let files = log.record.epochs[0].files_read.as_ref().unwrap();
    assert_eq!((files.unique_bytes, files.overlap_bytes), (8192, 4096));
    assert_eq!((log.record.plan.accelerators, log.record.epochs[0].end_ns), (2, 2_000_000_000));
    assert_eq!((log.job.ranks, log.job.read_bytes, log.job.readers), (2, Some(4096), None));
    let without = darshan(COUNTERS, "");
    assert_eq!(without.record.epochs[0].files_read, None, "only DXT has positions");
    let job = |log: &ImportedLog| (log.job.epochs, log.job.ranks_each);
    assert_eq!(
        [job(&log), job(&without)],
        [(Some(2), Some(1.0)); 2],
        "one rank read everything, the other a half"
    );
    let why = "without a segment of DXT, whose position and time are unknown";
    assert_eq!(lost_entries(&without), [(3, why)]);
    // If a log has one rank, counters that are summed over all ranks belong to it.
    let shared = COUNTERS.replace("POSIX\t1\t", "POSIX\t-1\t");
    assert_eq!(lost_entries(&darshan(&shared, "")).len(), 2);
    let beyond_all = COUNTERS.replace("POSIX\t1\t", "POSIX\t4294967295\t");
    assert!(darshan(&beyond_all, SEGMENTS).job.read_bytes.is_some());
    let single_rank = shared.replace("nprocs: 2", "nprocs: 1").replace("POSIX\t0\t", "POSIX\t-1\t");
    assert_eq!(lost_entries(&darshan(&single_rank, "")).len(), 1);
}

/// Imports the logs of processes with one rank each. `ranks` has for each rank the name, the bytes read and the opens of each file. Files have 8 KB.
fn import_ranks(ranks: &[&[(&str, u64, u64)]], segments: bool) -> ImportedLog {
    let counters = ranks.iter().map(|files| {
        let mut text = "# nprocs: 1\n".to_string();
        for (name, bytes, opens) in *files {
            for (counter, value) in [
                ("OPENS", *opens),
                ("READS", bytes / 4096),
                ("BYTES_READ", *bytes),
                ("SEQ_READS", bytes / 4096 - 1),
                ("MAX_BYTE_READ", 8191),
            ] {
                text +=
                    &format!("POSIX\t0\t{name}\tPOSIX_{counter}\t{value}\t/d/{name}\t/\text4\n");
            }
        }
        text
    });
    let segment_texts = ranks.iter().map(|files| {
        let mut text = String::new();
        for (name, bytes, _) in *files {
            text += &format!("# DXT, file_id: 1, file_name: /d/{name}\n");
            for index in 0..bytes / 4096 {
                text += &format!(
                    " X_POSIX 0 read {index} {} 4096 {index}.0 {index}.5\n",
                    index % 2 * 4096
                );
            }
        }
        text
    });
    let texts: Vec<(String, String)> = counters.zip(segment_texts).collect();
    let parts = texts.iter().flat_map(|(counters, segment_text)| {
        let segments = segments.then(|| part("darshan-dxt-parser", segment_text));
        [Some(part("darshan-parser", counters)), segments].into_iter().flatten()
    });
    darshan::KIND.import(parts.collect()).unwrap()
}

#[test]
fn ranks_that_read_the_same_files_are_not_epochs() {
    for segments in [false, true] {
        let check = |ranks: &[&[(&str, u64, u64)]], epochs: u64, ranks_each: f64| {
            let job = import_ranks(ranks, segments).job;
            let found = (job.ranks, job.epochs, job.ranks_each);
            assert_eq!(found, (ranks.len() as u64, Some(epochs), Some(ranks_each)), "{ranks:?}");
        };
        // Rank 0 opens the file three times.
        let all = [[("a.h5", 8192, 3)], [("a.h5", 8192, 1)], [("a.h5", 8192, 1)]];
        check(&all.each_ref().map(|files| &files[..]), 1, 3.0);
        let thrice = [[("a.h5", 24_576, 3)], [("a.h5", 24_576, 3)]];
        check(&thrice.each_ref().map(|files| &files[..]), 3, 2.0);
        check(&[&[("a.h5", 8192, 1), ("b.h5", 8192, 1)], &[("b.h5", 8192, 1)]], 1, 1.5);
        // Shares of two epochs: one rank read `a` twice, the other `b`.
        let shares: [&[_]; 2] = [
            &[("a.h5", 16_384, 2), ("c.h5", 8192, 1), ("d.h5", 8192, 1)],
            &[("b.h5", 16_384, 2), ("c.h5", 8192, 1), ("d.h5", 8192, 1)],
        ];
        check(&shares, 2, 1.0);
        check(&[&[("a.h5", 8192, 1)], &[("b.h5", 8192, 1)]], 1, 1.0);
        // A quarter of the file in each of ten epochs.
        check(&[[("a.h5", 20_480, 5)]; 4].each_ref().map(|files| &files[..]), 10, 1.0);
    }
}

/// Logs of a training process and four forked workers, of which two belong to each of two consecutive loaders.
#[test]
fn forked_workers_are_readers_of_their_rank() {
    let log = |start: &str, parent: Option<u32>, file: &str| {
        let forked = parent.map(|parent| format!("# metadata: fork_parent = {parent}\n"));
        let head = format!("# jobid: 700\n# start_time: {start}\n# nprocs: 1\n");
        let with_file = |text: &str| text.replace("/d/a.h5", file);
        let body = with_file(&COUNTERS.replace("# nprocs: 2\n", ""));
        let counters = format!("{head}{}{body}", forked.unwrap_or_default());
        let rank_0_counters = counters.split("POSIX\t1").next().unwrap().to_string();
        let segments = with_file(SEGMENTS.split("# DXT, file_id: 11").nth(1).unwrap());
        [rank_0_counters, format!("# DXT, file_id: 11{segments}")]
    };
    let import = |logs: &[[String; 2]]| {
        let parts = logs.iter().flat_map(|[counters, segments]| {
            [part("darshan-parser", counters), part("darshan-dxt-parser", segments)]
        });
        darshan::KIND.import(parts.collect()).unwrap()
    };
    let job = |starts: [&str; 5]| {
        let logs = [
            log(starts[0], None, "/usr/lib/a.h5"),
            log(starts[1], Some(700), "/d/a.h5"),
            log(starts[2], Some(700), "/d/b.h5"),
            log(starts[3], Some(700), "/d/b.h5"),
            log(starts[4], Some(700), "/d/a.h5"),
        ];
        let imported = import(&logs);
        let job = imported.job;
        (job.ranks, job.readers, job.epochs, imported.record.epochs[0].end_ns)
    };
    let exact = ["100.5", "102.0", "102.25", "105.0", "105.25"];
    assert_eq!(job(exact), (1, Some(2), Some(2), 5_250_000_000));
    // Rounded to seconds, the starts of two workers of one loader differ by one.
    assert_eq!(job(["100", "102", "103", "106", "105"]), (1, Some(2), Some(2), 6_000_000_000));
    let others = import(&[log("100", None, "/d/a.h5"), log("100", None, "/d/b.h5")]).job;
    assert_eq!((others.ranks, others.readers), (2, None), "a scheduler's job of two processes");
}

#[test]
fn epochs_are_unknown_for_too_many_ranks() {
    let read = |more_ranks: u32| {
        let mut tally = Tally::default();
        let file = tally.file("/d/a.h5").unwrap();
        let read = ReadCall { bytes: 4096, offset: Some(0), follows: ReadPosition::First };
        for rank in 0..2 {
            let caller = Caller { rank, thread: 0, is_first: None };
            tally.add_read(FileCall { caller, file, start_ns: 0, ns: None }, read);
        }
        (2..2 + more_ranks).for_each(|rank| tally.add_read_bytes(rank, file, 0));
        let job = evaluate(&mut tally).unwrap().job;
        (job.epochs, job.ranks_each, tally.take_lost().len())
    };
    assert_eq!(read(0), (Some(1), Some(2.0), 0));
    assert_eq!(read(1 << 20), (None, None, 1));
}

#[test]
fn ranks_that_read_different_bytes_share_epochs() {
    let counters = COUNTERS
        .replace("POSIX\t1\t11\tPOSIX_READS\t1", "POSIX\t1\t11\tPOSIX_READS\t2")
        .replace("POSIX_BYTES_READ\t4096", "POSIX_BYTES_READ\t8192");
    let job = |offset: u64| {
        let more = format!(" X_POSIX 1 read 1 {offset} 4096 2.0 2.25\n");
        let job = darshan(&counters, &format!("{SEGMENTS}{more}")).job;
        job.epochs.zip(job.ranks_each).unwrap()
    };
    assert_eq!(job(4096), (1, 2.0), "both read everything");
    assert_eq!(job(0), (2, 1.0), "one rank read a half twice and the other half never");
}

#[test]
fn program_files_and_written_files_are_not_data() {
    let log = import_ranks(
        &[
            &[("manifest.json", 409_600, 1), ("a.h5", 8192, 1), (".begun.json", 40_960, 1)],
            &[("manifest.json", 409_600, 1), ("config.yaml", 40_960, 1)],
        ],
        true,
    );
    assert_eq!((log.job.extension.as_str(), log.job.ranks), ("h5", 1));
    assert_eq!(log.job.left_out, []);
    let written = COUNTERS.replace("BYTES_READ", "BYTES_WRITTEN");
    let import_error = |more: &str| import("t.darshan", &format!("{written}{more}")).unwrap_err();
    assert!(import_error("").hint().contains("num_workers=0"), "{}", import_error("").hint());
    assert_eq!(import_error("").to_string(), "the recorded processes wrote data and read none");
    let partial = "# *WARNING*: The POSIX module contains incomplete data!";
    assert!(
        import_error(partial).hint().contains("DARSHAN_EXCLUDE_DIRS"),
        "{}",
        import_error(partial).hint()
    );
}

#[test]
fn files_that_threads_may_share_are_reported() {
    let not_sequential = COUNTERS.replace("SEQ_READS\t1", "SEQ_READS\t0");
    let why = "that threads may share: Darshan merges the reads of threads, which makes them look out of order and like more epochs";
    let reports = |log: ImportedLog| lost_entries(&log).contains(&(1, why));
    assert!(reports(darshan(&not_sequential, "")));
    assert!(!reports(darshan(COUNTERS, "")), "sequential reads are in order");
    assert!(!reports(darshan(&not_sequential, SEGMENTS)), "no two reads overlap");
    let overlapping = SEGMENTS.replace("2.0000      2.2500", "1.1000      2.2500");
    assert!(reports(darshan(COUNTERS, &overlapping)));
}

#[test]
fn logs_of_darshan_have_its_number_or_are_compressed() {
    let is_log =
        |head: &[u8]| detect_kind("a.darshan", "").is_some_and(|kind| (kind.has_content)(head));
    for head in [
        b"3.41\0\0\0\0\x37\x35\x64\0\0\0\0\0\0\0".as_slice(),
        b"3.21\0\0\0\0\0\0\0\0\0\x64\x35\x37",
        b"\x1f\x8b\x08",
        b"BZh9",
    ] {
        assert!(is_log(head), "{head:?}");
    }
    for head in [
        b"".as_slice(),
        b"3.41",
        b"a text of several words",
        b"3.41\0\0\0\0\x37\x35\x64\0\0\0\0\x01",
    ] {
        assert!(!is_log(head), "{head:?}");
    }
}
