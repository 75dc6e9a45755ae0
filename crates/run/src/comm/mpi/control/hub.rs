//! The hub of the control channel, a thread on rank 0: hears every rank, and tells all what one tells or does not tell any more.

use super::addresses;
use super::message::{ControlMessage, LineReader, Meeting, OnTimeout};
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

/// Ranks say within this how far they are, or count as missing if they are not known to run.
const ANSWER: Duration = Duration::from_secs(2);
/// Between two words to all. Nobody is late for one who was stopped too: beats are counted, not time.
const BEAT: Duration = Duration::from_secs(1);
/// Unanswered beats in a row after which a rank is lost, unless it is known to run.
const MISSED_MAX: u32 = 6;
/// After a failure, for the other ranks to take leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// The running thread.
pub(in super::super) struct Hub(JoinHandle<()>);

impl Hub {
    /// Listen for the ranks on `hosts`, which are one machine if they are `together`.
    pub(in super::super) fn start(hosts: &[String], together: bool) -> io::Result<(Self, Meeting)> {
        let (mut room, meeting) = Room::new(hosts, together)?;
        let thread = std::thread::Builder::new().name("hub".to_owned());
        Ok((Hub(thread.spawn(move || room.serve())?), meeting))
    }

    /// Wait until all have left, or had the time to. Rank 0 has left.
    pub(in super::super) fn join(self) {
        let _ = self.0.join();
    }
}

/// Everything that the thread knows.
struct Room {
    listener: TcpListener,
    token: String,
    clock: Clock,
    hosts: Vec<String>,
    guests: Vec<Guest>,
    /// Ranks that have left with nothing under way.
    idle: usize,
    /// Ranks that have been here.
    joined: BTreeSet<u32>,
    /// The message that ended the work of all.
    end: Option<ControlMessage>,
    /// When the next beat is due.
    beat_ns: u64,
    inquiry: Option<Inquiry>,
    /// How far those were of whom it was last said that they are waited for.
    noted: Option<u64>,
    /// So long others have to take leave too.
    leave_ns: Option<u64>,
}

/// A connection.
struct Guest {
    lines: LineReader,
    /// Once it has said so.
    rank: Option<u32>,
    /// Where it has said so.
    process: Option<ProcessIdentity>,
    /// Beats since it last said anything.
    missed: u32,
    said_bye: bool,
    /// Its end was seen.
    gone: bool,
}

/// Who has not come?
struct Inquiry {
    operation: u64,
    waited: Duration,
    on_timeout: OnTimeout,
    until_ns: u64,
    /// Operations begun, of each rank that has answered.
    begun: Vec<Option<u64>>,
}

impl Room {
    fn new(hosts: &[String], together: bool) -> io::Result<(Self, Meeting)> {
        let listener = listen(together)?;
        let addresses = if together {
            vec![Ipv4Addr::LOCALHOST.to_string()]
        } else {
            addresses::of_this_machine(hosts.first().map_or("", String::as_str))
        };
        let port = listener.local_addr()?.port();
        let meeting = Meeting { addresses, port, token: token()?, process: ProcessIdentity::own() };
        let room = Room {
            listener,
            token: meeting.token.clone(),
            clock: Clock::new(),
            hosts: hosts.to_vec(),
            guests: Vec::new(),
            idle: 0,
            joined: BTreeSet::new(),
            end: None,
            beat_ns: 0,
            inquiry: None,
            noted: None,
            leave_ns: None,
        };
        Ok((room, meeting))
    }

    /// Until all have left.
    fn serve(&mut self) {
        loop {
            self.wait();
            self.accept();
            for i in 0..self.guests.len() {
                self.hear(i);
            }
            self.beat();
            self.guests.retain(|guest| !guest.gone);
            self.conclude();
            if let Some(leave_ns) = self.leave_ns
                && (self.clock.now_ns() >= leave_ns || self.guests.iter().all(|g| g.said_bye))
            {
                let idle = self.idle == self.hosts.len();
                return self.tell(&ControlMessage::Bye { idle, orderly: true });
            }
        }
    }

