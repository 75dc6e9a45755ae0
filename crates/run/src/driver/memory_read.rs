//! Measures the processor time of reads from the page cache. The costs of an emulated client were measured on cached data and include this
//! time. If a read takes more processor time, such as for freeing pages in the page cache, the excess is charged to the storage.

use crate::clock::thread_cpu_ns;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, write};

/// Size of the file that is read: more than a core's caches hold.
const BYTES: usize = 16 << 20;
/// Sizes of the reads that are compared.
const PIECES: [usize; 2] = [4 << 10, 256 << 10];

/// Factor by which a read may exceed the measured cost before it counts as an excess. Repeated measurements vary by as much.
const MARGIN: f64 = 1.25;

/// Processor time of a read from memory, in nanoseconds: a part for each call and a part for each byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryRead {
    call_ns: f64,
    byte_ns: f64,
}

impl MemoryRead {
    /// Measures the costs on this machine, in about 20 ms. Returns `None` if no file can be created in memory.
    pub(super) fn measure() -> Option<Self> {
        let file = memfd_create(c"feedrate", MemfdFlags::CLOEXEC).ok()?;
        let mut piece = vec![1_u8; PIECES[1]];
        for _ in 0..BYTES / piece.len() {
            write(&file, &piece).ok()?;
        }
        let mut times_ns = [0.0; 2];
        for (time_ns, length) in times_ns.iter_mut().zip(PIECES) {
            let start_ns = thread_cpu_ns();
            for offset in (0..BYTES).step_by(length) {
                pread(&file, &mut piece[..length], offset as u64).ok()?;
            }
            *time_ns = (thread_cpu_ns() - start_ns) as f64;
        }
        let calls = PIECES.map(|length| (BYTES / length) as f64);
        let call_ns = ((times_ns[0] - times_ns[1]) / (calls[0] - calls[1])).max(0.0);
        Some(MemoryRead { call_ns, byte_ns: times_ns[1] / BYTES as f64 })
    }

    /// Returns the part of `cpu_ns`, the processor time of a read of `bytes` bytes, that exceeds a read from memory.
    pub(super) fn excess_ns(&self, cpu_ns: u64, bytes: usize) -> u64 {
        cpu_ns.saturating_sub((MARGIN * (self.call_ns + self.byte_ns * bytes as f64)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_excess_processor_time_is_charged_to_the_storage() {
        let read = MemoryRead { call_ns: 200.0, byte_ns: 0.1 };
        assert_eq!([1000, 1500, 4000].map(|cpu_ns| read.excess_ns(cpu_ns, 10_000)), [0, 0, 2500]);
        let here = MemoryRead::measure().unwrap();
        assert!(here.byte_ns > 0.0 && here.byte_ns < 100.0, "{here:?}");
    }
}
