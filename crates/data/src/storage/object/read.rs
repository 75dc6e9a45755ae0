//! Reading objects: which ranges are requested, and what an open object keeps for its next reads.

use super::failure::Failure;
use super::http::Body;
use super::service::{BodySlot, Cause, Repetition, lock, may_pass};
use super::{ObjectStorage, block_on};
use object_store::{GetOptions, GetRange};
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Reads below this length at the start or the end of an object, and those that continue another one, fetch this length: headers, footers
/// and directories are read in small pieces.
const WINDOW_BYTES: u64 = 64 << 10;
/// Objects up to this length are fetched whole, if the previous object of the bucket had it: their length and content take one request.
const SMALL_BYTES: u64 = 256 << 10;
/// Windows that an open object keeps: usually its start and its end.
const WINDOWS: usize = 2;
/// A body of which nothing was read for this time is not continued, because servers close such connections.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// Bytes up to which the unneeded rest of a body is read, so that its connection can be used again.
const SHORT_REST_BYTES: usize = 4 << 10;

/// An open object.
pub(super) struct OpenObject {
    pub(super) path: object_store::path::Path,
    state: Mutex<ObjectState>,
}

#[derive(Default)]
struct ObjectState {
    /// Length and version, from the first response.
    known: Option<(u64, Option<String>)>,
    windows: Vec<Window>,
    /// End of the last read.
    last_end: Option<u64>,
    /// The last response, if a part of its body is left for the next read.
    body: Option<OpenBody>,
}

struct Window {
    start: u64,
    bytes: Vec<u8>,
}

/// The rest of a body.
struct OpenBody {
    body: Body,
    /// Range of the object that is still to come.
    range: Range<u64>,
    last_read: Instant,
}

/// A range of an object to be read into a buffer.
pub(super) struct ObjectRead<'b> {
    pub(super) range: Range<u64>,
    pub(super) buffer: &'b mut [u8],
    pub(super) mode: ReadMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// The buffer has the length of the range. The reads that are expected next continue up to `end`.
    Piece { end: u64 },
    /// No reads are expected after the range. Its bytes are dropped: they are read over one another.
    Over,
}

impl ObjectRead<'_> {
    fn bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// The part of the buffer for the bytes that follow the first `done` ones.
    fn space(&mut self, done: u64) -> &mut [u8] {
        let left = usize::try_from(self.bytes() - done).unwrap_or(usize::MAX);
        let start = if self.mode == ReadMode::Over { 0 } else { done as usize };
        let len = left.min(self.buffer.len() - start);
        &mut self.buffer[start..start + len]
    }

    /// End of the bytes to request.
    fn requested_end(&self) -> u64 {
        match self.mode {
            ReadMode::Piece { end } => end.max(self.range.end),
            ReadMode::Over => self.range.end,
        }
    }
}

impl OpenBody {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<u64> {
        let left = self.range.end - self.range.start;
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = self.body.read(&mut buffer[..most])? as u64;
        if bytes == 0 {
            let message = format!("the body is {left} bytes shorter than its range");
            return Err(Error::new(ErrorKind::UnexpectedEof, message));
        }
        self.range.start += bytes;
        Ok(bytes)
    }

    /// Returns the body if it continues at `offset`, and ends any other one.
    fn continued_at(self, offset: u64) -> Option<Self> {
        if self.range.start == offset && !self.is_idle() {
            return Some(self);
        }
        self.end();
        None
    }

    fn is_idle(&self) -> bool {
        IDLE_MAX <= self.last_read.elapsed()
    }

    /// Ends a body whose rest is not needed. Its connection is closed unless the rest is short.
    fn end(mut self) {
        let mut rest = [0; SHORT_REST_BYTES];
        if self.range.end - self.range.start <= SHORT_REST_BYTES as u64 && !self.is_idle() {
            while !self.range.is_empty() && self.read(&mut rest).is_ok() {}
        }
    }
}

