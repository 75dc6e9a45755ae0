//! Samples what happens while a run goes on, on a thread of its own. Those who train and read never wait for it.
//!
//! Between blocks the session takes a sample itself wherever something begins or ends, so that no sample lies astride.

use super::proc::{Proc, Totals};
use crate::clock::Clock;
use crate::drive::Progress;
use feedrate_measure::record::timeline::{Sample, Timeline};
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A look at the kernel's lists of processors and disks; it needs no more.
const STACK_BYTES: usize = 128 << 10;

/// The thread, and what it has seen.
pub struct TimelineSampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    clock: Clock,
    stop: AtomicBool,
    taken: Mutex<Taken>,
}

struct Taken {
    timeline: Timeline,
    proc: Proc,
    work: Vec<Progress>,
    last_ns: u64,
    last: Totals,
}

impl TimelineSampler {
    /// Start sampling what `work` does and what the machine does; `device` is the `major:minor` under the dataset.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(clock: Clock, device: Option<&str>, work: Vec<Progress>) -> std::io::Result<Self> {
        let mut proc = Proc::open(device);
        let last_ns = clock.now_ns();
        let last = totals(&mut proc, &work);
        let timeline = Timeline::new(last_ns);
        let taken = Mutex::new(Taken { timeline, proc, work, last_ns, last });
        let shared = Arc::new(Shared { clock, stop: AtomicBool::new(false), taken });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("timeline".into())
            .stack_size(STACK_BYTES)
            .spawn(move || own.run())?;
        Ok(TimelineSampler { shared, thread: Some(thread) })
    }

    /// Something begins or ends: so does a sample.
    pub fn mark(&self) {
        self.shared.sample();
    }

    /// Bring a copy up to date.
    pub fn copy_to(&self, timeline: &mut Option<Timeline>) {
        let mut taken = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        timeline.get_or_insert_default().follow(&mut taken.timeline);
    }
}

impl Drop for TimelineSampler {
    fn drop(&mut self) {
        self.shared.stop.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has told its story on stderr; the samples before are kept.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut next_ns = self.clock.now_ns();
        let mut interval_ns = self.interval_ns();
        while !self.stop.load(Acquire) {
            let now_ns = self.clock.now_ns();
            if now_ns < next_ns + interval_ns {
                std::thread::park_timeout(Duration::from_nanos(next_ns + interval_ns - now_ns));
                continue;
            }
            interval_ns = self.sample();
            // What was slept through is one long sample, not many empty ones.
            next_ns += (now_ns - next_ns) / interval_ns * interval_ns;
        }
    }

    fn interval_ns(&self) -> u64 {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).timeline.interval_ns
    }

    /// Returns the time to the next.
    fn sample(&self) -> u64 {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = &mut *taken;
        let now_ns = self.clock.now_ns();
        let now = totals(&mut taken.proc, &taken.work);
        let sample = since(&mut taken.last, now, now_ns.saturating_sub(taken.last_ns));
        taken.last_ns = now_ns;
        taken.timeline.push(&sample, &[]);
        taken.timeline.interval_ns
    }
}

fn totals(proc: &mut Proc, work: &[Progress]) -> Totals {
    let read_bytes = work.iter().map(Progress::read_bytes).sum();
    let operations = work.iter().map(Progress::operations).sum();
    Totals { read_bytes: Some(read_bytes), operations: Some(operations), ..proc.totals() }
}

/// What was added to `last`, which becomes `now`. Some counters of the kernel (time waiting for I/O) may step back a little: they
/// count again from where they were.
fn since(last: &mut Totals, now: Totals, duration_ns: u64) -> Sample {
    let added = |last: &mut Option<u64>, now: Option<u64>| {
        let added = now?.saturating_sub((*last)?);
        *last = now.max(*last);
        Some(added)
    };
    Sample {
        duration_ns,
        read_bytes: added(&mut last.read_bytes, now.read_bytes),
        operations: added(&mut last.operations, now.operations),
        written_bytes: added(&mut last.written_bytes, now.written_bytes),
        process_device_read_bytes: added(
            &mut last.process_device_read_bytes,
            now.process_device_read_bytes,
        ),
        device_read_bytes: added(&mut last.device_read_bytes, now.device_read_bytes),
        device_written_bytes: added(&mut last.device_written_bytes, now.device_written_bytes),
        cpu_busy_ticks: added(&mut last.cpu_busy_ticks, now.cpu_busy_ticks),
        cpu_ticks: added(&mut last.cpu_ticks, now.cpu_ticks),
        process_cpu_ns: added(&mut last.process_cpu_ns, now.process_cpu_ns),
        cached_bytes: now.cached_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_steps_back_counts_on_from_where_it_was() {
        let totals = |ticks| Totals { cpu_ticks: Some(ticks), ..Totals::default() };
        let mut last = totals(100);
        let seen = [110, 108, 109, 130].map(|ticks| since(&mut last, totals(ticks), 1).cpu_ticks);
        assert_eq!(seen, [Some(10), Some(0), Some(0), Some(20)]);
        assert_eq!(since(&mut last, totals(131), 1).operations, None);
    }

    #[test]
    fn samples_follow_one_another_and_see_what_the_process_does() {
        let clock = Clock::new();
        let sampler = TimelineSampler::start(clock, None, Vec::new()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        sampler.mark();
        let begun_ns = clock.now_ns();
        std::fs::write(folder.path().join("a"), vec![1; 300_000]).unwrap();
        sampler.mark();
        let mut copy = None;
        sampler.copy_to(&mut copy);
        let timeline = copy.unwrap();
        assert!(begun_ns <= *timeline.ends_ns().last().unwrap());
        let written = timeline.written_bytes.as_ref().unwrap();
        assert!(300_000 <= written.iter().sum::<u64>(), "{written:?}");
        assert_eq!(timeline.read_bytes, Some(vec![0; timeline.len()]));
        assert_eq!(timeline.device_read_bytes, None);
        assert!(timeline.cpu_ticks.is_some() && timeline.process_cpu_ns.is_some());
        assert!(timeline.cached_bytes.unwrap()[0] > 0);
    }
}
