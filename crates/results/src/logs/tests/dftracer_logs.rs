//! Tests of importing traces of DFTracer.

use super::*;

/// Events with hashes of names, and with names as in older versions. Process 8 is a worker forked from process 7.
pub(super) const EVENTS: &str = r#"[
{"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"/d/a.npz","value":"aa"}},
{"id":1,"name":"start","cat":"dftracer","pid":7,"tid":7,"ts":1,"dur":0,"ph":"X","args":{"ppid":1,"cmd_hash":"c"}},
{"id":1,"name":"start","cat":"dftracer","pid":8,"tid":8,"ts":1,"dur":0,"ph":"X","args":{"ppid":7,"cmd_hash":"c"}}
{"id":2,"name":"open64","cat":"POSIX","pid":7,"tid":7,"ts":1000,"dur":5,"ph":"X","args":{"flags":524288,"fhash":"aa"}}
{"id":3,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":2000,"dur":10,"ph":1,"args":{"ret":100,"count":4096,"fhash":"aa"}}
{"id":4,"name":"lseek64","cat":"POSIX","pid":7,"tid":7,"ts":2500,"dur":1,"args":{"ret":50,"whence":0,"fhash":"aa"}}
{"id":5,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":3000,"dur":10,"args":{"ret":100,"fhash":"aa"}}
{"id":6,"name":"pread64","cat":"POSIX","pid":8,"tid":8,"ts":3000,"dur":20,"args":{"fname":"/d/b.npz","ret":40,"offset":90}}
{"id":7,"name":"read","cat":"POSIX","pid":8,"tid":8,"ts":4000,"dur":1,"args":{"fhash":"unknown","ret":9}}
not json
{"id":8,"name":"end","cat":"dftracer","args":{"dropped_events":4}}
]"#;

#[test]
fn events_of_dftracer_are_counted() {
    let log = import("t.pfw", EVENTS).unwrap();
    let io = counters_of_run(&log.record);
    assert_eq!((io.opens, io.reads, io.read_bytes, io.read_ns), (1, 3, 240, 40_000));
    assert_eq!((io.access.following, io.access.sequential), (1, 0));
    assert_eq!(log.record.epochs[0].files_read.as_ref().unwrap().unique_bytes, 190);
    assert_eq!((log.job.ranks, log.job.readers, log.job.files), (1, Some(2), 2));
    let expected = [
        (4, "that the program dropped"),
        (1, "without an event"),
        (1, "of files whose names are not in the log"),
    ];
    assert_eq!(lost_entries(&log), expected);
}

#[test]
fn numbers_of_events_may_be_strings() {
    // The form of DFTracer before version 1, which adds the number of the process to that of the thread.
    let mut text = "[\n".to_string();
    for (index, name) in ["open64", "read", "read", "close"].repeat(3).into_iter().enumerate() {
        let ts = 1_697_000_000_000_000 + 1000 * index;
        let file = index / 4;
        text += &format!(
            r#"{{"id":"{index}","name":"{name}","cat":"POSIX","pid":"2044","tid":"4088","ts":"{ts}","dur":"12","ph":"X","args":{{"hostname":"n","ret":"100","flags":0,"count":"100","fname":"/d/img_{file}.npz","fd":18}}}}"#,
        );
        text += "\n";
    }
    let read = |text: &str| {
        let log = import("t.pfw", text).unwrap();
        let io = counters_of_run(&log.record);
        assert_eq!((io.opens, io.reads, io.read_bytes, io.read_ns), (3, 6, 600, 72_000));
        assert_eq!((log.job.files, log.job.epochs, log.job.ranks), (3, Some(1), 1));
        log.job.trains_and_reads
    };
    assert_eq!(read(&text), Some(true));
    // Names instead of numbers.
    let named = text.replace("\"2044\"", "\"node1:2044\"").replace("\"4088\"", "\"MainThread\"");
    assert_eq!(read(&named), Some(false));
    let absent = text.replace("\"tid\":\"4088\",", "");
    assert!(import("t.pfw", &absent).is_err(), "no call has a thread");
}
