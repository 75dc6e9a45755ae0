//! The transport below `object_store`: sends each request, repeats those that fail for a passing reason, and counts every attempt.
//!
//! `object_store` would repeat requests by itself, but hides how often and why. Here its own repetition is disabled.

use super::http::{Body, HttpPool, Response, Timeouts};
use super::odd_names::{self, OddNames};
use async_trait::async_trait;
use bytes::Bytes;
use feedrate_spec::transfers::TransferCounts;
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest response that is not the content of an object: a page of a listing, or an error.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How long requests wait and are repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) timeouts: Timeouts,
    /// Time from the start of a request after which it is not repeated.
    pub(super) repeat: Duration,
    pub(super) attempts_max: u32,
}

impl Patience {
    /// For reading and writing datasets: a server may restart meanwhile.
    pub(super) const RUN: Patience = Patience {
        timeouts: Timeouts { connect: Duration::from_secs(5), idle: Duration::from_secs(30) },
        repeat: Duration::from_secs(90),
        attempts_max: u32::MAX,
    };
    /// For the check of a store before data are made.
    pub(super) const CHECK: Patience = Patience {
        timeouts: Timeouts { connect: Duration::from_secs(2), idle: Duration::from_secs(4) },
        repeat: Duration::from_secs(2),
        attempts_max: 2,
    };
}

/// Takes the body of a successful response, so it is read into the buffer of the caller. Passed as an extension of a request.
#[derive(Clone, Default)]
pub(super) struct BodySlot {
    pub(super) body: Arc<Mutex<Option<Body>>>,
    /// Whether the request continues one whose body ended early. It then counts as an attempt, not as a request.
    pub(super) continues: bool,
}

impl BodySlot {
    pub(super) fn take(&self) -> Option<Body> {
        lock(&self.body).take()
    }
}

/// Why an attempt is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Throttled,
    Status,
    Reset,
    Timeout,
    ShortBody,
}

impl Cause {
    pub(super) fn from_error(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::TimedOut => Cause::Timeout,
            ErrorKind::UnexpectedEof => Cause::ShortBody,
            _ => Cause::Reset,
        }
    }

    /// The cause of a status that may pass; `None` for others.
    fn from_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Some(Cause::Throttled)
            }
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT => Some(Cause::Status),
            _ => None,
        }
    }
}

/// Whether an error of the transport may pass. Wrong names, certificates and settings do not.
pub(super) fn may_pass(error: &Error) -> bool {
    use ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        NetworkUnreachable, NotConnected, TimedOut, UnexpectedEof,
    };
    [
        BrokenPipe,
        ConnectionAborted,
        ConnectionRefused,
        ConnectionReset,
        HostUnreachable,
        NetworkUnreachable,
        NotConnected,
        TimedOut,
        UnexpectedEof,
    ]
    .contains(&error.kind())
}

/// The waits between the attempts of one request.
pub(super) struct Repetition {
    patience: Patience,
    started: Instant,
    pub(super) attempts: u32,
}

impl Repetition {
    pub(super) fn new(patience: Patience) -> Self {
        Repetition { patience, started: Instant::now(), attempts: 1 }
    }

    /// Allows the whole time again, because an attempt has brought a part of the result.
    pub(super) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// Waits before the next attempt and counts it, with the time since `failed`, the start of the failed attempt. Returns false if there
    /// is no further attempt.
    pub(super) fn wait(&mut self, cause: Cause, failed: Instant, counts: &Counts) -> bool {
        let Patience { repeat, attempts_max, .. } = self.patience;
        if self.attempts >= attempts_max || self.started.elapsed() >= repeat {
            return false;
        }
        let wait = FIRST_WAIT.saturating_mul(1 << (self.attempts - 1).min(10)).min(WAIT_MAX);
        // Clients that failed together would otherwise return together.
        let jitter = RandomState::new().hash_one(self.attempts) as f64 / u64::MAX as f64;
        std::thread::sleep(wait.mul_f64(0.5 + 0.5 * jitter));
        self.attempts += 1;
        counts.count_retry(cause, failed.elapsed());
        true
    }

    pub(super) fn describe(&self, error: &dyn fmt::Display) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        match self.attempts {
            1 => error.to_string(),
            attempts => format!("{error}, after {attempts} attempts in {seconds:.1} s"),
        }
    }
}

