//! A proxy in front of a store of objects, which injects faults into the responses to reads and counts them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A failure of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Status 503, `SlowDown`.
    SlowDown,
    /// Status 429, `TooManyRequests`.
    TooManyRequests,
    /// Status 500, `InternalError`.
    InternalError,
    /// The connection is closed before the response.
    Reset,
    /// The connection is closed after half of the body.
    CutBody,
    /// Half of the body, with a header that gives this length.
    ShortBody,
    /// Nothing is sent until the client closes the connection.
    Stall,
    /// A header that states the range after the requested one.
    WrongRange,
    /// A header that states another version of the object.
    ChangedEtag,
}

/// Faults of reads, and the speed of all responses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behaviour {
    /// Faults that are injected in turn.
    pub(crate) faults: Vec<Fault>,
    /// A fault is injected into each read whose number, from 1, is divisible by this; 0 for none.
    pub(crate) every: u64,
    /// Number of faults after which no more are injected; `None` for no limit.
    pub(crate) faults_max: Option<u64>,
    /// Only reads of URLs that contain this text are counted.
    pub(crate) keys: String,
    /// Least time from a request to its response.
    pub(crate) latency: Duration,
    /// Rate of the bodies of all connections together.
    pub(crate) bytes_per_second: Option<f64>,
    /// Whether one body is sent after another. Otherwise connections share the rate, as those of a network do.
    pub(crate) sends_in_order: bool,
}

/// The proxy. It ends when it is dropped.
pub(crate) struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// Address of the store.
    store: String,
    behaviour: Mutex<Behaviour>,
    reads: AtomicU64,
    injected: Mutex<BTreeMap<Fault, u64>>,
    free_at: Mutex<Option<Instant>>,
    is_stopped: AtomicBool,
}

impl FaultProxy {
    /// Starts a proxy on a free port of the loopback interface. `store` is `http://HOST:PORT`.
    pub(crate) fn start(store: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            store: store.strip_prefix("http://").unwrap().into(),
            behaviour: Mutex::default(),
            reads: AtomicU64::new(0),
            injected: Mutex::default(),
            free_at: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let proxy = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if proxy.is_stopped.load(SeqCst) {
                    break;
                }
                let shared = Arc::clone(&proxy);
                // An error is a connection that one side closed.
                thread::spawn(move || shared.serve(&connection).ok());
            }
        });
        FaultProxy { address, shared }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the behaviour, and begins to count again.
    pub(crate) fn set_behaviour(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
        self.shared.reads.store(0, SeqCst);
        self.shared.injected.lock().unwrap().clear();
    }

    /// Number of reads since the behaviour was set.
    pub(crate) fn reads(&self) -> u64 {
        self.shared.reads.load(SeqCst)
    }

    /// Number of injected faults of a kind.
    pub(crate) fn injected(&self, fault: Fault) -> u64 {
        self.shared.injected.lock().unwrap().get(&fault).copied().unwrap_or(0)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, SeqCst);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Forwards the requests of a connection until one side closes it.
    fn serve(&self, client: &TcpStream) -> Result<()> {
        client.set_nodelay(true)?;
        let mut requests = BufReader::new(client);
        let mut store = None;
        loop {
            let request = Message::read(&mut requests, true)?;
            let fault = self.next_fault(&request.first_line);
            if !self.answer(client, &mut store, &request, fault)? {
                return client.shutdown(Shutdown::Both);
            }
        }
    }

    /// Answers a request. Returns whether the connection stays open.
    fn answer(
        &self,
        mut client: &TcpStream,
        store: &mut Option<BufReader<TcpStream>>,
        request: &Message,
        fault: Option<Fault>,
    ) -> Result<bool> {
        let Behaviour { latency, bytes_per_second, sends_in_order, .. } =
            *self.behaviour.lock().unwrap();
        let respond_at = Instant::now() + latency;
        let mut response = match fault {
            Some(Fault::SlowDown) => Message::error("503 Slow Down", "SlowDown"),
            Some(Fault::TooManyRequests) => {
                Message::error("429 Too Many Requests", "TooManyRequests")
            }
            Some(Fault::InternalError) => Message::error("500 Internal Error", "InternalError"),
            Some(Fault::Reset) => return Ok(false),
            Some(Fault::Stall) => return client.read(&mut [0]).map(|_| false),
            _ => self.forward(store, request)?,
        };
        let sent = if fault == Some(Fault::CutBody) { response.body.len() / 2 } else { usize::MAX };
        match fault {
            Some(Fault::ShortBody) => response.body.truncate(response.body.len() / 2),
            Some(Fault::ChangedEtag) => response.set("etag", "\"changed\""),
            Some(Fault::WrongRange) => {
                let stated = response.header("content-range").unwrap();
                let (range, total) = stated["bytes ".len()..].split_once('/').unwrap();
                let (first, last) = range.split_once('-').unwrap();
                let next = |text: &str| text.parse::<u64>().unwrap() + 1;
                response
                    .set("content-range", &format!("bytes {}-{}/{total}", next(first), next(last)));
            }
            _ => {}
        }
        if !request.first_line.starts_with("HEAD ") {
            response.set("content-length", &response.body.len().to_string());
        }
        thread::sleep(respond_at.saturating_duration_since(Instant::now()));
        client.write_all(&response.head())?;
        let body = &response.body[..response.body.len().min(sent)];
        for piece in body.chunks(if sends_in_order { body.len().max(1) } else { 64 << 10 }) {
            if let Some(rate) = bytes_per_second {
                self.take_bandwidth(piece.len(), rate);
            }
            client.write_all(piece)?;
        }
        Ok(fault != Some(Fault::CutBody))
    }

    /// Sends a request to the store and receives its response.
    fn forward(
        &self,
        store: &mut Option<BufReader<TcpStream>>,
        request: &Message,
    ) -> Result<Message> {
        // A store may have closed an idle connection.
        for is_new in [false, true] {
            if is_new || store.is_none() {
                *store = Some(BufReader::new(TcpStream::connect(&self.store)?));
            }
            let connection = store.as_mut().unwrap();
            let sent = [request.head(), request.body.clone()].concat();
            let received = connection
                .get_mut()
                .write_all(&sent)
                .and_then(|()| Message::read(connection, !request.first_line.starts_with("HEAD ")));
            if received.is_ok() || is_new {
                let response = received?;
                if response.header("connection") == Some("close") {
                    *store = None;
                }
                return Ok(response);
            }
        }
        unreachable!("the second attempt returns")
    }

    /// Counts a read, and returns the fault that is due.
    fn next_fault(&self, request: &str) -> Option<Fault> {
        let behaviour = self.behaviour.lock().unwrap();
        let is_counted = request.starts_with("GET ") && request.contains(&behaviour.keys);
        if !is_counted {
            return None;
        }
        let number = self.reads.fetch_add(1, SeqCst) + 1;
        let mut injected = self.injected.lock().unwrap();
        let total: u64 = injected.values().sum();
        let is_over = behaviour.faults_max.is_some_and(|faults_max| total >= faults_max);
        if is_over || !number.is_multiple_of(behaviour.every) {
            return None;
        }
        let fault = behaviour.faults[total as usize % behaviour.faults.len()];
        *injected.entry(fault).or_default() += 1;
        Some(fault)
    }

    /// Waits until `bytes` have passed at the rate of all connections.
    fn take_bandwidth(&self, bytes: usize, bytes_per_second: f64) {
        let now = Instant::now();
        let done_at = {
            let mut free_at = self.free_at.lock().unwrap();
            let start = free_at.map_or(now, |free_at| free_at.max(now));
            let done_at = start + Duration::from_secs_f64(bytes as f64 / bytes_per_second);
            *free_at = Some(done_at);
            done_at
        };
        thread::sleep(done_at - now);
    }
}

