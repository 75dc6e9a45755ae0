//! A rank's end of the control channel: a connection to the hub, and a thread that listens to it.

use super::hub::Hub;
use super::message::{ControlMessage, LineReader, Meeting, OnTimeout};
use super::process::ProcessIdentity;
use crate::comm::mpi::state::{RankState, lock};
use crate::comm::{CommError, End};
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// To each of rank 0's addresses.
const CONNECT: Duration = Duration::from_secs(3);
/// The hub answers a greeting.
const ANSWER: Duration = Duration::from_secs(20);
/// The hub says something within this, unless it is stopped, or gets no processor.
const BEAT: Duration = Duration::from_secs(2);
/// Missed beats in a row after which the hub is lost, unless it is known to run. Who was stopped itself has missed one at most.
const MISSED_MAX: u32 = 3;
/// After a failure, for the hub to hang up: it waits for the other ranks, and then ends all.
const PATIENCE: Duration = Duration::from_secs(12);
/// After the hub's end, for its deputy to notice, tell and end all: a launcher ends them as soon as any has failed.
const PATIENCE_FOR_DEPUTY: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(1);

pub(in super::super) struct ControlChannel {
    rank: u32,
    host: String,
    stream: TcpStream,
    hub_process: Option<ProcessIdentity>,
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
        let (stream, lines) = reach(meeting, rank)?;
        let hub_host = hosts.first().cloned().unwrap_or_default();
        let (own_state, hub_process) = (Arc::clone(state), meeting.process.clone());
        let listener = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || listen(lines, &own_state, hub_host, hub_process.as_ref()))?;
        Ok(ControlChannel {
            rank,
            host: hosts.get(rank as usize).cloned().unwrap_or_default(),
            stream,
            hub_process: meeting.process.clone(),
            state: Arc::clone(state),
            listener: Mutex::new(Some(listener)),
            hub: Mutex::new(hub),
        })
    }

    /// Tell all that this rank goes no further, if their work is not over already.
    pub(in super::super) fn give_up(&self, end: End) {
        if self.state.is_ended.is_set() {
            return;
        }
        let message = ControlMessage::gave_up(end);
        message.send(&self.stream);
        let ControlMessage::GaveUp { end } = message else { return };
        self.state.end_with(CommError::Lost { rank: self.rank, host: self.host.clone(), end });
    }

    /// Ask who has not come to the operation that this rank has waited in for so long.
    pub(in super::super) fn late(&self, operation: u64, waited: Duration, on_timeout: OnTimeout) {
        ControlMessage::Late { operation, waited, on_timeout }.send(&self.stream);
    }

    /// Whether the hub's process is known to run.
    pub(in super::super) fn hub_is_running(&self) -> bool {
        self.hub_process.as_ref().is_some_and(ProcessIdentity::is_running)
    }

    /// Take leave, and wait a little for the others to do so where there was a failure.
    pub(in super::super) fn leave(&self, orderly: bool) {
        self.state.leaving.set();
        ControlMessage::Bye { idle: !self.state.undone.is_set(), orderly }.send(&self.stream);
        let (listener, hub) = (lock(&self.listener).take(), lock(&self.hub).take());
        let mut left = PATIENCE;
        while (!orderly || hub.is_some()) && !left.is_zero() {
            if self.state.hub_died.is_set() && !self.state.must_report() {
                left = left.min(PATIENCE_FOR_DEPUTY);
            } else if listener.as_ref().is_none_or(|listener| listener.is_finished()) {
                break;
            }
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

fn reach(meeting: &Meeting, rank: u32) -> io::Result<(TcpStream, LineReader)> {
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

fn greet(address: &str, meeting: &Meeting, rank: u32) -> io::Result<(TcpStream, LineReader)> {
    let mut at = (address, meeting.port).to_socket_addrs()?;
    let at = at.next().ok_or_else(|| io::Error::other("no address"))?;
    let stream = TcpStream::connect_timeout(&at, CONNECT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(CONNECT))?;
    stream.set_read_timeout(Some(ANSWER))?;
    let (token, process) = (meeting.token.clone(), ProcessIdentity::own());
    ControlMessage::Hello { token, rank, process }.send(&stream);
    let mut lines = LineReader::new(stream.try_clone()?);
    let answer = lines.next()?.and_then(|line| ControlMessage::parse(&line));
    if answer != Some(ControlMessage::Welcome) {
        return Err(io::Error::other("whoever answers is not rank 0"));
    }
    stream.set_read_timeout(Some(BEAT))?;
    Ok((stream, lines))
}

/// Until the hub hangs up or says no more, or this rank hangs up.
fn listen(
    mut lines: LineReader,
    state: &RankState,
    hub_host: String,
    hub_process: Option<&ProcessIdentity>,
) {
    let mut missed = 0;
    let end = loop {
        match lines.next() {
            Ok(Some(line)) => {
                missed = 0;
                let message = ControlMessage::parse(&line);
                if let Some(ControlMessage::Bye { idle, .. }) = message {
                    if idle {
                        state.all_idle.set();
                    }
                    return;
                }
                if let Some(message) = message {
                    hear(message, lines.stream(), state);
                }
            }
            Ok(None) => {
                missed += 1;
                if is_lost(missed, hub_process) {
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

fn is_lost(missed: u32, hub_process: Option<&ProcessIdentity>) -> bool {
    missed >= MISSED_MAX && !hub_process.is_some_and(ProcessIdentity::is_running)
}

fn hear(message: ControlMessage, hub: &TcpStream, state: &RankState) {
    match message {
        ControlMessage::Beat => ControlMessage::Beat.send(hub),
        ControlMessage::Count => {
            ControlMessage::Begun { operations: state.begun.load(Relaxed) }.send(hub);
        }
        ControlMessage::Busy { ranks, waited, is_new } => {
            if is_new && state.must_report() {
                state.note(&CommError::Missing { ranks, waited });
            }
            state.alive.fetch_add(1, Relaxed);
        }
        message => {
            if let Some(error) = message.error() {
                state.end_with(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_hub_is_lost_unless_its_process_is_known_to_run() {
        assert!(is_lost(MISSED_MAX, None));
        assert!(!is_lost(MISSED_MAX - 1, None));
        assert!(!is_lost(MISSED_MAX + 1, ProcessIdentity::own().as_ref()));
    }
}
