//! A bucket of S3 in this process, which answers some requests with faults.

use super::service::lock;
use feedrate_spec::object_url::ObjectUrl;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What happens to a request, instead of a right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Fault {
    /// None: the request is answered.
    None,
    /// A status, with an S3 error.
    Status(u16, &'static str),
    /// The connection is closed without an answer.
    Close,
    /// Nothing is sent until the client closes the connection.
    Stall,
    /// The request takes effect, and the connection is closed without an answer.
    Lost,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// The body and its length header are shorter than the range header says.
    Short(usize),
    /// Another range than the requested one is returned.
    WrongRange,
}

/// Objects on a page of a listing.
const PAGE_OBJECTS: usize = 100;

#[derive(Default)]
struct Bucket {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    /// Names and parts of unfinished uploads.
    uploads: BTreeMap<u64, (String, BTreeMap<u32, Vec<u8>>)>,
    next: u64,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
}

/// The server, which answers until the process ends.
pub(in crate::storage) struct TestServer {
    name: String,
    bucket: Arc<Mutex<Bucket>>,
}

impl TestServer {
    pub(in crate::storage) fn start() -> Self {
        TestServer::with_options(&[])
    }

    /// A server whose clients have additional options.
    pub(in crate::storage) fn with_options(more: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = format!("http://{address}");
        let name = format!("bucket{}", address.port());
        let bucket = Arc::new(Mutex::new(Bucket::default()));
        let server = TestServer { name, bucket: Arc::clone(&bucket) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let bucket = Arc::clone(&bucket);
                std::thread::spawn(move || serve(stream.unwrap(), &bucket));
            }
        });
        let options = [
            ("endpoint_url", endpoint.as_str()),
            ("access_key_id", "key"),
            ("secret_access_key", "hunter2"),
            ("s3_max_attempts", "4"),
        ];
        let options = options.iter().chain(more);
        let options = options.map(|(name, value)| (name.to_string(), value.to_string()));
        let url = ObjectUrl::parse(&server.url()).unwrap();
        super::configure(&url, &options.collect::<Vec<_>>(), &|_| None);
        server
    }

    pub(in crate::storage) fn url(&self) -> String {
        format!("s3://{}", self.name)
    }

    /// Faults of the next requests, in order.
    pub(in crate::storage) fn inject(&self, faults: &[Fault]) {
        lock(&self.bucket).faults = faults.iter().copied().collect();
    }

    /// Takes the requests since the last call, such as `GET folder/a 0-99`, or `0-` for a range without an end.
    pub(in crate::storage) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.bucket).requests)
    }

    pub(in crate::storage) fn put(&self, key: &str, bytes: &[u8]) {
        lock(&self.bucket).put(key, bytes.to_vec());
    }

    /// Number of unfinished uploads.
    pub(in crate::storage) fn uploads(&self) -> usize {
        lock(&self.bucket).uploads.len()
    }

    /// Begins an upload as a process that is killed then.
    pub(in crate::storage) fn begin_upload(&self, key: &str) {
        let mut bucket = lock(&self.bucket);
        bucket.next += 1;
        let id = bucket.next;
        bucket.uploads.insert(id, (key.into(), BTreeMap::new()));
    }
}

impl Bucket {
    /// Notes a request, and takes its fault.
    fn next_fault(&mut self, Request { method, key, range, .. }: &Request) -> Fault {
        let range_text = match range {
            None => String::new(),
            Some(Range { start, end: usize::MAX }) => format!(" {start}-"),
            Some(Range { start, end }) => format!(" {start}-{}", end - 1),
        };
        self.requests.push(format!("{method} {key}{range_text}"));
        self.faults.pop_front().unwrap_or(Fault::None)
    }

    fn put(&mut self, key: &str, bytes: Vec<u8>) {
        self.next += 1;
        self.objects.insert(key.into(), (bytes, self.next));
    }

    /// The keys below a prefix: a page of all of them, or those without a delimiter after the prefix.
    fn list(&self, query: &BTreeMap<String, String>) -> String {
        let prefix = query.get("prefix").map_or("", String::as_str);
        let first = query.get("continuation-token").map_or(prefix, String::as_str);
        let mut text = "<ListBucketResult>".to_string();
        let mut folders = BTreeSet::new();
        for ((key, (bytes, version)), listed) in self.objects.range(first.to_string()..).zip(0..) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            if let Some((folder, _)) =
                rest.split_once('/').filter(|_| query.contains_key("delimiter"))
            {
                folders.insert(folder);
                continue;
            }
            if listed == PAGE_OBJECTS {
                write!(text, "<NextContinuationToken>{key}</NextContinuationToken>").unwrap();
                break;
            }
            let bytes = bytes.len();
            write!(text, "<Contents><Key>{key}</Key><Size>{bytes}</Size><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>\"{version}\"</ETag></Contents>").unwrap();
        }
        for folder in folders {
            write!(text, "<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>")
                .unwrap();
        }
        // Some stores write an empty token on the last page.
        if !text.contains("<NextContinuationToken>") {
            text += "<NextContinuationToken/>";
        }
        text + "</ListBucketResult>"
    }

    /// Lists one upload a page.
    fn list_uploads(&self, prefix: &str, after: Option<u64>) -> String {
        let mut found = self.uploads.iter().filter(|(id, (key, _))| {
            key.starts_with(prefix) && after.is_none_or(|after| after < **id)
        });
        let mut text = "<ListMultipartUploadsResult>".to_string();
        if let Some((id, (key, _))) = found.next() {
            write!(text, "<Upload><Key>{key}</Key><UploadId>{id}</UploadId></Upload>").unwrap();
            write!(text, "<NextKeyMarker>{key}</NextKeyMarker>").unwrap();
            write!(text, "<NextUploadIdMarker>{id}</NextUploadIdMarker>").unwrap();
        }
        let is_truncated = found.next().is_some();
        text + &format!("<IsTruncated>{is_truncated}</IsTruncated></ListMultipartUploadsResult>")
    }
}

