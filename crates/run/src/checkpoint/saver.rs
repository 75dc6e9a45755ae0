//! The checkpoints of a run, one after the other: written while training waits, or by threads in the background; older ones are
//! removed. Knows no format.

use super::CheckpointError;
use super::folder::{CheckpointFolder, WrittenPart, own};
use super::manifest::CheckpointFile;
use crate::aside::Aside;
use crate::clock::Clock;
use crate::comm::CommError;
use crate::live::{LivePhase, Signals};
use crate::ranks::Ranks;
use feedrate_measure::record::{CheckpointKind, CheckpointRecord};
use feedrate_spec::plan::CheckpointPlan;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// When in a run a checkpoint is due, and the step that names its folder.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointDue {
    /// From 1.
    pub epoch: u32,
    /// Steps of the epoch that are done.
    pub steps: u64,
    /// As DLIO counts it.
    pub step: u64,
}

/// A checkpoint that is whole.
#[derive(Debug)]
pub struct Saved {
    /// The epoch it belongs to.
    pub epoch: u32,
    /// Its times and bytes.
    pub record: CheckpointRecord,
}

/// Saves the checkpoints of one run.
pub struct Saver {
    plan: Arc<CheckpointPlan>,
    clock: Clock,
    ranks: Ranks,
    running: Option<InBackground>,
    whole: Arc<Mutex<WholeFolders>>,
    saved: Vec<Saved>,
    /// Once it is to be left, files that hang are waited for no more.
    signals: Signals,
}

/// Epoch and step of those that this run wrote, and only those, the oldest first.
type WholeFolders = VecDeque<(u32, u64)>;

struct InBackground {
    folder: Arc<CheckpointFolder>,
    due: CheckpointDue,
    start_ns: u64,
    /// How long training waited for it to start.
    stall_ns: u64,
    work: FolderWork<WrittenPart>,
}

type FolderWork<T> = Aside<Result<T, CheckpointError>>;

impl Saver {
    /// For the checkpoints of `plan`, written by all processes together.
    pub fn new(plan: &CheckpointPlan, clock: Clock, ranks: Ranks, signals: &Signals) -> Self {
        let (plan, whole, saved) = (Arc::new(plan.clone()), Arc::default(), Vec::new());
        Saver { plan, clock, ranks, running: None, whole, saved, signals: signals.clone() }
    }

    /// Write a checkpoint, or where that is done in the background wait for the one before and begin it. Of several processes
    /// a checkpoint in the background is whole once [`Saver::finish`] has brought them together.
    ///
    /// # Errors
    /// This one, or the one before, could not be written.
    pub fn save(&mut self, due: CheckpointDue) -> Result<(), CheckpointError> {
        self.finish()?;
        let live = Arc::clone(&self.signals.live);
        live.during(LivePhase::Saves, || self.begin(due))
    }

    fn begin(&mut self, due: CheckpointDue) -> Result<(), CheckpointError> {
        let start_ns = self.clock.now_ns();
        let (live, is_alone) = (&self.signals.live, !self.ranks.are_many());
        live.bytes.begin(is_alone.then_some(self.plan.total_bytes), start_ns);
        let CheckpointDue { epoch, step, .. } = due;
        let (plan, clock) = (&self.plan, self.clock);
        let folder = CheckpointFolder::new(plan, clock, live, epoch, step);
        let folder = Arc::new(folder);
        if self.ranks.is_first() {
            self.wait(in_folder(&folder, CheckpointFolder::begin)?)?;
        }
        self.ranks.comm.barrier()?;
        let own = own(&self.plan, &self.ranks);
        let (keep_last, whole) = (self.plan.keep_last, Arc::clone(&self.whole));
        let work = in_folder(&folder, move |folder| {
            let mut part = folder.write(own)?;
            if is_alone {
                complete(folder, keep_last, std::mem::take(&mut part.entries), &whole)?;
                part.end_ns = clock.now_ns();
            }
            Ok(part)
        })?;
        if !self.plan.asynchronous {
            let part = self.wait(work)?;
            return self.keep(&folder, due, start_ns, None, part);
        }
        let stall_ns = self.clock.now_ns() - start_ns;
        self.running = Some(InBackground { folder, due, start_ns, stall_ns, work });
        Ok(())
    }

