//! Objects in a bucket of S3, Google Cloud Storage or Azure, on the crate `object_store`.
//!
//! A read is one ranged GET whose body goes into the caller's buffer. Each response is checked: its range, the length and the version
//! (ETag) of its object, and the number of its bytes. Opening a file sends nothing: the first response has the length.

mod http;
mod service;
mod settings;
mod failure;
mod write;
mod check;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use test_server::TestServer;
#[cfg(test)]
pub(super) use tests::check_large_object;

pub use check::{Access, check};
pub use settings::{StoreSettings, adopt_settings, all_settings, configure, describe};

use self::failure::Failure;
use self::http::Body;
use self::service::{BodySlot, Cause, Repetition, lock};
use self::settings::Store;
use super::engine::Engine;
use super::{Handle, ReadStorage, Storage, StorageError, StorageKind, WriteFile};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::transfers::TransferCounts;
use object_store::{GetOptions, GetRange, ListResult, ObjectStoreExt};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::time::Instant;

pub(super) const S3: StorageKind = StorageKind { member: &S3_MEMBER, open };
pub(super) const GCS: StorageKind = StorageKind { member: &GCS_MEMBER, open };
pub(super) const AZURE: StorageKind = StorageKind { member: &AZURE_MEMBER, open };

const ABILITIES: &[Ability] = &[Ability::KeepsBytes, Ability::Writable, Ability::Remote];
static S3_MEMBER: Member = Member {
    name: "s3",
    summary: "Objects in a bucket of Amazon S3 or of another store with its protocol.",
    abilities: ABILITIES,
};
static GCS_MEMBER: Member = Member {
    name: "gcs",
    summary: "Objects in a bucket of Google Cloud Storage.",
    abilities: ABILITIES,
};
static AZURE_MEMBER: Member = Member {
    name: "azure",
    summary: "Objects in a container of Azure Blob Storage.",
    abilities: ABILITIES,
};

/// Reads below this length at the start or the end of an object, and those that continue another one, fetch this length: headers, footers
/// and directories are read in small pieces.
const WINDOW_BYTES: u64 = 64 << 10;
/// Objects up to this length are fetched whole, if the previous object of the bucket had it: their length and content take one request.
const SMALL_BYTES: u64 = 256 << 10;
/// Windows that an open object keeps: usually its start and its end.
const WINDOWS: usize = 2;

