//! HTTP/1.1 over blocking sockets: one request at a time on each connection, and a pool of idle connections.
//!
//! A read blocks in the kernel until its bytes arrive, as a read of a file does, and a body goes from the socket into the caller's buffer.
//! An asynchronous client would add a runtime, its wake-ups and a copy to each read.

use http::{HeaderMap, StatusCode, header};
use object_store::client::HttpRequestBody;
use rustix::net::{RecvFlags, recv};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::HashMap;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Longest head of a response, and the buffer of a connection.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS_MAX: usize = 100;

/// Limits of a connection's waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    /// Longest wait for bytes in either direction.
    pub(super) idle: Duration,
}

/// Idle connections by their servers.
pub(super) struct HttpPool {
    idle: Mutex<HashMap<Origin, Vec<Connection>>>,
    tls: OnceLock<Arc<ClientConfig>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Origin {
    is_https: bool,
    host: String,
    port: u16,
}

/// The head of a response, and its body.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

impl HttpPool {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(HttpPool { idle: Mutex::default(), tls: OnceLock::new() })
    }

    /// Sends a request and receives the head of its response.
    pub(super) fn send(
        self: &Arc<Self>,
        request: &http::Request<HttpRequestBody>,
        payload: &[bytes::Bytes],
        timeouts: Timeouts,
    ) -> Result<Response> {
        let origin = Origin::new(request.uri())?;
        let idle = self.idle_connection(&origin);
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect(origin, timeouts)?,
        };
        let sent = connection.send(request, payload);
        let is_sent = sent.is_ok();
        // A server may refuse a request before it has read the payload, and its response says why.
        let head = match (connection.receive_head(), sent) {
            (Ok(head), _) => head,
            (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(closed_early(error)),
        };
        let (status, headers) = head;
        let framing = Framing::new(request.method(), status, &headers)?;
        let is_closing = headers
            .get(header::CONNECTION)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
        let is_kept = is_sent && !is_closing && framing != Framing::UntilClose;
        let pool = is_kept.then(|| Arc::clone(self));
        let mut body = Body { connection: Some(connection), framing, pool };
        body.release_if_complete();
        Ok(Response { status, headers, body })
    }

    /// Takes a connection that the server has not closed.
    fn idle_connection(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = idle.get_mut(origin)?.pop()?;
            drop(idle);
            if connection.is_open() {
                return Some(connection);
            }
        }
    }

    fn connect(&self, origin: Origin, timeouts: Timeouts) -> Result<Connection> {
        let mut last = Error::new(ErrorKind::NotFound, format!("no address for `{}`", origin.host));
        for address in (origin.host.as_str(), origin.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeouts.connect) {
                Ok(socket) => return self.open(origin, socket, timeouts),
                Err(error) => {
                    last = Error::new(error.kind(), format!("no connection to {address}: {error}"))
                }
            }
        }
        Err(last)
    }

    fn open(&self, origin: Origin, socket: TcpStream, timeouts: Timeouts) -> Result<Connection> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeouts.idle))?;
        socket.set_write_timeout(Some(timeouts.idle))?;
        let stream = if origin.is_https {
            let name = ServerName::try_from(origin.host.clone()).map_err(Error::other)?;
            let client = ClientConnection::new(self.tls()?, name).map_err(Error::other)?;
            Stream::Tls(Box::new(StreamOwned::new(client, socket)))
        } else {
            Stream::Plain(socket)
        };
        let received = vec![0; HEAD_BYTES].into_boxed_slice();
        Ok(Connection { stream, origin, received, start: 0, end: 0, outgoing: Vec::new() })
    }

    /// Trusts the certificates of the system, or of `SSL_CERT_FILE`.
    fn tls(&self) -> Result<Arc<ClientConfig>> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::clone(self.tls.get_or_init(|| Arc::new(config))))
    }
}

impl Origin {
    fn new(uri: &http::Uri) -> Result<Self> {
        let is_https = uri.scheme_str() != Some("http");
        let Some(host) = uri.host() else {
            return Err(Error::new(ErrorKind::InvalidInput, "the endpoint names no host"));
        };
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        Ok(Origin { is_https, host, port })
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &stream.sock,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let result = match self {
                Stream::Plain(socket) => socket.read(buffer),
                Stream::Tls(stream) => stream.read(buffer),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result.map_err(timed_out),
            }
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
        .map_err(timed_out)
    }
}

