//! The hub of the control channel: a thread on rank 0 that receives the messages of every rank, detects ranks that die or do not
//! answer, and forwards such events to all ranks.

use super::addresses;
use super::message::{ControlMessage, HubAddress, LineReader, OnTimeout};
use super::process::ProcessIdentity;
use crate::clock::Clock;
use crate::comm::End;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for the answers to an inquiry. A rank that does not answer counts as missing, unless it is known to run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of beats. Missed beats are counted instead of time, so that a stop of the hub itself does not make ranks late.
const BEAT: Duration = Duration::from_secs(1);
/// Consecutive unanswered beats after which a rank is lost, unless it is known to run.
const MISSED_MAX: u32 = 6;
/// Time that the other ranks have to disconnect after a failure.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The running hub thread.
pub(in super::super) struct Hub(JoinHandle<()>);

impl Hub {
    /// Starts the hub for the ranks on `hosts`; `single_machine` is set if all are on one machine.
    pub(in super::super) fn start(
        hosts: &[String],
        single_machine: bool,
    ) -> io::Result<(Self, HubAddress)> {
        let (mut state, address) = HubState::new(hosts, single_machine)?;
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
    connections: Vec<Connection>,
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
    /// Process of the rank, if known.
    process: Option<ProcessIdentity>,
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
    fn new(hosts: &[String], single_machine: bool) -> io::Result<(Self, HubAddress)> {
        let listener = listen(single_machine)?;
        let addresses = if single_machine {
            vec![Ipv4Addr::LOCALHOST.to_string()]
        } else {
            addresses::local_addresses(hosts.first().map_or("", String::as_str))
        };
        let port = listener.local_addr()?.port();
        let process = ProcessIdentity::current();
        let address = HubAddress { addresses, port, token: token()?, process };
        let state = HubState {
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
        let due = [self.leave_ns, answers_ns, Some(self.beat_ns)];
        let timeout = due.into_iter().flatten().min().map(|due_ns| {
            let remaining = Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns()));
            Timespec {
                tv_sec: remaining.as_secs() as i64,
                tv_nsec: remaining.subsec_nanos().into(),
            }
        });
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(
            self.connections
                .iter()
                .map(|connection| PollFd::new(connection.stream(), PollFlags::IN)),
        );
        // An error, such as an interrupted wait, only ends the wait early.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // Messages are short and fit the send buffer, so that a rank that does not read cannot block the hub.
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                let lines = LineReader::new(stream);
                self.connections.push(Connection {
                    lines,
                    rank: None,
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
            if connection.missed > MISSED_MAX && !connection.is_running() {
                // The lost rank is notified too, in case it continues later.
                self.declare_lost(rank, End::Silent);
                self.connections[i].closed = true;
            }
        }
        self.send_to_all(&ControlMessage::Beat);
    }

    /// Handles the first message of a connection. It has to identify a rank of this run.
    fn admit(&mut self, i: usize, message: Option<ControlMessage>) {
        let connection = &mut self.connections[i];
        match message {
            Some(ControlMessage::Hello { token, rank, process }) if token == self.token => {
                connection.rank = Some(rank);
                connection.process = process;
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
        // A running rank that does not answer may be starved of processor time. It counts as having started no operation.
        let is_running = |rank| {
            self.connections
                .iter()
                .any(|connection| connection.rank == Some(rank) && connection.is_running())
        };
        let started_by = |rank| inquiry.started_by(rank).or_else(|| is_running(rank).then_some(0));
        let mut ranks: Vec<u32> = self.joined.iter().copied().collect();
        ranks.retain(|&rank| started_by(rank).is_none_or(|started| started < operation));
        // Only the ranks that have started the fewest operations are named: the other ranks may be waiting for them in earlier operations.
        let fewest = ranks.iter().map(|&rank| started_by(rank)).min().flatten();
        if on_timeout == OnTimeout::Waits {
            ranks.retain(|&rank| started_by(rank) == fewest);
        }
        self.inquiry = None;
        match (fewest, on_timeout) {
            _ if ranks.is_empty() => {}
            (Some(started), OnTimeout::Waits) => {
                let is_new = self.reported.replace(started) != Some(started);
                self.send_to_all(&ControlMessage::Busy { ranks, waited, is_new });
            }
            _ => self.end(ControlMessage::Missing { ranks, waited }),
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
    /// Whether the rank's process is known to run.
    fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(ProcessIdentity::is_running)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// Returns a hub to which rank 1 has connected, with the process `child`. The rank sends no further messages.
    fn hub_with_rank_1(child: &Child) -> (HubState, TcpStream) {
        let (mut hub, address) = HubState::new(&["a".to_owned(), "a".to_owned()], true).unwrap();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port)).unwrap();
        let process = ProcessIdentity::from_pid(child.id());
        ControlMessage::Hello { token: address.token, rank: 1, process }.send(&stream);
        while hub.joined.is_empty() {
            hub.accept();
            (0..hub.connections.len()).for_each(|i| hub.receive(i));
        }
        (hub, stream)
    }

    fn miss_all_beats(hub: &mut HubState) {
        for _ in 0..=MISSED_MAX {
            hub.beat_ns = 0;
            hub.beat();
        }
    }

    /// Concludes an inquiry that is not answered in time.
    fn inquire_without_answer(hub: &mut HubState) {
        hub.inquire(5, Duration::from_secs(1), OnTimeout::Waits);
        hub.inquiry.as_mut().unwrap().deadline_ns = 0;
        hub.conclude_inquiry();
    }

    #[test]
    fn a_silent_rank_is_lost_if_it_is_stopped_but_not_if_it_runs() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let (mut hub, _stream) = hub_with_rank_1(&child);
        let (mut inquiring_hub, _other) = hub_with_rank_1(&child);
        miss_all_beats(&mut hub);
        inquire_without_answer(&mut inquiring_hub);
        assert_eq!((&hub.end, &inquiring_hub.end), (&None, &None));
        assert_eq!(inquiring_hub.reported, Some(0), "the wait is reported");
        let stop = Command::new("kill").args(["-STOP", &child.id().to_string()]).status();
        assert!(stop.unwrap().success());
        while hub.connections[0].is_running() {
            std::thread::yield_now();
        }
        miss_all_beats(&mut hub);
        let lost = ControlMessage::Lost { rank: 1, host: "a".to_owned(), end: End::Silent };
        assert_eq!(hub.end, Some(lost));
        inquire_without_answer(&mut inquiring_hub);
        let missing = ControlMessage::Missing { ranks: vec![1], waited: Duration::from_secs(1) };
        assert_eq!(inquiring_hub.end, Some(missing));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