/// A request or a response.
struct Message {
    first_line: String,
    /// Headers without the transfer encoding.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Message {
    fn read(reader: &mut impl BufRead, may_have_body: bool) -> Result<Self> {
        let mut message =
            Message { first_line: read_line(reader)?, headers: Vec::new(), body: Vec::new() };
        while let Some((name, value)) = read_line(reader)?.split_once(':') {
            message.headers.push((name.into(), value.trim().into()));
        }
        let is_chunked = message.header("transfer-encoding") == Some("chunked");
        message.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("transfer-encoding"));
        if !may_have_body {
            return Ok(message);
        }
        if let Some(len) = message.header("content-length") {
            message.body = vec![0; len.parse().unwrap()];
            reader.read_exact(&mut message.body)?;
        }
        let mut has_more = is_chunked;
        while has_more {
            let len = usize::from_str_radix(&read_line(reader)?, 16).unwrap();
            let mut chunk = vec![0; len];
            reader.read_exact(&mut chunk)?;
            message.body.extend(chunk);
            read_line(reader)?;
            has_more = 0 < len;
        }
        Ok(message)
    }

    fn error(status: &str, code: &str) -> Self {
        let body = format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>");
        let first_line = format!("HTTP/1.1 {status}");
        Message { first_line, headers: Vec::new(), body: body.into() }
    }

    fn header(&self, wanted: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    }

    fn set(&mut self, wanted: &str, value: &str) {
        self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case(wanted));
        self.headers.push((wanted.into(), value.into()));
    }

    fn head(&self) -> Vec<u8> {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{}\r\n{}\r\n", self.first_line, headers.collect::<String>()).into()
    }
}

/// Reads a line without its end.
fn read_line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(Error::from(ErrorKind::UnexpectedEof)),
        _ => Ok(line.trim_end().to_string()),
    }
}
