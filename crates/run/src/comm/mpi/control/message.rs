//! Messages of the control channel: a line of JSON each.

use super::process::ProcessIdentity;
use crate::comm::{CommError, End};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No line is longer.
const LINE_BYTES_MAX: usize = 64 << 10;
/// A reason is cut to this.
const REASON_BYTES_MAX: usize = 4 << 10;

/// The place where rank 0 listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Meeting {
    pub(super) addresses: Vec<String>,
    pub(super) port: u16,
    /// Who knows it is a rank of this run.
    pub(super) token: String,
    /// Rank 0; `None` where it is not known.
    pub(super) process: Option<ProcessIdentity>,
}

/// The fate of a wait that lasts longer than the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum OnTimeout {
    /// It goes on while those who did not come live: they may be at work alone.
    Waits,
    /// It ends.
    Ends,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ControlMessage {
    /// To the hub, first of all.
    Hello { token: String, rank: u32, process: Option<ProcessIdentity> },
    /// Its answer.
    Welcome,
    /// To the hub: this rank goes no further.
    GaveUp { end: End },
    /// To the hub: this rank has waited in its operation of that number for so long.
    Late { operation: u64, waited: Duration, on_timeout: OnTimeout },
    /// To all, again and again; and the answer to it.
    Beat,
    /// To all: how many operations have you begun?
    Count,
    /// The answer.
    Begun { operations: u64 },
    /// To all: these did not come, but are at work. New where it was not said of them before.
    Busy { ranks: Vec<u32>, waited: Duration, is_new: bool },
    /// To all: a rank is lost.
    Lost { rank: u32, host: String, end: End },
    /// To all: ranks did not come.
    Missing { ranks: Vec<u32>, waited: Duration },
    /// The connection ends now, and that is no death. From a rank: whether anything of MPI is under way in it, and whether all
    /// leave without a failure; from the hub: whether none has anything under way, so that all can end MPI together.
    Bye { idle: bool, orderly: bool },
}

impl ControlMessage {
    pub(super) fn gave_up(mut end: End) -> Self {
        if let End::Failed(reason) = &mut end {
            reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        }
        ControlMessage::GaveUp { end }
    }

    /// The error with which it ends the operations of all.
    pub(super) fn error(self) -> Option<CommError> {
        match self {
            ControlMessage::Lost { rank, host, end } => Some(CommError::Lost { rank, host, end }),
            ControlMessage::Missing { ranks, waited } => Some(CommError::Missing { ranks, waited }),
            _ => None,
        }
    }

    /// Read a line; nothing if it is none of ours.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// Write it. Who has gone does not hear it, and that is seen by reading.
    pub(super) fn send(&self, mut to: &TcpStream) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = to.write_all(&line);
        }
    }
}

/// The other end of a connection, line by line.
pub(super) struct LineReader {
    reader: BufReader<TcpStream>,
    /// As much as has arrived of the line that it says.
    line: Vec<u8>,
}

impl LineReader {
    pub(super) fn new(stream: TcpStream) -> Self {
        LineReader { reader: BufReader::new(stream), line: Vec::new() }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// The next line; nothing where it has not all arrived in the time that the stream waits; an error where no more will.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len()) as u64;
        match (&mut self.reader).take(room).read_until(b'\n', &mut self.line) {
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
    fn ends_are_told_as_they_were_seen() {
        let check = |message: ControlMessage, error: CommError| {
            let line = serde_json::to_vec(&message).unwrap();
            assert!(!line.contains(&b'\n'));
            assert_eq!(ControlMessage::parse(&line).unwrap().error(), Some(error));
        };
        let (host, end) = ("n1".to_owned(), End::Failed("a\nb".to_owned()));
        let message = ControlMessage::Lost { rank: 3, host: host.clone(), end: end.clone() };
        check(message, CommError::Lost { rank: 3, host, end });
        let (ranks, waited) = (vec![1, 2], Duration::from_millis(1_500));
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
