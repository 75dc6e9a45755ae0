//! What requests are sent, and how faults are reported. The contract of storages is checked in `storage/tests.rs`.

use super::test_server::{Fault, TestServer};
use super::*;
use crate::file_index::{FileIndex, NamedFiles};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::transfers::TransferCounts;

const KB64: usize = 64 << 10;
/// Longer than the server takes for small objects.
const SHORT_TIMEOUT: (&str, &str) = ("read_timeout", "2");

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn open_bucket(server: &TestServer) -> Box<dyn Storage> {
    super::super::open("s3", Path::new(&format!("{}/p", server.url()))).unwrap()
}

/// Reads `len` bytes from `offset` on, of an object that is opened for this.
fn read(storage: &dyn Storage, offset: u64, len: usize) -> Result<Vec<u8>, StorageError> {
    let file = storage.open("a")?;
    let mut bytes = vec![0; len];
    let read_bytes = storage.read_at(&file, offset, &mut bytes)?;
    bytes.truncate(read_bytes);
    Ok(bytes)
}

#[test]
fn a_read_is_one_request_and_small_neighbours_share_one() {
    let server = TestServer::start();
    let bytes = content(300_000);
    server.put("p/a", &bytes);
    let storage = open_bucket(&server);
    assert_eq!(read(&*storage, 1000, 200_000).unwrap(), bytes[1000..201_000]);
    assert_eq!(server.requests(), ["GET p/a 1000-200999"]);
    assert_eq!(read(&*storage, 100_000, 10).unwrap(), bytes[100_000..100_010]);
    assert_eq!(server.requests(), ["GET p/a 100000-100009"]);
    let file = storage.open("a").unwrap();
    assert_eq!(server.requests(), [""; 0]);
    let check = |offset: usize, len: usize, expected: &[&str]| {
        let mut piece = vec![0; len];
        assert_eq!(storage.read_at(&file, offset as u64, &mut piece).unwrap(), len);
        assert_eq!(piece, bytes[offset..offset + len]);
        assert_eq!(server.requests(), expected, "{offset}");
    };
    check(0, 10, &["GET p/a 0-65535"]);
    check(10, 1000, &[]);
    check(299_990, 10, &["GET p/a 234464-299999"]);
    check(250_000, 100, &[]);
    check(0, 100_000, &["GET p/a 65536-99999"]);
    assert_eq!(storage.len(&file).unwrap(), 300_000);
    let mut buffer = [0; 1000];
    assert_eq!(storage.read_over(&file, 0, 300_000, &mut buffer).unwrap(), 300_000);
    assert_eq!(server.requests(), ["GET p/a 65536-299999"]);
}

#[test]
fn the_length_takes_one_request_which_is_all_of_a_small_object() {
    let server = TestServer::start();
    server.put("p/a", &content(1000));
    server.put("p/empty", b"");
    let storage = open_bucket(&server);
    let file = storage.open("a").unwrap();
    assert_eq!(storage.len(&file).unwrap(), 1000);
    let mut buffer = [0; 2000];
    assert_eq!(storage.read_at(&file, 0, &mut buffer).unwrap(), 1000);
    assert_eq!(server.requests(), ["GET p/a 0-65535"]);
    server.put("p/b", &content(100_000));
    for expected in [&["GET p/b 0-65535", "GET p/b 65536-99999"][..], &["GET p/b 0-99999"]] {
        let file = storage.open("b").unwrap();
        let bytes = storage.len(&file).unwrap();
        assert_eq!(storage.read_over(&file, 0, bytes, &mut buffer).unwrap(), 100_000);
        assert_eq!(server.requests(), expected);
    }
    let file = storage.open("empty").unwrap();
    assert_eq!(storage.len(&file).unwrap(), 0);
    assert_eq!(storage.read_at(&file, 0, &mut buffer).unwrap(), 0);
}

