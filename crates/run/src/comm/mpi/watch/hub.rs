//! The channel of rank 0: a listener, a connection to each other rank, and one thread that waits for word from any of them.

use super::addresses;
use super::message::{LINE_BYTES_MAX, Meeting, Message};
use super::state::{State, lock};
use crate::clock::Clock;
use crate::comm::mpi::link::{Late, Link};
use crate::comm::mpi::place::Places;
use crate::comm::{CommError, End};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ranks say within this how far they are, or count as missing.
const ANSWER: Duration = Duration::from_secs(2);
/// After a failure, for the other ranks to take leave.
const PATIENCE: Duration = Duration::from_secs(5);

pub(in super::super) struct Hub {
    state: Arc<State>,
    orders: Mutex<(Sender<Order>, UnixStream)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// From rank 0's own thread.
enum Order {
    GiveUp(End),
    Late(u64, Duration, Late),
    Leave { orderly: bool },
}

impl Hub {
    pub(super) fn begin(link: &Link, places: &Places) -> io::Result<(Self, Meeting)> {
        let alone = places.node().nodes == 1;
        let listener = listen(alone)?;
        let addresses = if alone {
            vec![Ipv4Addr::LOCALHOST.to_string()]
        } else {
            addresses::of_this_machine(places.hosts().first().map_or("", String::as_str))
        };
        let port = listener.local_addr()?.port();
        let meeting = Meeting { addresses, port, token: token()? };
        let (sender, orders) = channel();
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let mut room = Room {
            listener,
            woken,
            orders,
            token: meeting.token.clone(),
            clock: Clock::new(),
            state: Arc::clone(&link.state),
            hosts: places.hosts().to_vec(),
            guests: Vec::new(),
            idle: 0,
            joined: BTreeSet::from([0]),
            inquiry: None,
            noted: None,
            leave_ns: None,
        };
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let thread = thread.spawn(move || {
            room.serve();
            room.state.close();
        })?;
        let (state, orders) = (Arc::clone(&link.state), Mutex::new((sender, wake)));
        Ok((Hub { state, orders, thread: Mutex::new(Some(thread)) }, meeting))
    }

    pub(super) fn give_up(&self, end: End) {
        self.order(Order::GiveUp(end));
    }

    pub(super) fn late(&self, operation: u64, waited: Duration, late: Late) {
        self.order(Order::Late(operation, waited, late));
    }

    pub(super) fn leave(&self, orderly: bool) {
        self.order(Order::Leave { orderly });
        let closed = self.state.wait_closed(2 * PATIENCE);
        if let Some(thread) = lock(&self.thread).take().filter(|_| closed) {
            let _ = thread.join();
        }
    }

    fn order(&self, order: Order) {
        let orders = lock(&self.orders);
        let _ = orders.0.send(order);
        let _ = (&orders.1).write_all(&[0]);
    }
}

/// Everything that the thread knows.
struct Room {
    listener: TcpListener,
    woken: UnixStream,
    orders: Receiver<Order>,
    token: String,
    clock: Clock,
    state: Arc<State>,
    hosts: Vec<String>,
    guests: Vec<Guest>,
    /// Ranks that have left with nothing under way.
    idle: u32,
    /// Ranks that have been here.
    joined: BTreeSet<u32>,
    inquiry: Option<Inquiry>,
    /// How far those were of whom it was last said that they are waited for.
    noted: Option<u64>,
    /// So long others have to take leave too.
    leave_ns: Option<u64>,
}

/// A connection.
struct Guest {
    stream: TcpStream,
    unread: Vec<u8>,
    /// Once it has said so.
    rank: Option<u32>,
    said_bye: bool,
    /// Its end was seen.
    gone: bool,
}

/// Who has not come?
struct Inquiry {
    operation: u64,
    waited: Duration,
    late: Late,
    until_ns: u64,
    /// Operations begun, of each rank that has answered.
    begun: Vec<Option<u64>>,
}

impl Room {
    /// Until all have left.
    fn serve(&mut self) {
        loop {
            self.wait();
            self.accept();
            for i in 0..self.guests.len() {
                self.hear(i);
            }
            self.guests.retain(|guest| !guest.gone);
            self.obey();
            self.conclude();
            let all_left = || self.guests.iter().all(|guest| guest.said_bye);
            if self.leave_ns.is_some_and(|ns| self.clock.now_ns() >= ns || all_left()) {
                let idle = self.idle as usize + 1 == self.hosts.len() && self.state.is_idle();
                self.tell(&Message::Bye { idle });
                if idle {
                    self.state.set_all_idle();
                }
                return;
            }
        }
    }

