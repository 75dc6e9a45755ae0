//! A rank's end of the control channel: a connection to the hub and a thread that receives its messages.

use super::count_beats;
use super::hub::Hub;
use super::message::{ControlMessage, HubAddress, LineReader, OnTimeout};
use super::process::{ProcessIdentity, ProcessWatch};
use crate::comm::mpi::state::{RankState, lock};
use crate::comm::{CommError, End};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for connecting to one of rank 0's addresses, and for sending a message.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit for the answer to the first message at an address, which may not be the hub's, of another machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Attempts to connect to a busy hub.
const CONNECT_ATTEMPTS: u32 = 20;
/// Pause between these attempts.
const CONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Time without a message of the hub that counts as a missed beat.
const BEAT: Duration = Duration::from_secs(2);
/// Consecutive missed beats after which the hub is lost if its process has ended, is stopped or cannot be observed. If this process
/// itself was stopped, at most one beat counts as missed.
const MISSED_MAX: u32 = 3;
/// Time to wait after a failure until the hub disconnects. The hub first waits for the other ranks.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(12);
/// Time to wait after the hub's death until its deputy has detected and reported it. Leaving earlier could make the launcher end the
/// deputy.
const DEPUTY_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of checks while leaving.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The connection of one rank to the hub.
pub(in super::super) struct ControlChannel {
    rank: u32,
    host: String,
    stream: TcpStream,
    state: Arc<RankState>,
    listener: Mutex<Option<JoinHandle<()>>>,
    /// The hub, on rank 0.
    hub: Mutex<Option<Hub>>,
}

impl ControlChannel {
    /// Connects `rank` to the hub at `address`. `hosts` are the machines of all ranks; `hub` is given on rank 0. A hub that is silent
    /// for `rank_timeout` is lost even if its process runs.
    pub(in super::super) fn connect(
        rank: u32,
        hosts: &[String],
        address: &HubAddress,
        state: &Arc<RankState>,
        rank_timeout: Duration,
        hub: Option<Hub>,
    ) -> io::Result<Self> {
        let hub_process = address.process.as_ref().and_then(ProcessWatch::new);
        let answer_timeout = if hub_process.is_some() { rank_timeout } else { ANSWER_TIMEOUT };
        let (stream, lines) = connect_to_hub(address, rank, answer_timeout)?;
        let hub_host = hosts.first().cloned().unwrap_or_default();
        let listener_state = Arc::clone(state);
        let silence = HubSilence::new(hub_process, rank_timeout);
        let listener = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || listen(lines, &listener_state, hub_host, silence))?;
        Ok(ControlChannel {
            rank,
            host: hosts.get(rank as usize).cloned().unwrap_or_default(),
            stream,
            state: Arc::clone(state),
            listener: Mutex::new(Some(listener)),
            hub: Mutex::new(hub),
        })
    }

    /// Notifies all ranks that this rank ends, unless the common work has ended already.
    pub(in super::super) fn give_up(&self, end: End) {
        if self.state.is_ended.is_set() {
            return;
        }
        let message = ControlMessage::gave_up(end);
        message.send(&self.stream);
        let ControlMessage::GaveUp { end } = message else { return };
        self.state.end_with(CommError::Lost { rank: self.rank, host: self.host.clone(), end });
    }

    /// Reports that this rank has waited in `operation` for longer than the timeout. The hub then finds out which ranks are missing.
    pub(in super::super) fn report_late_wait(
        &self,
        operation: u64,
        waited: Duration,
        on_timeout: OnTimeout,
    ) {
        ControlMessage::Late { operation, waited, on_timeout }.send(&self.stream);
    }

    /// Whether the hub has neither ended the connection nor been lost.
    pub(in super::super) fn is_connected(&self) -> bool {
        lock(&self.listener).as_ref().is_some_and(|listener| !listener.is_finished())
    }

    /// Disconnects. Rank 0, and every rank after a failure, first waits for a limited time until the other ranks have disconnected.
    pub(in super::super) fn leave(&self, orderly: bool) {
        self.state.leaving.set();
        ControlMessage::Bye { idle: !self.state.unfinished.is_set(), orderly }.send(&self.stream);
        let listener = lock(&self.listener).take();
        let hub = lock(&self.hub).take();
        let mut remaining = LEAVE_TIMEOUT;
        while (!orderly || hub.is_some()) && !remaining.is_zero() {
            if self.state.hub_died.is_set() && !self.state.must_report() {
                remaining = remaining.min(DEPUTY_TIMEOUT);
            } else if listener.as_ref().is_none_or(|listener| listener.is_finished()) {
                break;
            }
            std::thread::sleep(CHECK_INTERVAL);
            remaining = remaining.saturating_sub(CHECK_INTERVAL);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(listener) = listener {
            let _ = listener.join();
        }
        if let Some(hub) = hub {
            hub.join();
        }
    }
}

/// Tries the addresses of the hub in order, and again if the hub may be busy.
fn connect_to_hub(
    hub: &HubAddress,
    rank: u32,
    answer_timeout: Duration,
) -> io::Result<(TcpStream, LineReader)> {
    let loopback = ["127.0.0.1".to_owned(), "::1".to_owned()];
    let addresses = if rank == 0 { &loopback[..] } else { &hub.addresses };
    let mut failures = Vec::new();
    for _ in 0..CONNECT_ATTEMPTS {
        let mut is_busy = false;
        failures.clear();
        for address in addresses {
            match connect_to(address, hub, rank, answer_timeout) {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    is_busy |= may_be_busy(address, error.kind());
                    failures.push(format!("{address}: {error}"));
                }
            }
        }
        if !is_busy {
            break;
        }
        std::thread::sleep(CONNECT_PAUSE);
    }
    Err(io::Error::other(format!("rank 0 cannot be reached: {}", failures.join("; "))))
}