/// Retries by cause: throttled, other status, reset, timeout, short body.
fn retries(counts: &TransferCounts) -> [u64; 5] {
    [
        counts.retried_status_503,
        counts.retried_other_status,
        counts.retried_reset,
        counts.retried_timeout,
        counts.retried_short_body,
    ]
}

#[test]
fn passing_faults_are_repeated_and_counted_and_the_bytes_are_right() {
    for (fault, expected) in [
        (Fault::Status(503, "SlowDown"), [1, 0, 0, 0, 0]),
        (Fault::Status(429, "SlowDown"), [1, 0, 0, 0, 0]),
        (Fault::Status(500, "InternalError"), [0, 1, 0, 0, 0]),
        (Fault::Close, [0, 0, 1, 0, 0]),
        (Fault::Stall, [0, 0, 0, 1, 0]),
        (Fault::Cut(70_000), [0, 0, 0, 0, 1]),
        (Fault::Short(50_000), [0, 0, 0, 0, 1]),
    ] {
        let server = TestServer::with_options(&[SHORT_TIMEOUT]);
        server.put("p/a", &content(100_000));
        let storage = open_bucket(&server);
        server.inject(&[fault]);
        assert_eq!(read(&*storage, 0, 100_000).unwrap(), content(100_000), "{fault:?}");
        let counts = storage.transfers().unwrap();
        assert_eq!((retries(&counts), counts.requests, counts.attempts), (expected, 1, 2));
        assert!(counts.retry_lost_ns >= 50_000_000, "{fault:?}");
        assert_eq!(counts.retries(), 1);
    }
}

#[test]
fn a_body_is_continued_where_it_ended() {
    let server = TestServer::start();
    server.put("p/a", &content(100_000));
    let storage = open_bucket(&server);
    server.inject(&[Fault::Cut(70_000), Fault::Short(10_000)]);
    assert_eq!(read(&*storage, 0, 100_000).unwrap(), content(100_000));
    let expected = ["GET p/a 0-99999", "GET p/a 70000-99999", "GET p/a 80000-99999"];
    assert_eq!(server.requests(), expected);
}

#[test]
fn lasting_faults_are_errors_with_name_cause_and_attempts() {
    let server = TestServer::with_options(&[SHORT_TIMEOUT]);
    server.put("p/a", &content(KB64 * 2));
    let storage = open_bucket(&server);
    for (faults, expected) in [
        (vec![Fault::Status(503, "SlowDown"); 4], "503 Service Unavailable, after 4 attempts"),
        (
            vec![Fault::Status(500, "InternalError"); 4],
            "500 Internal Server Error, after 4 attempts",
        ),
        (vec![Fault::Status(429, "SlowDown"); 4], "429 Too Many Requests, after 4 attempts"),
        (vec![Fault::Close; 4], "closed before a response, after 4 attempts"),
        (vec![Fault::Stall; 4], "no bytes arrived in time, after 4 attempts"),
        (vec![Fault::Cut(0); 4], "closed within the body, after 4 attempts"),
        (vec![Fault::Short(0); 4], "bytes shorter than its range, after 4 attempts"),
        (vec![Fault::WrongRange], "Requested 0..131072, got 1..131072"),
        (vec![Fault::Status(403, "AccessDenied")], "denies access (status 403, AccessDenied)"),
        (vec![Fault::Status(404, "NoSuchBucket")], "the bucket does not exist"),
    ] {
        server.inject(&faults);
        let error = read(&*storage, 0, KB64 * 2).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("cannot read `s3://bucket") && text.contains("/p/a`"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("127.0.0.1"), "{text}");
    }
}

