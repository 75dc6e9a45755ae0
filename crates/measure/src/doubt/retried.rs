//! Requests to the object store failed and were repeated.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::transfers::Retries;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "retried",
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "Requests to the object store failed and were repeated: a store or network without these faults is faster.",
        evidence: "of {requests_count} requests, {repeated_count} were repeated ({causes}), and retries cost {lost_s} of {reading_s} in reads",
        advice: "look for the cause in the logs of the store, its load balancer and the network, then run again",
    },
    needs_loader: false,
    check: Some(|derived| {
        let retries = Retries::new(derived)?;
        let causes = retries.causes.without_limits();
        retries.are_notable(causes.total()).then(|| {
            Facts::new()
                .with("requests_count", retries.requests)
                .with("repeated_count", causes.total())
                .with("causes", causes.list())
                .with("lost_s", retries.lost_s)
                .with("reading_s", retries.reading_s)
        })
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "of 1,000 requests, 3 were repeated (2 lost connection, 1 short body), and retries cost 2 s of 2 min in reads",
            |r| {
                super::tests::set_transfers(r, |counts| {
                    (counts.retried_reset, counts.retried_short_body) = (2, 1);
                });
            },
        ),
        super::tests::silent(|r| super::tests::set_transfers(r, |_| {})),
        super::tests::silent(|r| {
            super::tests::set_transfers(r, |counts| {
                counts.retried_timeout = 9;
                counts.retry_lost_ns = 1_000_000_000;
            });
        }),
    ],
};
