//! A rank's end of the control channel: a connection to the hub, and a thread that listens to it.

use super::hub::Hub;
use super::message::{ControlMessage, LINE_BYTES_MAX, Meeting, OnTimeout};
use crate::comm::mpi::state::{RankState, lock};
use crate::comm::{CommError, End};
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// To each of rank 0's addresses.
const CONNECT: Duration = Duration::from_secs(3);
/// The hub answers a greeting.
const ANSWER: Duration = Duration::from_secs(20);
/// After a failure, for the hub to hang up: it waits for the other ranks, and then ends all.
const PATIENCE: Duration = Duration::from_secs(12);
const LOOK: Duration = Duration::from_millis(1);

pub(in super::super) struct ControlChannel {
    rank: u32,
    host: String,
    stream: TcpStream,
    state: Arc<RankState>,
    listener: Mutex<Option<JoinHandle<()>>>,
    /// On rank 0.
    hub: Mutex<Option<Hub>>,
}

impl ControlChannel {
    /// Connect rank `rank` of those on `hosts`; `hub`, where it is in this process.
    pub(in super::super) fn connect(
        rank: u32,
        hosts: &[String],
        meeting: &Meeting,
        state: &Arc<RankState>,
        hub: Option<Hub>,
    ) -> io::Result<Self> {
        let (stream, reader) = reach(meeting, rank)?;
        let hub_host = hosts.first().cloned().unwrap_or_default();
        let own_state = Arc::clone(state);
        let listener = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || listen(reader, &own_state, hub_host))?;
        Ok(ControlChannel {
            rank,
            host: hosts.get(rank as usize).cloned().unwrap_or_default(),
            stream,
            state: Arc::clone(state),
            listener: Mutex::new(Some(listener)),
            hub: Mutex::new(hub),
        })
    }

    /// Tell all that this rank goes no further.
    pub(in super::super) fn give_up(&self, end: End) {
        let message = ControlMessage::gave_up(end);
        message.send(&self.stream);
        let ControlMessage::GaveUp { end } = message else { return };
        self.state.end_with(CommError::Lost { rank: self.rank, host: self.host.clone(), end });
    }

    /// Ask who has not come to the operation that this rank has waited in for so long.
    pub(in super::super) fn late(&self, operation: u64, waited: Duration, on_timeout: OnTimeout) {
        ControlMessage::Late { operation, waited, on_timeout }.send(&self.stream);
    }

    /// Take leave, and wait a little for the others to do so where there was a failure.
    pub(in super::super) fn leave(&self, orderly: bool) {
        self.state.leaving.set();
        ControlMessage::Bye { idle: !self.state.undone.is_set(), orderly }.send(&self.stream);
        let (listener, hub) = (lock(&self.listener).take(), lock(&self.hub).take());
        let mut left = PATIENCE;
        while (!orderly || hub.is_some())
            && !left.is_zero()
            && listener.as_ref().is_some_and(|listener| !listener.is_finished())
        {
            std::thread::sleep(LOOK);
            left = left.saturating_sub(LOOK);
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

fn reach(meeting: &Meeting, rank: u32) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    let here = ["127.0.0.1".to_owned(), "::1".to_owned()];
    let addresses = if rank == 0 { &here[..] } else { &meeting.addresses };
    let mut failures = Vec::new();
    for address in addresses {
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
    ControlMessage::Hello { token: meeting.token.clone(), rank }.send(&stream);
    let mut reader = BufReader::new(stream.try_clone()?);
    if next(&mut reader) != Some(ControlMessage::Welcome) {
        return Err(io::Error::other("whoever answers is not rank 0"));
    }
    stream.set_read_timeout(None)?;
    Ok((stream, reader))
}

/// The next line; nothing at the end, or where it is none of ours.
fn next(reader: &mut BufReader<TcpStream>) -> Option<ControlMessage> {
    let mut line = Vec::new();
    let mut limited = reader.take(LINE_BYTES_MAX as u64);
    match limited.read_until(b'\n', &mut line) {
        Ok(len) if len > 0 => ControlMessage::parse(&line),
        _ => None,
    }
}

/// Until the hub hangs up, or this rank does.
fn listen(mut reader: BufReader<TcpStream>, state: &RankState, hub_host: String) {
    loop {
        match next(&mut reader) {
            Some(ControlMessage::Count) => {
                ControlMessage::Begun { operations: state.begun.load(Relaxed) }
                    .send(reader.get_ref());
            }
            Some(ControlMessage::Busy { ranks, waited, is_new }) => {
                if is_new && state.tells() {
                    state.note(&CommError::Missing { ranks, waited });
                }
                state.alive.fetch_add(1, Relaxed);
            }
            Some(ControlMessage::Bye { idle, .. }) => {
                if idle {
                    state.all_idle.set();
                }
                return;
            }
            Some(message) => {
                if let Some(error) = message.error() {
                    state.end_with(error);
                }
            }
            None => {
                if !state.leaving.is_set() {
                    state.hub_died.set();
                    state.end_with(CommError::Lost { rank: 0, host: hub_host, end: End::Died });
                }
                return;
            }
        }
    }
}
