//! A storage that forwards all reads to another process.

use super::message::{ANSWERED, PeerLine, REFUSED, ReadRefused, ReadRequest};
use crate::comm::CommError;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::io::{Error, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The storage of one worker, served by the reader at the other end of its connection.
pub(super) struct GroupMember {
    reader: u32,
    /// Uncontended, since only one worker uses it.
    line: Mutex<PeerLine>,
}

impl GroupMember {
    pub(super) fn new(line: PeerLine) -> Self {
        GroupMember { reader: line.rank, line: Mutex::new(line) }
    }

    fn line(&self) -> MutexGuard<'_, PeerLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and returns the number that answers it.
    fn request(
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
                let body = line.receive_body(bytes as usize).map_err(|error| self.lost(error))?;
                let ReadRefused { path, os_error, message } =
                    serde_json::from_slice(body).map_err(|_| self.invalid_answer())?;
                let source = os_error.map_or(Error::other(message), Error::from_raw_os_error);
                Err(StorageError::new(action, path, source))
            }
            _ => Err(self.invalid_answer()),
        }
    }

    fn lost(&self, error: CommError) -> StorageError {
        StorageError::new("reach", format!("rank {}", self.reader), Error::other(error))
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

    fn invalid_answer(&self) -> StorageError {
        let reason = "it sent an invalid answer";
        StorageError::new("reach", format!("rank {}", self.reader), Error::other(reason))
    }
}

impl ReadStorage for GroupMember {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let request = ReadRequest::Open { path_bytes: path.len() as u64 };
        self.request(&mut self.line(), "open", request, path).map(Handle::from_number)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let request = ReadRequest::Length { file: self.number(file)? };
        self.request(&mut self.line(), "stat", request, "")
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
        let len = self.request(line, "read", request, "")? as usize;
        let Some(target) = buffer.get_mut(..len) else { return Err(self.invalid_answer()) };
        // Received into the line's memory first: an abandoned message may still be written after this call.
        target.copy_from_slice(line.receive_body(len).map_err(|error| self.lost(error))?);
        Ok(len)
    }

    fn close(&self, file: Handle) {
        // If the request fails, the reader closes the file at the end of the run.
        let Ok(file) = self.number(&file) else { return };
        let _ = self.line().send(ReadRequest::Close { file }.head(), &[]);
    }
}
