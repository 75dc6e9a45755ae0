//! A barrier for the ranks of one machine in shared memory. Waiting ranks sleep on a futex and are woken at once when the last rank
//! arrives. It is several times cheaper than polling an MPI library, above all if ranks outnumber cores.

use rustix::fs::{FallocateFlags, Mode, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::shm;
use rustix::thread::futex;
use rustix::time::Timespec;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

/// Maximum sleep. After each sleep, the caller checks for other reasons to end the wait.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// Counters shared by the ranks, initially 0.
#[repr(C)]
struct SharedCounters {
    /// Ranks that have arrived at the barrier.
    arrived: AtomicU32,
    /// Barriers at which all ranks have arrived.
    full: AtomicU32,
    /// Barriers that have opened.
    opened: AtomicU32,
    /// Number of sleeping ranks, which have to be woken after a change.
    sleepers: AtomicU32,
}

/// One rank's handle of the barrier.
pub(super) struct SharedBarrier {
    shared: NonNull<SharedCounters>,
    ranks: u32,
}

// SAFETY: the shared counters are atomic, and mapped until the handle is dropped.
unsafe impl Send for SharedBarrier {}
// SAFETY: as above.
unsafe impl Sync for SharedBarrier {}

impl SharedBarrier {
    /// Creates the barrier of `ranks` ranks. The memory is reserved at once: without free memory this call fails, rather than a
    /// later access with SIGBUS.
    pub(super) fn create(name: &str, ranks: u32) -> Result<Self, Errno> {
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let file = shm::open(name, flags, Mode::RUSR | Mode::WUSR)?;
        fallocate(&file, FallocateFlags::empty(), 0, size_of::<SharedCounters>() as u64)?;
        SharedBarrier::map(&file, ranks)
    }

    /// Opens a barrier that another rank has created.
    pub(super) fn open(name: &str, ranks: u32) -> Result<Self, Errno> {
        let file = shm::open(name, shm::OFlags::RDWR, Mode::empty())?;
        SharedBarrier::map(&file, ranks)
    }

    /// Removes the name of a barrier. Ranks that have opened it can continue to use it.
    pub(super) fn unlink(name: &str) {
        let _ = shm::unlink(name);
    }

    fn map(file: impl std::os::fd::AsFd, ranks: u32) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; it is entirely within the file, which is never
        // truncated.
        let shared = unsafe {
            mmap(
                std::ptr::null_mut(),
                size_of::<SharedCounters>(),
                access,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(SharedBarrier { shared: NonNull::new(shared.cast()).ok_or(Errno::NOMEM)?, ranks })
    }

    fn shared(&self) -> &SharedCounters {
        // SAFETY: mapped as long as `self` lives, page-aligned, and every bit pattern is a valid value.
        unsafe { self.shared.as_ref() }
    }

    /// Arrives at the barrier and returns its number.
    pub(super) fn arrive(&self) -> u32 {
        let shared = self.shared();
        let number = shared.opened.load(Acquire);
        if shared.arrived.fetch_add(1, SeqCst) + 1 == self.ranks {
            self.increment(&shared.full);
        }
        number
    }

    /// Opens the barrier. Called by one rank when all have arrived.
    pub(super) fn release(&self) {
        self.shared().arrived.store(0, Relaxed);
        self.increment(&self.shared().opened);
    }

    /// Whether barrier `number` has reached `stage`.
    pub(super) fn has_reached(&self, stage: BarrierStage, number: u32) -> bool {
        self.counter(stage).load(Acquire) != number
    }

    /// Sleeps until barrier `number` has reached `stage`, at most for [`SLEEP_MAX`].
    pub(super) fn sleep(&self, stage: BarrierStage, number: u32) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(SLEEP_MAX.subsec_nanos()) };
        let sleepers = &self.shared().sleepers;
        // A change is made before sleepers are counted, so a rank either is counted or sees the change.
        sleepers.fetch_add(1, SeqCst);
        let _ = futex::wait(self.counter(stage), futex::Flags::empty(), number, Some(&timeout));
        sleepers.fetch_sub(1, Release);
    }

    /// Increments a counter and wakes the sleepers.
    fn increment(&self, counter: &AtomicU32) {
        counter.fetch_add(1, SeqCst);
        if self.shared().sleepers.load(SeqCst) > 0 {
            let _ = futex::wake(counter, futex::Flags::empty(), self.ranks);
        }
    }

    fn counter(&self, stage: BarrierStage) -> &AtomicU32 {
        match stage {
            BarrierStage::Full => &self.shared().full,
            BarrierStage::Open => &self.shared().opened,
        }
    }
}

/// Stages of one barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierStage {
    /// All ranks of the machine have arrived.
    Full,
    /// The ranks may continue.
    Open,
}

impl Drop for SharedBarrier {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size; no references into it are left.
        let _ = unsafe { munmap(self.shared.as_ptr().cast(), size_of::<SharedCounters>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn no_rank_passes_before_all_have_arrived() {
        const RANKS: u32 = 5;
        const ROUNDS: u64 = 500;
        let name = format!("/feedrate-test-{}", std::process::id());
        let first = SharedBarrier::create(&name, RANKS).unwrap();
        let others = (1..RANKS).map(|_| SharedBarrier::open(&name, RANKS).unwrap());
        let barriers: Vec<SharedBarrier> = std::iter::once(first).chain(others).collect();
        SharedBarrier::unlink(&name);
        let arrivals = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for (i, barrier) in barriers.iter().enumerate() {
                let arrivals = &arrivals;
                let is_leader = i == 0;
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        arrivals.fetch_add(1, SeqCst);
                        let number = barrier.arrive();
                        let stage = if is_leader { BarrierStage::Full } else { BarrierStage::Open };
                        while !barrier.has_reached(stage, number) {
                            barrier.sleep(stage, number);
                        }
                        if is_leader {
                            barrier.release();
                        }
                        assert!(arrivals.load(SeqCst) >= round * u64::from(RANKS));
                    }
                });
            }
        });
        assert_eq!(arrivals.load(SeqCst), ROUNDS * u64::from(RANKS));
    }

    #[test]
    fn a_missing_barrier_cannot_be_opened() {
        assert_eq!(SharedBarrier::open("/feedrate-test-nothing", 2).err(), Some(Errno::NOENT));
    }
}