#[test]
fn an_object_that_is_replaced_or_refused_while_it_is_read_is_an_error() {
    let server = TestServer::start();
    for (fault, expected, has_hint) in [
        (Fault::None, "replaced while it was read", true),
        // A refused range within the known length is no end of the object.
        (Fault::Status(416, "InvalidRange"), "status 416", false),
    ] {
        server.put("p/a", &content(300_000));
        let storage = open_bucket(&server);
        let file = storage.open("a").unwrap();
        let mut buffer = vec![0; 100_000];
        storage.read_at(&file, 0, &mut buffer).unwrap();
        server.inject(&[fault]);
        server.put("p/a", &content(300_000));
        let error = storage.read_at(&file, 100_000, &mut buffer).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.hint().is_some(), has_hint, "{error}");
    }
}

/// Reads a range in pieces of 20,000 bytes, which are expected to continue up to `end`.
fn read_pieces(storage: &dyn Storage, file: &Handle, range: std::ops::Range<u64>, end: u64) {
    let mut piece = [0; 20_000];
    for offset in range.step_by(piece.len()) {
        let read_bytes = storage.read_piece(file, offset, &mut piece, end).unwrap();
        assert_eq!(piece[..read_bytes], content(300_000)[offset as usize..][..read_bytes]);
    }
}

#[test]
fn pieces_that_follow_one_another_are_one_request() {
    let server = TestServer::start();
    server.put("p/a", &content(300_000));
    let storage = open_bucket(&server);
    let file = storage.open("a").unwrap();
    for (range, end, expected) in [
        (0..300_000, u64::MAX, &["GET p/a 0-"][..]),
        (20_000..220_000, 220_000, &["GET p/a 20000-219999"]),
        // The next piece is elsewhere, so the rest of the body is not needed.
        (100_000..140_000, 260_000, &["GET p/a 100000-259999"]),
        (20_000..60_000, 110_000, &["GET p/a 20000-109999"]),
        // The next piece continues the body and exceeds it.
        (60_000..140_000, 140_000, &["GET p/a 110000-139999"]),
    ] {
        read_pieces(&*storage, &file, range.clone(), end);
        assert_eq!(server.requests(), expected, "{range:?}");
    }
    storage.close(file);
    let counts = storage.transfers().unwrap();
    assert_eq!((counts.requests, counts.attempts, counts.first_byte.count()), (5, 5, 5));
}

#[test]
fn a_body_that_breaks_between_pieces_is_continued_as_a_repeated_request() {
    let server = TestServer::start();
    server.put("p/a", &content(300_000));
    let storage = open_bucket(&server);
    let file = storage.open("a").unwrap();
    server.inject(&[Fault::Cut(90_000)]);
    read_pieces(&*storage, &file, 0..300_000, 300_000);
    assert_eq!(server.requests(), ["GET p/a 0-299999", "GET p/a 90000-299999"]);
    let counts = storage.transfers().unwrap();
    assert_eq!((retries(&counts), counts.requests, counts.attempts), ([0, 0, 0, 0, 1], 1, 2));
}

#[test]
fn threads_that_read_one_handle_get_their_bytes() {
    let server = TestServer::start();
    server.put("p/a", &content(300_000));
    let storage = open_bucket(&server);
    let file = storage.open("a").unwrap();
    std::thread::scope(|scope| {
        for start in [0, 20_000, 100_000, 220_000] {
            let (storage, file) = (&*storage, &file);
            scope.spawn(move || read_pieces(storage, file, start..300_000, 300_000));
        }
    });
}