impl ObjectState {
    /// Copies bytes from a window that contains `offset`, and returns their number.
    fn copy(&self, offset: u64, buffer: &mut [u8]) -> u64 {
        let found = self.windows.iter().find_map(|window| {
            let skipped = usize::try_from(offset.checked_sub(window.start)?).ok()?;
            window.bytes.get(skipped..).filter(|bytes| !bytes.is_empty())
        });
        let Some(bytes) = found else { return 0 };
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
        len as u64
    }

    /// The window to fetch for the bytes of a read from `offset` on; `None` to request what is wanted.
    fn window(&self, read: &ObjectRead<'_>, offset: u64, first_bytes: u64) -> Option<Range<u64>> {
        let is_long = read.requested_end() - offset >= WINDOW_BYTES;
        let has_body = self.body.as_ref().is_some_and(|body| body.range.start == offset);
        if read.mode == ReadMode::Over || is_long || has_body {
            return None;
        }
        let total = self.known.as_ref().map(|(total, _)| *total);
        match total {
            Some(total) if offset >= total.saturating_sub(WINDOW_BYTES) => {
                Some(total.saturating_sub(WINDOW_BYTES)..total)
            }
            _ if offset == 0 => Some(0..first_bytes),
            _ if self.last_end == Some(offset) => Some(offset..offset.saturating_add(WINDOW_BYTES)),
            _ => None,
        }
    }
}

impl OpenObject {
    pub(super) fn new(path: object_store::path::Path) -> Self {
        OpenObject { path, state: Mutex::default() }
    }

    /// Ends the last response.
    pub(super) fn close(self) {
        let last = lock(&self.state).body.take();
        if let Some(open) = last {
            open.end();
        }
    }

    fn length(&self) -> Option<u64> {
        lock(&self.state).known.as_ref().map(|(length, _)| *length)
    }
}

impl ObjectStorage {
    /// Length of an object. Fetches its start if no response had the length yet.
    pub(super) fn length(&self, object: &OpenObject) -> Result<u64, Failure> {
        if let Some(length) = object.length() {
            return Ok(length);
        }
        self.fetch_window(object, 0..self.first_bytes())?;
        // An empty object has no range that could be returned.
        Ok(object.length().unwrap_or(0))
    }

    /// Reads a range, from the windows first. Returns the number of bytes, which is smaller only at the end of the object.
    pub(super) fn read(
        &self,
        object: &OpenObject,
        mut read: ObjectRead<'_>,
    ) -> Result<u64, Failure> {
        let mut done = 0;
        while done < read.bytes() {
            let offset = read.range.start + done;
            let state = lock(&object.state);
            if state.known.as_ref().is_some_and(|(total, _)| *total <= offset) {
                break;
            }
            let copied = state.copy(offset, read.space(done));
            let window = state.window(&read, offset, self.first_bytes());
            drop(state);
            done += copied;
            match window {
                _ if copied > 0 => {}
                Some(window) => {
                    if self.fetch_window(object, window)? == 0 {
                        break;
                    }
                }
                None => {
                    done = self.fetch(object, &mut read, done)?;
                    break;
                }
            }
        }
        lock(&object.state).last_end = Some(read.range.start + done);
        Ok(done)
    }

    /// Length of the window at the start of an object.
    fn first_bytes(&self) -> u64 {
        let last_length = self.store.last_length.load(Relaxed);
        if last_length <= SMALL_BYTES { last_length.max(WINDOW_BYTES) } else { WINDOW_BYTES }
    }

    /// Fetches a window and keeps it. Returns its length.
    fn fetch_window(&self, object: &OpenObject, range: Range<u64>) -> Result<u64, Failure> {
        let start = range.start;
        let mut bytes = vec![0; (range.end - start) as usize];
        let mode = ReadMode::Piece { end: range.end };
        let fetched = self.fetch(object, &mut ObjectRead { range, buffer: &mut bytes, mode }, 0)?;
        bytes.truncate(fetched as usize);
        let mut state = lock(&object.state);
        if state.windows.len() == WINDOWS {
            state.windows.remove(0);
        }
        state.windows.push(Window { start, bytes });
        Ok(fetched)
    }

