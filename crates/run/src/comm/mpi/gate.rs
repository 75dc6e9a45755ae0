//! A barrier of the ranks of one machine, in memory that they share: who waits sleeps in the kernel until the last has come, and
//! is woken at once. Several times cheaper than asking a library again and again, above all where ranks outnumber cores.

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

/// Sleepers look around so often.
const LOOK: Duration = Duration::from_millis(20);

/// Shared by the ranks: zeros at first.
#[repr(C)]
struct SharedCounters {
    /// Ranks that have come to the barrier.
    arrived: AtomicU32,
    /// Barriers that all have come to.
    full: AtomicU32,
    /// Barriers that have opened.
    opened: AtomicU32,
    /// Sleepers, whom the one who changes something has to wake.
    sleepers: AtomicU32,
}

/// A rank's side of it.
pub(super) struct Gate {
    shared: NonNull<SharedCounters>,
    ranks: u32,
}

// SAFETY: all that is shared is atomic, and mapped until the last side of this process is dropped.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl Gate {
    /// Make it, by one of `ranks`. The memory is reserved: where none is left this fails, and no touch of it does later (SIGBUS).
    pub(super) fn make(name: &str, ranks: u32) -> Result<Self, Errno> {
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let file = shm::open(name, flags, Mode::RUSR | Mode::WUSR)?;
        fallocate(&file, FallocateFlags::empty(), 0, size_of::<SharedCounters>() as u64)?;
        Gate::map(&file, ranks)
    }

    /// Open what another has made.
    pub(super) fn open(name: &str, ranks: u32) -> Result<Self, Errno> {
        let file = shm::open(name, shm::OFlags::RDWR, Mode::empty())?;
        Gate::map(&file, ranks)
    }

    /// Those who have it keep it; the name goes.
    pub(super) fn forget_name(name: &str) {
        let _ = shm::unlink(name);
    }

    fn map(file: impl std::os::fd::AsFd, ranks: u32) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; all of it is in the file, which nobody
        // shortens.
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
        Ok(Gate { shared: NonNull::new(shared.cast()).ok_or(Errno::NOMEM)?, ranks })
    }

    fn shared(&self) -> &SharedCounters {
        // SAFETY: mapped for as long as `self` lives, page-aligned, and any bits are values of its atomics.
        unsafe { self.shared.as_ref() }
    }

    /// Come to the barrier; returns its number.
    pub(super) fn arrive(&self) -> u32 {
        let shared = self.shared();
        let number = shared.opened.load(Acquire);
        if shared.arrived.fetch_add(1, SeqCst) + 1 == self.ranks {
            self.change(&shared.full);
        }
        number
    }

    /// Let all go on. By one rank only, once all have come.
    pub(super) fn open_up(&self) {
        self.shared().arrived.store(0, Relaxed);
        self.change(&self.shared().opened);
    }

    /// Whether the barrier of that number has come as far as `stage`.
    pub(super) fn is(&self, stage: GateStage, number: u32) -> bool {
        self.counter(stage).load(Acquire) != number
    }

    /// Sleep until it has, or for a while.
    pub(super) fn sleep(&self, stage: GateStage, number: u32) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        let sleepers = &self.shared().sleepers;
        // Who changes the counter looks for sleepers after that; a sleeper that comes later sees the change.
        sleepers.fetch_add(1, SeqCst);
        let _ = futex::wait(self.counter(stage), futex::Flags::empty(), number, Some(&timeout));
        sleepers.fetch_sub(1, Release);
    }

    fn change(&self, counter: &AtomicU32) {
        counter.fetch_add(1, SeqCst);
        if self.shared().sleepers.load(SeqCst) > 0 {
            let _ = futex::wake(counter, futex::Flags::empty(), self.ranks);
        }
    }

    fn counter(&self, stage: GateStage) -> &AtomicU32 {
        match stage {
            GateStage::Full => &self.shared().full,
            GateStage::Open => &self.shared().opened,
        }
    }
}

/// The progress of one barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateStage {
    /// All of the machine have come.
    Full,
    /// They may go on.
    Open,
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size; nobody has a reference into it any more.
        let _ = unsafe { munmap(self.shared.as_ptr().cast(), size_of::<SharedCounters>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_passes_before_all_have_come() {
        const RANKS: u32 = 5;
        const ROUNDS: u64 = 500;
        let name = format!("/feedrate-test-{}", std::process::id());
        let first = Gate::make(&name, RANKS).unwrap();
        let others = (1..RANKS).map(|_| Gate::open(&name, RANKS).unwrap());
        let gates: Vec<Gate> = std::iter::once(first).chain(others).collect();
        Gate::forget_name(&name);
        let came = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for (i, gate) in gates.iter().enumerate() {
                let (came, leads) = (&came, i == 0);
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        came.fetch_add(1, SeqCst);
                        let number = gate.arrive();
                        let stage = if leads { GateStage::Full } else { GateStage::Open };
                        while !gate.is(stage, number) {
                            gate.sleep(stage, number);
                        }
                        if leads {
                            gate.open_up();
                        }
                        assert!(came.load(SeqCst) >= round * u64::from(RANKS));
                    }
                });
            }
        });
        assert_eq!(came.load(SeqCst), ROUNDS * u64::from(RANKS));
    }

    #[test]
    fn what_is_not_there_cannot_be_opened() {
        assert_eq!(Gate::open("/feedrate-test-nothing", 2).err(), Some(Errno::NOENT));
    }
}
