//! Counts of requests to an object store. The client of the store repeats failed requests by itself, so these counts are the only trace of a
//! store that is throttled or loses connections.

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// Requests to an object store and their attempts. Every attempt but the first of a request has one cause in `retried_*`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferCounts {
    /// Requests, of any method.
    pub requests: u64,
    /// Requests sent, with those that were repeated.
    pub attempts: u64,
    /// Attempts after the status 503 or 429, by which a store limits the rate.
    pub retried_status_503: u64,
    /// Attempts after another status of an error.
    pub retried_other_status: u64,
    /// Attempts after a connection that was refused, reset or closed before the response.
    pub retried_reset: u64,
    /// Attempts after a response that did not arrive in time.
    pub retried_timeout: u64,
    /// Attempts after a body that ended early.
    pub retried_short_body: u64,
    /// Time from the start of failed attempts to the start of the next attempt, over all requests.
    pub retry_lost_ns: u64,
    /// Bytes of bodies that were received and dropped, because the attempt failed later.
    pub bytes_read_twice: u64,
    /// Time from the start of an attempt to the head of its response, for reads that succeeded.
    pub first_byte: Histogram,
}

impl TransferCounts {
    /// Attempts after the first, over all requests.
    pub fn retries(&self) -> u64 {
        self.retried_status_503
            + self.retried_other_status
            + self.retried_reset
            + self.retried_timeout
            + self.retried_short_body
    }

    /// Adds the counts of another storage or process.
    pub fn merge(&mut self, other: &TransferCounts) {
        self.requests += other.requests;
        self.attempts += other.attempts;
        self.retried_status_503 += other.retried_status_503;
        self.retried_other_status += other.retried_other_status;
        self.retried_reset += other.retried_reset;
        self.retried_timeout += other.retried_timeout;
        self.retried_short_body += other.retried_short_body;
        self.retry_lost_ns += other.retry_lost_ns;
        self.bytes_read_twice += other.bytes_read_twice;
        self.first_byte.merge(&other.first_byte);
    }
}