#[test]
fn a_foreign_prefix_is_listed_once_and_without_requests_for_lengths() {
    let server = TestServer::start();
    for number in 0..120 {
        server.put(&format!("p/train/{}/{number:03}.raw", number % 2), &[number; 50]);
        server.put(&format!("p/val/{number:03}.raw"), &[number; 60]);
    }
    for key in ["p/train/a.md", "p/.git/x.raw", "p/train/.x.raw", "q/y.raw"] {
        server.put(key, b"text");
    }
    // Some programs mark folders so.
    server.put("p/train/2/", b"");
    let (root, folder) = (format!("{}/p", server.url()), tempfile::tempdir().unwrap());
    let (storage, index) = (open_bucket(&server), folder.path().join("names"));
    let listing = crate::listing::list(Path::new(&root), &*storage, &index).unwrap();
    let format = listing.main_format().unwrap();
    let files = listing.select(format).unwrap();
    assert_eq!((files.train.files, files.train.bytes, files.train.folders), (120, 6000, 2));
    let expected = [("to evaluate on", 120), ("hidden", 2), ("empty", 1), ("md", 1)];
    assert_eq!(files.left_out, expected.map(|(kind, files)| (kind.to_string(), files)));
    let plan =
        DatasetPlan { prefix: "img".into(), extension: "raw".into(), ..DatasetPlan::default() };
    let named = NamedFiles::new(storage, FileIndex::open(&index).unwrap(), &plan);
    assert_eq!(named.stat("train/img_119_of_120.raw").unwrap(), Some(50));
    assert_eq!(named.real_path("train/img_119_of_120.raw"), "train/1/119.raw");
    assert_eq!(named.stat("valid/img_119_of_120.raw").unwrap(), Some(60));
    // Three pages, and the start of an object of each extension until it is recognised.
    let requests = server.requests();
    let pages = requests.iter().filter(|request| *request == "GET ").count();
    assert_eq!((pages, requests.iter().any(|request| request.starts_with("HEAD"))), (3, false));
    assert!(requests.len() < 40, "{requests:?}");
}

#[test]
fn objects_whose_names_are_no_paths_are_counted_and_the_others_read() {
    let server = TestServer::start();
    for key in ["p/../a.raw", "p//b.raw", "p/train/c.raw", "p/train/d.raw/"] {
        server.put(key, b"content");
    }
    let (root, folder) = (format!("{}/p", server.url()), tempfile::tempdir().unwrap());
    let (storage, index) = (open_bucket(&server), folder.path().join("names"));
    let listing = crate::listing::list(Path::new(&root), &*storage, &index).unwrap();
    let files = listing.select(crate::format::plain_bytes()).unwrap();
    assert_eq!(files.train.files, 1);
    assert_eq!(files.left_out, [("with an unusable name (`../a.raw`)".to_string(), 3)]);
    assert_eq!(storage.list("").unwrap(), ["train"]);
}

#[test]
fn an_object_that_cannot_be_read_to_recognise_its_format_is_an_error() {
    let server = TestServer::start();
    server.put("p/train/a.npz", b"content");
    server.put("q/manifest.json", b"{}");
    let folder = tempfile::tempdir().unwrap();
    for (prefix, object) in [("p", "p/train/a.npz"), ("q", "q/manifest.json")] {
        for (faults, expected) in [
            (vec![Fault::Close; 4], "after 4 attempts"),
            (vec![Fault::Status(503, "SlowDown"); 4], "503 Service Unavailable, after 4 attempts"),
            (vec![Fault::Status(403, "AccessDenied")], "denies access"),
        ] {
            let root = format!("{}/{prefix}", server.url());
            let storage = super::super::open("s3", Path::new(&root)).unwrap();
            server.inject(&[vec![Fault::None], faults].concat());
            let index = folder.path().join("names");
            let error = crate::listing::list(Path::new(&root), &*storage, &index).err().unwrap();
            let text = error.to_string();
            assert!(text.contains(expected) && text.contains(object), "{text}");
        }
    }
}

#[test]
fn a_large_object_is_written_in_parts_and_patched_where_it_is_held() {
    let server = TestServer::start();
    check_large_object(&*open_bucket(&server));
    assert_eq!(server.uploads(), 0);
}

