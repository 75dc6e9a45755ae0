//! Reads the objects of checkpoints in a store.

use crate::buffer::AlignedBuffer;
use crc32fast::Hasher;
use feedrate_data::storage::{Storage, StorageError};
use feedrate_data::walk;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Bytes of a request. A store needs several large requests at a time for its full rate.
const RANGE_BYTES: usize = 8 << 20;
/// Requests for one object at the same time.
const IN_FLIGHT: usize = 4;

/// Reads an object or a file completely. Refuses one with more than `bytes_max` bytes with an error of the kind [`io::ErrorKind::InvalidInput`].
pub(super) fn read(storage: &dyn Storage, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let object = storage.open(path).map_err(io_error)?;
    let bytes = storage.len(&object).map_err(io_error)?;
    if bytes > bytes_max {
        return Err(refused(format!("it has {bytes} bytes, more than {bytes_max}")));
    }
    let mut content = vec![0; bytes as usize];
    let read = storage.read_at(&object, 0, &mut content);
    storage.close(object);
    content.truncate(read.map_err(io_error)?);
    Ok(content)
}

/// Reads an object completely and returns its checksum. Adds the bytes to `done`. Refuses an object that does not have `bytes` bytes, as
/// [`read`] does.
pub(super) fn crc32(
    storage: &dyn Storage,
    path: &str,
    bytes: u64,
    done: &AtomicU64,
) -> io::Result<u32> {
    let object = storage.open(path).map_err(io_error)?;
    let found_bytes = storage.len(&object).map_err(io_error)?;
    if found_bytes != bytes {
        return Err(refused(length_problem(found_bytes, bytes)));
    }
    let hashers = Mutex::new(BTreeMap::new());
    let range_bytes = RANGE_BYTES as u64;
    walk::for_all(
        bytes.div_ceil(range_bytes),
        IN_FLIGHT,
        || AlignedBuffer::new(RANGE_BYTES),
        |buffer, number| {
            let buffer = buffer.as_mut().map_err(|error| io::Error::from(error.kind()))?;
            let start = number * range_bytes;
            let len = range_bytes.min(bytes - start) as usize;
            let piece = buffer.aligned_like(0, len);
            let read_bytes = storage.read_at(&object, start, piece).map_err(io_error)?;
            done.fetch_add(read_bytes as u64, Relaxed);
            let mut hasher = Hasher::new();
            hasher.update(&piece[..read_bytes]);
            hashers.lock().unwrap_or_else(PoisonError::into_inner).insert(number, hasher);
            Ok::<(), io::Error>(())
        },
    )?;
    let mut whole = Hasher::new();
    let hashers = hashers.into_inner().unwrap_or_else(PoisonError::into_inner);
    hashers.values().for_each(|hasher| whole.combine(hasher));
    Ok(whole.finalize())
}

/// The system's error or the store's, without the path.
pub(super) fn io_error(error: StorageError) -> io::Error {
    error.source
}

/// Describes an unexpected length.
pub(super) fn length_problem(bytes: u64, expected: u64) -> String {
    format!("it has {bytes} bytes of {expected}")
}

fn refused(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}
