//! The operations of a storage one by one, for a trace of the run. Logging neither allocates nor locks; what finds no room is counted.

/// An operation that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOp {
    /// The call.
    pub kind: OpKind,
    /// Number of the file, each part of a format a file of its own.
    pub part: u64,
    /// From the start of the run.
    pub start_ns: u64,
    /// From the start of the run.
    pub end_ns: u64,
    /// From the start of the file; of reads.
    pub offset: u64,
    /// Bytes that came; `None` where it failed.
    pub bytes: Option<u64>,
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum OpKind {
    Open,
    Length,
    Read,
    Close,
}

/// Operations of one worker for one accelerator since the epoch began.
#[derive(Debug)]
pub struct OpLog {
    /// Counted within the process.
    pub accelerator: u32,
    /// Counted within the accelerator.
    pub worker: u32,
    /// In order.
    pub ops: Vec<LoggedOp>,
    /// Those that found no room.
    pub dropped: u64,
}

impl OpLog {
    /// With room for so many. Memory is taken as it is used, and where none can be had all are counted as dropped.
    pub fn new(accelerator: u32, worker: u32, room: usize) -> Self {
        let mut ops = Vec::new();
        let _ = ops.try_reserve_exact(room);
        OpLog { accelerator, worker, ops, dropped: 0 }
    }

    /// An operation is over.
    #[inline]
    pub fn add(&mut self, op: LoggedOp) {
        if self.ops.len() < self.ops.capacity() {
            self.ops.push(op);
        } else {
            self.dropped += 1;
        }
    }

    /// Hand over what was logged, and begin anew.
    pub fn take(&mut self) -> OpLog {
        let anew = OpLog::new(self.accelerator, self.worker, self.ops.capacity());
        std::mem::replace(self, anew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted() {
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
