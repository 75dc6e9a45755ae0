//! What ranks say on the channel: a line of JSON each.

use crate::comm::CommError;
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
    GaveUp { reason: String },
    /// To the hub: this rank has waited in its operation of that number for so long.
    Late { operation: u64, waited_ms: u64 },
    /// To all: how many operations have you begun?
    Count,
    /// The answer.
    Begun { operations: u64 },
    /// To all: a rank is lost.
    Lost { rank: u32, host: String, reason: String },
    /// To all: ranks did not come.
    Missing { ranks: Vec<u32>, waited_ms: u64 },
    /// The connection ends now, and that is no death.
    Bye,
}

impl Message {
    pub(super) fn gave_up(reason: &str) -> Self {
        let mut end = reason.len().min(REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Message::GaveUp { reason: reason[..end].to_owned() }
    }

    /// Nothing that ends an operation is told otherwise.
    pub(super) fn of(error: &CommError) -> Option<Self> {
        match error {
            CommError::Lost { rank, host, reason } => {
                Some(Message::Lost { rank: *rank, host: host.clone(), reason: reason.clone() })
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
            Message::Lost { rank, host, reason } => {
                Some(CommError::Lost { rank: *rank, host: host.clone(), reason: reason.clone() })
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
            reason: "gave up: a\nb".to_owned(),
        });
        check(CommError::Missing { ranks: vec![1, 2], waited: Duration::from_millis(1_500) });
        assert_eq!(Message::of(&CommError::Stopped), None);
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let Message::GaveUp { reason } = Message::gave_up(&"é".repeat(4_000)) else { panic!() };
        assert_eq!(reason.len(), REASON_BYTES_MAX);
        assert_eq!(Message::parse(b"\"Nonsense\""), None);
    }
}
