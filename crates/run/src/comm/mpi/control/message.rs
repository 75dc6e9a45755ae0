//! Messages of the control channel, each a line of JSON.

use super::process::ProcessIdentity;
use crate::comm::{CommError, End};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Maximum length of a line.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a reason. Longer reasons are truncated.
const REASON_BYTES_MAX: usize = 4 << 10;

/// The address of the hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct HubAddress {
    pub(super) addresses: Vec<String>,
    pub(super) port: u16,
    /// Secret that identifies the ranks of this run.
    pub(super) token: String,
    /// Process of rank 0, if known.
    pub(super) process: Option<ProcessIdentity>,
}

/// What happens to a wait when the timeout has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum OnTimeout {
    /// It continues while the missing ranks are alive, because they may have work to do alone.
    Waits,
    /// It fails.
    Ends,
}

/// A message of the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ControlMessage {
    /// From a rank: the first message, which identifies it.
    Hello { token: String, rank: u32, process: Option<ProcessIdentity> },
    /// From the hub: the answer to `Hello`.
    Welcome,
    /// From a rank: it ends.
    GaveUp { end: End },
    /// From a rank: it has waited in its operation number `operation` for longer than the timeout.
    Late { operation: u64, waited: Duration, on_timeout: OnTimeout },
    /// From the hub to all ranks, periodically; ranks answer with the same message.
    Beat,
    /// From the hub to all ranks: requests the number of started operations.
    Count,
    /// From a rank: the answer to `Count`.
    Started { operations: u64 },
    /// From the hub to all ranks: these ranks have not arrived, but are working. `is_new` unless this was reported before.
    Busy { ranks: Vec<u32>, waited: Duration, is_new: bool },
    /// From the hub to all ranks: a rank is lost.
    Lost { rank: u32, host: String, end: End },
    /// From the hub to all ranks: these ranks have not arrived.
    Missing { ranks: Vec<u32>, waited: Duration },
    /// The sender disconnects in an orderly way. From a rank, `idle` means that it has no unfinished MPI operation, and `orderly`
    /// that the ranks end without a failure. From the hub, `idle` means that no rank has one, so that all can finalize MPI.
    Bye { idle: bool, orderly: bool },
}

impl ControlMessage {
    /// Creates a `GaveUp` message with a truncated reason.
    pub(super) fn gave_up(mut end: End) -> Self {
        if let End::Failed(reason) = &mut end {
            reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        }
        ControlMessage::GaveUp { end }
    }

    /// Returns the error with which the message ends the common work, if it does.
    pub(super) fn into_error(self) -> Option<CommError> {
        match self {
            ControlMessage::Lost { rank, host, end } => Some(CommError::Lost { rank, host, end }),
            ControlMessage::Missing { ranks, waited } => Some(CommError::Missing { ranks, waited }),
            _ => None,
        }
    }

    /// Parses a line; `None` if it is not a message.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// Sends the message. Errors are ignored, since a broken connection is detected when reading.
    pub(super) fn send(&self, mut stream: &TcpStream) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = stream.write_all(&line);
        }
    }
}

/// Reads lines from a connection.
pub(super) struct LineReader {
    reader: BufReader<TcpStream>,
    /// The received part of the current line.
    line: Vec<u8>,
}

impl LineReader {
    pub(super) fn new(stream: TcpStream) -> Self {
        LineReader { reader: BufReader::new(stream), line: Vec::new() }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Returns the next line, `None` if it has not arrived completely within the stream's timeout, or an error if the connection has
    /// ended.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let bytes_max = LINE_BYTES_MAX.saturating_sub(self.line.len()) as u64;
        match (&mut self.reader).take(bytes_max).read_until(b'\n', &mut self.line) {
            Ok(_) if self.line.ends_with(b"\n") => Ok(Some(std::mem::take(&mut self.line))),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_survive_encoding() {
        let check = |message: ControlMessage, error: CommError| {
            let line = serde_json::to_vec(&message).unwrap();
            assert!(!line.contains(&b'\n'));
            assert_eq!(ControlMessage::parse(&line).unwrap().into_error(), Some(error));
        };
        let host = "n1".to_owned();
        let end = End::Failed("a\nb".to_owned());
        let message = ControlMessage::Lost { rank: 3, host: host.clone(), end: end.clone() };
        check(message, CommError::Lost { rank: 3, host, end });
        let ranks = vec![1, 2];
        let waited = Duration::from_millis(1_500);
        let message = ControlMessage::Missing { ranks: ranks.clone(), waited };
        check(message, CommError::Missing { ranks, waited });
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let message = ControlMessage::gave_up(End::Failed("é".repeat(4_000)));
        let ControlMessage::GaveUp { end: End::Failed(reason) } = message else { panic!() };
        assert_eq!(reason.len(), REASON_BYTES_MAX);
        assert_eq!(ControlMessage::parse(b"\"Nonsense\""), None);
    }
}
