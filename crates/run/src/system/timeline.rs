//! Samples the machine and the workers during a run, on a separate thread that training and reading never wait for.
//!
//! The session also takes a sample whenever an epoch, a checkpoint or a copy begins or ends. No sample extends over such a boundary.

use super::gpu::OpenGpus;
use super::proc::{DeviceReads, Proc, Totals};
use crate::clock::Clock;
use crate::comm::{CommError, RankNode};
use crate::driver::WorkProgress;
use crate::ranks::Ranks;
use feedrate_measure::record::timeline::{GpuSample, Sample, Timeline};
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Stack of the threads: the usual size, since a GPU driver's library may need it. Untouched pages take no memory.
const STACK_BYTES: usize = 2 << 20;

/// The sampling threads and their samples.
pub struct TimelineSampler {
    shared: Arc<SamplerShared>,
    thread: Option<JoinHandle<()>>,
    gpus: Option<JoinHandle<()>>,
}

struct SamplerShared {
    clock: Clock,
    stop: AtomicBool,
    /// Whether the GPUs are open. Loading their driver may take long, and the end of the run does not wait for it.
    gpus_opened: AtomicBool,
    state: Mutex<SamplerState>,
}

struct SamplerState {
    timeline: Timeline,
    proc: Proc,
    work: Vec<WorkProgress>,
    last_ns: u64,
    last: Totals,
    gpus: Vec<GpuSample>,
}

impl TimelineSampler {
    /// Starts sampling `work`, the machine and its GPUs. `device` is the `major:minor` of the disk under the dataset.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(
        clock: Clock,
        device: Option<&str>,
        device_reads: DeviceReads,
        work: Vec<WorkProgress>,
        open_gpus: OpenGpus,
    ) -> std::io::Result<Self> {
        let mut proc = Proc::open(device, device_reads);
        let last_ns = clock.now_ns();
        let last = totals(&mut proc, &work);
        let timeline = Timeline {
            gpus_unknown_because: Some("NVML had not answered yet".into()),
            ..Timeline::new(last_ns)
        };
        let state = SamplerState { timeline, proc, work, last_ns, last, gpus: Vec::new() };
        let shared = Arc::new(SamplerShared {
            clock,
            stop: AtomicBool::new(false),
            gpus_opened: AtomicBool::new(false),
            state: Mutex::new(state),
        });
        let mut sampler = TimelineSampler { shared, thread: None, gpus: None };
        sampler.thread = Some(sampler.spawn("timeline", SamplerShared::run)?);
        sampler.gpus = Some(sampler.spawn("gpus", move |shared| shared.run_gpus(open_gpus))?);
        Ok(sampler)
    }

    fn spawn(
        &self,
        name: &str,
        run: impl FnOnce(&SamplerShared) + Send + 'static,
    ) -> std::io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
        builder.spawn(move || run(&shared))
    }

    /// Ends the current sample, at the start or end of a piece of work.
    pub fn mark(&self) {
        self.shared.sample();
    }

    /// Runs `work`, and ends a sample at its start and at its end.
    pub fn sample_separately<T>(sampler: Option<&Self>, work: impl FnOnce() -> T) -> T {
        sampler.into_iter().for_each(Self::mark);
        let result = work();
        sampler.into_iter().for_each(Self::mark);
        result
    }

    /// Copies the final timeline. On rank 0 the copy includes the timelines of all processes.
    ///
    /// # Errors
    /// See [`CommError`].
    pub fn finish(
        sampler: Option<&Self>,
        ranks: &Ranks,
        timeline: &mut Option<Timeline>,
    ) -> Result<(), CommError> {
        if let Some(sampler) = sampler {
            sampler.copy_to(timeline);
        }
        if !ranks.is_distributed() {
            return Ok(());
        }
        let RankNode { node, local_rank, .. } = ranks.comm.node();
        let mut others =
            ranks.gather(&(timeline.clone(), node > 0 && local_rank == 0))?.into_iter();
        others.next();
        for (other, is_of_other_machine) in others {
            if let (Some(timeline), Some(other)) = (timeline.as_mut(), other) {
                timeline.add(&other, is_of_other_machine);
            }
        }
        Ok(())
    }

    /// Copies the current timeline.
    pub fn copy_to(&self, timeline: &mut Option<Timeline>) {
        *timeline = Some(self.shared.state().timeline.clone());
    }
}