/// Writes an object of several parts, and reads it back.
pub(in crate::storage) fn check_large_object(storage: &dyn Storage) {
    let mut expected = content(100 << 20);
    let mut file = storage.create("large").unwrap();
    // The second range is in two parts.
    let patches: [u64; 3] = [0, (16 << 20) - 1, (100 << 20) - 3];
    patches.iter().for_each(|&offset| file.hold(offset..offset + 3));
    for piece in expected.chunks(5 << 20) {
        file.write(piece).unwrap();
    }
    for offset in patches {
        file.patch(offset, b"xyz").unwrap();
        file.release(offset..offset + 3);
        expected[offset as usize..offset as usize + 3].copy_from_slice(b"xyz");
    }
    assert!(file.patch(30 << 20, b"xyz").is_err());
    assert_eq!(storage.stat("large").unwrap(), None);
    file.commit().unwrap();
    let file = storage.open("large").unwrap();
    let mut stored = vec![0; expected.len()];
    assert_eq!(storage.read_at(&file, 0, &mut stored).unwrap(), expected.len());
    assert!(stored == expected);
}

#[test]
fn an_object_that_marks_a_folder_is_not_in_it() {
    let server = TestServer::start();
    server.put("p/train/", b"");
    let storage = open_bucket(&server);
    let check = |path: &str, expected: &[(&str, EntryKind)]| {
        let mut found = Vec::new();
        let visited = storage.visit_entries(path, Depth::Folder, &mut |name, kind| {
            found.push((name.to_string(), kind));
            Ok(())
        });
        assert!(visited.unwrap());
        let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
        assert_eq!(storage.list(path).unwrap(), names);
        let expected = expected.iter().map(|(name, kind)| (name.to_string(), *kind));
        assert_eq!(found, expected.collect::<Vec<_>>());
    };
    check("train", &[]);
    server.put("p/train/a", b"content");
    check("train", &[("a", EntryKind::File { bytes: 7 })]);
    check("", &[("train", EntryKind::Folder)]);
}

#[test]
fn an_upload_that_is_not_committed_is_aborted() {
    let server = TestServer::start();
    let storage = open_bucket(&server);
    let mut file = storage.create("large").unwrap();
    file.write(&content(100 << 20)).unwrap();
    assert_eq!(server.uploads(), 1);
    drop(file);
    assert_eq!(server.uploads(), 0);
    assert_eq!(storage.stat("large").unwrap(), None);
}

