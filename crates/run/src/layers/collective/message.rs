//! Messages between a member and its reader: four numbers, then bytes of a length that the numbers say, if any.

use crate::comm::{CommError, Peers};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The numbers that a message begins with.
pub(super) type Head = [u64; 4];

const HEAD_BYTES: usize = size_of::<Head>();

/// One end of the line between a worker of a member and the thread that reads for it. Its memory is used again and again.
pub(super) struct PeerLine {
    pub(super) peers: Arc<dyn Peers>,
    /// The rank at the other end.
    pub(super) rank: u32,
    pub(super) tag: u32,
    /// Set when the other end is not to be waited for any more.
    pub(super) stop: Arc<AtomicBool>,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl PeerLine {
    pub(super) fn new(peers: &Arc<dyn Peers>, rank: u32, tag: u32, stop: &Arc<AtomicBool>) -> Self {
        let (peers, stop) = (Arc::clone(peers), Arc::clone(stop));
        PeerLine { peers, rank, tag, stop, head: Vec::new(), body: Vec::new() }
    }

    pub(super) fn send(&mut self, head: Head, body: &[u8]) -> Result<(), CommError> {
        self.head.clear();
        head.iter().for_each(|number| self.head.extend_from_slice(&number.to_le_bytes()));
        let own = std::mem::take(&mut self.head);
        self.head = self.peers.send(self.rank, self.tag, own, &self.stop)?;
        if !body.is_empty() {
            self.body.clear();
            self.body.extend_from_slice(body);
            let own = std::mem::take(&mut self.body);
            self.body = self.peers.send(self.rank, self.tag, own, &self.stop)?;
        }
        Ok(())
    }

    pub(super) fn receive(&mut self) -> Result<Head, CommError> {
        self.head.resize(HEAD_BYTES, 0);
        let own = std::mem::take(&mut self.head);
        self.head = self.peers.receive(self.rank, self.tag, own, &self.stop)?;
        let (numbers, _) = self.head.as_chunks::<8>();
        Ok(std::array::from_fn(|i| numbers.get(i).map_or(0, |bytes| u64::from_le_bytes(*bytes))))
    }

    /// The bytes of a message whose numbers have come.
    pub(super) fn receive_body(&mut self, len: usize) -> Result<&[u8], CommError> {
        self.body.resize(len, 0);
        if len > 0 {
            let own = std::mem::take(&mut self.body);
            self.body = self.peers.receive(self.rank, self.tag, own, &self.stop)?;
        }
        Ok(&self.body)
    }
}

/// A member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadRequest {
    /// Open a file, whose path of so many bytes follows. Answered by its number.
    Open { path_bytes: u64 },
    /// Answered by its length.
    Length { file: u64 },
    /// Answered by how many bytes follow.
    Read { file: u64, offset: u64, len: u64 },
    /// Not answered.
    Close { file: u64 },
    /// Not answered, and the last.
    Leave,
}

impl ReadRequest {
    pub(super) fn head(self) -> Head {
        match self {
            ReadRequest::Open { path_bytes } => [1, path_bytes, 0, 0],
            ReadRequest::Length { file } => [2, file, 0, 0],
            ReadRequest::Read { file, offset, len } => [3, file, offset, len],
            ReadRequest::Close { file } => [4, file, 0, 0],
            ReadRequest::Leave => [5, 0, 0, 0],
        }
    }

    /// `None` where it is none.
    pub(super) fn from_head([kind, file, offset, len]: Head) -> Option<Self> {
        Some(match kind {
            1 => ReadRequest::Open { path_bytes: file },
            2 => ReadRequest::Length { file },
            3 => ReadRequest::Read { file, offset, len },
            4 => ReadRequest::Close { file },
            5 => ReadRequest::Leave,
            _ => return None,
        })
    }
}

/// An answer begins with one of these: its number follows, or a [`ReadRefused`] and its length in bytes.
pub(super) const ANSWERED: u64 = 0;
pub(super) const REFUSED: u64 = 1;

/// The reader's storage refused.
#[derive(Serialize, Deserialize)]
pub(super) struct ReadRefused {
    pub(super) path: std::path::PathBuf,
    /// The system's number.
    pub(super) os_error: Option<i32>,
    pub(super) words: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_understood() {
        for request in [
            ReadRequest::Open { path_bytes: 300 },
            ReadRequest::Length { file: 1 },
            ReadRequest::Read { file: u64::MAX, offset: 1 << 40, len: 7 },
            ReadRequest::Close { file: 2 },
            ReadRequest::Leave,
        ] {
            assert_eq!(ReadRequest::from_head(request.head()), Some(request));
        }
        assert_eq!(ReadRequest::from_head([9, 0, 0, 0]), None);
    }
}