impl Drop for TimelineSampler {
    fn drop(&mut self) {
        self.shared.stop.store(true, Release);
        let is_open = self.shared.gpus_opened.load(Acquire);
        let gpus = self.gpus.take().filter(|gpus| is_open || gpus.is_finished());
        for thread in self.thread.take().into_iter().chain(gpus) {
            thread.thread().unpark();
            // A panic was printed to stderr already; the samples taken before are kept.
            let _ = thread.join();
        }
    }
}

impl SamplerShared {
    fn run(&self) {
        self.every_interval(|| self.sample());
    }

    /// Samples the GPUs on a separate thread, since their driver may be slow. The timeline uses their latest samples.
    fn run_gpus(&self, open: OpenGpus) {
        let mut gpus = match open() {
            Ok(gpus) => gpus,
            Err(reason) => {
                self.state().timeline.gpus_unknown_because = Some(reason);
                return;
            }
        };
        self.gpus_opened.store(true, Release);
        let mut samples = Vec::new();
        gpus.sample(&mut samples);
        let names = gpus.names();
        let mut state = self.state();
        state.timeline.set_gpus(&names);
        state.gpus.clone_from(&samples);
        drop(state);
        self.every_interval(|| {
            gpus.sample(&mut samples);
            let mut state = self.state();
            state.gpus.clone_from(&samples);
            state.timeline.interval_ns
        });
    }

    /// Calls `work` periodically until the stop. `work` returns the interval to its next call.
    fn every_interval(&self, mut work: impl FnMut() -> u64) {
        let mut last_ns = self.clock.now_ns();
        let mut interval_ns = self.state().timeline.interval_ns;
        while !self.stop.load(Acquire) {
            let now_ns = self.clock.now_ns();
            if now_ns < last_ns + interval_ns {
                std::thread::park_timeout(Duration::from_nanos(last_ns + interval_ns - now_ns));
                continue;
            }
            interval_ns = work();
            // Missed intervals become one long sample instead of many empty ones.
            last_ns += (now_ns - last_ns) / interval_ns * interval_ns;
        }
    }

    /// Takes a sample and returns the interval to the next.
    fn sample(&self) -> u64 {
        let mut guard = self.state();
        let state = &mut *guard;
        let now_ns = self.clock.now_ns();
        let now = totals(&mut state.proc, &state.work);
        let sample = since(&mut state.last, now, now_ns.saturating_sub(state.last_ns));
        state.last_ns = now_ns;
        state.timeline.push(&sample, &state.gpus);
        state.timeline.interval_ns
    }

    fn state(&self) -> MutexGuard<'_, SamplerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn totals(proc: &mut Proc, work: &[WorkProgress]) -> Totals {
    let mut totals = proc.totals();
    totals.counts.read_bytes = Some(work.iter().map(WorkProgress::read_bytes).sum());
    totals.counts.operations = Some(work.iter().map(WorkProgress::operations).sum());
    totals
}

