//! Writing objects: small ones by one PUT, others in parts. An object becomes visible when it is complete; its length is then compared.
//!
//! Memory is bounded: an object keeps the part that grows and those that will be patched, and the process sends at most
//! [`super::sending::SENDING_BYTES`] to a bucket at a time.

use super::block_on;
use super::failure::Failure;
use super::sending::SendingPermit;
use super::settings::Store;
use crate::storage::{StorageError, WriteFile};
use bytes::Bytes;
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Length of a part. It doubles after each [`PARTS_PER_LENGTH`] parts, since a store accepts at most 10,000.
const PART_BYTES: usize = 8 << 20;
const PARTS_PER_LENGTH: usize = 1500;
/// Parts of an object that are sent at the same time.
const IN_FLIGHT: usize = 16;

type Sending = JoinHandle<Result<(usize, PartId), Failure>>;

pub(super) struct NewObject {
    store: Arc<Store>,
    key: Path,
    url: String,
    /// The parts that will be patched, and the part that grows.
    parts: VecDeque<Part>,
    /// Ranges that will be patched.
    held: Vec<Range<u64>>,
    written: u64,
    upload: Option<Upload>,
    sending: VecDeque<Sending>,
    sent: Vec<(usize, PartId)>,
}

struct Part {
    index: usize,
    start: u64,
    bytes: Vec<u8>,
}

/// An upload in parts.
struct Upload {
    id: String,
    /// The object that the upload replaces, if there is one.
    replaced: Option<ObjectMeta>,
}

fn part_bytes(index: usize) -> usize {
    PART_BYTES << (index / PARTS_PER_LENGTH).min(8)
}

impl NewObject {
    pub(super) fn new(store: Arc<Store>, key: Path, url: String) -> Self {
        NewObject {
            store,
            key,
            url,
            parts: VecDeque::from([Part { index: 0, start: 0, bytes: Vec::new() }]),
            held: Vec::new(),
            written: 0,
            upload: None,
            sending: VecDeque::new(),
            sent: Vec::new(),
        }
    }

    fn error(&self, failure: Failure) -> StorageError {
        StorageError::new("write", &self.url, failure)
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let Some(last) = self.parts.back_mut() else { return Ok(()) };
            let full = part_bytes(last.index);
            if last.bytes.len() == full {
                let (index, start) = (last.index + 1, last.start + full as u64);
                let bytes = Vec::with_capacity(part_bytes(index));
                self.parts.push_back(Part { index, start, bytes });
                self.send_final_parts()?;
                continue;
            }
            let (fitting, rest) = bytes.split_at(bytes.len().min(full - last.bytes.len()));
            last.bytes.extend_from_slice(fitting);
            self.written += fitting.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Sends the full parts that will not be patched.
    fn send_final_parts(&mut self) -> Result<(), Failure> {
        let mut next = 0;
        while next + 1 < self.parts.len() {
            let Part { start, bytes, .. } = &self.parts[next];
            let end = start + bytes.len() as u64;
            if self.held.iter().any(|held| held.start < end && *start < held.end) {
                next += 1;
            } else if let Some(part) = self.parts.remove(next) {
                self.send(part)?;
            }
        }
        Ok(())
    }

    /// Sends a part on another thread, once few enough are being sent.
    fn send(&mut self, part: Part) -> Result<(), Failure> {
        let id = match &self.upload {
            Some(upload) => upload.id.clone(),
            None => {
                let replaced = self.store.head(&self.key)?;
                let created = block_on(self.store.parts.create_multipart(&self.key));
                let id = created.map_err(|error| Failure::from_store(&error))?;
                self.upload = Some(Upload { id: id.clone(), replaced });
                id
            }
        };
        while self.sending.len() >= IN_FLIGHT {
            self.await_part()?;
        }
        let permit = SendingPermit::take(&self.store.sent_bytes, part.bytes.len());
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let send = move || {
            let payload = PutPayload::from(Bytes::from(part.bytes));
            let sent = block_on(store.parts.put_part(&key, &id, part.index, payload));
            drop(permit);
            Ok((part.index, sent.map_err(|error| Failure::from_store(&error))?))
        };
        let thread = std::thread::Builder::new().spawn(send);
        let thread = thread.map_err(|error| Failure::new(error.kind(), error.to_string()))?;
        self.sending.push_back(thread);
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
        if self.upload.is_none() && parts.len() == 1 {
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
            self.complete()?;
        }
        let stored_bytes = self.store.head(&self.key)?.map_or(0, |stored| stored.size);
        if stored_bytes != self.written {
            let message =
                format!("{} bytes were sent, but {stored_bytes} are stored", self.written);
            return Err(Failure::new(ErrorKind::InvalidData, message));
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Failure> {
        let Some(Upload { id, replaced }) = &self.upload else { return Ok(()) };
        self.sent.sort_by_key(|(index, _)| *index);
        let sent = self.sent.drain(..).map(|(_, part)| part).collect();
        let completed = block_on(self.store.parts.complete_multipart(&self.key, id, sent));
        if let Err(error) = completed {
            // If only the answer was lost, the object is stored, and a repeated request finds no upload.
            let is_new = |stored: &ObjectMeta| {
                stored.size == self.written
                    && replaced.as_ref().is_none_or(|replaced| replaced.e_tag != stored.e_tag)
            };
            if !self.store.head(&self.key).ok().flatten().is_some_and(|stored| is_new(&stored)) {
                return Err(Failure::from_store(&error));
            }
        }
        self.upload = None;
        Ok(())
    }
}

impl WriteFile for NewObject {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.append(bytes).map_err(|failure| self.error(failure))
    }

    fn hold(&mut self, range: Range<u64>) {
        self.held.push(range);
    }

    fn release(&mut self, range: Range<u64>) {
        let rest = self.held.iter().flat_map(|held| {
            [held.start..held.end.min(range.start), held.start.max(range.end)..held.end]
        });
        self.held = rest.filter(|rest| !rest.is_empty()).collect();
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
        if let Some(upload) = self.upload.take() {
            self.sending.drain(..).for_each(|sending| drop(sending.join()));
            drop(block_on(self.store.parts.abort_multipart(&self.key, &upload.id)));
        }
    }
}
