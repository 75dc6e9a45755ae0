//! The emulated client's work: the processor time that a worker's thread has to spend on its reads. Time that the thread spends on actual
//! reading and decoding is part of it. The caller supplies the thread's processor time.

/// Processor time up to which a worker's thread has to work.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWork {
    owed_ns: f64,
}

impl ClientWork {
    /// Begins a task. `cpu_ns` is the processor time of the thread so far.
    pub fn begin(&mut self, cpu_ns: u64) {
        self.owed_ns = cpu_ns as f64;
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
