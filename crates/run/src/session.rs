//! One run: epoch after epoch, with what the machine did, into a record that is whole at every moment.

use crate::checkpoint::{Due, Saved, Saver};
use crate::clock::Clock;
use crate::comm::End;
use crate::driver::{Epoch, RealDriver, RunError};
use crate::ranks::Ranks;
use crate::system::{Residency, Sampler, TimelineSampler, file_bytes, residency};
use feedrate_data::storage::{Storage, StorageError};
use feedrate_measure::record::{AcceleratorEpoch, EpochRecord, HostEpoch, Record, System};
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{Cache, Plan, PlanDoubt};
use feedrate_spec::shape::FileShape;
use feedrate_spec::units;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

/// Files that are read at once into the page cache.
const WARM_THREADS: usize = 8;
/// Share of the dataset that may be said to be all of it: the kernel needs memory for itself too.
const WARM_SHARE_MIN: f64 = 0.95;

/// A run, beside its drivers.
pub struct Session<'a> {
    /// The plan that is run.
    pub plan: &'a Plan,
    /// The processes of the run.
    pub ranks: &'a Ranks,
    /// Where the files are.
    pub layout: &'a Layout,
    /// The bare storage, for eviction and residency.
    pub storage: &'a dyn Storage,
    /// The run's clock.
    pub clock: Clock,
    /// `major:minor` under the dataset.
    pub device: Option<&'a str>,
    /// Who samples what happens; `None` where nobody does.
    pub timeline: Option<&'a TimelineSampler>,
    /// Local time in DLIO's form.
    pub wall: &'a dyn Fn(SystemTime) -> String,
    /// Whether the user wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Called after each epoch with the record so far.
    pub on_epoch: &'a mut dyn FnMut(&Record),
}

/// The drivers of epochs, and of evaluations where there are any.
pub struct Drivers<'d> {
    /// For training.
    pub training: &'d mut RealDriver,
    /// For evaluations, over their own files.
    pub evaluation: Option<&'d mut RealDriver>,
}

