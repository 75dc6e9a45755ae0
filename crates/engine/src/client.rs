//! The emulated client's work: the processor time that a worker's thread has to spend on its reads. Actual reading and decoding count
//! towards this time. The caller measures the thread's processor time.

/// Processor time up to which a worker's thread has to work.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientWork {
    target_ns: f64,
}

impl ClientWork {
    /// Begins a task. `cpu_ns` is the processor time of the thread so far.
    pub fn begin(&mut self, cpu_ns: u64) {
        self.target_ns = cpu_ns as f64;
    }

    /// Excludes processor time that the thread spent on work that is not the client's.
    pub fn exclude(&mut self, ns: u64) {
        self.target_ns += ns as f64;
    }

    /// Adds work and returns the processor time up to which the thread has to run.
    pub fn add_work(&mut self, seconds: f64) -> u64 {
        self.target_ns += seconds * 1e9;
        self.target_ns.round() as u64
    }
}
