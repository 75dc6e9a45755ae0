//! Processor time of reading from memory, as the page cache is read: what a client that was measured on cached data has paid for. What a read
//! takes beyond it, such as making room in the page cache, is the storage's.

use crate::clock::thread_cpu_ns;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, write};

/// More than a core's own caches hold.
const BYTES: usize = 16 << 20;
const PIECES: [usize; 2] = [4 << 10, 256 << 10];

/// Reads from memory differ by so much, and are measured with what is counted of them.
const MARGIN: f64 = 1.25;

/// A read's, and a byte's, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryRead {
    call_ns: f64,
    byte_ns: f64,
}

impl MemoryRead {
    /// Measured here and now, in some 20 ms; `None` where there is no file in memory.
    pub(super) fn measure() -> Option<Self> {
        let file = memfd_create(c"feedrate", MemfdFlags::CLOEXEC).ok()?;
        let mut piece = vec![1_u8; PIECES[1]];
        for _ in 0..BYTES / piece.len() {
            write(&file, &piece).ok()?;
        }
        let mut times_ns = [0.0; 2];
        for (time_ns, length) in times_ns.iter_mut().zip(PIECES) {
            let begun_ns = thread_cpu_ns();
            for at in (0..BYTES).step_by(length) {
                pread(&file, &mut piece[..length], at as u64).ok()?;
            }
            *time_ns = (thread_cpu_ns() - begun_ns) as f64;
        }
        let calls = PIECES.map(|length| (BYTES / length) as f64);
        let call_ns = ((times_ns[0] - times_ns[1]) / (calls[0] - calls[1])).max(0.0);
        Some(MemoryRead { call_ns, byte_ns: times_ns[1] / BYTES as f64 })
    }

    /// The part of `ran_ns` in a read of so many bytes.
    pub(super) fn beyond_ns(&self, ran_ns: u64, bytes: usize) -> u64 {
        ran_ns.saturating_sub((MARGIN * (self.call_ns + self.byte_ns * bytes as f64)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_read_from_memory_takes_is_the_clients() {
        let read = MemoryRead { call_ns: 200.0, byte_ns: 0.1 };
        assert_eq!([1000, 1500, 4000].map(|ran| read.beyond_ns(ran, 10_000)), [0, 0, 2500]);
        let here = MemoryRead::measure().unwrap();
        assert!(here.byte_ns > 0.0 && here.byte_ns < 100.0, "{here:?}");
    }
}
