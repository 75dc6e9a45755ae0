//! The client's work: the processor time that a worker's thread owes for what it reads, of which its own reading and decoding is a part.
//! No clock: whoever has one says how long the thread has run.

/// The debt of a worker's thread, in its own processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWork {
    owed_ns: f64,
}

impl ClientWork {
    /// A task begins when the thread has run for `ran_ns`.
    pub fn begin(&mut self, ran_ns: u64) {
        self.owed_ns = ran_ns as f64;
    }

    /// The thread has run for so long on what is none of the client's work.
    pub fn leave_out(&mut self, ns: u64) {
        self.owed_ns += ns as f64;
    }

    /// So much more: until when the thread has to run.
    pub fn owe(&mut self, seconds: f64) -> u64 {
        self.owed_ns += seconds * 1e9;
        self.owed_ns.round() as u64
    }
}