    /// Reads the bytes after the first `done` ones from the last response, if it continues there, or from a new one. A body that ends early
    /// is continued by another request. Returns the number of bytes, which is smaller than that of the range only at the end of the object.
    fn fetch(
        &self,
        object: &OpenObject,
        read: &mut ObjectRead<'_>,
        mut done: u64,
    ) -> Result<u64, Failure> {
        let transport = &self.store.transport;
        let mut repetition = Repetition::new(transport.patience);
        let mut is_repeated = false;
        loop {
            let (started, done_before) = (Instant::now(), done);
            let offset = read.range.start + done;
            let last = lock(&object.state).body.take();
            let kept = last.and_then(|open| open.continued_at(offset));
            let open = match kept {
                None => self.get(object, offset..read.requested_end(), is_repeated)?,
                kept => kept,
            };
            let Some(mut open) = open else { return Ok(done) };
            let error = loop {
                if done == read.bytes() {
                    open.last_read = Instant::now();
                    lock(&object.state).body = Some(open).filter(|open| !open.range.is_empty());
                    return Ok(done);
                }
                if open.range.is_empty() {
                    break None;
                }
                match open.read(read.space(done)) {
                    Ok(bytes) => done += bytes,
                    Err(error) => break Some(error),
                }
            };
            // A body can end before the range, because it was requested by an earlier read or the object ends.
            is_repeated = error.is_some();
            let Some(error) = error else { continue };
            if done - done_before >= WINDOW_BYTES {
                repetition.restart();
            }
            if !may_pass(&error)
                || !repetition.wait(Cause::from_error(&error), started, &transport.counts)
            {
                return Err(Failure::new(error.kind(), repetition.describe(&error)));
            }
        }
    }

    /// Sends a GET of a range. Returns its body, which is shorter only at the end of the object; `None` if the object ends before the range.
    /// A request that `continues` another one counts as an attempt of it.
    fn get(
        &self,
        object: &OpenObject,
        mut range: Range<u64>,
        continues: bool,
    ) -> Result<Option<OpenBody>, Failure> {
        let known = lock(&object.state).known.clone();
        if let Some((total, _)) = &known {
            range.end = range.end.min(*total);
            if range.is_empty() {
                return Ok(None);
            }
        }
        let slot = BodySlot { continues, ..BodySlot::default() };
        let mut options = GetOptions {
            range: Some(match range.end {
                u64::MAX => GetRange::Offset(range.start),
                _ => GetRange::Bounded(range),
            }),
            if_match: known.as_ref().and_then(|(_, version)| version.clone()),
            ..GetOptions::default()
        };
        options.extensions.insert(slot.clone());
        let got = match block_on(self.store.objects.get_opts(&object.path, options)) {
            Ok(got) => got,
            Err(error) => {
                let failure = Failure::from_store(&error);
                // An empty object has no range, and a range beyond the end has no bytes. A known length contains the range.
                let is_beyond_end = failure.status == Some(416) && known.is_none();
                return if is_beyond_end { Ok(None) } else { Err(failure) };
            }
        };
        let found = (got.meta.size, got.meta.e_tag);
        let mut state = lock(&object.state);
        match &state.known {
            Some(known) if *known != found => return Err(Failure::changed()),
            Some(_) => {}
            None => {
                self.store.last_length.store(found.0, Relaxed);
                state.known = Some(found);
            }
        }
        drop(state);
        let broken = |message| Failure::new(ErrorKind::InvalidData, message);
        let body = slot.take().ok_or_else(|| broken("the response has no body"))?;
        let range = got.range;
        if body.length().is_some_and(|bytes| bytes > range.end - range.start) {
            return Err(broken("the body is longer than its range"));
        }
        Ok(Some(OpenBody { body, range, last_read: Instant::now() }))
    }
}
