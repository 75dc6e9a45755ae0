//! What a worker spends its time on. Values only.

/// What a worker spent on a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// When it was claimed.
    pub begun_ns: u64,
    /// In open, length and close calls.
    pub open_ns: u64,
    /// In read calls.
    pub read_ns: u64,
    /// Decoding and checking.
    pub decode_ns: u64,
}
