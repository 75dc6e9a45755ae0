//! A storage that forwards all reads to another process over messages.

use super::message::{ANSWERED, PeerConnection, REFUSED, ReadRefusal, ReadRequest};
use crate::comm::CommError;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::io::{Error, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The storage of one worker, served by the reader at the other end of its connection.
pub(super) struct GroupMember {
    reader: u32,
    /// Without contention, because only one worker uses it.
    connection: Mutex<PeerConnection>,
}

impl GroupMember {
    pub(super) fn new(connection: PeerConnection) -> Self {
        GroupMember { reader: connection.rank, connection: Mutex::new(connection) }
    }

    fn connection(&self) -> MutexGuard<'_, PeerConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and returns the number in the answer.
    fn request(
        &self,
        connection: &mut PeerConnection,
        action: &'static str,
        request: ReadRequest,
        path: &str,
    ) -> Result<u64, StorageError> {
        connection
            .send(request.head(), path.as_bytes())
            .map_err(|error| self.connection_error(error))?;
        match connection.receive().map_err(|error| self.connection_error(error))? {
            [ANSWERED, number, ..] => Ok(number),
            [REFUSED, bytes, ..] => {
                let body = connection
                    .receive_body(bytes as usize)
                    .map_err(|error| self.connection_error(error))?;
                let ReadRefusal { path, os_error, message } =
                    serde_json::from_slice(body).map_err(|_| self.invalid_answer())?;
                let source = os_error.map_or(Error::other(message), Error::from_raw_os_error);
                Err(StorageError::new(action, path, source))
            }
            _ => Err(self.invalid_answer()),
        }
    }

    fn connection_error(&self, error: CommError) -> StorageError {
        StorageError::new("reach", format!("rank {}", self.reader), Error::other(error))
    }

    fn file_number(&self, file: &Handle) -> Result<u64, StorageError> {
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
        self.request(&mut self.connection(), "open", request, path).map(Handle::from_number)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let request = ReadRequest::Length { file: self.file_number(file)? };
        self.request(&mut self.connection(), "stat", request, "")
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        _end: u64,
    ) -> Result<usize, StorageError> {
        let file = self.file_number(file)?;
        let connection = &mut *self.connection();
        let request = ReadRequest::Read { file, offset, len: buffer.len() as u64 };
        let len = self.request(connection, "read", request, "")? as usize;
        let Some(target) = buffer.get_mut(..len) else { return Err(self.invalid_answer()) };
        // Received into the connection's memory first: an abandoned message may still be written after this call.
        target.copy_from_slice(
            connection.receive_body(len).map_err(|error| self.connection_error(error))?,
        );
        Ok(len)
    }

    fn close(&self, file: Handle) {
        // If the request fails, the reader closes the file at the end of the run.
        let Ok(file) = self.file_number(&file) else { return };
        let _ = self.connection().send(ReadRequest::Close { file }.head(), &[]);
    }
}
