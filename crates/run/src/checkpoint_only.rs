//! A run of checkpoints only: so many are written, then read, each after a wait.

use crate::checkpoint::{self, CheckpointError, Due, Saver};
use crate::clock::Clock;
use crate::comm::End;
use crate::driver::RunError;
use crate::ranks::Ranks;
use crate::system::{Sampler, TimelineSampler};
use feedrate_measure::record::{
    AcceleratorEpoch, CheckpointKind, CheckpointRecord, EpochRecord, HostEpoch, Record,
};
use feedrate_spec::plan::{CheckpointPlan, CheckpointsAlone};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The user's wish to stop is looked at so often during a wait.
const LOOK: Duration = Duration::from_millis(50);
/// DLIO counts them all as of its first epoch.
const EPOCH: u32 = 1;

/// A run of checkpoints only.
pub struct CheckpointOnly<'a> {
    /// The checkpoints.
    pub plan: &'a CheckpointPlan,
    /// The processes of the run.
    pub ranks: &'a Ranks,
    /// The files are put out of the page cache before they are read.
    pub cold: bool,
    /// The run's clock.
    pub clock: Clock,
    /// Samples the run meanwhile.
    pub timeline: Option<&'a TimelineSampler>,
    /// `major:minor` under the checkpoints.
    pub device: Option<&'a str>,
    /// Local time in DLIO's form.
    pub wall: &'a dyn Fn(SystemTime) -> String,
    /// Whether the user wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Called after each checkpoint with the record so far.
    pub on_checkpoint: &'a mut dyn FnMut(&Record),
}

impl CheckpointOnly<'_> {
    /// Write and read all, into one epoch of `record` without steps.
    ///
    /// # Errors
    /// A checkpoint could not be written or read; those before are in the record.
    pub fn run(&mut self, record: &mut Record) -> Result<(), RunError> {
        let Some(CheckpointsAlone { writes, reads, wait_s }) = self.plan.alone.clone() else {
            return Ok(());
        };
        let sampler = Sampler::start(self.device, self.clock);
        let ranks = record.plan.accelerators as usize;
        record.epochs.push(self.begun(ranks));
        let saves = (1..=writes).map(|number| (number, false));
        let loads = (1..=reads).map(|number| (number, true));
        let mut saver = Saver::new(self.plan, self.clock, self.ranks.clone());
        let mut outcome = Ok(());
        for (number, reads_back) in saves.chain(loads) {
            self.wait(wait_s);
            if (self.interrupted)() {
                record.stopped_because = Some("interrupted".into());
                break;
            }
            let done =
                TimelineSampler::apart(self.timeline, || self.one(&mut saver, number, reads_back));
            match done {
                Ok(done) => self.add(record, done),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let host = sampler.finish();
        let hosts = match &outcome {
            Ok(()) if record.stopped_because.is_none() => self.ranks.gather(&host)?,
            Ok(()) => {
                self.ranks.comm.give_up(End::Interrupted);
                vec![host]
            }
            Err(error) => {
                self.ranks.comm.give_up(error.end());
                vec![host]
            }
        };
        let hosts = if hosts.len() > 1 {
            EpochRecord::hosts(&hosts, &record.processes, record.machines())
        } else {
            (hosts.into_iter().next().unwrap_or_default(), Vec::new())
        };
        if let Some(epoch) = record.epochs.last_mut() {
            (epoch.host, epoch.nodes) = hosts;
        }
        if outcome.is_ok() && record.stopped_because.is_none() {
            TimelineSampler::finish(self.timeline, self.ranks, &mut record.timeline)?;
            record.complete = true;
        } else if let Some(timeline) = self.timeline {
            timeline.copy_to(&mut record.timeline);
        }
        outcome
    }

    fn one(
        &self,
        saver: &mut Saver,
        number: u64,
        reads_back: bool,
    ) -> Result<Option<CheckpointRecord>, RunError> {
        if reads_back && self.cold && self.ranks.is_first_of_node() {
            let folder = checkpoint::folder(self.plan, EPOCH, number);
            evict(&folder).map_err(|source| CheckpointError::Read { path: folder, source })?;
        }
        // None is timed while another waits or evicts.
        self.ranks.comm.barrier()?;
        if !reads_back {
            saver.save(Due { epoch: EPOCH, steps: number, step: number })?;
            saver.finish()?;
            return Ok(saver.take_saved().pop().map(|saved| saved.record));
        }
        let (plan, clock) = (self.plan, self.clock);
        let start_ns = clock.now_ns();
        let (shift, ranks) = (plan.read_rank_shift, self.ranks);
        let ranks = checkpoint::load(plan, clock, EPOCH, number, shift, ranks)?;
        Ok(Some(CheckpointRecord {
            kind: CheckpointKind::Load,
            start_ns,
            end_ns: clock.now_ns(),
            bytes: plan.total_bytes,
            after_step: number,
            stall_ns: None,
            folder_sync_ns: None,
            ranks,
        }))
    }

    fn add(&mut self, record: &mut Record, done: Option<CheckpointRecord>) {
        let (Some(epoch), Some(done)) = (record.epochs.last_mut(), done) else { return };
        epoch.end_ns = done.end_ns;
        epoch.ended = (self.wall)(self.clock.wall_at(done.end_ns));
        epoch.checkpoints.push(done);
        (self.on_checkpoint)(record);
    }

    fn begun(&self, ranks: usize) -> EpochRecord {
        let now_ns = self.clock.now_ns();
        let wall = (self.wall)(self.clock.wall_at(now_ns));
        EpochRecord {
            number: EPOCH,
            start_ns: now_ns,
            end_ns: now_ns,
            started: wall.clone(),
            ended: wall,
            accelerators: vec![AcceleratorEpoch::default(); ranks],
            host: HostEpoch::default(),
            nodes: Vec::new(),
            checkpoints: Vec::new(),
        }
    }

    fn wait(&self, seconds: f64) {
        let until_ns = self.clock.now_ns() + (seconds * 1e9) as u64;
        while !(self.interrupted)() {
            let left = Duration::from_nanos(until_ns.saturating_sub(self.clock.now_ns()));
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

/// Put the files of a checkpoint out of the page cache; what is not on the disk yet would stay, so it is synced first.
fn evict(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        file.sync_data()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}