    fn wait<T: Send + 'static>(&self, work: FolderWork<T>) -> Result<T, CheckpointError> {
        work.wait(&self.signals.leave).ok_or(CommError::Stopped)?
    }

    /// Wait for the checkpoint that is being written, if there is one.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(&mut self) -> Result<(), CheckpointError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let wait_start_ns = self.clock.now_ns();
        let work = running.work;
        let part = self.signals.live.during(LivePhase::Saves, || self.wait(work))?;
        let stall_ns = running.stall_ns + (self.clock.now_ns() - wait_start_ns);
        self.keep(&running.folder, running.due, running.start_ns, Some(stall_ns), part)
    }

    /// The checkpoints that became whole since this was last asked.
    pub fn take_saved(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.saved)
    }

    fn keep(
        &mut self,
        folder: &Arc<CheckpointFolder>,
        due: CheckpointDue,
        start_ns: u64,
        stall_ns: Option<u64>,
        part: WrittenPart,
    ) -> Result<(), CheckpointError> {
        let part = if self.ranks.are_many() { self.bring_together(folder, part)? } else { part };
        // Training may have gone on between the last file and this moment: that is no part of the writing.
        let end_ns = if stall_ns.is_some() { part.end_ns } else { self.clock.now_ns() };
        let record = CheckpointRecord {
            kind: CheckpointKind::Save,
            start_ns,
            end_ns,
            bytes: self.plan.total_bytes,
            after_step: due.steps,
            stall_ns,
            folder_sync_ns: Some(folder.at.sync_ns()),
            process_device_read_bytes: None,
            optimizer_ns: part.optimizer_ns,
            ranks: part.ranks,
        };
        self.saved.push(Saved { epoch: due.epoch, record });
        Ok(())
    }

    /// All processes have written their parts: rank 0 makes them a checkpoint. It is told of all ranks, others of their own.
    fn bring_together(
        &self,
        folder: &Arc<CheckpointFolder>,
        part: WrittenPart,
    ) -> Result<WrittenPart, CheckpointError> {
        let mut all = WrittenPart { optimizer_ns: part.optimizer_ns, ..WrittenPart::default() };
        for other in self.ranks.gather(&part)? {
            all.ranks.extend(other.ranks);
            all.entries.extend(other.entries);
            all.end_ns = all.end_ns.max(other.end_ns);
        }
        if self.ranks.is_first() {
            let (entries, keep_last) = (std::mem::take(&mut all.entries), self.plan.keep_last);
            let whole = Arc::clone(&self.whole);
            let complete_start_ns = self.clock.now_ns();
            self.wait(in_folder(folder, move |own| complete(own, keep_last, entries, &whole))?)?;
            all.end_ns += self.clock.now_ns() - complete_start_ns;
        }
        self.ranks.comm.barrier()?;
        Ok(if self.ranks.is_first() { all } else { part })
    }
}

/// Begin to do `act` in the folder of a checkpoint.
fn in_folder<T: Send + 'static>(
    folder: &Arc<CheckpointFolder>,
    act: impl FnOnce(&CheckpointFolder) -> Result<T, CheckpointError> + Send + 'static,
) -> Result<FolderWork<T>, CheckpointError> {
    let own = Arc::clone(folder);
    Aside::begin(move || act(&own))
        .map_err(|source| CheckpointError::Write { path: folder.at.path.clone(), source })
}

/// Older ones go once this one is whole.
fn complete(
    own: &CheckpointFolder,
    keep_last: Option<u64>,
    entries: Vec<(String, CheckpointFile)>,
    whole: &Mutex<WholeFolders>,
) -> Result<(), CheckpointError> {
    own.complete(entries)?;
    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
    let newest = (own.at.epoch, own.at.step);
    whole.retain(|older| *older != newest);
    whole.push_back(newest);
    let kept = keep_last.map_or(usize::MAX, |kept| kept as usize);
    while whole.len() > kept {
        if let Some((epoch, step)) = whole.pop_front() {
            own.remove(epoch, step)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::tests::Threads;

    const HOUR_NS: i64 = 3_600_000_000_000;

    #[test]
    fn training_after_the_last_file_is_no_part_of_a_checkpoint_in_the_background() {
        let folder = tempfile::tempdir().unwrap();
        let plan = super::super::tests::plan(folder.path(), "raw", false);
        let plan = CheckpointPlan { asynchronous: true, ..plan };
        let clock = Clock::new();
        let saved = |comm: Threads| {
            let mut saver =
                Saver::new(&plan, clock, Ranks::new(Arc::new(comm), 3), &Signals::default());
            saver.save(CheckpointDue { epoch: 1, steps: 4, step: 4 }).unwrap();
            while !saver.running.as_ref().unwrap().work.is_over() {
                std::thread::yield_now();
            }
            // An hour of training.
            saver.clock.shift(HOUR_NS);
            saver.finish().unwrap();
            saver.take_saved().pop().unwrap().record
        };
        for processes in [1, 2] {
            let group = Threads::group(processes);
            std::thread::scope(|scope| {
                let saved = &saved;
                let all: Vec<_> =
                    group.into_iter().map(|comm| scope.spawn(move || saved(comm))).collect();
                for one in all {
                    let record = one.join().unwrap();
                    assert!(record.end_ns - record.start_ns < HOUR_NS as u64, "{record:?}");
                    assert!(record.ranks.iter().all(|rank| rank.end_ns <= record.end_ns));
                }
            });
        }
    }
}
