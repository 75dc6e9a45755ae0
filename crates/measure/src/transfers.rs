//! Requests to an object store in a run: their repetitions, and what these cost.

use crate::derived::Derived;
use crate::metric::Quantiles;
use crate::window::seconds;
use feedrate_spec::transfers::TransferCounts;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;

/// Share of repeated requests, and share of the time lost in the time of reading, from which repetitions are notable.
const NOTABLE_SHARE_MIN: f64 = 0.01;

/// Summary of requests to an object store. A request is repeated until it succeeds or is given up; each try is an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TransferSummary {
    /// Number of requests.
    pub requests: u64,
    /// Number of attempts.
    pub attempts: u64,
    /// Repeated attempts by cause.
    pub retried: RetryCauses,
    /// Time from the start of attempts that failed to the start of the next ones, in seconds, over all requests.
    pub retry_lost_s: f64,
    /// Time from the start of an attempt to the head of its response.
    pub first_byte: Quantiles,
}

/// Number of repeated attempts by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RetryCauses {
    /// Status 503 or 429, by which a store limits the rate of requests.
    pub status_503: u64,
    /// Another status of an error.
    pub other_status: u64,
    /// A connection that was refused or closed.
    pub reset: u64,
    /// A response that did not arrive in time.
    pub timeout: u64,
    /// A body that ended early.
    pub short_body: u64,
}

/// What repeated requests of a run cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Retries {
    /// Number of requests.
    pub requests: u64,
    /// Repeated attempts by cause.
    pub causes: RetryCauses,
    /// Time from the start of attempts that failed to the start of the next ones, over all requests.
    pub lost_s: f64,
    /// Time in open and read calls of all workers, which includes `lost_s`.
    pub reading_s: f64,
}

impl TransferSummary {
    /// Summarises the requests of a run or an epoch.
    pub fn new(counts: &TransferCounts) -> Self {
        TransferSummary {
            requests: counts.requests,
            attempts: counts.attempts,
            retried: RetryCauses::new(counts),
            retry_lost_s: seconds(counts.retry_lost_ns),
            first_byte: Quantiles::new(&counts.first_byte),
        }
    }
}

impl RetryCauses {
    fn new(counts: &TransferCounts) -> Self {
        RetryCauses {
            status_503: counts.retried_status_503,
            other_status: counts.retried_other_status,
            reset: counts.retried_reset,
            timeout: counts.retried_timeout,
            short_body: counts.retried_short_body,
        }
    }

    /// The causes that occurred, with their counts: `12 status 503, 1 timeout`.
    pub fn list(self) -> String {
        let causes = [
            (self.status_503, "status 503"),
            (self.other_status, "other status"),
            (self.reset, "lost connection"),
            (self.timeout, "timeout"),
            (self.short_body, "short body"),
        ];
        let known = causes.into_iter().filter(|(count, _)| *count > 0);
        let texts = known.map(|(count, cause)| format!("{} {cause}", units::count(count)));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The causes apart from limits on the rate of requests.
    #[must_use]
    pub fn without_limits(self) -> Self {
        RetryCauses { status_503: 0, ..self }
    }

    /// Number of repeated attempts.
    pub fn total(self) -> u64 {
        self.status_503 + self.other_status + self.reset + self.timeout + self.short_body
    }
}

impl Retries {
    /// The cost of repeated requests; `None` if none was repeated, or if the storage is no object store.
    pub fn new(derived: &Derived) -> Option<Self> {
        let counts = derived.transfers.as_ref().filter(|counts| counts.retries() > 0)?;
        Some(Retries {
            requests: counts.requests,
            causes: RetryCauses::new(counts),
            lost_s: seconds(counts.retry_lost_ns),
            reading_s: seconds(derived.io.open_ns + derived.io.read_ns),
        })
    }

    /// Whether `repeated` attempts are so many, or all repetitions so costly, that they change the rates of a run.
    pub fn are_notable(&self, repeated: u64) -> bool {
        let is_large = |part: f64, whole: f64| part >= NOTABLE_SHARE_MIN * whole;
        repeated > 0
            && (is_large(repeated as f64, self.requests as f64)
                || is_large(self.lost_s, self.reading_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_listed_with_their_counts() {
        let causes =
            RetryCauses { status_503: 1200, reset: 2, timeout: 1, ..RetryCauses::default() };
        assert_eq!(causes.list(), "1,200 status 503, 2 lost connection, 1 timeout");
        assert_eq!((causes.total(), causes.without_limits().total()), (1203, 3));
        assert_eq!(RetryCauses::default().list(), "");
    }

    #[test]
    fn repetitions_are_notable_if_they_are_many_or_take_long() {
        let is_notable = |repeated, lost_s| {
            let causes = RetryCauses { reset: repeated, ..RetryCauses::default() };
            Retries { requests: 1000, causes, lost_s, reading_s: 100.0 }.are_notable(repeated)
        };
        assert!(is_notable(10, 0.0) && is_notable(1, 1.0));
        assert!(!is_notable(9, 0.9) && !is_notable(0, 1.0));
    }
}