    /// For word from anyone, or until something is due.
    fn wait(&self) {
        let answers_ns = self.inquiry.as_ref().map(|inquiry| inquiry.until_ns);
        let due = [self.leave_ns, answers_ns, Some(self.beat_ns)];
        let timeout = due.into_iter().flatten().min().map(|due_ns| {
            let left = Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns()));
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.guests.iter().map(|guest| PollFd::new(guest.stream(), PollFlags::IN)));
        // An interrupted wait is one that is over.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // What is said is short: it fits the system's buffer, and nobody who does not read is waited for.
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                let lines = LineReader::new(stream);
                self.guests.push(Guest {
                    lines,
                    rank: None,
                    process: None,
                    missed: 0,
                    said_bye: false,
                    gone: false,
                });
            }
        }
    }

    /// Take in what a guest has said since.
    fn hear(&mut self, i: usize) {
        while !self.guests[i].gone {
            let line = match self.guests[i].lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(_) => break,
            };
            self.guests[i].missed = 0;
            match (self.guests[i].rank, ControlMessage::parse(&line)) {
                (Some(rank), Some(message)) => self.obey(i, rank, message),
                (Some(_), None) => {}
                (None, message) => self.admit(i, message),
            }
        }
        self.guests[i].gone = true;
        if let Some(rank) = self.guests[i].rank
            && !self.guests[i].said_bye
        {
            self.lose(rank, End::Died);
        }
    }

    /// Where one is due, ask who lives, and lose a rank that has not said so for long.
    fn beat(&mut self) {
        if self.clock.now_ns() < self.beat_ns {
            return;
        }
        self.beat_ns = self.in_ns(BEAT);
        for i in 0..self.guests.len() {
            let guest = &mut self.guests[i];
            let (Some(rank), false) = (guest.rank, guest.said_bye) else { continue };
            guest.missed += 1;
            if guest.missed > MISSED_MAX && !guest.is_running() {
                // It is told too, and hears that if it goes on.
                self.lose(rank, End::Silent);
                self.guests[i].gone = true;
            }
        }
        self.tell(&ControlMessage::Beat);
    }

    fn admit(&mut self, i: usize, message: Option<ControlMessage>) {
        let guest = &mut self.guests[i];
        match message {
            Some(ControlMessage::Hello { token, rank, process }) if token == self.token => {
                guest.rank = Some(rank);
                guest.process = process;
                self.joined.insert(rank);
                ControlMessage::Welcome.send(guest.stream());
                // Who comes after the end is told of it.
                if let Some(end) = &self.end {
                    end.send(guest.stream());
                }
            }
            _ => guest.gone = true,
        }
    }

    fn obey(&mut self, i: usize, rank: u32, message: ControlMessage) {
        match message {
            ControlMessage::GaveUp { end } => self.lose(rank, end),
            ControlMessage::Late { operation, waited, on_timeout } => {
                self.inquire(operation, waited, on_timeout);
            }
            ControlMessage::Begun { operations } => {
                let begun = self.inquiry.as_mut().and_then(|i| i.begun.get_mut(rank as usize));
                if let Some(begun) = begun {
                    *begun = Some(operations);
                }
            }
            ControlMessage::Bye { idle, orderly } => {
                self.guests[i].said_bye = true;
                self.idle += usize::from(idle);
                if rank == 0 {
                    let patience = if orderly { Duration::ZERO } else { PATIENCE };
                    self.leave_ns = Some(self.in_ns(patience));
                }
            }
            _ => {}
        }
    }

    fn lose(&mut self, rank: u32, end: End) {
        let host = self.hosts.get(rank as usize).cloned().unwrap_or_default();
        self.end(ControlMessage::Lost { rank, host, end });
    }

    /// The first reason counts.
    fn end(&mut self, message: ControlMessage) {
        if self.end.is_none() {
            self.tell(&message);
            self.end = Some(message);
        }
    }

    fn inquire(&mut self, operation: u64, waited: Duration, on_timeout: OnTimeout) {
        if self.inquiry.is_some() {
            return;
        }
        self.tell(&ControlMessage::Count);
        let (until_ns, begun) = (self.in_ns(ANSWER), vec![None; self.hosts.len()]);
        self.inquiry = Some(Inquiry { operation, waited, on_timeout, until_ns, begun });
    }

    /// Once all have answered, or had the time to.
    fn conclude(&mut self) {
        let Some(inquiry) = &self.inquiry else { return };
        if self.clock.now_ns() < inquiry.until_ns
            && self.joined.iter().any(|&rank| inquiry.begun_by(rank).is_none())
        {
            return;
        }
        let Inquiry { operation, waited, on_timeout, .. } = *inquiry;
        let mut ranks: Vec<u32> = self.joined.iter().copied().collect();
        // One that runs may have had no processor to answer with.
        let is_running = |rank| self.guests.iter().any(|g| g.rank == Some(rank) && g.is_running());
        let begun_by = |rank| inquiry.begun_by(rank).or_else(|| is_running(rank).then_some(0));
        ranks.retain(|&rank| begun_by(rank).is_none_or(|begun| begun < operation));
        // Others may wait for them elsewhere.
        let least = ranks.iter().map(|&rank| begun_by(rank)).min().flatten();
        if on_timeout == OnTimeout::Waits {
            ranks.retain(|&rank| begun_by(rank) == least);
        }
        self.inquiry = None;
        match (least, on_timeout) {
            _ if ranks.is_empty() => {}
            (Some(at), OnTimeout::Waits) => {
                let is_new = self.noted.replace(at) != Some(at);
                self.tell(&ControlMessage::Busy { ranks, waited, is_new });
            }
            _ => self.end(ControlMessage::Missing { ranks, waited }),
        }
    }

    fn in_ns(&self, wait: Duration) -> u64 {
        self.clock.now_ns() + wait.as_nanos() as u64
    }

    fn tell(&self, message: &ControlMessage) {
        for guest in self.guests.iter().filter(|guest| guest.rank.is_some() && !guest.gone) {
            message.send(guest.stream());
        }
    }
}