/// Whether the hub at `address` may accept a later connection. It closes the connection of a rank that is too slow to send its first
/// message, and its queue may be full. A connection to another machine times out for many reasons.
fn may_be_busy(address: &str, failure: ErrorKind) -> bool {
    match failure {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => true,
        ErrorKind::TimedOut => address.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        _ => false,
    }
}

/// Connects to the hub at `address` and identifies this rank.
fn connect_to(
    address: &str,
    hub: &HubAddress,
    rank: u32,
    answer_timeout: Duration,
) -> io::Result<(TcpStream, LineReader)> {
    let socket_address = (address, hub.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other("no address"))?;
    let stream = TcpStream::connect_timeout(&socket_address, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
    stream.set_read_timeout(Some(answer_timeout))?;
    let token = hub.token.clone();
    ControlMessage::Hello { token, rank, process: ProcessIdentity::current() }.send(&stream);
    let mut lines = LineReader::new(stream.try_clone()?);
    let answer = lines.next()?.ok_or_else(|| io::Error::other("rank 0 does not answer"))?;
    if ControlMessage::parse(&answer) != Some(ControlMessage::Welcome) {
        return Err(io::Error::other("the process that answers is not rank 0"));
    }
    stream.set_read_timeout(Some(BEAT))?;
    Ok((stream, lines))
}

/// Handles messages until the connection ends or the hub is lost.
fn listen(mut lines: LineReader, state: &RankState, hub_host: String, mut silence: HubSilence) {
    let end = loop {
        match lines.next() {
            Ok(Some(line)) => {
                silence.missed = 0;
                let message = ControlMessage::parse(&line);
                if let Some(ControlMessage::Bye { idle, .. }) = message {
                    if idle {
                        state.all_idle.set();
                    }
                    return;
                }
                if let Some(message) = message {
                    handle(message, lines.stream(), state);
                }
            }
            Ok(None) => {
                if silence.miss() {
                    break End::Silent;
                }
            }
            Err(_) => break End::Died,
        }
    };
    if !state.leaving.is_set() {
        state.hub_died.set();
        state.end_with(CommError::Lost { rank: 0, host: hub_host, end });
    }
}

/// The missed beats of the hub.
struct HubSilence {
    missed: u32,
    /// Missed beats after which the hub is lost in any case.
    missed_max: u32,
    /// Observes the process of the hub, if it is on this machine.
    process: Option<ProcessWatch>,
}

impl HubSilence {
    fn new(process: Option<ProcessWatch>, rank_timeout: Duration) -> Self {
        let missed_max = count_beats(rank_timeout, BEAT).max(MISSED_MAX);
        HubSilence { missed: 0, missed_max, process }
    }

    /// Counts a missed beat, and returns whether the hub is lost.
    fn miss(&mut self) -> bool {
        self.missed += 1;
        let may_be_alive = self.process.as_mut().is_some_and(|watch| !watch.is_lost());
        self.missed >= if may_be_alive { self.missed_max } else { MISSED_MAX }
    }
}

fn handle(message: ControlMessage, hub: &TcpStream, state: &RankState) {
    match message {
        ControlMessage::Beat => ControlMessage::Beat.send(hub),
        ControlMessage::Count => {
            ControlMessage::Started { operations: state.started_operations.load(Relaxed) }
                .send(hub);
        }
        ControlMessage::Busy { ranks, waited, is_new } => {
            if is_new && state.must_report() {
                state.report_wait(&CommError::Missing { ranks, waited });
            }
            state.alive_reports.fetch_add(1, Relaxed);
        }
        message => {
            if let Some(error) = message.into_error() {
                state.end_with(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_hub_is_tried_again() {
        let check = |address: &str, failure: ErrorKind, expected: bool| {
            assert_eq!(may_be_busy(address, failure), expected, "{address} {failure:?}");
        };
        check("10.0.0.1", ErrorKind::ConnectionReset, true);
        check("10.0.0.1", ErrorKind::UnexpectedEof, true);
        check("127.0.0.1", ErrorKind::TimedOut, true);
        check("::1", ErrorKind::TimedOut, true);
        check("10.0.0.1", ErrorKind::TimedOut, false);
        check("127.0.0.1", ErrorKind::ConnectionRefused, false);
    }

    #[test]
    fn a_silent_hub_is_lost_after_the_rank_timeout_if_its_process_runs() {
        let check = |process: Option<ProcessWatch>, seconds: u64, expected: u32| {
            let mut silence = HubSilence::new(process, Duration::from_secs(seconds));
            let missed = (1..).find(|_| silence.miss());
            assert_eq!(missed, Some(expected), "{seconds} s");
        };
        let this_process = || ProcessWatch::new(&ProcessIdentity::current().unwrap());
        check(None, 600, MISSED_MAX);
        check(this_process(), 600, 300);
        check(this_process(), 1, MISSED_MAX);
        let endless = HubSilence::new(None, Duration::MAX);
        assert_eq!(endless.missed_max, u32::MAX, "the number of beats does not wrap");
    }
}