#[test]
fn an_upload_whose_last_answer_is_lost_is_complete() {
    let server = TestServer::start();
    let storage = open_bucket(&server);
    for (fault, is_stored) in [(Fault::Lost, true), (Fault::Status(403, "AccessDenied"), false)] {
        // An older object of the same length is not mistaken for the new one.
        server.put("p/large", &[1; 20 << 20]);
        let mut file = storage.create("large").unwrap();
        file.write(&content(20 << 20)).unwrap();
        // Two parts are being sent, and the third one precedes the completion.
        let mut sent = 0;
        while sent < 2 {
            sent += server.requests().iter().filter(|text| text.starts_with("PUT")).count();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        server.inject(&[Fault::None, fault]);
        let committed = file.commit();
        assert_eq!(committed.is_ok(), is_stored, "{committed:?}");
        assert_eq!(server.uploads(), 0);
        let file = storage.open("large").unwrap();
        let mut first = [0; 3];
        storage.read_at(&file, 0, &mut first).unwrap();
        assert_eq!(first, if is_stored { [0, 1, 2] } else { [1; 3] });
    }
}

#[test]
fn only_own_unfinished_uploads_are_counted_and_aborted() {
    let server = TestServer::start();
    let storage = open_bucket(&server);
    for key in ["p/train/a", "p/train/b", "p/other", "pp/train/a", "p/train/a"] {
        server.begin_upload(key);
    }
    let found = |action, start: &str| {
        storage.unfinished_uploads(action, &|path| path.starts_with(start)).unwrap()
    };
    assert_eq!((found(UploadAction::Count, "train/"), server.uploads()), (3, 5));
    assert_eq!((found(UploadAction::Abort, "train/"), server.uploads()), (3, 2));
    // A store that lists no uploads has none.
    server.inject(&[Fault::Status(501, "NotImplemented")]);
    assert_eq!((found(UploadAction::Abort, ""), server.uploads()), (0, 2));
}

#[test]
fn a_check_sends_one_request_of_each_kind_and_explains_a_refusal() {
    let server = TestServer::start();
    let url = ObjectUrl::parse(&format!("{}/p", server.url())).unwrap();
    check(&url, Access::Write).unwrap();
    let methods: Vec<String> =
        server.requests().iter().map(|text| text.split(' ').next().unwrap().into()).collect();
    assert_eq!(methods, ["PUT", "GET", "DELETE"]);
    check(&url, Access::Read).unwrap();
    for (code, sentence, hint) in [
        ("InvalidAccessKeyId", "does not know the access key", "AWS_ACCESS_KEY_ID"),
        ("SignatureDoesNotMatch", "secret key is wrong", "AWS_SECRET_ACCESS_KEY"),
        ("RequestTimeTooSkewed", "clock of this machine", "timedatectl"),
        ("AuthorizationHeaderMalformed", "another region", "AWS_REGION"),
        ("AccessDenied", "denies access", "check the credentials"),
    ] {
        for access in [Access::Read, Access::Write] {
            server.inject(&[Fault::Status(403, code)]);
            let error = check(&url, access).unwrap_err();
            assert!(error.to_string().contains(sentence), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error}");
        }
    }
    let nowhere = ObjectUrl::parse("s3://nowhere").unwrap();
    let options = [
        ("endpoint_url", "http://127.0.0.1:9"),
        ("access_key_id", "a"),
        ("secret_access_key", "b"),
    ];
    configure(&nowhere, &options.map(|(name, value)| (name.into(), value.into())), &|_| None);
    let error = check(&nowhere, Access::Read).unwrap_err();
    assert!(error.to_string().contains("nothing answers at the endpoint"), "{error}");
}

#[test]
fn a_description_has_the_sources_of_settings_and_no_secret() {
    let url = ObjectUrl::parse("s3://b/p").unwrap();
    let environment = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("hunter2".to_string()),
        "AWS_ENDPOINT_URL" => Some("http://user:hunter2@store:9000".to_string()),
        "AWS_REGION" => Some("eu-1".to_string()),
        _ => None,
    };
    let options = [("secure", "false"), ("timeout", "1s"), ("secret_access_key", "")];
    let options = options.map(|(name, value)| (name.to_string(), value.to_string()));
    let (plan, unused) = describe(&url, &options, &environment);
    assert_eq!(unused, ["secure", "timeout"]);
    assert_eq!(plan.endpoint.as_deref(), Some("http://store:9000"));
    assert_eq!(plan.endpoint_source.as_deref(), Some("environment: AWS_ENDPOINT_URL"));
    assert_eq!(plan.region.as_deref(), Some("eu-1"));
    assert_eq!(plan.credentials_source, "environment: AWS_ACCESS_KEY_ID");
    let given = [("access_key_id".to_string(), "hunter2".to_string())];
    let (plan, unused) = describe(&url, &given, &|_| None);
    assert_eq!((plan.credentials_source.as_str(), unused.len()), ("storage.storage_options", 0));
    configure(&url, &given, &|_| None);
    assert!(!format!("{plan:?} {:?}", all_settings()).contains("hunter2"));
}

#[test]
fn timeouts_are_seconds_and_others_are_refused() {
    let url = ObjectUrl::parse("s3://timeouts").unwrap();
    let open = |text: &str| {
        configure(&url, &[("read_timeout".into(), text.into())], &|_| None);
        super::super::open("s3", Path::new("s3://timeouts")).map(drop)
    };
    for text in ["30", "0.5", "30s", "1.5 s"] {
        open(text).unwrap();
    }
    for text in ["0", "-1", "soon", "inf", "5m"] {
        let error = open(text).unwrap_err();
        assert!(error.to_string().contains(&format!("no time in seconds: `{text}`")), "{error}");
        assert!(error.hint().is_some());
    }
}
