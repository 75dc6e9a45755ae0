//! The channel of a rank other than 0: one connection to rank 0, and a thread that listens to it.

use super::message::{LINE_BYTES_MAX, Meeting, Message};
use super::state::{State, lock};
use crate::comm::mpi::link::{Late, Link};
use crate::comm::mpi::place::Places;
use crate::comm::{CommError, End};
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// To each of rank 0's addresses.
const CONNECT: Duration = Duration::from_secs(3);
/// Rank 0 answers a greeting.
const ANSWER: Duration = Duration::from_secs(20);
/// After a failure, for rank 0 to hang up: it waits for the other ranks, and then ends all.
const PATIENCE: Duration = Duration::from_secs(12);

pub(in super::super) struct Spoke {
    rank: u32,
    host: String,
    stream: TcpStream,
    state: Arc<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Spoke {
    pub(super) fn begin(link: &Link, places: &Places, meeting: &Meeting) -> io::Result<Self> {
        let (stream, reader) = connect(meeting, link.rank)?;
        let hub = places.hosts().first().cloned().unwrap_or_default();
        let host = places.hosts().get(link.rank as usize).cloned().unwrap_or_default();
        let state = Arc::clone(&link.state);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || listen(reader, &state, hub))?;
        let (state, thread) = (Arc::clone(&link.state), Mutex::new(Some(thread)));
        Ok(Spoke { rank: link.rank, host, stream, state, thread })
    }

    pub(super) fn give_up(&self, end: End) {
        let message = Message::gave_up(end);
        message.send(&self.stream);
        let Message::GaveUp { end } = message else { return };
        self.state.end_with(CommError::Lost { rank: self.rank, host: self.host.clone(), end });
    }

    pub(super) fn late(&self, operation: u64, waited: Duration, late: Late) {
        let waited_ms = waited.as_millis() as u64;
        Message::Late { operation, waited_ms, late }.send(&self.stream);
    }

    pub(super) fn leave(&self, orderly: bool) {
        self.state.leave();
        Message::Bye { idle: self.state.is_idle() }.send(&self.stream);
        if !orderly {
            self.state.wait_closed(PATIENCE);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

fn connect(meeting: &Meeting, rank: u32) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    let mut failures = Vec::new();
    for address in &meeting.addresses {
        match greet(address, meeting, rank) {
            Ok(connected) => return Ok(connected),
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    Err(io::Error::other(format!("rank 0 cannot be reached: {}", failures.join("; "))))
}

fn greet(
    address: &str,
    meeting: &Meeting,
    rank: u32,
) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    let mut at = (address, meeting.port).to_socket_addrs()?;
    let at = at.next().ok_or_else(|| io::Error::other("no address"))?;
    let stream = TcpStream::connect_timeout(&at, CONNECT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(CONNECT))?;
    stream.set_read_timeout(Some(ANSWER))?;
    Message::Hello { token: meeting.token.clone(), rank }.send(&stream);
    let mut reader = BufReader::new(stream.try_clone()?);
    if next(&mut reader) != Some(Message::Welcome) {
        return Err(io::Error::other("whoever answers is not rank 0"));
    }
    stream.set_read_timeout(None)?;
    Ok((stream, reader))
}

/// The next line; nothing at the end, or where it is none of ours.
fn next(reader: &mut BufReader<TcpStream>) -> Option<Message> {
    let mut line = Vec::new();
    let mut limited = reader.take(LINE_BYTES_MAX as u64);
    match limited.read_until(b'\n', &mut line) {
        Ok(len) if len > 0 => Message::parse(&line),
        _ => None,
    }
}

/// Until rank 0 hangs up, or this rank does.
fn listen(mut reader: BufReader<TcpStream>, state: &State, hub: String) {
    loop {
        match next(&mut reader) {
            Some(Message::Count) => {
                Message::Begun { operations: state.begun.load(Relaxed) }.send(reader.get_ref());
            }
            Some(Message::Alive) => state.hear_alive(),
            Some(Message::Bye { idle }) => {
                if idle {
                    state.set_all_idle();
                }
                break;
            }
            Some(message) => {
                if let Some(error) = message.error() {
                    state.end_with(error);
                }
            }
            None => {
                if !state.is_leaving() {
                    state.hub_died();
                    state.end_with(CommError::Lost { rank: 0, host: hub, end: End::Died });
                }
                break;
            }
        }
    }
    state.close();
}