struct Request {
    method: String,
    key: String,
    query: BTreeMap<String, String>,
    /// The end of an open range is the largest number.
    range: Option<Range<usize>>,
    if_match: Option<String>,
    body: Vec<u8>,
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_string(), value.replace("%2F", "/"))
    });
    let mut request = Request {
        method,
        key: key.replace("%20", " "),
        query: query.collect(),
        range: None,
        if_match: None,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name {
            "content-length" => length = value.parse().unwrap(),
            "if-match" => request.if_match = Some(value.to_string()),
            "range" => {
                let (start, last) = value.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
                let end = last.parse().map_or(usize::MAX, |last: usize| last + 1);
                request.range = Some(start.parse().unwrap()..end);
            }
            _ => {}
        }
    }
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn serve(stream: TcpStream, bucket: &Mutex<Bucket>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = read_request(&mut reader) {
        let fault = lock(bucket).next_fault(&request);
        match fault {
            Fault::Close => return,
            Fault::Stall => return drop(reader.read(&mut [0])),
            _ => {}
        }
        let (head, body, sent) = answer(&request, fault, &mut lock(bucket));
        stream.write_all(head.as_bytes()).unwrap();
        if request.method == "HEAD" {
            continue;
        }
        // A client may close the connection within the body.
        if stream.write_all(&body[..sent]).is_err() || sent < body.len() {
            return;
        }
    }
}

/// The head and body of an answer, and how much of the body is sent before the connection is closed.
fn answer(request: &Request, fault: Fault, bucket: &mut Bucket) -> (String, Vec<u8>, usize) {
    let Request { method, key, query, range, if_match, body } = request;
    let head = |status: u16, bytes: usize, more: &str| {
        format!("HTTP/1.1 {status} X\r\ncontent-length: {bytes}\r\n{more}\r\n")
    };
    let whole = |status: u16, text: String, more: &str| {
        let bytes = text.into_bytes();
        let sent = bytes.len();
        (head(status, sent, more), bytes, sent)
    };
    let error =
        |status, code: &str| whole(status, format!("<Error><Code>{code}</Code></Error>"), "");
    if let Fault::Status(status, code) = fault {
        return error(status, code);
    }
    let upload = query.get("uploadId").map(|id| id.parse::<u64>().unwrap());
    match (method.as_str(), upload) {
        ("GET", _) if key.is_empty() && query.contains_key("uploads") => {
            let prefix = query.get("prefix").map_or("", String::as_str);
            let after = query.get("upload-id-marker").map(|id| id.parse().unwrap());
            whole(200, bucket.list_uploads(prefix, after), "")
        }
        ("GET", _) if key.is_empty() => whole(200, bucket.list(query), ""),
        ("GET" | "HEAD", _) => {
            let Some((bytes, version)) = bucket.objects.get(key) else {
                return error(404, "NoSuchKey");
            };
            let tag = format!("\"{version}\"");
            if if_match.as_ref().is_some_and(|wanted| *wanted != tag) {
                return error(412, "PreconditionFailed");
            }
            let total = bytes.len();
            let mut more = format!("etag: {tag}\r\n");
            if method == "HEAD" {
                return (head(200, total, &more), Vec::new(), 0);
            }
            let range = range.clone().unwrap_or(0..total);
            if range.start >= total {
                return error(416, "InvalidRange");
            }
            let mut content = bytes[range.start..range.end.min(total)].to_vec();
            let start = range.start + usize::from(fault == Fault::WrongRange);
            write!(more, "content-range: bytes {start}-{}/{total}\r\n", range.end.min(total) - 1)
                .unwrap();
            if let Fault::Short(bytes) = fault {
                content.truncate(bytes);
            }
            let sent = if let Fault::Cut(bytes) = fault { bytes } else { content.len() };
            (head(206, content.len(), &more), content, sent)
        }
        ("POST", None) => {
            bucket.next += 1;
            let id = bucket.next;
            bucket.uploads.insert(id, (key.clone(), BTreeMap::new()));
            let text = format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            );
            whole(200, text, "")
        }
        ("PUT", Some(id)) => {
            let part = query["partNumber"].parse().unwrap();
            bucket.uploads.get_mut(&id).unwrap().1.insert(part, body.clone());
            whole(200, String::new(), &format!("etag: \"part{part}\"\r\n"))
        }
        ("POST", Some(id)) => {
            let Some((_, parts)) = bucket.uploads.remove(&id) else {
                return error(404, "NoSuchUpload");
            };
            bucket.put(key, parts.into_values().flatten().collect());
            if fault == Fault::Lost {
                return (String::new(), Vec::new(), 0);
            }
            let text =
                "<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>";
            whole(200, text.into(), "")
        }
        ("DELETE", Some(id)) => {
            bucket.uploads.remove(&id);
            (head(204, 0, ""), Vec::new(), 0)
        }
        ("PUT", None) => {
            bucket.put(key, body.clone());
            whole(200, String::new(), "etag: \"x\"\r\n")
        }
        _ => {
            bucket.objects.remove(key);
            (head(204, 0, ""), Vec::new(), 0)
        }
    }
}
