//! The emulated client's work: the processor time that a worker's thread has to spend on its reads. Time that the thread spends on actual
//! reading and decoding is part of it. The caller supplies the thread's processor time.

/// Processor time up to which a worker's thread has to work.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWork {
    owed_ns: f64,
}

impl ClientWork {
    /// Begins a task, when the thread has run for `ran_ns`.
    pub fn begin(&mut self, ran_ns: u64) {
        self.owed_ns = ran_ns as f64;
    }

    /// Excludes time that the thread spent on other work than the client's.
    pub fn exclude(&mut self, ns: u64) {
        self.owed_ns += ns as f64;
    }

    /// Adds work and returns the processor time up to which the thread has to run.
    pub fn add_work(&mut self, seconds: f64) -> u64 {
        self.owed_ns += seconds * 1e9;
        self.owed_ns.round() as u64
    }
}