fn open(root: &Path, _engine: &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError> {
    let Some(url) = root.to_str().and_then(ObjectUrl::parse) else {
        let message = "the folder is not a URL such as `s3://bucket/prefix`";
        return Err(StorageError::new(
            "open",
            root,
            Failure::new(ErrorKind::InvalidInput, message),
        ));
    };
    let store =
        settings::store(&url).map_err(|failure| StorageError::new("open", root, failure))?;
    Ok(Box::new(ObjectStorage { store, url }))
}

struct ObjectStorage {
    store: Arc<Store>,
    url: ObjectUrl,
}

/// An open object.
struct OpenObject {
    path: object_store::path::Path,
    state: Mutex<ObjectState>,
}

#[derive(Default)]
struct ObjectState {
    /// Length and version, from the first response.
    known: Option<(u64, Option<String>)>,
    windows: Vec<Window>,
    /// End of the last read.
    last_end: Option<u64>,
}

struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl ObjectState {
    /// Copies bytes from a window that contains `offset`, and returns their number.
    fn copy(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let found = self.windows.iter().find_map(|window| {
            let skipped = usize::try_from(offset.checked_sub(window.start)?).ok()?;
            window.bytes.get(skipped..).filter(|bytes| !bytes.is_empty())
        });
        let Some(bytes) = found else { return 0 };
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
        len
    }

    /// The window to fetch for a read of `len` bytes; `None` to read exactly what is wanted.
    fn window(&self, offset: u64, len: u64, first_bytes: u64) -> Option<Range<u64>> {
        if len >= WINDOW_BYTES {
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

impl ObjectStorage {
    fn path(&self, path: &str) -> Result<object_store::path::Path, Failure> {
        object_store::path::Path::parse(self.url.key(path))
            .map_err(|error| Failure::new(ErrorKind::InvalidInput, error.to_string()))
    }

    fn error(&self, action: &'static str, path: &str, failure: Failure) -> StorageError {
        let url = format!("{}/{}", self.url, path.trim_start_matches('/'));
        StorageError::new(action, url, failure)
    }

    fn object_error(&self, object: &OpenObject, failure: Failure) -> StorageError {
        let url = format!("{}/{}", self.url.bucket_url(), object.path);
        StorageError::new("read", url, failure)
    }

    fn object<'h>(&self, file: &'h Handle) -> Result<&'h OpenObject, StorageError> {
        let object = file.object::<OpenObject>();
        object.ok_or_else(|| StorageError::new("read", "a foreign handle", ErrorKind::InvalidInput))
    }

    /// Length of the window at the start of an object.
    fn first_bytes(&self) -> u64 {
        let last_length = self.store.last_length.load(Relaxed);
        if last_length <= SMALL_BYTES { last_length.max(WINDOW_BYTES) } else { WINDOW_BYTES }
    }

    fn head(&self, path: &str) -> Result<Option<u64>, Failure> {
        match block_on(self.store.objects.head(&self.path(path)?)) {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Failure::from_store(&error)),
        }
    }

    fn delete(&self, path: &str) -> Result<(), Failure> {
        match block_on(self.store.objects.delete(&self.path(path)?)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Failure::from_store(&error)),
        }
    }

    fn list_folder(&self, path: &str) -> Result<ListResult, Failure> {
        let folder = self.path(path)?;
        let listed = block_on(self.store.objects.list_with_delimiter(Some(&folder)));
        let mut listed = listed.map_err(|error| Failure::from_store(&error))?;
        // Some stores and their consoles keep an object `folder/` for a folder.
        listed.objects.retain(|object| object.location != folder);
        Ok(listed)
    }

    /// Sends a GET of a range. Returns the range of the response, which is shorter only at the end of the object, and its body; `None` if
    /// the object ends before the range.
    fn get(
        &self,
        object: &OpenObject,
        range: Range<u64>,
        continues: bool,
    ) -> Result<Option<(Range<u64>, Body)>, Failure> {
        let known = lock(&object.state).known.clone();
        if known.as_ref().is_some_and(|(total, _)| range.start >= *total) {
            return Ok(None);
        }
        let slot = BodySlot { continues, ..BodySlot::default() };
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
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
        match &known {
            Some(known) if *known != found => return Err(Failure::changed()),
            Some(_) => {}
            None => {
                self.store.last_length.store(found.0, Relaxed);
                lock(&object.state).known = Some(found);
            }
        }
        let broken = |message| Failure::new(ErrorKind::InvalidData, message);
        let body = slot.take().ok_or_else(|| broken("the response has no body"))?;
        if body.length().is_some_and(|bytes| bytes > got.range.end - got.range.start) {
            return Err(broken("the body is longer than its range"));
        }
        Ok(Some((got.range, body)))
    }

    /// Reads a range through `take`, which reads from the body up to a number of bytes and returns how many it read. A body that ends early
    /// is continued by another request. Returns the number of bytes, which is smaller only at the end of the object.
    fn fetch(
        &self,
        object: &OpenObject,
        range: Range<u64>,
        mut take: impl FnMut(&mut Body, u64) -> std::io::Result<usize>,
    ) -> Result<u64, Failure> {
        let transport = &self.store.transport;
        let mut repetition = Repetition::new(transport.patience);
        let mut done = 0;
        loop {
            let started = Instant::now();
            let (rest, done_before) = (range.start + done..range.end, done);
            let Some((found, mut body)) = self.get(object, rest, repetition.attempts > 1)? else {
                return Ok(done);
            };
            let mut left = found.end - found.start;
            let error = loop {
                if left == 0 {
                    return Ok(done);
                }
                match take(&mut body, left) {
                    Ok(0) => {
                        let message = format!("the body is {left} bytes shorter than its range");
                        break std::io::Error::new(ErrorKind::UnexpectedEof, message);
                    }
                    Ok(bytes) => {
                        left -= bytes as u64;
                        done += bytes as u64;
                    }
                    Err(error) => break error,
                }
            };
            if done - done_before >= WINDOW_BYTES {
                repetition.restart();
            }
            if !repetition.wait(Cause::from_error(&error), started, &transport.counts) {
                return Err(Failure::new(error.kind(), repetition.describe(&error)));
            }
        }
    }

    /// Fetches a window and keeps it.
    fn fetch_window(&self, object: &OpenObject, range: Range<u64>) -> Result<(), Failure> {
        let start = range.start;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut filled = 0;
        self.fetch(object, range, |body, left| {
            let end = bytes.len().min(filled + left as usize);
            let read_bytes = body.read(&mut bytes[filled..end])?;
            filled += read_bytes;
            Ok(read_bytes)
        })?;
        bytes.truncate(filled);
        let mut state = lock(&object.state);
        if state.windows.len() == WINDOWS {
            state.windows.remove(0);
        }
        state.windows.push(Window { start, bytes });
        Ok(())
    }

    /// Length of an object. Fetches its start if no response had the length yet.
    fn length(&self, object: &OpenObject) -> Result<u64, Failure> {
        let known = |object: &OpenObject| lock(&object.state).known.as_ref().map(|(len, _)| *len);
        if let Some(len) = known(object) {
            return Ok(len);
        }
        self.fetch_window(object, 0..self.first_bytes())?;
        // An empty object has no range that could be returned.
        Ok(known(object).unwrap_or(0))
    }

    fn read(&self, object: &OpenObject, offset: u64, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut done = 0;
        while done < buffer.len() {
            let start = offset + done as u64;
            let rest = &mut buffer[done..];
            let state = lock(&object.state);
            if state.known.as_ref().is_some_and(|(total, _)| *total <= start) {
                break;
            }
            let copied = state.copy(start, rest);
            let window = if copied == 0 {
                state.window(start, rest.len() as u64, self.first_bytes())
            } else {
                None
            };
            drop(state);
            done += copied;
            if copied > 0 {
                continue;
            }
            if let Some(window) = window {
                self.fetch_window(object, window)?;
                if lock(&object.state).copy(start, rest) == 0 {
                    break;
                }
                continue;
            }
            let end = start.saturating_add(rest.len() as u64);
            let mut filled = 0;
            self.fetch(object, start..end, |body, left| {
                let piece_end = rest.len().min(filled + left as usize);
                let bytes = body.read(&mut rest[filled..piece_end])?;
                filled += bytes;
                Ok(bytes)
            })?;
            done += filled;
            break;
        }
        lock(&object.state).last_end = Some(offset + done as u64);
        Ok(done)
    }
}

