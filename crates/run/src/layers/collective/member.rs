//! A storage whose files another process reads.

use super::super::pass_on_but_reading;
use super::message::{ANSWER_BYTES, Refusal, Request, answer_of};
use crate::comm::{CommError, Peers};
use feedrate_data::storage::{Handle, Storage, StorageError};
use std::io::Error;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The storage of one worker: everything it reads comes from `reader`.
pub(super) struct Member {
    /// For what is not reading.
    inner: Arc<dyn Storage>,
    peers: Arc<dyn Peers>,
    reader: u32,
    tag: u32,
    stop: Arc<AtomicBool>,
    /// Messages, used again and again; the worker has them for itself.
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    request: Vec<u8>,
    answer: Vec<u8>,
    content: Vec<u8>,
}

impl Member {
    pub(super) fn new(
        inner: Arc<dyn Storage>,
        peers: Arc<dyn Peers>,
        reader: u32,
        tag: u32,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Member { inner, peers, reader, tag, stop, memory: Mutex::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        *bytes = self.peers.send(self.reader, self.tag, std::mem::take(bytes), &self.stop)?;
        Ok(())
    }

    /// As many bytes as `bytes` are to hold.
    fn receive(&self, bytes: &mut Vec<u8>, len: usize) -> Result<(), CommError> {
        bytes.resize(len, 0);
        *bytes = self.peers.receive(self.reader, self.tag, std::mem::take(bytes), &self.stop)?;
        Ok(())
    }

    fn tell(&self, memory: &mut Memory, request: Request) -> Result<(), CommError> {
        memory.request.clear();
        memory.request.extend_from_slice(&request.bytes());
        self.send(&mut memory.request)
    }

    /// The number that answers what was asked.
    fn answer(&self, memory: &mut Memory, action: &'static str) -> Result<u64, StorageError> {
        let came = self.receive(&mut memory.answer, ANSWER_BYTES);
        came.map_err(|error| self.lost(error))?;
        match answer_of(&memory.answer) {
            Some(Ok(number)) => Ok(number),
            Some(Err(bytes)) => {
                let came = self.receive(&mut memory.content, bytes as usize);
                came.map_err(|error| self.lost(error))?;
                Err(self.refused(action, &memory.content))
            }
            None => Err(self.garbled()),
        }
    }

    fn ask(&self, action: &'static str, request: Request) -> Result<u64, StorageError> {
        let memory = &mut *self.memory();
        self.tell(memory, request).map_err(|error| self.lost(error))?;
        self.answer(memory, action)
    }

    fn refused(&self, action: &'static str, bytes: &[u8]) -> StorageError {
        match serde_json::from_slice(bytes) {
            Ok(Refusal { path, os_error, words }) => {
                let source = os_error.map_or(Error::other(words), Error::from_raw_os_error);
                StorageError::new(action, path, source)
            }
            Err(_) => self.garbled(),
        }
    }

    fn lost(&self, error: CommError) -> StorageError {
        StorageError::new("ask", format!("rank {}", self.reader), Error::other(error))
    }

    fn garbled(&self) -> StorageError {
        let reason = "its answer cannot be understood";
        StorageError::new("ask", format!("rank {}", self.reader), Error::other(reason))
    }
}

impl Storage for Member {
    pass_on_but_reading!();

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let memory = &mut *self.memory();
        let request = Request::Open { path_bytes: path.len() as u64 };
        self.tell(memory, request).map_err(|error| self.lost(error))?;
        memory.content.clear();
        memory.content.extend_from_slice(path.as_bytes());
        self.send(&mut memory.content).map_err(|error| self.lost(error))?;
        self.answer(memory, "open").map(Handle::from_number)
    }

    fn len(&self, file: Handle) -> Result<u64, StorageError> {
        self.ask("stat", Request::Length { file: file.number() })
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        let memory = &mut *self.memory();
        let request = Request::Read { file: file.number(), offset, len: buffer.len() as u64 };
        self.tell(memory, request).map_err(|error| self.lost(error))?;
        let len = self.answer(memory, "read")? as usize;
        let Some(to) = buffer.get_mut(..len) else { return Err(self.garbled()) };
        // Not into the buffer itself: a message that is given up may still come.
        self.receive(&mut memory.content, len).map_err(|error| self.lost(error))?;
        to.copy_from_slice(&memory.content);
        Ok(len)
    }

    fn close(&self, file: Handle) {
        // At the end of a run the reader closes what is left.
        let memory = &mut *self.memory();
        let _ = self.tell(memory, Request::Close { file: file.number() });
    }
}
