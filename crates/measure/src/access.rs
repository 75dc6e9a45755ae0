//! Breakdowns of a run's file accesses: reads by size, read rates by size, and files by the ranks that read them.
//! Single numbers about file accesses are metrics, in `metric::access`.

use crate::record::access::{Access, BIN_NAMES, FilesByRanks};
use crate::record::common_sizes::CommonSize;
use crate::record::{IoCounters, Record};
use crate::window::Scope;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Number of common read sizes in a summary, as in Darshan (ACCESS1 to ACCESS4).
const COMMON_SIZES: usize = 4;

/// File accesses of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "documented at the counters of the same names")]
pub struct AccessSummary {
    pub reads: u64,
    pub opens: u64,
    pub preparation_opens: Option<u64>,
    /// Sizes of reads; `null` if they were not counted.
    pub request_bytes: Option<RequestBytes>,
    /// Read rate by Darshan's bins of read sizes, without empty bins; `null` if the times by size were not counted.
    #[schemars(with = "Option<BTreeMap<String, f64>>")]
    pub bytes_per_second_by_size: Option<BySize<f64>>,
    /// Number of files by the number of ranks that read them; `null` if unknown.
    pub files_by_ranks: Option<Vec<FilesByRanks>>,
}

/// Values by the bin of read sizes, smallest sizes first.
#[derive(Clone, Debug, PartialEq)]
pub struct BySize<T>(pub Vec<(&'static str, T)>);

/// Sizes of reads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestBytes {
    /// Number of reads in each of Darshan's bins, without empty bins.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub histogram: BySize<u64>,
    /// The most common sizes, most common first; `null` if they could not be determined with certainty.
    pub common: Option<Vec<CommonSize>>,
}

impl AccessSummary {
    /// Summarises a run; `io` holds the counters of all its accelerators together.
    pub fn new(record: &Record, io: &IoCounters) -> Self {
        let has_sizes = io.reads == 0 || io.access.reads() > 0;
        let has_times = io.reads == 0 || io.size_ns.iter().any(|&ns| ns > 0);
        let files_read =
            Scope::whole_epochs(record).last().and_then(|scope| scope.epoch.files_read.as_ref());
        AccessSummary {
            reads: io.reads,
            opens: io.opens,
            preparation_opens: io.preparation_opens,
            request_bytes: has_sizes.then(|| RequestBytes::new(&io.access)),
            bytes_per_second_by_size: has_times.then(|| bytes_per_second(io)),
            files_by_ranks: files_read.map(|files| files.files_by_ranks.clone()),
        }
    }
}

/// Bytes read ÷ total time in read calls, for each bin. Overlapping calls count separately.
fn bytes_per_second(io: &IoCounters) -> BySize<f64> {
    let amounts = io.access.size_bytes.into_iter().zip(io.size_ns);
    let rates = BIN_NAMES.into_iter().zip(amounts).filter_map(|bin| {
        let (name, (bytes, ns)) = bin;
        (ns > 0).then(|| (name, bytes as f64 * 1e9 / ns as f64))
    });
    BySize(rates.collect())
}

impl RequestBytes {
    fn new(access: &Access) -> Self {
        let bins = BIN_NAMES.into_iter().zip(access.sizes).filter(|&(_, count)| count > 0);
        let common = access.common.most_common(COMMON_SIZES);
        RequestBytes { histogram: BySize(bins.collect()), common }
    }
}

impl<T: Serialize + Copy> Serialize for BySize<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::access::{BINS, ReadPosition, bin_index};

    /// `sizes` are the reads counted by size, `reads` is their total number, and `expected` is the JSON of the sizes.
    fn check(sizes: &[u64], reads: u64, expected: serde_json::Value) {
        let mut io = IoCounters { reads, opens: 1, ..IoCounters::default() };
        sizes.iter().for_each(|&bytes| io.access.count_read(bytes, ReadPosition::First));
        let summary = AccessSummary::new(&Record::default(), &io);
        assert_eq!((summary.reads, summary.opens), (reads, 1));
        assert_eq!(serde_json::to_value(summary.request_bytes).unwrap(), expected);
    }

    #[test]
    fn sizes_are_present_if_they_were_counted() {
        let no_sizes = serde_json::json!({"histogram": {}, "common": []});
        check(&[], 0, no_sizes);
        check(&[], 3, serde_json::Value::Null);
        let two_sizes = serde_json::json!({
            "histogram": {"0-100": 1, "1K-10K": 2},
            "common": [{"bytes": 4096, "count": 2}, {"bytes": 10, "count": 1}],
        });
        check(&[4096, 10, 4096], 3, two_sizes);
    }

    #[test]
    fn rates_by_size_are_bytes_by_time_in_calls() {
        let mut io = IoCounters { reads: 3, ..IoCounters::default() };
        for (bytes, ns) in [(4096, 2000), (4096, 1000), (10, 5)] {
            io.access.count_read(bytes, ReadPosition::First);
            io.size_ns[bin_index(bytes)] += ns;
        }
        let rates = |io: &IoCounters| {
            let summary = AccessSummary::new(&Record::default(), io);
            serde_json::to_value(summary.bytes_per_second_by_size).unwrap()
        };
        assert_eq!(rates(&io), serde_json::json!({"0-100": 2e9, "1K-10K": 8192e9 / 3000.0}));
        io.size_ns = [0; BINS];
        assert_eq!(rates(&io), serde_json::Value::Null, "older records have no times by size");
    }

    #[test]
    fn at_most_four_common_sizes_are_listed() {
        let mut io = IoCounters::default();
        for bytes in 1..=6 {
            (0..bytes).for_each(|_| io.access.count_read(bytes, ReadPosition::Consecutive));
        }
        let summary = AccessSummary::new(&Record::default(), &io);
        let common = summary.request_bytes.unwrap().common.unwrap();
        let found: Vec<_> = common.iter().map(|size| (size.bytes, size.count)).collect();
        assert_eq!(found, [(6, 6), (5, 5), (4, 4), (3, 3)]);
    }
}
