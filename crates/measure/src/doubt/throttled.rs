//! The object store limited the rate of requests.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::transfers::Retries;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "throttled",
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "The object store refused requests because there were too many: the rates show its limit on requests, not how fast it reads.",
        evidence: "the store refused {refused_count} of {requests_count} requests with status 503 or 429, and retries cost {lost_s} of {reading_s} in reads",
        advice: "raise the store's limit, spread the data over more prefixes or buckets, or read larger files with fewer requests",
    },
    needs_loader: false,
    check: Some(|derived| {
        let retries = Retries::new(derived)?;
        let refused_count = retries.causes.status_503;
        retries.are_notable(refused_count).then(|| {
            Facts::new()
                .with("refused_count", refused_count)
                .with("requests_count", retries.requests)
                .with("lost_s", retries.lost_s)
                .with("reading_s", retries.reading_s)
        })
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "the store refused 20 of 1,000 requests with status 503 or 429, and retries cost 2 s of 2 min in reads",
            |r| super::tests::set_transfers(r, |counts| counts.retried_status_503 = 20),
        ),
        super::tests::silent(|r| super::tests::set_transfers(r, |_| {})),
        super::tests::silent(|r| {
            super::tests::set_transfers(r, |counts| {
                counts.retried_status_503 = 9;
                counts.retry_lost_ns = 0;
            });
        }),
    ],
};