impl Session<'_> {
    /// Run all epochs of the plan into `record`.
    ///
    /// # Errors
    /// A sample could not be read; the record holds the epochs before, and what there is of this one.
    pub fn run(&mut self, drivers: Drivers<'_>, record: &mut Record) -> Result<(), RunError> {
        let checkpoint = self.plan.checkpoint.as_ref();
        let mut saver = checkpoint.map(|plan| Saver::new(plan, self.clock, self.ranks.clone()));
        let outcome = self.epochs(drivers, &mut saver, record);
        match &outcome {
            Ok(Ended::Complete) => {}
            Ok(Ended::Interrupted) => self.ranks.comm.give_up(End::Interrupted),
            Err(error) => self.ranks.comm.give_up(error.end()),
        }
        // What is being written is waited for however the run ended.
        let finished = match &mut saver {
            Some(saver) => TimelineSampler::apart(self.timeline, || saver.finish()),
            None => Ok(()),
        };
        place(&mut saver, record);
        let ended = outcome.and_then(|ended| finished.map(|()| ended).map_err(RunError::from));
        match ended {
            Ok(Ended::Complete) => {
                TimelineSampler::finish(self.timeline, self.ranks, &mut record.timeline)?;
                record.complete = true;
                Ok(())
            }
            ended => {
                self.copy_timeline(record);
                ended.map(|_| ())
            }
        }
    }

    fn epochs(
        &mut self,
        drivers: Drivers<'_>,
        saver: &mut Option<Saver>,
        record: &mut Record,
    ) -> Result<Ended, RunError> {
        let Drivers { training, mut evaluation } = drivers;
        let mut last = None;
        for number in 1..=self.plan.train.epochs_run() {
            let before = self.prepare_cache(last)?;
            self.ranks.comm.barrier()?;
            let trained = self.epoch(number, saver, training, before, record);
            last = Some(trained.residency);
            let outcome = trained.outcome.and_then(|steps| {
                self.checkpoint(number, steps, saver)?;
                match &mut evaluation {
                    Some(driver) if !(self.interrupted)() => self.evaluate(number, driver, record),
                    _ => Ok(()),
                }
            });
            place(saver, record);
            self.copy_timeline(record);
            (self.on_epoch)(record);
            outcome?;
            if (self.interrupted)() {
                record.stopped_because = Some("interrupted".into());
                return Ok(Ended::Interrupted);
            }
        }
        Ok(Ended::Complete)
    }

    /// Train for one epoch.
    fn epoch(
        &self,
        number: u32,
        saver: &mut Option<Saver>,
        driver: &mut RealDriver,
        before: Residency,
        record: &mut Record,
    ) -> Trained {
        let steps = self.plan.train.steps_in_epoch(number);
        let sampler = Sampler::start(self.device, self.clock);
        let epoch = TimelineSampler::apart(self.timeline, || {
            driver.epoch(steps, &mut |step| {
                self.save(saver, Due { epoch: number, steps: step, step })
            })
        });
        let host = sampler.finish();
        let now_ns = driver.now_ns();
        let residency = self.residency();
        let host = HostEpoch {
            resident_before_bytes: before.bytes,
            resident_after_bytes: residency.bytes,
            resident_sampled_share: before.sampled_share,
            ..host
        };
        let (own, outcome) = self.written(number, epoch, now_ns, host, record);
        if self.ranks.is_first() {
            let doubts = self.cache_doubts(&own, record.machines());
            record.doubts.extend(doubts);
        }
        record.epochs.push(own);
        Trained { outcome: outcome.map(|()| steps), residency }
    }

    /// The evaluation that is due after an epoch.
    fn evaluate(
        &self,
        number: u32,
        driver: &mut RealDriver,
        record: &mut Record,
    ) -> Result<(), RunError> {
        let Some(plan) = &self.plan.evaluation else { return Ok(()) };
        if !plan.is_due(number) {
            return Ok(());
        }
        self.ranks.comm.barrier()?;
        let sampler = Sampler::start(self.device, self.clock);
        let epoch = TimelineSampler::apart(self.timeline, || {
            driver.epoch(plan.train.steps_per_epoch, &mut |_| Ok(()))
        });
        let (host, now_ns) = (sampler.finish(), driver.now_ns());
        let (own, outcome) = self.written(number, epoch, now_ns, host, record);
        record.evaluations.push(own);
        outcome
    }

    /// An epoch as the record has it: on rank 0 that of all processes, where all came to its end.
    fn written(
        &self,
        number: u32,
        epoch: Epoch,
        now_ns: u64,
        host: HostEpoch,
        record: &Record,
    ) -> (EpochRecord, Result<(), RunError>) {
        let (start_ns, end_ns) = extent(&epoch.accelerators, now_ns);
        let own = EpochRecord {
            number,
            start_ns,
            end_ns,
            started: String::new(),
            ended: String::new(),
            accelerators: epoch.accelerators,
            host,
            nodes: Vec::new(),
            checkpoints: Vec::new(),
        };
        let (epoch, outcome) = match epoch.failure {
            Some(failure) => (own, Err(failure)),
            None if !self.ranks.are_many() || (self.interrupted)() => (own, Ok(())),
            None => match self.ranks.gather(&own) {
                Ok(parts) if parts.is_empty() => (own, Ok(())),
                Ok(parts) => {
                    let (processes, machines) = (&record.processes, record.machines());
                    (EpochRecord::of_processes(parts, processes, machines), Ok(()))
                }
                Err(error) => (own, Err(error.into())),
            },
        };
        let started = (self.wall)(self.clock.wall_at(epoch.start_ns));
        let ended = (self.wall)(self.clock.wall_at(epoch.end_ns));
        (EpochRecord { started, ended, ..epoch }, outcome)
    }

    /// The checkpoint that is due after an epoch.
    fn checkpoint(
        &self,
        epoch: u32,
        steps: u64,
        saver: &mut Option<Saver>,
    ) -> Result<(), RunError> {
        let Some(plan) = &self.plan.checkpoint else { return Ok(()) };
        let step = match plan.steps_between {
            Some(between) if steps.is_multiple_of(between) => steps,
            // DLIO counts one step too many here (`main.py:393`).
            None if plan.is_due(epoch) => steps + 1,
            _ => return Ok(()),
        };
        self.save(saver, Due { epoch, steps, step })
    }

    /// Save a checkpoint, unless the run is to stop.
    fn save(&self, saver: &mut Option<Saver>, due: Due) -> Result<(), RunError> {
        match saver {
            Some(saver) if !(self.interrupted)() => {
                TimelineSampler::apart(self.timeline, || saver.save(due))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn copy_timeline(&self, record: &mut Record) {
        if let Some(timeline) = self.timeline {
            timeline.copy_to(&mut record.timeline);
        }
    }

    /// Empty the page cache of the dataset or fill it where that is asked for, and see how much of it is there. `last` is what was
    /// there when the epoch before ended, a moment ago.
    fn prepare_cache(&self, last: Option<Residency>) -> Result<Residency, StorageError> {
        let acts = self.ranks.is_first_of_node();
        match (self.plan.train.cache, last) {
            (Cache::Cold, _) if acts => self.evict()?,
            (Cache::Warm, None) if acts => self.warm()?,
            (Cache::AsIs | Cache::Warm, Some(last)) => return Ok(last),
            _ => {}
        }
        Ok(self.residency())
    }

    /// The dataset in the page cache. One process asks for its machine; that it cannot be known stops no run.
    fn residency(&self) -> Residency {
        if !self.ranks.is_first_of_node() {
            return Residency::default();
        }
        residency(self.storage, self.layout).unwrap_or_default()
    }

    fn evict(&self) -> Result<(), StorageError> {
        let mut path = String::new();
        for file in (0..self.layout.files()).take_while(|_| !(self.interrupted)()) {
            self.layout.write_path(file, &mut path);
            self.storage.evict(&path)?;
        }
        Ok(())
    }

    /// Several files at once: of small ones a storage is slow to open one after another.
    fn warm(&self) -> Result<(), StorageError> {
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..WARM_THREADS)
                .map(|_| scope.spawn(|| warm_files(self.storage, self.layout, &next, &|| false)))
                .collect();
            let own = warm_files(self.storage, self.layout, &next, self.interrupted);
            let joined = others.into_iter().map(|other| match other.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.fold(own, Result::and)
        })
    }

    /// Doubts of an epoch that began with a page cache other than the user asked for.
    fn cache_doubts(&self, epoch: &EpochRecord, machines: &[System]) -> Vec<PlanDoubt> {
        match self.plan.train.cache {
            Cache::Cold => not_cold(epoch, machines, self.cold_bytes_max()),
            Cache::Warm if epoch.number == 1 => {
                let bytes = file_bytes(self.storage, self.layout).unwrap_or_default();
                not_warm(epoch, machines, bytes)
            }
            Cache::AsIs | Cache::Warm => Vec::new(),
        }
    }

    /// The kernel may hold back a few pages; a thousandth of the dataset cannot matter.
    fn cold_bytes_max(&self) -> u64 {
        let payload = self.layout.sum(self.layout.files_train(), FileShape::payload_bytes);
        (payload / 1000) as u64
    }
}

