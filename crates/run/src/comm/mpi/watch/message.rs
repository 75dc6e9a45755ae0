//! What ranks say on the channel: a line of JSON each.

use crate::comm::mpi::link::Late;
use crate::comm::{CommError, End};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// No line is longer.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// A reason is cut to this.
const REASON_BYTES_MAX: usize = 4 << 10;

/// Where rank 0 listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Meeting {
    pub(super) addresses: Vec<String>,
    pub(super) port: u16,
    /// Who knows it is a rank of this run.
    pub(super) token: String,
}

/// A line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// To the hub, first of all.
    Hello { token: String, rank: u32 },
    /// Its answer.
    Welcome,
    /// To the hub: this rank goes no further.
    GaveUp { end: End },
    /// To the hub: this rank has waited in its operation of that number for so long.
    Late { operation: u64, waited_ms: u64, late: Late },
    /// To all: how many operations have you begun?
    Count,
    /// The answer.
    Begun { operations: u64 },
    /// To all: those who did not come are at work.
    Alive,
    /// To all: a rank is lost.
    Lost { rank: u32, host: String, end: End },
    /// To all: ranks did not come.
    Missing { ranks: Vec<u32>, waited_ms: u64 },
    /// The connection ends now, and that is no death. From a rank: nothing of MPI is under way in it; from the hub: in none, so
    /// that all can end MPI together.
    Bye { idle: bool },
}

impl Message {
    pub(super) fn gave_up(mut end: End) -> Self {
        if let End::Failed(reason) = &mut end {
            reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        }
        Message::GaveUp { end }
    }

    /// Nothing that ends an operation is told otherwise.
    pub(super) fn of(error: &CommError) -> Option<Self> {
        match error {
            CommError::Lost { rank, host, end } => {
                Some(Message::Lost { rank: *rank, host: host.clone(), end: end.clone() })
            }
            CommError::Missing { ranks, waited } => Some(Message::Missing {
                ranks: ranks.clone(),
                waited_ms: waited.as_millis() as u64,
            }),
            _ => None,
        }
    }

    /// What it says has ended the operations of all.
    pub(super) fn error(&self) -> Option<CommError> {
        match self {
            Message::Lost { rank, host, end } => {
                Some(CommError::Lost { rank: *rank, host: host.clone(), end: end.clone() })
            }
            Message::Missing { ranks, waited_ms } => Some(CommError::Missing {
                ranks: ranks.clone(),
                waited: Duration::from_millis(*waited_ms),
            }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_as_they_were_seen() {
        let check = |error: CommError| {
            let line = serde_json::to_vec(&Message::of(&error).unwrap()).unwrap();
            assert!(!line.contains(&b'\n'));
            assert_eq!(Message::parse(&line).unwrap().error(), Some(error));
        };
        check(CommError::Lost {
            rank: 3,
            host: "n1".to_owned(),
            end: End::Failed("a\nb".to_owned()),
        });
        check(CommError::Lost { rank: 1, host: String::new(), end: End::Interrupted });
        check(CommError::Missing { ranks: vec![1, 2], waited: Duration::from_millis(1_500) });
        assert_eq!(Message::of(&CommError::Stopped), None);
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let message = Message::gave_up(End::Failed("é".repeat(4_000)));
        let Message::GaveUp { end: End::Failed(reason) } = message else { panic!() };
        assert_eq!(reason.len(), REASON_BYTES_MAX);
        assert_eq!(Message::parse(b"\"Nonsense\""), None);
    }
}
