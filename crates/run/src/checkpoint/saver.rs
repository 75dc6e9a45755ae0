//! Saves the checkpoints of a run one after another, either while training waits or in the background, and removes older ones.

use super::CheckpointError;
use super::folder::{CheckpointFolder, WrittenPart, local_ranks};
use super::manifest::CheckpointFile;
use crate::abandonable::AbandonableTask;
use crate::clock::Clock;
use crate::comm::CommError;
use crate::live::{LivePhase, Signals};
use crate::ranks::Ranks;
use feedrate_measure::record::{CheckpointKind, CheckpointRecord};
use feedrate_spec::plan::CheckpointPlan;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A checkpoint that is due.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointDue {
    /// Epoch, from 1.
    pub epoch: u32,
    /// Finished steps of the epoch.
    pub steps: u64,
    /// Step in the name of the checkpoint's folder, counted as DLIO does.
    pub step: u64,
}

/// A complete checkpoint.
#[derive(Debug)]
pub struct SavedCheckpoint {
    /// The epoch it belongs to.
    pub epoch: u32,
    /// Record of its times and bytes.
    pub record: CheckpointRecord,
}

/// Saves the checkpoints of one run.
pub struct Saver {
    plan: Arc<CheckpointPlan>,
    clock: Clock,
    ranks: Ranks,
    running: Option<BackgroundSave>,
    complete: Arc<Mutex<CompleteCheckpoints>>,
    saved: Vec<SavedCheckpoint>,
    signals: Signals,
}

/// Epoch and step of the complete checkpoints that this run wrote, oldest first.
type CompleteCheckpoints = VecDeque<(u32, u64)>;

struct BackgroundSave {
    folder: Arc<CheckpointFolder>,
    due: CheckpointDue,
    start_ns: u64,
    /// Time that training waited for the start.
    stall_ns: u64,
    work: FolderWork<WrittenPart>,
}

type FolderWork<T> = AbandonableTask<Result<T, CheckpointError>>;

impl Saver {
    /// Creates a saver for the checkpoints of `plan`, which all processes write together.
    pub fn new(plan: &CheckpointPlan, clock: Clock, ranks: Ranks, signals: &Signals) -> Self {
        Saver {
            plan: Arc::new(plan.clone()),
            clock,
            ranks,
            running: None,
            complete: Arc::default(),
            saved: Vec::new(),
            signals: signals.clone(),
        }
    }

    /// Writes a checkpoint. In the background mode, waits until the previous checkpoint is complete and starts this one; with
    /// several processes, [`Saver::finish`] completes it.
    ///
    /// # Errors
    /// This checkpoint or the previous one could not be written.
    pub fn save(&mut self, due: CheckpointDue) -> Result<(), CheckpointError> {
        self.finish()?;
        let live = Arc::clone(&self.signals.live);
        live.run_in_phase(LivePhase::Saves, || self.begin(due))
    }

    fn begin(&mut self, due: CheckpointDue) -> Result<(), CheckpointError> {
        let clock = self.clock;
        let start_ns = clock.now_ns();
        let live = &self.signals.live;
        let is_alone = !self.ranks.is_distributed();
        live.bytes.begin(is_alone.then_some(self.plan.total_bytes), start_ns);
        let folder = Arc::new(CheckpointFolder::new(&self.plan, clock, live, due.epoch, due.step));
        if self.ranks.is_first() {
            self.wait(start_work(&folder, CheckpointFolder::begin)?)?;
        }
        self.ranks.comm.barrier()?;
        let local = local_ranks(&self.plan, &self.ranks);
        let keep_last = self.plan.keep_last;
        let complete_checkpoints = Arc::clone(&self.complete);
        let work = start_work(&folder, move |folder| {
            let mut part = folder.write(local)?;
            if is_alone {
                let entries = std::mem::take(&mut part.entries);
                complete(folder, keep_last, entries, &complete_checkpoints)?;
                part.end_ns = clock.now_ns();
            }
            Ok(part)
        })?;
        if !self.plan.asynchronous {
            let part = self.wait(work)?;
            return self.record(&folder, due, start_ns, None, part);
        }
        let stall_ns = clock.now_ns() - start_ns;
        self.running = Some(BackgroundSave { folder, due, start_ns, stall_ns, work });
        Ok(())
    }

