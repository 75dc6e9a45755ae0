//! Samples the machine and the workers while a run goes on, on a thread of its own. Those who train and read never wait for it.
//!
//! Between blocks the session takes a sample itself wherever something begins or ends, so that no sample lies astride.

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

/// The usual, for a driver's library may need it; pages that are not touched cost nothing.
const STACK_BYTES: usize = 2 << 20;

/// The threads, and what they have seen.
pub struct TimelineSampler {
    shared: Arc<SamplerShared>,
    thread: Option<JoinHandle<()>>,
    gpus: Option<JoinHandle<()>>,
}

struct SamplerShared {
    clock: Clock,
    stop: AtomicBool,
    /// Nobody waits for a driver that is being woken.
    gpus_opened: AtomicBool,
    taken: Mutex<Taken>,
}

struct Taken {
    timeline: Timeline,
    proc: Proc,
    work: Vec<WorkProgress>,
    last_ns: u64,
    last: Totals,
    gpus: Vec<GpuSample>,
}

impl TimelineSampler {
    /// Start sampling what `work` does and what the machine and its GPUs do; `device` is the `major:minor` under the dataset.
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
        let taken = Taken { timeline, proc, work, last_ns, last, gpus: Vec::new() };
        let shared = Arc::new(SamplerShared {
            clock,
            stop: AtomicBool::new(false),
            gpus_opened: AtomicBool::new(false),
            taken: Mutex::new(taken),
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

    /// Something begins or ends: so does a sample.
    pub fn mark(&self) {
        self.shared.sample();
    }

    /// Do `act` so that no sample lies across its start or end, where somebody samples.
    pub fn apart<T>(sampler: Option<&Self>, act: impl FnOnce() -> T) -> T {
        sampler.into_iter().for_each(Self::mark);
        let done = act();
        sampler.into_iter().for_each(Self::mark);
        done
    }

    /// Bring a copy up to date for the last time: on rank 0 it is then of all processes.
    ///
    /// # Errors
    /// As of [`CommError`].
    pub fn finish(
        sampler: Option<&Self>,
        ranks: &Ranks,
        timeline: &mut Option<Timeline>,
    ) -> Result<(), CommError> {
        if let Some(sampler) = sampler {
            sampler.copy_to(timeline);
        }
        if !ranks.are_many() {
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

    /// Bring a copy up to date.
    pub fn copy_to(&self, timeline: &mut Option<Timeline>) {
        *timeline = Some(self.shared.taken().timeline.clone());
    }
}

impl Drop for TimelineSampler {
    fn drop(&mut self) {
        self.shared.stop.store(true, Release);
        let is_open = self.shared.gpus_opened.load(Acquire);
        let gpus = self.gpus.take().filter(|gpus| is_open || gpus.is_finished());
        for thread in self.thread.take().into_iter().chain(gpus) {
            thread.thread().unpark();
            // A thread that panicked has told its story on stderr; the samples before are kept.
            let _ = thread.join();
        }
    }
}

impl SamplerShared {
    fn run(&self) {
        self.every_interval(|| self.sample());
    }

    /// Look at GPUs beside the sampling, which takes what they showed last: a driver may take its time.
    fn run_gpus(&self, open: OpenGpus) {
        let mut gpus = match open() {
            Ok(gpus) => gpus,
            Err(why) => {
                self.taken().timeline.gpus_unknown_because = Some(why);
                return;
            }
        };
        self.gpus_opened.store(true, Release);
        let mut shown = Vec::new();
        gpus.look(&mut shown);
        let names = gpus.names();
        let mut taken = self.taken();
        taken.timeline.set_gpus(&names);
        taken.gpus.clone_from(&shown);
        drop(taken);
        self.every_interval(|| {
            gpus.look(&mut shown);
            let mut taken = self.taken();
            taken.gpus.clone_from(&shown);
            taken.timeline.interval_ns
        });
    }

    /// `act` returns the time from one to the next.
    fn every_interval(&self, mut act: impl FnMut() -> u64) {
        let mut next_ns = self.clock.now_ns();
        let mut interval_ns = self.taken().timeline.interval_ns;
        while !self.stop.load(Acquire) {
            let now_ns = self.clock.now_ns();
            if now_ns < next_ns + interval_ns {
                std::thread::park_timeout(Duration::from_nanos(next_ns + interval_ns - now_ns));
                continue;
            }
            interval_ns = act();
            // What was slept through is one long sample, not many empty ones.
            next_ns += (now_ns - next_ns) / interval_ns * interval_ns;
        }
    }

    /// Returns the time to the next.
    fn sample(&self) -> u64 {
        let mut taken = self.taken();
        let taken = &mut *taken;
        let now_ns = self.clock.now_ns();
        let now = totals(&mut taken.proc, &taken.work);
        let sample = since(&mut taken.last, now, now_ns.saturating_sub(taken.last_ns));
        taken.last_ns = now_ns;
        taken.timeline.push(&sample, &taken.gpus);
        taken.timeline.interval_ns
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn totals(proc: &mut Proc, work: &[WorkProgress]) -> Totals {
    let read_bytes = work.iter().map(WorkProgress::read_bytes).sum();
    let operations = work.iter().map(WorkProgress::operations).sum();
    let mut totals = proc.totals();
    (totals.counts.read_bytes, totals.counts.operations) = (Some(read_bytes), Some(operations));
    totals
}

/// Everything added to `last`, which becomes `now`. Some counters of the kernel (time waiting for I/O) may step back a little: they
/// count again from where they were.
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
    fn a_counter_that_steps_back_counts_on_from_where_it_was() {
        let totals = |ticks| {
            let counts = Sample { cpu_ticks: Some(ticks), ..Sample::default() };
            Totals { counts, ..Totals::default() }
        };
        let mut last = totals(100);
        let seen = [110, 108, 109, 130].map(|ticks| since(&mut last, totals(ticks), 1).cpu_ticks);
        assert_eq!(seen, [Some(10), Some(0), Some(0), Some(20)]);
        assert_eq!(since(&mut last, totals(131), 1).operations, None);
    }

    fn none() -> Result<Box<dyn Gpus>, String> {
        Err("there is none".into())
    }

    /// Shows how often it was looked at. The second tells nothing.
    struct Fake {
        looks: u64,
    }

    /// Told when the fake is looked at for the second time: what it showed first has been taken then.
    static LOOKED: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

    impl Gpus for Fake {
        fn names(&self) -> Vec<String> {
            vec!["A".into(), "B".into()]
        }

        fn look(&mut self, shown: &mut Vec<GpuSample>) {
            self.looks += 1;
            *LOOKED.0.lock().unwrap() = self.looks;
            LOOKED.1.notify_all();
            let first = GpuSample { utilisation_percent: Some(97), ..GpuSample::default() };
            *shown = vec![first, GpuSample::default()];
        }
    }

    #[test]
    fn gpus_are_seen_from_when_they_are_known() {
        let open = || Ok(Box::new(Fake { looks: 0 }) as Box<dyn Gpus>);
        let sampler =
            TimelineSampler::start(Clock::new(), None, DeviceReads::Counted, Vec::new(), open)
                .unwrap();
        let looked = LOOKED.0.lock().unwrap();
        drop(LOOKED.1.wait_while(looked, |looks| *looks < 2).unwrap());
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
    fn a_machine_without_gpus_says_so() {
        let sampler =
            TimelineSampler::start(Clock::new(), None, DeviceReads::Counted, Vec::new(), none)
                .unwrap();
        let mut copy: Option<Timeline> = None;
        let why = |copy: &Option<Timeline>| copy.as_ref()?.gpus_unknown_because.clone();
        while why(&copy).is_none_or(|why| why != "there is none") {
            std::thread::yield_now();
            sampler.copy_to(&mut copy);
        }
        assert_eq!(copy.unwrap().gpus, None);
    }

    #[test]
    fn samples_follow_one_another_and_see_what_the_process_does() {
        let clock = Clock::new();
        let sampler =
            TimelineSampler::start(clock, None, DeviceReads::Counted, Vec::new(), none).unwrap();
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