/// Counts of the requests that read objects of a store.
#[derive(Default)]
pub(super) struct Counts(Mutex<TransferCounts>);

impl Counts {
    pub(super) fn snapshot(&self) -> TransferCounts {
        lock(&self.0).clone()
    }

    fn count_retry(&self, cause: Cause, lost: Duration) {
        let mut counts = lock(&self.0);
        counts.attempts += 1;
        counts.retry_lost_ns += nanoseconds(lost);
        let retried = match cause {
            Cause::Throttled => &mut counts.retried_status_503,
            Cause::Status => &mut counts.retried_other_status,
            Cause::Reset => &mut counts.retried_reset,
            Cause::Timeout => &mut counts.retried_timeout,
            Cause::ShortBody => &mut counts.retried_short_body,
        };
        *retried += 1;
    }
}

/// The connections of a store, as `object_store` uses them.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) pool: Arc<HttpPool>,
    pub(super) counts: Arc<Counts>,
    pub(super) patience: Patience,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl HttpConnector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut transport = self.clone();
        let connect = options.get_config_value(&ClientConfigKey::ConnectTimeout);
        if connect.as_deref() == Some("1 second") {
            // The address of the machine's own metadata, which gives credentials in clouds and exists nowhere else.
            transport.patience = Patience { attempts_max: 1, ..Patience::CHECK };
            transport.patience.timeouts.connect = Duration::from_secs(1);
        }
        Ok(HttpClient::new(transport))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut payload = Vec::new();
        let mut body = std::mem::replace(request.body_mut(), Bytes::new().into());
        while let Some(frame) = body.frame().await {
            payload.extend(frame?.into_data().ok());
        }
        request
            .headers_mut()
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("feedrate/", env!("CARGO_PKG_VERSION"))));
        self.send(&request, &payload).map_err(|error| {
            let kind = match error.kind() {
                ErrorKind::TimedOut => HttpErrorKind::Timeout,
                _ => HttpErrorKind::Unknown,
            };
            HttpError::new(kind, error)
        })
    }
}

impl Transport {
    fn send(&self, request: &HttpRequest, payload: &[Bytes]) -> Result<HttpResponse, Error> {
        let slot = request.extensions().get::<BodySlot>();
        // Checkpoints may be written to the bucket whose reads are measured.
        let not_reported = Counts::default();
        let counts = if slot.is_some() { &*self.counts } else { &not_reported };
        if slot.is_none_or(|slot| !slot.continues) {
            let mut counts = lock(&counts.0);
            counts.requests += 1;
            counts.attempts += 1;
        }
        let mut repetition = Repetition::new(self.patience);
        loop {
            let started = Instant::now();
            let received = self.attempt(request, payload, slot, started);
            let (cause, error) = match received {
                Ok(response) => match Cause::from_status(response.status()) {
                    None => return Ok(response),
                    Some(cause) => (cause, Error::other(format!("status {}", response.status()))),
                },
                Err(error) if may_pass(&error) => (Cause::from_error(&error), error),
                Err(error) => return Err(error),
            };
            if !repetition.wait(cause, started, counts) {
                return Err(Error::new(error.kind(), repetition.describe(&error)));
            }
        }
    }

    fn attempt(
        &self,
        request: &HttpRequest,
        payload: &[Bytes],
        slot: Option<&BodySlot>,
        started: Instant,
    ) -> Result<HttpResponse, Error> {
        let sent = self.pool.send(request, payload, self.patience.timeouts)?;
        let Response { status, headers, mut body } = sent;
        let mut odd_names = OddNames::default();
        let content = match slot.filter(|_| status.is_success()) {
            Some(slot) => {
                *lock(&slot.body) = Some(body);
                Bytes::new()
            }
            None => {
                let mut message = body.read_all(MESSAGE_BYTES_MAX)?;
                odd_names = odd_names::take(request.uri().query(), &mut message);
                message.into()
            }
        };
        if slot.is_some() && status.is_success() {
            lock(&self.counts.0).first_byte.record(nanoseconds(started.elapsed()));
        }
        let mut response = HttpResponse::new(content.into());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if !odd_names.0.is_empty() {
            response.extensions_mut().insert(odd_names);
        }
        Ok(response)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