/// Returns the difference of `now` to `last` and updates `last`. Some counters of the kernel, such as the time waiting for I/O, may
/// decrease a little. They count again when they exceed their earlier maximum.
fn since(last: &mut Totals, now: Totals, duration_ns: u64) -> Sample {
    let added = now.since(*last);
    *last = now.max(*last);
    Sample { duration_ns, ..added.counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::gpu::Gpus;
    use std::sync::Condvar;

    #[test]
    fn a_counter_that_decreases_counts_from_its_maximum() {
        let totals = |ticks| {
            let counts = Sample { cpu_ticks: Some(ticks), ..Sample::default() };
            Totals { counts, ..Totals::default() }
        };
        let mut last = totals(100);
        let added = [110, 108, 109, 130].map(|ticks| since(&mut last, totals(ticks), 1).cpu_ticks);
        assert_eq!(added, [Some(10), Some(0), Some(0), Some(20)]);
        assert_eq!(since(&mut last, totals(131), 1).operations, None);
    }

    fn no_gpus() -> Result<Box<dyn Gpus>, String> {
        Err("there is none".into())
    }

    /// Two GPUs, of which the second reports no values.
    struct FakeGpus {
        samples_taken: u64,
    }

    /// Number of samples taken of the fake GPUs. At the second one, the first is in the timeline's state.
    static SAMPLED: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

    impl Gpus for FakeGpus {
        fn names(&self) -> Vec<String> {
            vec!["A".into(), "B".into()]
        }

        fn sample(&mut self, samples: &mut Vec<GpuSample>) {
            self.samples_taken += 1;
            *SAMPLED.0.lock().unwrap() = self.samples_taken;
            SAMPLED.1.notify_all();
            let first = GpuSample { utilisation_percent: Some(97), ..GpuSample::default() };
            *samples = vec![first, GpuSample::default()];
        }
    }

    #[test]
    fn gpus_are_sampled_once_they_are_open() {
        let open = || Ok(Box::new(FakeGpus { samples_taken: 0 }) as Box<dyn Gpus>);
        let sampler =
            TimelineSampler::start(Clock::new(), None, DeviceReads::Counted, Vec::new(), open)
                .unwrap();
        let sampled = SAMPLED.0.lock().unwrap();
        drop(SAMPLED.1.wait_while(sampled, |count| *count < 2).unwrap());
        sampler.mark();
        let mut copy = None;
        sampler.copy_to(&mut copy);
        let timeline = copy.unwrap();
        assert_eq!(timeline.gpus_unknown_because, None);
        let gpus = timeline.gpus.unwrap();
        assert_eq!((gpus[0].name.as_str(), gpus.len()), ("A", 2));
        assert_eq!(gpus[0].utilisation_percent.last(), Some(&Some(97)));
        assert!(gpus[1].utilisation_percent.iter().all(Option::is_none));
        assert_eq!(gpus[0].utilisation_percent.len(), timeline.duration_ns.len());
    }

    #[test]
    fn a_machine_without_gpus_has_a_reason() {
        let sampler =
            TimelineSampler::start(Clock::new(), None, DeviceReads::Counted, Vec::new(), no_gpus)
                .unwrap();
        let mut copy: Option<Timeline> = None;
        let reason = |copy: &Option<Timeline>| copy.as_ref()?.gpus_unknown_because.clone();
        while reason(&copy).is_none_or(|reason| reason != "there is none") {
            std::thread::yield_now();
            sampler.copy_to(&mut copy);
        }
        assert_eq!(copy.unwrap().gpus, None);
    }

    #[test]
    fn samples_are_contiguous_and_count_the_work_of_the_process() {
        let clock = Clock::new();
        let sampler =
            TimelineSampler::start(clock, None, DeviceReads::Counted, Vec::new(), no_gpus).unwrap();
        let folder = tempfile::tempdir().unwrap();
        sampler.mark();
        let start_ns = clock.now_ns();
        std::fs::write(folder.path().join("a"), vec![1; 300_000]).unwrap();
        sampler.mark();
        let mut copy = None;
        sampler.copy_to(&mut copy);
        let timeline = copy.unwrap();
        assert!(start_ns <= *timeline.ends_ns().last().unwrap());
        let written = timeline.written_bytes.as_ref().unwrap();
        assert!(300_000 <= written.iter().sum::<u64>(), "{written:?}");
        assert_eq!(timeline.read_bytes, Some(vec![0; timeline.len()]));
        assert_eq!(timeline.device_read_bytes, None);
        assert!(timeline.cpu_ticks.is_some() && timeline.process_cpu_ns.is_some());
        assert!(timeline.cached_bytes.unwrap()[0] > 0);
    }
}