    /// Waits for `work`. Fails if the run is stopped first.
    fn wait<T: Send + 'static>(&self, work: FolderWork<T>) -> Result<T, CheckpointError> {
        work.wait(&self.signals.abandon).ok_or(CommError::Stopped)?
    }

    /// Waits for the checkpoint that is written in the background, if any.
    ///
    /// # Errors
    /// The checkpoint could not be written.
    pub fn finish(&mut self) -> Result<(), CheckpointError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let wait_start_ns = self.clock.now_ns();
        let work = running.work;
        let part = self.signals.live.run_in_phase(LivePhase::Saves, || self.wait(work))?;
        let stall_ns = running.stall_ns + (self.clock.now_ns() - wait_start_ns);
        self.record(&running.folder, running.due, running.start_ns, Some(stall_ns), part)
    }

    /// Returns the checkpoints completed since the last call.
    pub fn take_saved(&mut self) -> Vec<SavedCheckpoint> {
        std::mem::take(&mut self.saved)
    }

    /// Records a checkpoint after its local part was written. With several processes, completes the checkpoint first. `stall_ns` is given
    /// for checkpoints that were written in the background.
    fn record(
        &mut self,
        folder: &Arc<CheckpointFolder>,
        due: CheckpointDue,
        start_ns: u64,
        stall_ns: Option<u64>,
        part: WrittenPart,
    ) -> Result<(), CheckpointError> {
        let part =
            if self.ranks.is_distributed() { self.complete_jointly(folder, part)? } else { part };
        // In the background mode, training may have continued after the last file was written.
        let end_ns = if stall_ns.is_some() { part.end_ns } else { self.clock.now_ns() };
        let record = CheckpointRecord {
            kind: CheckpointKind::Save,
            start_ns,
            end_ns,
            bytes: self.plan.total_bytes,
            after_step: due.steps,
            stall_ns,
            folder_sync_ns: Some(folder.step.sync_ns()),
            process_device_read_bytes: None,
            optimizer_ns: part.optimizer_ns,
            ranks: part.ranks,
        };
        self.saved.push(SavedCheckpoint { epoch: due.epoch, record });
        Ok(())
    }

    /// Gathers the parts of all processes on rank 0, and completes the checkpoint there. Returns the merged part on rank 0 and the local
    /// part on other ranks.
    fn complete_jointly(
        &self,
        folder: &Arc<CheckpointFolder>,
        part: WrittenPart,
    ) -> Result<WrittenPart, CheckpointError> {
        let mut merged = WrittenPart { optimizer_ns: part.optimizer_ns, ..WrittenPart::default() };
        for other in self.ranks.gather(&part)? {
            merged.ranks.extend(other.ranks);
            merged.entries.extend(other.entries);
            merged.end_ns = merged.end_ns.max(other.end_ns);
        }
        if self.ranks.is_first() {
            let entries = std::mem::take(&mut merged.entries);
            let keep_last = self.plan.keep_last;
            let complete_checkpoints = Arc::clone(&self.complete);
            let complete_start_ns = self.clock.now_ns();
            self.wait(start_work(folder, move |folder| {
                complete(folder, keep_last, entries, &complete_checkpoints)
            })?)?;
            merged.end_ns += self.clock.now_ns() - complete_start_ns;
        }
        self.ranks.comm.barrier()?;
        Ok(if self.ranks.is_first() { merged } else { part })
    }
}

/// Starts `work` on the folder of a checkpoint, on a separate thread.
fn start_work<T: Send + 'static>(
    folder: &Arc<CheckpointFolder>,
    work: impl FnOnce(&CheckpointFolder) -> Result<T, CheckpointError> + Send + 'static,
) -> Result<FolderWork<T>, CheckpointError> {
    let shared_folder = Arc::clone(folder);
    AbandonableTask::start(move || work(&shared_folder))
        .map_err(|source| CheckpointError::Write { path: folder.step.path.clone(), source })
}

/// Completes a checkpoint, then removes the oldest ones beyond `keep_last`.
fn complete(
    folder: &CheckpointFolder,
    keep_last: Option<u64>,
    entries: Vec<(String, CheckpointFile)>,
    complete_checkpoints: &Mutex<CompleteCheckpoints>,
) -> Result<(), CheckpointError> {
    folder.complete(entries)?;
    let mut checkpoints = complete_checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
    let newest = (folder.step.epoch, folder.step.step);
    checkpoints.retain(|older| *older != newest);
    checkpoints.push_back(newest);
    let kept = keep_last.map_or(usize::MAX, |kept| kept as usize);
    while checkpoints.len() > kept {
        if let Some((epoch, step)) = checkpoints.pop_front() {
            folder.remove(epoch, step)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::tests::ThreadRank;

    const HOUR_NS: i64 = 3_600_000_000_000;

    #[test]
    fn a_background_checkpoint_ends_with_its_last_file() {
        let folder = tempfile::tempdir().unwrap();
        let plan = super::super::tests::plan(folder.path(), "raw", false);
        let plan = CheckpointPlan { asynchronous: true, ..plan };
        let clock = Clock::new();
        let save_and_shift = |comm: ThreadRank| {
            let mut saver =
                Saver::new(&plan, clock, Ranks::new(Arc::new(comm), 3), &Signals::default());
            saver.save(CheckpointDue { epoch: 1, steps: 4, step: 4 }).unwrap();
            while !saver.running.as_ref().unwrap().work.is_finished() {
                std::thread::yield_now();
            }
            // Stands for an hour of training.
            saver.clock.shift(HOUR_NS);
            saver.finish().unwrap();
            saver.take_saved().pop().unwrap().record
        };
        for processes in [1, 2] {
            let group = ThreadRank::group(processes);
            std::thread::scope(|scope| {
                let save_and_shift = &save_and_shift;
                let all: Vec<_> = group
                    .into_iter()
                    .map(|comm| scope.spawn(move || save_and_shift(comm)))
                    .collect();
                for thread in all {
                    let record = thread.join().unwrap();
                    assert!(record.end_ns - record.start_ns < HOUR_NS as u64, "{record:?}");
                    assert!(record.ranks.iter().all(|rank| rank.end_ns <= record.end_ns));
                }
            });
        }
    }
}
