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

    /// The counts since an earlier state of the same storage.
    #[must_use]
    pub fn since(&self, earlier: &TransferCounts) -> Self {
        let change = |count: fn(&TransferCounts) -> u64| count(self).saturating_sub(count(earlier));
        TransferCounts {
            requests: change(|counts| counts.requests),
            attempts: change(|counts| counts.attempts),
            retried_status_503: change(|counts| counts.retried_status_503),
            retried_other_status: change(|counts| counts.retried_other_status),
            retried_reset: change(|counts| counts.retried_reset),
            retried_timeout: change(|counts| counts.retried_timeout),
            retried_short_body: change(|counts| counts.retried_short_body),
            retry_lost_ns: change(|counts| counts.retry_lost_ns),
            first_byte: self.first_byte.since(&earlier.first_byte),
        }
    }

    /// The sum of several counts; `None` without counts, or if one of them is unknown.
    pub fn sum<'a>(parts: impl IntoIterator<Item = Option<&'a TransferCounts>>) -> Option<Self> {
        let parts: Vec<&TransferCounts> = parts.into_iter().collect::<Option<_>>()?;
        let (first, others) = parts.split_first()?;
        let mut sum = TransferCounts::clone(first);
        others.iter().for_each(|part| sum.merge(part));
        Some(sum)
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
        self.first_byte.merge(&other.first_byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(requests: u64, first_bytes_ns: &[u64]) -> TransferCounts {
        let mut counts =
            TransferCounts { requests, retried_reset: requests / 10, ..TransferCounts::default() };
        first_bytes_ns.iter().for_each(|ns| counts.first_byte.record(*ns));
        counts
    }

    #[test]
    fn counts_since_an_earlier_state_and_the_earlier_counts_add_up() {
        let (earlier, later) = (counts(10, &[5, 9]), counts(30, &[5, 9, 9, 1]));
        let mut sum = later.since(&earlier);
        assert_eq!(sum, counts(20, &[9, 1]));
        sum.merge(&earlier);
        assert_eq!(sum, later);
    }

    #[test]
    fn a_sum_is_unknown_without_parts_or_with_an_unknown_part() {
        let (a, b) = (counts(10, &[1]), counts(20, &[2]));
        assert_eq!(TransferCounts::sum([Some(&a), Some(&b)]), Some(counts(30, &[1, 2])));
        assert_eq!(TransferCounts::sum([Some(&a), None]), None);
        assert_eq!(TransferCounts::sum([]), None);
    }
}
