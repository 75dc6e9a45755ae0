//! Writing objects: small ones by one PUT, others in parts. An object is visible only when all its parts are, and is then measured.

use super::block_on;
use super::failure::Failure;
use super::settings::Store;
use crate::storage::{StorageError, WriteFile};
use bytes::Bytes;
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Length of a part. It doubles after each [`PARTS_OF_A_LENGTH`] parts, since a store accepts at most 10,000.
const PART_BYTES: usize = 16 << 20;
const PARTS_OF_A_LENGTH: usize = 1500;
/// Full parts that are kept for [`WriteFile::patch`], besides the first one. Formats patch the header of a file, and that of what they wrote last.
const HELD_PARTS: usize = 3;
/// Parts that are sent at the same time.
const IN_FLIGHT: usize = 4;

type Sending = JoinHandle<Result<(usize, PartId), Failure>>;

pub(super) struct NewObject {
    store: Arc<Store>,
    key: Path,
    url: String,
    /// The first part, and the last ones that are not sent yet.
    parts: VecDeque<Part>,
    written: u64,
    upload: Option<String>,
    sending: VecDeque<Sending>,
    sent: Vec<(usize, PartId)>,
}

struct Part {
    index: usize,
    start: u64,
    bytes: Vec<u8>,
}

fn part_bytes(index: usize) -> usize {
    PART_BYTES << (index / PARTS_OF_A_LENGTH).min(8)
}

impl NewObject {
    pub(super) fn new(store: Arc<Store>, key: Path, url: String) -> Self {
        let parts = VecDeque::from([Part { index: 0, start: 0, bytes: Vec::new() }]);
        let (sending, sent) = (VecDeque::new(), Vec::new());
        NewObject { store, key, url, parts, written: 0, upload: None, sending, sent }
    }

    fn error(&self, failure: Failure) -> StorageError {
        StorageError::new("write", &self.url, failure)
    }

    /// The part that grows.
    fn last(&mut self) -> &mut Part {
        if self.parts.is_empty() {
            self.parts.push_back(Part { index: 0, start: 0, bytes: Vec::new() });
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let last = self.last();
            let (index, start, full) = (last.index, last.start, part_bytes(last.index));
            if last.bytes.len() == full {
                let next = Part { index: index + 1, start: start + full as u64, bytes: Vec::new() };
                self.parts.push_back(next);
                // The first part stays, so the second one is the oldest.
                if self.parts.len() > HELD_PARTS + 2
                    && let Some(part) = self.parts.remove(1)
                {
                    self.send(part)?;
                }
                continue;
            }
            let (fitting, rest) = bytes.split_at(bytes.len().min(full - last.bytes.len()));
            last.bytes.extend_from_slice(fitting);
            self.written += fitting.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Sends a part on another thread, once fewer than [`IN_FLIGHT`] are being sent.
    fn send(&mut self, part: Part) -> Result<(), Failure> {
        let id = match &self.upload {
            Some(id) => id.clone(),
            None => {
                let created = block_on(self.store.parts.create_multipart(&self.key));
                let id = created.map_err(|error| Failure::from_store(&error))?;
                self.upload.insert(id).clone()
            }
        };
        while self.sending.len() >= IN_FLIGHT {
            self.await_part()?;
        }
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        self.sending.push_back(std::thread::spawn(move || {
            let payload = PutPayload::from(Bytes::from(part.bytes));
            let sent = block_on(store.parts.put_part(&key, &id, part.index, payload));
            Ok((part.index, sent.map_err(|error| Failure::from_store(&error))?))
        }));
        Ok(())
    }

    fn await_part(&mut self) -> Result<(), Failure> {
        if let Some(sending) = self.sending.pop_front() {
            let ended = sending.join();
            let failed = || Failure::new(ErrorKind::Other, "a thread that sends a part has ended");
            self.sent.push(ended.map_err(|_| failed())??);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let parts = std::mem::take(&mut self.parts);
        if self.upload.is_none() {
            let payload: PutPayload =
                parts.into_iter().map(|part| Bytes::from(part.bytes)).collect();
            let put = block_on(self.store.objects.put(&self.key, payload));
            put.map_err(|error| Failure::from_store(&error))?;
        } else {
            for part in parts {
                self.send(part)?;
            }
            while !self.sending.is_empty() {
                self.await_part()?;
            }
            self.sent.sort_by_key(|(index, _)| *index);
            let sent = self.sent.drain(..).map(|(_, part)| part).collect();
            let id = self.upload.clone().unwrap_or_default();
            let completed = block_on(self.store.parts.complete_multipart(&self.key, &id, sent));
            completed.map_err(|error| Failure::from_store(&error))?;
            self.upload = None;
        }
        let stored = block_on(self.store.objects.head(&self.key));
        let stored_bytes = stored.map_err(|error| Failure::from_store(&error))?.size;
        if stored_bytes != self.written {
            let message =
                format!("{} bytes were sent, but {stored_bytes} are stored", self.written);
            return Err(Failure::new(ErrorKind::InvalidData, message));
        }
        Ok(())
    }
}

impl WriteFile for NewObject {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.append(bytes).map_err(|failure| self.error(failure))
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        for (position, byte) in (offset..).zip(bytes) {
            let part = self.parts.iter_mut().rfind(|part| part.start <= position);
            let index = part.as_ref().map_or(0, |part| (position - part.start) as usize);
            let Some(target) = part.and_then(|part| part.bytes.get_mut(index)) else {
                let message = "bytes that were sent cannot be changed";
                return Err(self.error(Failure::new(ErrorKind::Unsupported, message)));
            };
            *target = *byte;
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), StorageError> {
        self.finish().map_err(|failure| self.error(failure))
    }
}

impl Drop for NewObject {
    /// Parts of an upload that is neither completed nor aborted are stored, invisible, and paid for.
    fn drop(&mut self) {
        if let Some(id) = self.upload.take() {
            self.sending.drain(..).for_each(|sending| drop(sending.join()));
            drop(block_on(self.store.parts.abort_multipart(&self.key, &id)));
        }
    }
}
