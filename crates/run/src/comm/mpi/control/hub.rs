//! The hub of the control channel: a thread on rank 0 that receives the messages of every rank, detects ranks that die or do not
//! answer, and forwards such events to all ranks.

#[cfg(test)]
mod tests;

use super::addresses;
use super::count_beats;
use super::message::{ControlMessage, HubAddress, LineReader, OnTimeout};
use super::process::{ProcessIdentity, ProcessWatch};
use crate::clock::Clock;
use crate::comm::End;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, getrlimit};
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for the answers to an inquiry. A rank that does not answer counts as having started no operation.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of beats. Missed beats are counted instead of time, so that a stop of the hub itself does not make ranks late.
const BEAT: Duration = Duration::from_secs(1);
/// Consecutive unanswered beats after which a rank is lost if its process has ended, is stopped or cannot be observed.
const MISSED_MAX: u32 = 6;
/// Time that a connection has to identify a rank. A rank whose connection was closed connects again.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of connections that have not identified a rank, and their share of the descriptors of this process. Further
/// connections wait in the queue of the kernel.
const STRANGERS_MAX: usize = 256;
const STRANGERS_SHARE: u64 = 4;
/// Pause after a connection could not be accepted, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Time that the other ranks have to disconnect after a failure.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The running hub thread.
pub(in super::super) struct Hub(JoinHandle<()>);

impl Hub {
    /// Starts the hub for the ranks on `hosts`; `single_machine` is set if all are on one machine. A rank that does not answer for
    /// `rank_timeout` is lost even if its process runs.
    pub(in super::super) fn start(
        hosts: &[String],
        single_machine: bool,
        rank_timeout: Duration,
    ) -> io::Result<(Self, HubAddress)> {
        let (mut state, address) = HubState::new(hosts, single_machine, rank_timeout)?;
        let thread = std::thread::Builder::new().name("hub".to_owned());
        Ok((Hub(thread.spawn(move || state.serve())?), address))
    }

    /// Waits until all ranks have disconnected or their time to do so is over. Rank 0 must have left before.
    pub(in super::super) fn join(self) {
        let _ = self.0.join();
    }
}

/// State of the hub thread.
struct HubState {
    listener: TcpListener,
    token: String,
    clock: Clock,
    hosts: Vec<String>,
    /// Unanswered beats after which a rank is lost in any case.
    silent_max: u32,
    connections: Vec<Connection>,
    strangers_max: usize,
    /// Time from which connections are accepted.
    accept_ns: u64,
    /// Number of ranks that have left with no unfinished operation.
    idle: usize,
    /// Ranks that have connected.
    joined: BTreeSet<u32>,
    /// The message that ended the common work.
    end: Option<ControlMessage>,
    /// Time at which the next beat is due.
    beat_ns: u64,
    inquiry: Option<Inquiry>,
    /// Number of operations that the missing ranks had started when a wait was last reported.
    reported: Option<u64>,
    /// Deadline for the other ranks to disconnect, set when rank 0 has left.
    leave_ns: Option<u64>,
}

/// The connection of one rank.
struct Connection {
    lines: LineReader,
    /// Set by the rank's first message.
    rank: Option<u32>,
    /// Time by which it has to set `rank`.
    hello_ns: u64,
    /// Observes the process of the rank, if it is on this machine.
    process: Option<ProcessWatch>,
    /// Beats since its last message.
    missed: u32,
    has_left: bool,
    /// Whether the connection has ended.
    closed: bool,
}

/// A pending inquiry about the ranks that have not arrived at an operation.
struct Inquiry {
    operation: u64,
    waited: Duration,
    on_timeout: OnTimeout,
    deadline_ns: u64,
    /// Number of operations started by each rank; `None` for ranks that have not answered.
    started: Vec<Option<u64>>,
}

impl HubState {
    fn new(
        hosts: &[String],
        single_machine: bool,
        rank_timeout: Duration,
    ) -> io::Result<(Self, HubAddress)> {
        let listener = listen(single_machine)?;
        let addresses = if single_machine {
            vec![Ipv4Addr::LOCALHOST.to_string()]
        } else {
            addresses::local_addresses(hosts.first().map_or("", String::as_str))
        };
        let port = listener.local_addr()?.port();
        let process = ProcessIdentity::current();
        let address = HubAddress { addresses, port, token: token()?, process };
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let strangers_max = (descriptors / STRANGERS_SHARE).clamp(1, STRANGERS_MAX as u64);
        let state = HubState {
            silent_max: count_beats(rank_timeout, BEAT).max(MISSED_MAX),
            strangers_max: strangers_max as usize,
            accept_ns: 0,
            listener,
            token: address.token.clone(),
            clock: Clock::new(),
            hosts: hosts.to_vec(),
            connections: Vec::new(),
            idle: 0,
            joined: BTreeSet::new(),
            end: None,
            beat_ns: 0,
            inquiry: None,
            reported: None,
            leave_ns: None,
        };
        Ok((state, address))
    }

