//! Logs of single storage operations, for the trace of a run. Logging neither allocates nor locks; operations beyond the reserved
//! capacity are only counted.

/// A finished operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOp {
    /// Kind of the operation.
    pub kind: OpKind,
    /// Number of the file. Each file of a multi-file format has a number.
    pub part: u64,
    /// Start, since the start of the run.
    pub start_ns: u64,
    /// End, since the start of the run.
    pub end_ns: u64,
    /// Offset of a read in the file; 0 for other kinds.
    pub offset: u64,
    /// Bytes returned; `None` if the operation failed.
    pub bytes: Option<u64>,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum OpKind {
    Open,
    Length,
    Read,
    Close,
}

/// Operations of one worker for one accelerator in the current epoch.
#[derive(Debug)]
pub struct OpLog {
    /// Number of the accelerator within the process.
    pub accelerator: u32,
    /// Number of the worker within the accelerator.
    pub worker: u32,
    /// Operations in the order of their ends.
    pub ops: Vec<LoggedOp>,
    /// Number of operations beyond the capacity.
    pub dropped: u64,
}

impl OpLog {
    /// Creates a log with room for `capacity` operations. If the memory cannot be reserved, all operations are counted as dropped.
    pub fn new(accelerator: u32, worker: u32, capacity: usize) -> Self {
        let mut ops = Vec::new();
        let _ = ops.try_reserve_exact(capacity);
        OpLog { accelerator, worker, ops, dropped: 0 }
    }

    /// Logs an operation, or counts it as dropped if the log is full.
    #[inline]
    pub fn add(&mut self, op: LoggedOp) {
        if self.ops.len() < self.ops.capacity() {
            self.ops.push(op);
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the logged operations and leaves an empty log of the same capacity.
    pub fn take(&mut self) -> OpLog {
        let empty = OpLog::new(self.accelerator, self.worker, self.ops.capacity());
        std::mem::replace(self, empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_beyond_the_capacity_are_counted() {
        let op = |start_ns| LoggedOp {
            kind: OpKind::Close,
            part: 0,
            start_ns,
            end_ns: start_ns,
            offset: 0,
            bytes: Some(0),
        };
        let mut log = OpLog::new(0, 0, 2);
        for epoch in [0, 10] {
            (epoch..epoch + 5).for_each(|ns| log.add(op(ns)));
            let taken = log.take();
            assert_eq!((taken.ops, taken.dropped), (vec![op(epoch), op(epoch + 1)], 3));
        }
    }
}
