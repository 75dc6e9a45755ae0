//! Serves the reads of one worker of a member process, on a separate thread.

use super::message::{ANSWERED, PeerConnection, REFUSED, ReadRefusal, ReadRequest};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::comm::CommError;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::collections::HashMap;
use std::io::Error;
use std::sync::Arc;

/// Upper limit of a read; larger than the buffer of any worker.
const READ_BYTES_MAX: u64 = 1 << 30;
/// Upper limit of a path; longer than any system accepts.
const PATH_BYTES_MAX: u64 = 1 << 16;

/// Serves the requests of one worker of a member.
pub(super) struct GroupReader {
    storage: Arc<dyn ReadStorage>,
    connection: PeerConnection,
    /// Open files by the numbers sent to the member.
    files: HashMap<u64, Handle>,
    opened: u64,
    /// Aligned buffer of reads, from which answers are copied.
    buffer: Option<AlignedBuffer>,
}

impl GroupReader {
    pub(super) fn new(storage: Arc<dyn ReadStorage>, connection: PeerConnection) -> Self {
        GroupReader { storage, connection, files: HashMap::new(), opened: 0, buffer: None }
    }

    /// Answers requests until the member leaves or the connection fails.
    pub(super) fn serve(mut self) {
        // The member sees a failure of the connection too, and reports it.
        let _ = self.answer_all();
        for (_, file) in self.files.drain() {
            self.storage.close(file);
        }
    }

    fn answer_all(&mut self) -> Result<(), CommError> {
        loop {
            let answer = match ReadRequest::from_head(self.connection.receive()?) {
                Some(ReadRequest::Open { path_bytes }) => {
                    let path =
                        self.connection.receive_body(path_bytes.min(PATH_BYTES_MAX) as usize)?;
                    let opened = self.storage.open(&String::from_utf8_lossy(path));
                    opened.map(|file| {
                        self.opened += 1;
                        self.files.insert(self.opened, file);
                        self.opened
                    })
                }
                Some(ReadRequest::Length { file }) => {
                    self.file(file).and_then(|file| self.storage.len(file))
                }
                Some(ReadRequest::Read { file, offset, len }) => {
                    let len = len.min(READ_BYTES_MAX) as usize;
                    let mut buffer = self.buffer.take();
                    let result = self.read(file, offset, len, &mut buffer);
                    if let (Ok(read_bytes), Some(buffer)) = (&result, &mut buffer) {
                        let head = [ANSWERED, *read_bytes as u64, 0, 0];
                        self.connection.send(head, buffer.aligned_like(offset, *read_bytes))?;
                    }
                    self.buffer = buffer;
                    match result {
                        Ok(_) => continue,
                        Err(error) => Err(error),
                    }
                }
                Some(ReadRequest::Close { file }) => {
                    if let Some(file) = self.files.remove(&file) {
                        self.storage.close(file);
                    }
                    continue;
                }
                Some(ReadRequest::Leave) => return Ok(()),
                None => {
                    let reason = "it is not a message of feedrate".to_owned();
                    return Err(CommError::Library { call: "a member's message", reason });
                }
            };
            match answer {
                Ok(number) => self.connection.send([ANSWERED, number, 0, 0], &[])?,
                Err(error) => self.refuse(error)?,
            }
        }
    }

    fn file(&self, number: u64) -> Result<&Handle, StorageError> {
        self.files.get(&number).ok_or_else(|| {
            let unknown = format!("file {number} of rank {}", self.connection.rank);
            StorageError::new("find", unknown, Error::other("it is not open"))
        })
    }

    fn read(
        &self,
        file: u64,
        offset: u64,
        len: usize,
        buffer: &mut Option<AlignedBuffer>,
    ) -> Result<usize, StorageError> {
        let file = self.file(file)?;
        if buffer.as_ref().is_none_or(|buffer| buffer.len() < len + ALIGN) {
            let made = AlignedBuffer::new(len + ALIGN);
            *buffer = Some(made.map_err(|e| StorageError::new("read", "a reading buffer", e))?);
        }
        let bytes = buffer.as_mut().map_or(&mut [][..], |buffer| buffer.aligned_like(offset, len));
        self.storage.read_at(file, offset, bytes)
    }

    fn refuse(&mut self, error: StorageError) -> Result<(), CommError> {
        let StorageError { path, source, .. } = error;
        let refusal =
            ReadRefusal { path, os_error: source.raw_os_error(), message: source.to_string() };
        // Fails for a path that is not UTF-8; the body is empty then.
        let body = serde_json::to_vec(&refusal).unwrap_or_default();
        self.connection.send([REFUSED, body.len() as u64, 0, 0], &body)
    }
}