    /// Serves the ranks until all have left.
    fn serve(&mut self) {
        loop {
            self.wait();
            self.accept();
            for i in 0..self.connections.len() {
                self.receive(i);
            }
            self.beat();
            self.close_strangers();
            self.connections.retain(|connection| !connection.closed);
            self.conclude_inquiry();
            let all_left = || self.connections.iter().all(|connection| connection.has_left);
            if let Some(leave_ns) = self.leave_ns
                && (self.clock.now_ns() >= leave_ns || all_left())
            {
                let idle = self.idle == self.hosts.len();
                return self.send_to_all(&ControlMessage::Bye { idle, orderly: true });
            }
        }
    }

    /// Waits for a message, or until something is due.
    fn wait(&self) {
        let answers_ns = self.inquiry.as_ref().map(|inquiry| inquiry.deadline_ns);
        // A beat is due every second, which is soon enough for strangers and for accepting again.
        let due = [self.leave_ns, answers_ns, Some(self.beat_ns)];
        let timeout = due.into_iter().flatten().min().map(|due_ns| {
            let remaining = Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns()));
            Timespec {
                tv_sec: remaining.as_secs() as i64,
                tv_nsec: remaining.subsec_nanos().into(),
            }
        });
        let listener = self.can_accept().then(|| PollFd::new(&self.listener, PollFlags::IN));
        let connections = self.connections.iter();
        let streams = connections.map(|connection| PollFd::new(connection.stream(), PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = listener.into_iter().chain(streams).collect();
        // An error, such as an interrupted wait, only ends the wait early.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    fn can_accept(&self) -> bool {
        let strangers = self.connections.iter().filter(|connection| connection.rank.is_none());
        self.accept_ns <= self.clock.now_ns() && strangers.count() < self.strangers_max
    }

    fn accept(&mut self) {
        while self.can_accept() {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.accept_ns = self.deadline_ns(ACCEPT_PAUSE);
                    return;
                }
            };
            // Messages are short and fit the send buffer, so that a rank that does not read cannot block the hub.
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                let lines = LineReader::new(stream);
                self.connections.push(Connection {
                    lines,
                    rank: None,
                    hello_ns: self.deadline_ns(HELLO_TIMEOUT),
                    process: None,
                    missed: 0,
                    has_left: false,
                    closed: false,
                });
            }
        }
    }

    /// Handles all messages that have arrived on connection `i`.
    fn receive(&mut self, i: usize) {
        while !self.connections[i].closed {
            let line = match self.connections[i].lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(_) => break,
            };
            self.connections[i].missed = 0;
            match (self.connections[i].rank, ControlMessage::parse(&line)) {
                (Some(rank), Some(message)) => self.handle(i, rank, message),
                (Some(_), None) => {}
                (None, message) => self.admit(i, message),
            }
        }
        self.connections[i].closed = true;
        if let Some(rank) = self.connections[i].rank
            && !self.connections[i].has_left
        {
            self.declare_lost(rank, End::Died);
        }
    }

    /// Sends a beat to all ranks if one is due, and declares ranks lost that have missed too many.
    fn beat(&mut self) {
        if self.clock.now_ns() < self.beat_ns {
            return;
        }
        self.beat_ns = self.deadline_ns(BEAT);
        for i in 0..self.connections.len() {
            let connection = &mut self.connections[i];
            let (Some(rank), false) = (connection.rank, connection.has_left) else { continue };
            connection.missed += 1;
            let may_be_alive = connection.process.as_mut().is_some_and(|watch| !watch.is_lost());
            let missed_max = if may_be_alive { self.silent_max } else { MISSED_MAX };
            if connection.missed > missed_max {
                // The lost rank is notified too, in case it continues later.
                self.declare_lost(rank, End::Silent);
                self.connections[i].closed = true;
            }
        }
        self.send_to_all(&ControlMessage::Beat);
    }

    /// Closes connections that have not identified a rank in time.
    fn close_strangers(&mut self) {
        let now_ns = self.clock.now_ns();
        for connection in &mut self.connections {
            connection.closed |= connection.rank.is_none() && connection.hello_ns <= now_ns;
        }
    }

    /// Handles the first message of a connection. It has to identify a rank of this run.
    fn admit(&mut self, i: usize, message: Option<ControlMessage>) {
        let connection = &mut self.connections[i];
        match message {
            Some(ControlMessage::Hello { token, rank, process }) if token == self.token => {
                connection.rank = Some(rank);
                connection.process = process.as_ref().and_then(ProcessWatch::new);
                self.joined.insert(rank);
                ControlMessage::Welcome.send(connection.stream());
                // A rank that connects after the end is notified of it.
                if let Some(end) = &self.end {
                    end.send(connection.stream());
                }
            }
            _ => connection.closed = true,
        }
    }

    fn handle(&mut self, i: usize, rank: u32, message: ControlMessage) {
        match message {
            ControlMessage::GaveUp { end } => self.declare_lost(rank, end),
            ControlMessage::Late { operation, waited, on_timeout } => {
                self.inquire(operation, waited, on_timeout);
            }
            ControlMessage::Started { operations } => {
                if let Some(inquiry) = &mut self.inquiry
                    && let Some(started) = inquiry.started.get_mut(rank as usize)
                {
                    *started = Some(operations);
                }
            }
            ControlMessage::Bye { idle, orderly } => {
                self.connections[i].has_left = true;
                self.idle += usize::from(idle);
                if rank == 0 {
                    let timeout = if orderly { Duration::ZERO } else { LEAVE_TIMEOUT };
                    self.leave_ns = Some(self.deadline_ns(timeout));
                }
            }
            _ => {}
        }
    }

    /// Ends the common work because a rank is lost.
    fn declare_lost(&mut self, rank: u32, end: End) {
        let host = self.hosts.get(rank as usize).cloned().unwrap_or_default();
        self.end(ControlMessage::Lost { rank, host, end });
    }

    /// Ends the common work with `message`. Only the first reason counts.
    fn end(&mut self, message: ControlMessage) {
        if self.end.is_none() {
            self.send_to_all(&message);
            self.end = Some(message);
        }
    }

    /// Starts an inquiry about the ranks that have not started `operation`.
    fn inquire(&mut self, operation: u64, waited: Duration, on_timeout: OnTimeout) {
        if self.inquiry.is_some() {
            return;
        }
        self.send_to_all(&ControlMessage::Count);
        self.inquiry = Some(Inquiry {
            operation,
            waited,
            on_timeout,
            deadline_ns: self.deadline_ns(ANSWER_TIMEOUT),
            started: vec![None; self.hosts.len()],
        });
    }

    /// Evaluates the inquiry once all ranks have answered or its time is over.
    fn conclude_inquiry(&mut self) {
        let Some(inquiry) = &self.inquiry else { return };
        if self.clock.now_ns() < inquiry.deadline_ns
            && self.joined.iter().any(|&rank| inquiry.started_by(rank).is_none())
        {
            return;
        }
        let Inquiry { operation, waited, on_timeout, .. } = *inquiry;
        // A rank that does not answer may be starved of processor time; if it is lost, missed beats show it.
        let started_by = |rank| inquiry.started_by(rank).unwrap_or(0);
        let mut ranks: Vec<u32> = self.joined.iter().copied().collect();
        ranks.retain(|&rank| started_by(rank) < operation);
        // Only the ranks that have started the fewest operations are named: the other ranks may be waiting for them in earlier operations.
        let fewest = ranks.iter().map(|&rank| started_by(rank)).min();
        if on_timeout == OnTimeout::Waits {
            ranks.retain(|&rank| Some(started_by(rank)) == fewest);
        }
        self.inquiry = None;
        if ranks.is_empty() {
            // If all connected ranks have arrived, the wait is for ranks that never connected. They cannot answer, and their death
            // would not be detected.
            let mut absent: Vec<u32> = (0..self.hosts.len() as u32).collect();
            absent.retain(|rank| !self.joined.contains(rank));
            if !absent.is_empty() {
                self.end(ControlMessage::Missing { ranks: absent, waited });
            }
            return;
        }
        match on_timeout {
            OnTimeout::Waits => {
                let is_new = self.reported != fewest;
                self.reported = fewest;
                self.send_to_all(&ControlMessage::Busy { ranks, waited, is_new });
            }
            OnTimeout::Ends => self.end(ControlMessage::Missing { ranks, waited }),
        }
    }

    fn deadline_ns(&self, timeout: Duration) -> u64 {
        self.clock.now_ns() + timeout.as_nanos() as u64
    }

    fn send_to_all(&self, message: &ControlMessage) {
        for connection in &self.connections {
            if connection.rank.is_some() && !connection.closed {
                message.send(connection.stream());
            }
        }
    }
}

impl Inquiry {
    /// Returns how many operations `rank` has started, if it has answered.
    fn started_by(&self, rank: u32) -> Option<u64> {
        self.started.get(rank as usize).copied().flatten()
    }
}

impl Connection {
    fn stream(&self) -> &TcpStream {
        self.lines.stream()
    }
}

fn listen(single_machine: bool) -> io::Result<TcpListener> {
    let listener = if single_machine {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
    } else {
        TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