impl Inquiry {
    fn begun_by(&self, rank: u32) -> Option<u64> {
        self.begun.get(rank as usize).copied().flatten()
    }
}

impl Guest {
    /// Whether its process is known to run.
    fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(ProcessIdentity::is_running)
    }

    fn stream(&self) -> &TcpStream {
        self.lines.stream()
    }
}

fn listen(together: bool) -> io::Result<TcpListener> {
    let listener = if together {
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

    /// A hub that rank 1 has greeted, whose process is `child`. It says nothing more.
    fn room_of(child: &Child) -> (Room, TcpStream) {
        let (mut room, meeting) = Room::new(&["a".to_owned(), "a".to_owned()], true).unwrap();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, meeting.port)).unwrap();
        let process = ProcessIdentity::of(child.id());
        ControlMessage::Hello { token: meeting.token, rank: 1, process }.send(&stream);
        while room.joined.is_empty() {
            room.accept();
            (0..room.guests.len()).for_each(|i| room.hear(i));
        }
        (room, stream)
    }

    fn miss_all_beats(room: &mut Room) {
        for _ in 0..=MISSED_MAX {
            room.beat_ns = 0;
            room.beat();
        }
    }

    /// Ask for a rank that does not answer in time.
    fn ask_in_vain(room: &mut Room) {
        room.inquire(5, Duration::from_secs(1), OnTimeout::Waits);
        room.inquiry.as_mut().unwrap().until_ns = 0;
        room.conclude();
    }

    #[test]
    fn a_silent_rank_is_lost_once_it_is_stopped_and_not_while_it_runs() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let (mut room, _stream) = room_of(&child);
        let (mut asking, _other) = room_of(&child);
        miss_all_beats(&mut room);
        ask_in_vain(&mut asking);
        assert_eq!((&room.end, &asking.end), (&None, &None));
        assert_eq!(asking.noted, Some(0), "that it is waited for is told");
        let stop = Command::new("kill").args(["-STOP", &child.id().to_string()]).status();
        assert!(stop.unwrap().success());
        while room.guests[0].is_running() {
            std::thread::yield_now();
        }
        miss_all_beats(&mut room);
        let lost = ControlMessage::Lost { rank: 1, host: "a".to_owned(), end: End::Silent };
        assert_eq!(room.end, Some(lost));
        ask_in_vain(&mut asking);
        let (ranks, waited) = (vec![1], Duration::from_secs(1));
        assert_eq!(asking.end, Some(ControlMessage::Missing { ranks, waited }));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