/// The error of a socket's timeout is that of a call that would block.
fn timed_out(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "no bytes arrived in time"),
        _ => error,
    }
}

/// TLS reports a connection that is closed before the response as an end of data, which would count as a short body.
fn closed_early(error: Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::new(ErrorKind::ConnectionReset, error),
        _ => error,
    }
}

struct Connection {
    stream: Stream,
    origin: Origin,
    /// Bytes received beyond a head.
    received: Box<[u8]>,
    start: usize,
    end: usize,
    outgoing: Vec<u8>,
}

impl Connection {
    /// Whether the server has neither closed the connection nor sent unexpected bytes.
    fn is_open(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = recv(self.stream.socket(), &mut [0_u8; 1][..], flags);
        self.start == self.end && peeked.err() == Some(rustix::io::Errno::AGAIN)
    }

    fn send(
        &mut self,
        request: &http::Request<HttpRequestBody>,
        payload: &[bytes::Bytes],
    ) -> Result<()> {
        let out = &mut self.outgoing;
        out.clear();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        write!(out, "{} {path} HTTP/1.1\r\n", request.method())?;
        if !request.headers().contains_key(header::HOST)
            && let Some(authority) = request.uri().authority()
        {
            write!(out, "host: {authority}\r\n")?;
        }
        for (name, value) in request.headers() {
            write!(out, "{name}: ")?;
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let has_length = request.headers().contains_key(header::CONTENT_LENGTH);
        let may_have_payload = *request.method() == http::Method::PUT
            || *request.method() == http::Method::POST
            || bytes > 0;
        if may_have_payload && !has_length {
            write!(out, "content-length: {bytes}\r\n")?;
        }
        out.extend_from_slice(b"\r\n");
        // A small payload is sent with the head, in one packet.
        let mut rest = payload;
        while let [first, others @ ..] = rest
            && out.len() + first.len() <= HEAD_BYTES
        {
            out.extend_from_slice(first);
            rest = others;
        }
        self.stream.write_all(out)?;
        rest.iter().try_for_each(|part| self.stream.write_all(part))
    }

    fn receive_head(&mut self) -> Result<(StatusCode, HeaderMap)> {
        (self.start, self.end) = (0, 0);
        loop {
            if self.end == self.received.len() {
                return Err(broken("the head of the response is too long"));
            }
            let bytes = self.stream.read(&mut self.received[self.end..])?;
            if bytes == 0 {
                let message = "the connection was closed before a response";
                return Err(Error::new(ErrorKind::ConnectionReset, message));
            }
            self.end += bytes;
            while let Some((head_bytes, status, headers)) =
                parse_head(&self.received[self.start..self.end])?
            {
                self.start += head_bytes;
                // An interim response, such as `100 Continue`, precedes the final one.
                if !status.is_informational() {
                    return Ok((status, headers));
                }
            }
        }
    }

    /// Reads body bytes: those received with the head first, then from the socket into `buffer`.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.start == self.end {
            return self.stream.read(buffer);
        }
        let bytes = buffer.len().min(self.end - self.start);
        buffer[..bytes].copy_from_slice(&self.received[self.start..self.start + bytes]);
        self.start += bytes;
        Ok(bytes)
    }

    /// Reads a line of a chunked body, without its end.
    fn read_line(&mut self) -> Result<String> {
        let mut line = Vec::new();
        loop {
            if self.start == self.end {
                (self.start, self.end) = (0, self.stream.read(&mut self.received)?);
                if self.end == 0 {
                    return Err(ended_early());
                }
            }
            let byte = self.received[self.start];
            self.start += 1;
            match byte {
                b'\n' => return String::from_utf8(line).map_err(Error::other),
                b'\r' => {}
                _ if line.len() > HEAD_BYTES => return Err(broken("a line is too long")),
                byte => line.push(byte),
            }
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<(usize, StatusCode, HeaderMap)>> {
    let mut parsed = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut parsed);
    let head_bytes = match response.parse(bytes).map_err(Error::other)? {
        httparse::Status::Complete(head_bytes) => head_bytes,
        httparse::Status::Partial => return Ok(None),
    };
    let status = StatusCode::from_u16(response.code.unwrap_or_default()).map_err(Error::other)?;
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for header in response.headers.iter() {
        let name = header::HeaderName::from_bytes(header.name.as_bytes()).map_err(Error::other)?;
        let value = header::HeaderValue::from_bytes(header.value).map_err(Error::other)?;
        headers.append(name, value);
    }
    Ok(Some((head_bytes, status, headers)))
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Bytes that are still to come.
    Length(u64),
    /// Bytes of the current chunk that are still to come; `None` before its length.
    Chunked(Option<u64>),
    UntilClose,
}

impl Framing {
    fn new(method: &http::Method, status: StatusCode, headers: &HeaderMap) -> Result<Self> {
        let is_empty = *method == http::Method::HEAD
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        if is_empty {
            return Ok(Framing::Length(0));
        }
        if let Some(encoding) = headers.get(header::TRANSFER_ENCODING) {
            if encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Ok(Framing::Chunked(None));
            }
            return Err(broken("the transfer encoding of the body is unknown"));
        }
        let Some(length) = headers.get(header::CONTENT_LENGTH) else {
            return Ok(Framing::UntilClose);
        };
        let length = length.to_str().ok().and_then(|text| text.trim().parse().ok());
        length.map(Framing::Length).ok_or_else(|| broken("the length of the body is no number"))
    }
}

