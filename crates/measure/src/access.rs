//! Reads of a run by size and number; the shares of reads in order are metrics.

use crate::record::IoCounters;
use crate::record::access::{Access, BIN_NAMES};
use crate::record::common_sizes::CommonSize;
use serde::{Serialize, Serializer};

/// So many common sizes are told, as Darshan's ACCESS1 to ACCESS4.
const COMMON_SIZES: usize = 4;

/// How files were read.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the counters of these names say it")]
pub struct AccessSummary {
    pub reads: u64,
    pub opens: u64,
    /// `null` where the record does not say.
    pub request_bytes: Option<RequestBytes>,
}

/// Sizes of reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestBytes {
    /// Reads by size, in Darshan's bins, those without any left out.
    #[serde(serialize_with = "as_map")]
    pub histogram: Vec<(&'static str, u64)>,
    /// The commonest sizes, the commonest first; `null` where none is known for sure to be.
    pub common: Option<Vec<CommonSize>>,
}

impl AccessSummary {
    /// Sum up the counters of a run.
    pub fn new(io: &IoCounters) -> Self {
        let counted = io.reads == 0 || io.access.reads() > 0;
        AccessSummary {
            reads: io.reads,
            opens: io.opens,
            request_bytes: counted.then(|| RequestBytes::new(&io.access)),
        }
    }
}

impl RequestBytes {
    fn new(access: &Access) -> Self {
        let bins = BIN_NAMES.into_iter().zip(access.sizes).filter(|&(_, count)| count > 0);
        RequestBytes { histogram: bins.collect(), common: access.common.commonest(COMMON_SIZES) }
    }
}

/// In the order of the sizes.
fn as_map<S: Serializer>(bins: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(bins.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::access::Follows;

    /// Sizes of reads, how many of them were counted by size, and the summary as JSON of sizes.
    fn check(sizes: &[u64], reads: u64, expected: serde_json::Value) {
        let mut io = IoCounters { reads, opens: 1, ..IoCounters::default() };
        sizes.iter().for_each(|&bytes| io.access.read(bytes, Follows::Nothing));
        let summary = AccessSummary::new(&io);
        assert_eq!((summary.reads, summary.opens), (reads, 1));
        assert_eq!(serde_json::to_value(summary.request_bytes).unwrap(), expected);
    }

    #[test]
    fn sizes_are_told_where_they_were_counted() {
        let none = serde_json::json!({"histogram": {}, "common": []});
        check(&[], 0, none);
        check(&[], 3, serde_json::Value::Null);
        let two = serde_json::json!({
            "histogram": {"0-100": 1, "1K-10K": 2},
            "common": [{"bytes": 4096, "count": 2}, {"bytes": 10, "count": 1}],
        });
        check(&[4096, 10, 4096], 3, two);
    }

    #[test]
    fn four_common_sizes_are_told() {
        let mut io = IoCounters::default();
        for bytes in 1..=6 {
            (0..bytes).for_each(|_| io.access.read(bytes, Follows::Next));
        }
        let common = AccessSummary::new(&io).request_bytes.unwrap().common.unwrap();
        let found: Vec<_> = common.iter().map(|size| (size.bytes, size.count)).collect();
        assert_eq!(found, [(6, 6), (5, 5), (4, 4), (3, 3)]);
    }
}