    /// For word from anyone, or until something is due.
    fn wait(&self) {
        let due = [self.leave_ns, self.inquiry.as_ref().map(|inquiry| inquiry.until_ns)];
        let left = due
            .into_iter()
            .flatten()
            .min()
            .map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns())));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        let mut fds = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        fds.extend(self.guests.iter().map(|guest| PollFd::new(&guest.stream, PollFlags::IN)));
        // An interrupted wait is one that is over.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // What is said is short: it fits the system's buffer, and nobody who does not read is waited for.
            let usable = stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok();
            if usable {
                self.guests.push(Guest {
                    stream,
                    unread: Vec::new(),
                    rank: None,
                    said_bye: false,
                    gone: false,
                });
            }
        }
    }

    /// What a guest has said since.
    fn hear(&mut self, i: usize) {
        let open = self.guests[i].read();
        while let Some(line) = self.guests[i].line() {
            self.take(i, Message::parse(&line));
        }
        if open {
            return;
        }
        self.guests[i].gone = true;
        if let Some(rank) = self.guests[i].rank.filter(|_| !self.guests[i].said_bye) {
            self.lose(rank, End::Died);
        }
    }

    fn take(&mut self, i: usize, message: Option<Message>) {
        let Some(rank) = self.guests[i].rank else {
            match message {
                Some(Message::Hello { token, rank }) if token == self.token => {
                    self.guests[i].rank = Some(rank);
                    self.joined.insert(rank);
                    Message::Welcome.send(&self.guests[i].stream);
                    // Who comes after the end is told of it.
                    if let Some(end) = self.state.end().as_ref().and_then(Message::of) {
                        end.send(&self.guests[i].stream);
                    }
                }
                _ => self.guests[i].gone = true,
            }
            return;
        };
        match message {
            Some(Message::GaveUp { end }) => self.lose(rank, end),
            Some(Message::Late { operation, waited_ms, late }) => {
                self.inquire(operation, Duration::from_millis(waited_ms), late);
            }
            Some(Message::Begun { operations }) => {
                let begun = self.inquiry.as_mut().and_then(|i| i.begun.get_mut(rank as usize));
                if let Some(begun) = begun {
                    *begun = Some(operations);
                }
            }
            Some(Message::Bye { idle }) => {
                self.guests[i].said_bye = true;
                self.idle += u32::from(idle);
            }
            _ => {}
        }
    }

    /// What rank 0 itself wants.
    fn obey(&mut self) {
        let mut bytes = [0; 64];
        while matches!((&self.woken).read(&mut bytes), Ok(len) if len > 0) {}
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::GiveUp(end) => self.lose(0, end),
                Order::Late(operation, waited, late) => self.inquire(operation, waited, late),
                Order::Leave { orderly } => {
                    let patience = if orderly { Duration::ZERO } else { PATIENCE };
                    self.leave_ns = Some(self.in_ns(patience));
                }
            }
        }
    }

    fn lose(&mut self, rank: u32, end: End) {
        let host = self.hosts.get(rank as usize).cloned().unwrap_or_default();
        self.end(CommError::Lost { rank, host, end });
    }

    fn end(&mut self, error: CommError) {
        let message = Message::of(&error);
        if self.state.end_with(error)
            && let Some(message) = message
        {
            self.tell(&message);
        }
    }

    fn inquire(&mut self, operation: u64, waited: Duration, late: Late) {
        if self.inquiry.is_some() {
            return;
        }
        let mut begun = vec![None; self.hosts.len()];
        begun[0] = Some(self.state.begun.load(Relaxed));
        self.tell(&Message::Count);
        let until_ns = self.in_ns(ANSWER);
        self.inquiry = Some(Inquiry { operation, waited, late, until_ns, begun });
    }

    /// Once all have answered, or had the time to.
    fn conclude(&mut self) {
        let Some(inquiry) = &self.inquiry else { return };
        let begun = |rank: &u32| inquiry.begun.get(*rank as usize).copied().flatten();
        if self.clock.now_ns() < inquiry.until_ns
            && self.joined.iter().any(|rank| begun(rank).is_none())
        {
            return;
        }
        let came = |rank: &u32| begun(rank).is_some_and(|begun| begun >= inquiry.operation);
        let mut ranks: Vec<u32> = self.joined.iter().copied().filter(|rank| !came(rank)).collect();
        let (waited, late) = (inquiry.waited, inquiry.late);
        // Others may wait for them elsewhere.
        let least = ranks.iter().map(begun).min().flatten();
        if late == Late::Waits {
            ranks.retain(|rank| begun(rank) == least);
        }
        self.inquiry = None;
        if ranks.is_empty() {
            return;
        }
        let missing = CommError::Missing { ranks, waited };
        match least.filter(|_| late == Late::Waits) {
            None => self.end(missing),
            Some(at) => {
                if self.noted.replace(at) != Some(at) {
                    self.state.note(&missing);
                }
                self.state.hear_alive();
                self.tell(&Message::Alive);
            }
        }
    }

    fn in_ns(&self, wait: Duration) -> u64 {
        self.clock.now_ns() + wait.as_nanos() as u64
    }

    fn tell(&self, message: &Message) {
        for guest in self.guests.iter().filter(|guest| guest.rank.is_some() && !guest.gone) {
            message.send(&guest.stream);
        }
    }
}

impl Guest {
    /// Take in what has arrived; false at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(len) => self.unread.extend_from_slice(&bytes[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            if self.unread.len() > LINE_BYTES_MAX {
                return false;
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.unread.iter().position(|byte| *byte == b'\n')?;
        Some(self.unread.drain(..=end).collect())
    }
}

fn listen(alone: bool) -> io::Result<TcpListener> {
    let listener = if alone {
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
