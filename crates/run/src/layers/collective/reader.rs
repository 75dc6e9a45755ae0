//! Reads for one worker of a process that has no reader of its own, on a thread of its own.

use super::message::{ANSWERED, PeerLine, REFUSED, ReadRefused, ReadRequest};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::comm::CommError;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::collections::HashMap;
use std::io::Error;
use std::sync::Arc;

/// No more is read at once, which is more than any worker's buffer.
const READ_BYTES_MAX: u64 = 1 << 30;
/// As long as any system takes.
const PATH_BYTES_MAX: u64 = 1 << 16;

/// For one worker of a member.
pub(super) struct GroupReader {
    storage: Arc<dyn ReadStorage>,
    line: PeerLine,
    /// Open files by the number that the member has.
    files: HashMap<u64, Handle>,
    opened: u64,
    /// Reads go here, aligned as storages like it, and are copied to be sent.
    buffer: Option<AlignedBuffer>,
}

impl GroupReader {
    pub(super) fn new(storage: Arc<dyn ReadStorage>, line: PeerLine) -> Self {
        GroupReader { storage, line, files: HashMap::new(), opened: 0, buffer: None }
    }

    /// Answer until the member takes leave, or nobody is there any more.
    pub(super) fn serve(mut self) {
        // What broke is known to the member too, and told by it.
        let _ = self.answer_all();
        for (_, file) in self.files.drain() {
            self.storage.close(file);
        }
    }

    fn answer_all(&mut self) -> Result<(), CommError> {
        loop {
            let answer = match ReadRequest::from_head(self.line.receive()?) {
                Some(ReadRequest::Open { path_bytes }) => {
                    let path = self.line.receive_body(path_bytes.min(PATH_BYTES_MAX) as usize)?;
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
                    let (len, mut buffer) = (len.min(READ_BYTES_MAX) as usize, self.buffer.take());
                    let read = self.read(file, offset, len, &mut buffer);
                    if let (Ok(read), Some(buffer)) = (&read, &mut buffer) {
                        let head = [ANSWERED, *read as u64, 0, 0];
                        self.line.send(head, buffer.aligned_like(offset, *read))?;
                    }
                    self.buffer = buffer;
                    match read {
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
                    let reason = "it is none of feedrate's".to_owned();
                    return Err(CommError::Library { call: "a member's message", reason });
                }
            };
            match answer {
                Ok(number) => self.line.send([ANSWERED, number, 0, 0], &[])?,
                Err(error) => self.refuse(error)?,
            }
        }
    }

    fn file(&self, number: u64) -> Result<&Handle, StorageError> {
        self.files.get(&number).ok_or_else(|| {
            let unknown = format!("file {number} of rank {}", self.line.rank);
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
            ReadRefused { path, os_error: source.raw_os_error(), words: source.to_string() };
        // A path of strange bytes has no JSON.
        let words = serde_json::to_vec(&refusal).unwrap_or_default();
        self.line.send([REFUSED, words.len() as u64, 0, 0], &words)
    }
}
