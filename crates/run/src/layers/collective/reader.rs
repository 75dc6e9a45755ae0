//! Reads for one worker of a process that has no reader of its own, on a thread of its own.

use super::super::slots::Slots;
use super::message::{REQUEST_BYTES, Refusal, Request, answer_bytes};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::comm::{CommError, Peers};
use feedrate_data::storage::{Handle, Storage, StorageError};
use std::io::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// No more is read at once, which is more than any worker's buffer.
const READ_BYTES_MAX: u64 = 1 << 30;
/// As long as any system takes.
const PATH_BYTES_MAX: u64 = 1 << 16;

/// To one worker of a member.
pub(super) struct Line {
    storage: Arc<dyn Storage>,
    peers: Arc<dyn Peers>,
    member: u32,
    tag: u32,
    /// The member is not to be waited for any more.
    stop: Arc<AtomicBool>,
    /// By the number that the member has.
    files: Slots<Handle>,
    /// Reads go here, aligned as storages like it, and are copied into `content` to be sent.
    buffer: Option<AlignedBuffer>,
    answer: Vec<u8>,
    content: Vec<u8>,
}

impl Line {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        peers: Arc<dyn Peers>,
        member: u32,
        tag: u32,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Line {
            storage,
            peers,
            member,
            tag,
            stop,
            files: Slots::default(),
            buffer: None,
            answer: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Answer until the member takes leave, or nobody is there any more.
    pub(super) fn serve(mut self) {
        // What broke is known to the member too, and told by it.
        let _ = self.answer_all();
        for file in self.files.drain() {
            self.storage.close(file);
        }
    }

    fn answer_all(&mut self) -> Result<(), CommError> {
        let mut request = vec![0; REQUEST_BYTES];
        loop {
            request = self.peers.receive(self.member, self.tag, request, &self.stop)?;
            match Request::from_bytes(&request) {
                Some(Request::Open { path_bytes }) => {
                    let path = self.path(path_bytes)?;
                    let opened = self.open(&path);
                    self.answer(opened)?;
                }
                Some(Request::Length { file }) => {
                    let length = self.file(file).and_then(|file| self.storage.len(file));
                    self.answer(length)?;
                }
                Some(Request::Read { file, offset, len }) => {
                    let read = self.read(file, offset, len);
                    let is_read = read.is_ok();
                    self.answer(read)?;
                    if is_read {
                        self.send_content()?;
                    }
                }
                Some(Request::Close { file }) => {
                    if let Some(file) = self.files.take(file) {
                        self.storage.close(file);
                    }
                }
                Some(Request::Leave) => return Ok(()),
                None => {
                    let reason = "it is none of feedrate's".to_owned();
                    return Err(CommError::Library { call: "a member's message", reason });
                }
            }
        }
    }

    fn path(&mut self, bytes: u64) -> Result<String, CommError> {
        let room = vec![0; bytes.min(PATH_BYTES_MAX) as usize];
        let path = self.peers.receive(self.member, self.tag, room, &self.stop)?;
        Ok(String::from_utf8_lossy(&path).into_owned())
    }

    fn open(&mut self, path: &str) -> Result<u64, StorageError> {
        Ok(self.files.insert(self.storage.open(path)?))
    }

    fn file(&self, number: u64) -> Result<Handle, StorageError> {
        self.files.get(number).copied().ok_or_else(|| {
            let unknown = format!("file {number} of rank {}", self.member);
            StorageError::new("find", unknown, Error::other("it is not open"))
        })
    }

    fn read(&mut self, file: u64, offset: u64, len: u64) -> Result<u64, StorageError> {
        let (file, len) = (self.file(file)?, len.min(READ_BYTES_MAX) as usize);
        let buffer = match self.buffer.take().filter(|buffer| buffer.len() >= len + ALIGN) {
            Some(buffer) => Ok(buffer),
            None => AlignedBuffer::new(len + ALIGN),
        };
        let buffer =
            buffer.map_err(|error| StorageError::new("read", "a reading buffer", error))?;
        let buffer = self.buffer.insert(buffer);
        let bytes = buffer.aligned_like(offset, len);
        let read = self.storage.read_at(file, offset, bytes)?;
        self.content.clear();
        self.content.extend_from_slice(&bytes[..read]);
        Ok(read as u64)
    }

    fn answer(&mut self, outcome: Result<u64, StorageError>) -> Result<(), CommError> {
        let refusal = match outcome {
            Ok(number) => return self.send_answer(Ok(number)),
            Err(StorageError { path, source, .. }) => {
                Refusal { path, os_error: source.raw_os_error(), words: source.to_string() }
            }
        };
        // A path of strange bytes has no JSON.
        self.content = serde_json::to_vec(&refusal).unwrap_or_default();
        self.send_answer(Err(self.content.len() as u64))?;
        self.send_content()
    }

    fn send_answer(&mut self, answer: Result<u64, u64>) -> Result<(), CommError> {
        self.answer.clear();
        self.answer.extend_from_slice(&answer_bytes(answer));
        let bytes = std::mem::take(&mut self.answer);
        self.answer = self.peers.send(self.member, self.tag, bytes, &self.stop)?;
        Ok(())
    }

    fn send_content(&mut self) -> Result<(), CommError> {
        let bytes = std::mem::take(&mut self.content);
        self.content = self.peers.send(self.member, self.tag, bytes, &self.stop)?;
        Ok(())
    }
}
