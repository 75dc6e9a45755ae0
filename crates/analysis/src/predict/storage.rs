//! The storage of a record: which latency, bandwidth and concurrency explain how long its reads took.

/// What a storage takes for an open and a read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageModel {
    /// All readers together, first come first served; `None` is no limit.
    pub bytes_per_second: Option<f64>,
    /// Of a read, beside its bytes.
    pub latency_s: f64,
    /// Of an open, its length and close.
    pub open_s: f64,
    /// Reads served at a time; `None` is any number.
    pub concurrency: Option<u32>,
}

/// Every model that explains a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FittedStorage {
    /// The best supported.
    pub best: StorageModel,
    /// Others that explain it as well.
    pub others: Vec<StorageModel>,
}