/// Read one file after another into the page cache, until all are, one cannot be, or `is_over`.
fn warm_files(
    storage: &dyn Storage,
    layout: &Layout,
    next: &AtomicU64,
    is_over: &dyn Fn() -> bool,
) -> Result<(), StorageError> {
    let (files, mut path) = (layout.files(), String::new());
    loop {
        let file = next.fetch_add(1, Relaxed);
        if file >= files || is_over() {
            next.store(files, Relaxed);
            return Ok(());
        }
        layout.write_path(file, &mut path);
        storage.warm(&path).inspect_err(|_| next.store(files, Relaxed))?;
    }
}

/// The machines of which more than `cold_bytes_max` of the dataset was in the page cache when an epoch began.
fn not_cold(epoch: &EpochRecord, machines: &[System], cold_bytes_max: u64) -> Vec<PlanDoubt> {
    resident_in(epoch, machines)
        .filter(|machine| machine.bytes.is_none_or(|bytes| bytes > cold_bytes_max))
        .map(|machine| PlanDoubt {
            name: "not_cold".into(),
            evidence: format!("{} of the dataset was {}", machine.part, machine.place),
            advice: "other processes may hold the files open or mapped; drop caches as root, or use a larger dataset".into(),
        })
        .collect()
}

/// The machines of which less than nearly all `file_bytes` of the dataset were in the page cache when an epoch began.
fn not_warm(epoch: &EpochRecord, machines: &[System], file_bytes: Option<u64>) -> Vec<PlanDoubt> {
    let enough = file_bytes.map_or(u64::MAX, |bytes| (bytes as f64 * WARM_SHARE_MIN) as u64);
    let all = file_bytes.map_or("unknown size".into(), units::bytes);
    resident_in(epoch, machines)
        .filter(|machine| machine.bytes.is_none_or(|bytes| bytes < enough))
        .map(|machine| PlanDoubt {
            name: "not_warm".into(),
            evidence: format!("{} of the dataset's {all} was {}", machine.part, machine.place),
            advice: "the page cache takes no more than the memory that is free: use a smaller dataset, or leave `--warm` out".into(),
        })
        .collect()
}

/// The dataset in the page cache of a machine when an epoch began.
struct ResidentIn {
    bytes: Option<u64>,
    /// "949 B", "an unknown part".
    part: String,
    /// "in the page cache of node3 when epoch 2 began".
    place: String,
}

