//! A storage whose files another process reads.

use super::message::{ANSWERED, PeerLine, REFUSED, ReadRefused, ReadRequest};
use crate::comm::CommError;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::io::{Error, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The storage of one worker: everything it reads comes from the reader at the other end of its line.
pub(super) struct GroupMember {
    reader: u32,
    /// The worker has it for itself.
    line: Mutex<PeerLine>,
}

impl GroupMember {
    pub(super) fn new(line: PeerLine) -> Self {
        GroupMember { reader: line.rank, line: Mutex::new(line) }
    }

    fn line(&self) -> MutexGuard<'_, PeerLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number that answers a request.
    fn ask(
        &self,
        line: &mut PeerLine,
        action: &'static str,
        request: ReadRequest,
        path: &str,
    ) -> Result<u64, StorageError> {
        line.send(request.head(), path.as_bytes()).map_err(|error| self.lost(error))?;
        match line.receive().map_err(|error| self.lost(error))? {
            [ANSWERED, number, ..] => Ok(number),
            [REFUSED, bytes, ..] => {
                let words = line.receive_body(bytes as usize).map_err(|error| self.lost(error))?;
                let ReadRefused { path, os_error, words } =
                    serde_json::from_slice(words).map_err(|_| self.garbled())?;
                let source = os_error.map_or(Error::other(words), Error::from_raw_os_error);
                Err(StorageError::new(action, path, source))
            }
            _ => Err(self.garbled()),
        }
    }

    fn lost(&self, error: CommError) -> StorageError {
        StorageError::new("ask", format!("rank {}", self.reader), Error::other(error))
    }

    fn number(&self, file: &Handle) -> Result<u64, StorageError> {
        file.number().ok_or_else(|| {
            StorageError::new(
                "find",
                format!("a file of rank {}", self.reader),
                ErrorKind::NotFound,
            )
        })
    }

    fn garbled(&self) -> StorageError {
        let reason = "its answer cannot be understood";
        StorageError::new("ask", format!("rank {}", self.reader), Error::other(reason))
    }
}

impl ReadStorage for GroupMember {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let request = ReadRequest::Open { path_bytes: path.len() as u64 };
        self.ask(&mut self.line(), "open", request, path).map(Handle::from_number)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let request = ReadRequest::Length { file: self.number(file)? };
        self.ask(&mut self.line(), "stat", request, "")
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let file = self.number(file)?;
        let line = &mut *self.line();
        let request = ReadRequest::Read { file, offset, len: buffer.len() as u64 };
        let len = self.ask(line, "read", request, "")? as usize;
        let Some(to) = buffer.get_mut(..len) else { return Err(self.garbled()) };
        // Not into the buffer itself: a message that is given up may still come.
        to.copy_from_slice(line.receive_body(len).map_err(|error| self.lost(error))?);
        Ok(len)
    }

    fn close(&self, file: Handle) {
        // At the end of a run the reader closes what is left.
        let Ok(file) = self.number(&file) else { return };
        let _ = self.line().send(ReadRequest::Close { file }.head(), &[]);
    }
}
