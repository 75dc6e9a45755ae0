//! Messages between a process that only receives data (a member) and the process that reads for it (the reader). A message is a head of
//! four numbers, followed by a body for some kinds; the head gives the length of the body.

use crate::comm::{CommError, Peers};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The head of a message.
pub(super) type Head = [u64; 4];

const HEAD_BYTES: usize = size_of::<Head>();

/// One end of the connection between a worker of a member and the reader's thread for this worker. Buffers are reused.
pub(super) struct PeerConnection {
    pub(super) peers: Arc<dyn Peers>,
    /// The rank at the other end.
    pub(super) rank: u32,
    pub(super) tag: u32,
    /// Set to end waits for the other end.
    pub(super) stop: Arc<AtomicBool>,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl PeerConnection {
    pub(super) fn new(peers: &Arc<dyn Peers>, rank: u32, tag: u32, stop: &Arc<AtomicBool>) -> Self {
        PeerConnection {
            peers: Arc::clone(peers),
            rank,
            tag,
            stop: Arc::clone(stop),
            head: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, head: Head, body: &[u8]) -> Result<(), CommError> {
        self.head.clear();
        head.iter().for_each(|number| self.head.extend_from_slice(&number.to_le_bytes()));
        let head_buffer = std::mem::take(&mut self.head);
        self.head = self.peers.send(self.rank, self.tag, head_buffer, &self.stop)?;
        if !body.is_empty() {
            self.body.clear();
            self.body.extend_from_slice(body);
            let body_buffer = std::mem::take(&mut self.body);
            self.body = self.peers.send(self.rank, self.tag, body_buffer, &self.stop)?;
        }
        Ok(())
    }

    /// Receives the head of a message.
    pub(super) fn receive(&mut self) -> Result<Head, CommError> {
        self.head.resize(HEAD_BYTES, 0);
        let buffer = std::mem::take(&mut self.head);
        self.head = self.peers.receive(self.rank, self.tag, buffer, &self.stop)?;
        let (numbers, _) = self.head.as_chunks::<8>();
        Ok(std::array::from_fn(|i| numbers.get(i).map_or(0, |bytes| u64::from_le_bytes(*bytes))))
    }

    /// Receives the body of a message whose head was received.
    pub(super) fn receive_body(&mut self, len: usize) -> Result<&[u8], CommError> {
        self.body.resize(len, 0);
        if len > 0 {
            let buffer = std::mem::take(&mut self.body);
            self.body = self.peers.receive(self.rank, self.tag, buffer, &self.stop)?;
        }
        Ok(&self.body)
    }
}

/// A request of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadRequest {
    /// Opens a file; its path follows as the body. The answer is the number of the file.
    Open { path_bytes: u64 },
    /// The answer is the length of the file.
    Length { file: u64 },
    /// The answer is the number of bytes read, which follow as the body.
    Read { file: u64, offset: u64, len: u64 },
    /// Closes a file. There is no answer.
    Close { file: u64 },
    /// Ends the connection. There is no answer.
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

    /// Parses the head of a request; `None` if it is invalid.
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

/// First number of an answer to a successful request; the second is the result.
pub(super) const ANSWERED: u64 = 0;
/// First number of an answer to a failed request; the second is the length of a [`ReadRefusal`], which is the body.
pub(super) const REFUSED: u64 = 1;

/// An error of the reader's storage.
#[derive(Serialize, Deserialize)]
pub(super) struct ReadRefusal {
    pub(super) path: std::path::PathBuf,
    /// The system's error number.
    pub(super) os_error: Option<i32>,
    pub(super) message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_encoding() {
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