impl ReadStorage for ObjectStorage {
    /// Sends no request: a missing object is an error of the first read.
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let path = self.path(path).map_err(|failure| self.error("open", path, failure))?;
        Ok(Handle::from_object(OpenObject { path, state: Mutex::default() }))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let object = self.object(file)?;
        self.length(object).map_err(|failure| self.object_error(object, failure))
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let object = self.object(file)?;
        self.read(object, offset, buffer).map_err(|failure| self.object_error(object, failure))
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        let object = self.object(file)?;
        let mut done = 0;
        // The start may be in a window, because the length was asked for.
        loop {
            let most = buffer.len().min(usize::try_from(len - done).unwrap_or(usize::MAX));
            let copied = lock(&object.state).copy(offset + done, &mut buffer[..most]);
            if copied == 0 {
                break;
            }
            done += copied as u64;
        }
        if done == len {
            return Ok(len);
        }
        let range = offset + done..offset.saturating_add(len);
        let fetched = self.fetch(object, range, |body, left| {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            body.read(&mut buffer[..most])
        });
        let fetched = fetched.map_err(|failure| self.object_error(object, failure))?;
        Ok(done + fetched)
    }

    fn close(&self, _file: Handle) {}

    fn transfers(&self) -> Option<TransferCounts> {
        Some(self.store.transport.counts.snapshot())
    }
}

impl Storage for ObjectStorage {
    fn member(&self) -> &'static Member {
        match self.url.storage {
            "gcs" => &GCS_MEMBER,
            "azure" => &AZURE_MEMBER,
            _ => &S3_MEMBER,
        }
    }

    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.head(path).map_err(|failure| self.error("stat", path, failure))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        let key = self.path(path).map_err(|failure| self.error("create", path, failure))?;
        let url = format!("{}/{key}", self.url.bucket_url());
        Ok(Box::new(write::NewObject::new(Arc::clone(&self.store), key, url)))
    }

    fn remove(&self, path: &str) -> Result<(), StorageError> {
        self.delete(path).map_err(|failure| self.error("remove", path, failure))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
        let listed = self.list_folder(path).map_err(|failure| self.error("list", path, failure))?;
        let objects = listed.objects.into_iter().map(|object| object.location);
        let names = objects.chain(listed.common_prefixes);
        let mut names: Vec<String> =
            names.filter_map(|path| Some(path.filename()?.to_string())).collect();
        names.sort();
        Ok(names)
    }

    fn lengths(&self, path: &str) -> Result<Option<Vec<(String, u64)>>, StorageError> {
        let listed = self.list_folder(path).map_err(|failure| self.error("list", path, failure))?;
        let objects = listed.objects.into_iter();
        let lengths = objects
            .filter_map(|object| Some((object.location.filename()?.to_string(), object.size)));
        Ok(Some(lengths.collect()))
    }
}

/// Drives a future on this thread. The transport below blocks, so a future waits only for another thread that renews credentials.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