fn resident_in(epoch: &EpochRecord, machines: &[System]) -> impl Iterator<Item = ResidentIn> {
    let hosts =
        if epoch.nodes.is_empty() { std::slice::from_ref(&epoch.host) } else { &epoch.nodes };
    hosts.iter().zip(machines).map(|(host, machine)| {
        let bytes = host.resident_before_bytes;
        let of =
            if machines.len() > 1 { format!(" of {}", machine.hostname) } else { String::new() };
        ResidentIn {
            bytes,
            part: bytes.map_or("an unknown part".into(), units::bytes),
            place: format!("in the page cache{of} when epoch {} began", epoch.number),
        }
    })
}

/// An epoch after its end, with the page cache as it left it.
struct Trained {
    /// Its steps.
    outcome: Result<u64, RunError>,
    residency: Residency,
}

/// The end of the epochs, where nothing broke.
#[derive(PartialEq, Eq)]
enum Ended {
    Complete,
    Interrupted,
}

/// Put the checkpoints that are whole into their epochs, which may be over.
fn place(saver: &mut Option<Saver>, record: &mut Record) {
    let saved = saver.as_mut().map(Saver::take_saved).unwrap_or_default();
    for Saved { epoch, record: checkpoint } in saved {
        if let Some(epoch) = record.epochs.iter_mut().rev().find(|own| own.number == epoch) {
            epoch.checkpoints.push(checkpoint);
        }
    }
}

/// From the first block's start to the last block's end: what a driver does before and after is not the epoch's.
fn extent(accelerators: &[AcceleratorEpoch], now_ns: u64) -> (u64, u64) {
    let blocks = accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
    let start_ns = blocks.clone().map(|block| block.start_ns).min().unwrap_or(now_ns);
    let end_ns = blocks.map(|block| block.end_ns).max().unwrap_or(now_ns);
    (start_ns, end_ns.max(start_ns))
}

/// Whether a conductor may spin before deadlines: never when the machine's accelerators outnumber its idle cores.
pub fn may_spin(ranks: &Ranks, idle_cores: u32) -> bool {
    (ranks.own.len() as u32).saturating_mul(ranks.comm.node().local_size) <= idle_cores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(resident: &[Option<u64>]) -> EpochRecord {
        let host = |bytes: &Option<u64>| HostEpoch {
            resident_before_bytes: *bytes,
            ..HostEpoch::default()
        };
        let mut nodes: Vec<HostEpoch> = resident.iter().map(host).collect();
        let host = if nodes.len() == 1 { nodes.remove(0) } else { HostEpoch::default() };
        EpochRecord {
            number: 2,
            start_ns: 0,
            end_ns: 0,
            started: String::new(),
            ended: String::new(),
            accelerators: Vec::new(),
            host,
            nodes,
            checkpoints: Vec::new(),
        }
    }

    #[test]
    fn each_machine_that_is_not_cold_is_named() {
        let machines =
            ["a", "b", "c"].map(|name| System { hostname: name.into(), ..System::default() });
        let evidence = |resident: &[Option<u64>]| -> Vec<String> {
            let machines = &machines[..resident.len()];
            let doubts = not_cold(&epoch(resident), machines, 10);
            doubts.into_iter().map(|doubt| doubt.evidence).collect()
        };
        let several = evidence(&[Some(10), Some(11), None]);
        assert_eq!(several.len(), 2, "{several:?}");
        assert!(several[0].contains("page cache of b when epoch 2"), "{several:?}");
        assert!(several[1].contains("unknown part") && several[1].contains(" of c "));
        assert_eq!(evidence(&[Some(0)]), Vec::<String>::new());
        assert!(evidence(&[Some(11)])[0].contains("page cache when epoch 2"));
    }

    #[test]
    fn a_machine_that_is_not_warm_says_how_much_is_there() {
        let machines = [System::default()];
        let evidence = |resident, file_bytes| -> Vec<String> {
            let doubts = not_warm(&epoch(&[resident]), &machines, file_bytes);
            doubts.into_iter().map(|doubt| doubt.evidence).collect()
        };
        assert_eq!(evidence(Some(950), Some(1000)), Vec::<String>::new());
        assert_eq!(
            evidence(Some(949), Some(1000)),
            ["949 B of the dataset's 1 kB was in the page cache when epoch 2 began"]
        );
        assert!(evidence(None, Some(1000))[0].starts_with("an unknown part of the dataset's"));
        assert!(evidence(Some(5), None)[0].contains("of the dataset's unknown size"));
    }
}
