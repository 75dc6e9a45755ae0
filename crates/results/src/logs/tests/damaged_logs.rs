//! Tests of logs of strace that are incomplete, or were changed after they were recorded.

use super::*;

#[test]
fn line_ends_of_windows_change_nothing() {
    let [unix, windows] = [TRAINING.into(), TRAINING.replace('\n', "\r\n")]
        .map(|text: String| import("t.strace", &text).unwrap());
    assert_eq!((&windows.record, &windows.job), (&unix.record, &unix.job));
    assert_eq!(windows.lost, unix.lost);
}

#[test]
fn a_log_that_was_cut_off_lacks_calls() {
    let cut = "still running when the log ends: the job may be larger";
    let reads = cold_log(0, 100);
    let whole = import("t", &reads).unwrap();
    assert!(whole.lost.is_empty() && !whole.is_cut);
    let unfinished = "5 9.0 read(3,  <unfinished ...>\n";
    for end in [format!("{unfinished}5 9.1 <... read resu"), "5 9.0 read(3, \"".into()] {
        let log = import("t", &format!("{reads}{end}")).unwrap();
        assert_eq!(lost_entries(&log), [(1, "not understood or cut off"), (1, cut)], "{end}");
        assert_eq!((log.unreadable_percent, log.is_cut), (None, true));
    }
    let ended = format!("{reads}5 9.0 +++ exited with 0 +++\n");
    assert!(import("t", &ended).unwrap().lost.is_empty());
    let damaged = format!("{reads}{}", "5 9.0 read(3, \"\n".repeat(60));
    let log = import("t", &damaged).unwrap();
    // The log has 241 calls that were read.
    assert_eq!(log.unreadable_percent, Some(100.0 * 60.0 / 301.0));
    assert_eq!(log.answer.unknown_because, Some(IoUnknown::HiddenReads));
}

#[test]
fn a_process_in_two_files_at_the_same_time_is_refused() {
    let copies = |second: &str| {
        let parts = vec![part("a.strace", TRAINING), part("b.strace", second)];
        strace::KIND.import(parts).map(|log| log.job.files)
    };
    let error = copies(&TRAINING[..TRAINING.len() / 2]).unwrap_err().to_string();
    assert_eq!(error, "two of its files have calls of process 10 at the same time");
    let later = "10 200.0 openat(AT_FDCWD, \"/d/c.npz\", O_RDONLY) = 3 <0.1>\n\
        10 201.0 read(3, \"\", 9) = 9 <0.1>\n";
    assert_eq!(copies(later).unwrap(), 3, "the first file has ended");
}