/// The body of a response. Its connection returns to the pool once the body is read to its end, and is closed otherwise.
pub(super) struct Body {
    connection: Option<Connection>,
    framing: Framing,
    pool: Option<Arc<HttpPool>>,
}

impl Body {
    /// Reads some bytes into `buffer`; 0 at the end.
    ///
    /// # Errors
    /// `UnexpectedEof` if the connection ends before the body.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let Some(connection) = &mut self.connection else { return Ok(0) };
        if let Framing::Chunked(None) = self.framing {
            let line = connection.read_line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let bytes = u64::from_str_radix(digits, 16).map_err(Error::other)?;
            if bytes == 0 {
                while !connection.read_line()?.is_empty() {}
                self.framing = Framing::Length(0);
                self.release_if_complete();
                return Ok(0);
            }
            self.framing = Framing::Chunked(Some(bytes));
        }
        let left = match self.framing {
            Framing::Length(left) | Framing::Chunked(Some(left)) => left,
            Framing::UntilClose | Framing::Chunked(None) => u64::MAX,
        };
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = connection.read(&mut buffer[..most])?;
        match &mut self.framing {
            Framing::UntilClose if bytes == 0 => self.connection = None,
            _ if bytes == 0 && most > 0 => return Err(ended_early()),
            Framing::Length(left) => *left -= bytes as u64,
            Framing::Chunked(Some(left)) if *left == bytes as u64 => {
                if !connection.read_line()?.is_empty() {
                    return Err(broken("a chunk is longer than its length"));
                }
                self.framing = Framing::Chunked(None);
            }
            Framing::Chunked(Some(left)) => *left -= bytes as u64,
            Framing::UntilClose | Framing::Chunked(None) => {}
        }
        self.release_if_complete();
        Ok(bytes)
    }

    /// Number of bytes that are still to come; `None` if unknown.
    pub(super) fn length(&self) -> Option<u64> {
        if let Framing::Length(left) = self.framing { Some(left) } else { None }
    }

    /// Reads the rest, which has at most `bytes_max` bytes.
    pub(super) fn read_all(&mut self, bytes_max: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut piece = [0; 8 << 10];
        loop {
            let bytes = self.read(&mut piece)?;
            if bytes == 0 {
                return Ok(all);
            }
            if all.len() + bytes > bytes_max {
                return Err(broken("the response is too long"));
            }
            all.extend_from_slice(&piece[..bytes]);
        }
    }

    fn release_if_complete(&mut self) {
        if self.framing != Framing::Length(0) {
            return;
        }
        if let (Some(connection), Some(pool)) = (self.connection.take(), self.pool.take()) {
            let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.entry(connection.origin.clone()).or_default().push(connection);
        }
    }
}

fn broken(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}

fn ended_early() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the connection was closed within the body")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_body_is_known_or_refused() {
        let framing = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, header::HeaderValue::from_static(value));
            Framing::new(&http::Method::GET, StatusCode::OK, &headers).ok()
        };
        assert_eq!(framing("content-length", "12"), Some(Framing::Length(12)));
        assert_eq!(framing("content-length", "-1"), None);
        assert_eq!(framing("transfer-encoding", "Chunked"), Some(Framing::Chunked(None)));
        assert_eq!(framing("transfer-encoding", "gzip, chunked"), None);
        assert_eq!(framing("server", "x"), Some(Framing::UntilClose));
    }
}
