//! Limits the bytes that are sent to a bucket at the same time, and with them the memory.

use super::service::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes that this process sends to a bucket at the same time.
pub(super) const SENDING_BYTES: usize = 512 << 20;

/// The bytes that are being sent to a bucket.
#[derive(Default)]
pub(super) struct SentBytes {
    bytes: Mutex<usize>,
    returned: Condvar,
}

/// Permission to send bytes, which others wait for until it is dropped.
pub(super) struct SendingPermit {
    sent: Arc<SentBytes>,
    bytes: usize,
}

impl SendingPermit {
    /// Waits until at most [`SENDING_BYTES`] are sent. A longer part is sent alone.
    pub(super) fn take(sent: &Arc<SentBytes>, bytes: usize) -> Self {
        let mut sent_bytes = lock(&sent.bytes);
        while *sent_bytes > 0 && *sent_bytes + bytes > SENDING_BYTES {
            sent_bytes = sent.returned.wait(sent_bytes).unwrap_or_else(PoisonError::into_inner);
        }
        *sent_bytes += bytes;
        SendingPermit { sent: Arc::clone(sent), bytes }
    }
}

impl Drop for SendingPermit {
    fn drop(&mut self) {
        *lock(&self.sent.bytes) -= self.bytes;
        self.sent.returned.notify_all();
    }
}
