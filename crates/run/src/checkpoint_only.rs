//! Runs without training: writes a number of checkpoints, then reads a number of them back. It waits before each.

use crate::checkpoint::{self, CheckpointDue, CheckpointError, Saver};
use crate::driver::RunError;
use crate::live::LivePhase;
use crate::system::{self, DeviceReads, Sampler, TimelineSampler};
use crate::training::{RunOutcome, Session};
use feedrate_measure::record::file::read_folder;
use feedrate_measure::record::{
    AcceleratorEpoch, CheckpointKind, CheckpointRecord, CombinedHosts, EpochRecord, Record,
};
use feedrate_spec::plan::{Cache, CheckpointOnlyPlan, CheckpointPlan};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// All checkpoints belong to epoch 1, as in DLIO.
const EPOCH: u32 = 1;

impl Session<'_> {
    /// Writes and reads all checkpoints of `plan` and records them in one epoch without steps.
    ///
    /// # Errors
    /// A checkpoint could not be written or read; the record then has the earlier ones.
    pub fn write_checkpoints(
        &mut self,
        plan: &CheckpointPlan,
        record: &mut Record,
    ) -> Result<(), RunError> {
        let sampler = Sampler::start(self.device, self.device_reads, self.clock);
        let now_ns = self.clock.now_ns();
        let mut epoch = EpochRecord {
            number: EPOCH,
            start_ns: now_ns,
            started: (self.format_time)(self.clock.wall_at(now_ns)),
            accelerators: vec![AcceleratorEpoch::default(); record.plan.accelerators as usize],
            ..EpochRecord::default()
        };
        self.end_epoch(&mut epoch, now_ns);
        record.epochs.push(epoch);
        let outcome = self.run_checkpoints(plan, record);
        self.notify_others(&outcome);
        let host = sampler.finish();
        let hosts = match outcome {
            Ok(RunOutcome::Complete) => self.ranks.gather(&host)?,
            _ => vec![host],
        };
        let combined = if hosts.len() > 1 {
            CombinedHosts::new(&hosts, &record.processes, record.machines())
        } else {
            CombinedHosts { host: hosts.into_iter().next().unwrap_or_default(), nodes: Vec::new() }
        };
        if let Some(epoch) = record.epochs.last_mut() {
            epoch.host = combined.host;
            epoch.nodes = combined.nodes;
        }
        self.end(outcome, record)
    }

    fn run_checkpoints(
        &mut self,
        plan: &CheckpointPlan,
        record: &mut Record,
    ) -> Result<RunOutcome, RunError> {
        let Some(CheckpointOnlyPlan { writes, reads, wait_s }) = plan.alone.clone() else {
            return Ok(RunOutcome::Complete);
        };
        let saves = (1..=writes).map(|number| (number, CheckpointKind::Save));
        let loads = (1..=reads).map(|number| (number, CheckpointKind::Load));
        let mut saver = self.saver(plan);
        self.signals.live.steps.store(writes + reads, Relaxed);
        for (number, kind) in saves.chain(loads) {
            let until_ns = self.clock.now_ns() + (wait_s * 1e9) as u64;
            self.signals.live.wait_end_ns.store(until_ns, Relaxed);
            self.signals.live.run_in_phase(LivePhase::Waits, || {
                self.clock.sleep_until(until_ns, &self.signals.interrupted);
            });
            if self.is_interrupted() {
                return Ok(RunOutcome::Interrupted);
            }
            let checkpoint = TimelineSampler::sample_separately(self.timeline, || match kind {
                CheckpointKind::Save => self.write(&mut saver, number),
                CheckpointKind::Load => self.read_back(plan, number).map(Some),
            })?;
            if let (Some(epoch), Some(checkpoint)) = (record.epochs.last_mut(), checkpoint) {
                self.end_epoch(epoch, checkpoint.end_ns);
                epoch.checkpoints.push(checkpoint);
                self.signals.live.step.fetch_add(1, Relaxed);
                (self.on_progress)(record);
            }
        }
        Ok(RunOutcome::Complete)
    }

    fn end_epoch(&self, epoch: &mut EpochRecord, now_ns: u64) {
        epoch.end_ns = now_ns;
        epoch.ended = (self.format_time)(self.clock.wall_at(now_ns));
    }

    fn write(&self, saver: &mut Saver, number: u64) -> Result<Option<CheckpointRecord>, RunError> {
        // No process begins while another one still waits or evicts files.
        self.ranks.comm.barrier()?;
        saver.save(CheckpointDue { epoch: EPOCH, steps: number, step: number })?;
        saver.finish()?;
        Ok(saver.take_saved().pop().map(|saved| saved.record))
    }

    fn read_back(&self, plan: &CheckpointPlan, number: u64) -> Result<CheckpointRecord, RunError> {
        let path = checkpoint::folder(plan, EPOCH, number);
        // The bytes of a store come over the network, and the kernel counts none of them as reads of a device.
        let is_in_store = checkpoint::is_in_store(&path);
        if self.plan.train.cache == Cache::Cold && !is_in_store && self.ranks.is_first_of_node() {
            let path = path.clone();
            let folder = path.clone();
            let evicted = self.run_abandonable(move || evict(&folder))?;
            evicted.map_err(|source| CheckpointError::Read { path, source })?;
        }
        self.ranks.comm.barrier()?;
        let device_reads =
            if is_in_store { DeviceReads::Unknown } else { system::device_reads_of(&path) };
        let sampler = Sampler::start(None, device_reads, self.clock);
        let start_ns = self.clock.now_ns();
        let loaded = self.signals.live.run_in_phase(LivePhase::Loads, || {
            checkpoint::load(plan, self.clock, EPOCH, number, self.ranks, self.signals)
        })?;
        let end_ns = self.clock.now_ns();
        let from_device = self.ranks.gather(&sampler.finish().process_device_read_bytes)?;
        Ok(CheckpointRecord {
            kind: CheckpointKind::Load,
            start_ns,
            end_ns,
            bytes: plan.total_bytes,
            after_step: number,
            stall_ns: None,
            folder_sync_ns: None,
            process_device_read_bytes: from_device.into_iter().sum(),
            optimizer_ns: loaded.optimizer_ns,
            ranks: loaded.ranks,
        })
    }
}

/// Evicts the files of a checkpoint from the page cache. They are synced first, since dirty pages cannot be evicted.
fn evict(folder: &Path) -> io::Result<()> {
    for entry in read_folder(folder)? {
        let path = entry?.path();
        // Opening a pipe would block.
        if !fs::metadata(&path)?.is_file() {
            continue;
        }
        let file = File::open(path)?;
        file.sync_data()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}
