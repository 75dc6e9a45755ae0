//! The checkpoints of a run, one after the other: written while training waits, or by threads in the background; older ones are
//! removed. Knows no format.

use super::CheckpointError;
use super::files::SystemFiles;
use super::folder::{CheckpointFolder, WrittenPart, folder, own};
use super::manifest::CheckpointFile;
use crate::aside::{Aside, aside};
use crate::clock::Clock;
use crate::comm::CommError;
use crate::live::{Live, LivePhase, Signals};
use crate::ranks::Ranks;
use feedrate_measure::record::{CheckpointKind, CheckpointRecord};
use feedrate_spec::plan::CheckpointPlan;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

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
    whole: WholeFolders,
    saved: Vec<Saved>,
    /// Once it is to be left, files that hang are waited for no more.
    signals: Signals,
}

/// Epoch and step of those that this run wrote, and only those, the oldest first.
type WholeFolders = VecDeque<(u32, u64)>;

struct InBackground {
    due: CheckpointDue,
    start_ns: u64,
    /// How long training waited for it to start.
    stall_ns: u64,
    work: Aside<Result<(WrittenPart, WholeFolders), CheckpointError>>,
}

impl Saver {
    /// For the checkpoints of `plan`, written by all processes together.
    pub fn new(plan: &CheckpointPlan, clock: Clock, ranks: Ranks, signals: &Signals) -> Self {
        let (plan, whole, saved) = (Arc::new(plan.clone()), WholeFolders::new(), Vec::new());
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
        let total_bytes = (!self.ranks.are_many()).then_some(self.plan.total_bytes);
        self.signals.live.bytes.begin(total_bytes, start_ns);
        let mut sync_ns = 0;
        if self.ranks.is_first() {
            sync_ns = self.in_folder(due, |checkpoint| {
                checkpoint.begin()?;
                Ok(checkpoint.sync_ns)
            })?;
        }
        self.ranks.comm.barrier()?;
        let own = own(&self.plan, &self.ranks);
        if !self.plan.asynchronous {
            let part = self.in_folder(due, move |checkpoint| {
                checkpoint.sync_ns = sync_ns;
                checkpoint.write(own)
            })?;
            return self.keep(due, start_ns, None, part);
        }
        let (plan, clock, live) = self.surroundings();
        let (mut whole, is_alone) = (std::mem::take(&mut self.whole), !self.ranks.are_many());
        let work = Aside::begin(move || {
            let mut checkpoint = folder_of(&plan, clock, live, due);
            checkpoint.sync_ns = sync_ns;
            let mut part = checkpoint.write(own)?;
            if is_alone {
                let entries = std::mem::take(&mut part.entries);
                complete(&mut checkpoint, plan.keep_last, entries, &mut whole)?;
            }
            part.folder_sync_ns = checkpoint.sync_ns;
            part.end_ns = clock.now_ns();
            Ok((part, whole))
        });
        let work = work.map_err(|source| self.not_begun(due, source))?;
        let stall_ns = self.clock.now_ns() - start_ns;
        self.running = Some(InBackground { due, start_ns, stall_ns, work });
        Ok(())
    }

    /// Do `act` in the folder of a checkpoint, and wait for it.
    fn in_folder<T: Send + 'static>(
        &self,
        due: CheckpointDue,
        act: impl FnOnce(&mut CheckpointFolder<'_>) -> Result<T, CheckpointError> + Send + 'static,
    ) -> Result<T, CheckpointError> {
        let (plan, clock, live) = self.surroundings();
        let leave = &self.signals.leave;
        let done = aside(leave, move || act(&mut folder_of(&plan, clock, live, due)));
        done.map_err(|source| self.not_begun(due, source))?.ok_or(CommError::Stopped)?
    }

    fn surroundings(&self) -> (Arc<CheckpointPlan>, Clock, Arc<Live>) {
        (Arc::clone(&self.plan), self.clock, Arc::clone(&self.signals.live))
    }

    fn not_begun(&self, due: CheckpointDue, source: io::Error) -> CheckpointError {
        CheckpointError::Write { path: folder(&self.plan, due.epoch, due.step), source }
    }

    /// Wait for the checkpoint that is being written, if there is one.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(&mut self) -> Result<(), CheckpointError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let wait_start_ns = self.clock.now_ns();
        let (live, leave) = (&self.signals.live, &self.signals.leave);
        let saved = live.during(LivePhase::Saves, || running.work.wait(leave));
        let (part, whole) = saved.ok_or(CommError::Stopped)??;
        self.whole = whole;
        let stall_ns = running.stall_ns + (self.clock.now_ns() - wait_start_ns);
        self.keep(running.due, running.start_ns, Some(stall_ns), part)
    }

    /// The checkpoints that became whole since this was last asked.
    pub fn take_saved(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.saved)
    }

    fn keep(
        &mut self,
        due: CheckpointDue,
        start_ns: u64,
        stall_ns: Option<u64>,
        part: WrittenPart,
    ) -> Result<(), CheckpointError> {
        let is_whole = stall_ns.is_some() && !self.ranks.are_many();
        let part = if is_whole { part } else { self.bring_together(due, part)? };
        // Training may have gone on between the last file and this moment: that is no part of the writing.
        let end_ns = if stall_ns.is_some() { part.end_ns } else { self.clock.now_ns() };
        let record = CheckpointRecord {
            kind: CheckpointKind::Save,
            start_ns,
            end_ns,
            bytes: self.plan.total_bytes,
            after_step: due.steps,
            stall_ns,
            folder_sync_ns: Some(part.folder_sync_ns),
            process_device_read_bytes: None,
            optimizer_ns: part.optimizer_ns,
            ranks: part.ranks,
        };
        self.saved.push(Saved { epoch: due.epoch, record });
        Ok(())
    }

    /// All processes have written their parts: rank 0 makes them a checkpoint. It is told of all ranks, others of their own.
    fn bring_together(
        &mut self,
        due: CheckpointDue,
        part: WrittenPart,
    ) -> Result<WrittenPart, CheckpointError> {
        let mut all = WrittenPart { optimizer_ns: part.optimizer_ns, ..WrittenPart::default() };
        for other in self.ranks.gather(&part)? {
            all.ranks.extend(other.ranks);
            all.entries.extend(other.entries);
            all.folder_sync_ns += other.folder_sync_ns;
            all.end_ns = all.end_ns.max(other.end_ns);
        }
        if self.ranks.is_first() {
            let (entries, keep_last) = (std::mem::take(&mut all.entries), self.plan.keep_last);
            let mut whole = std::mem::take(&mut self.whole);
            let complete_start_ns = self.clock.now_ns();
            let (sync_ns, whole) = self.in_folder(due, move |own| {
                complete(own, keep_last, entries, &mut whole)?;
                Ok((own.sync_ns, whole))
            })?;
            self.whole = whole;
            all.end_ns += self.clock.now_ns() - complete_start_ns;
            all.folder_sync_ns += sync_ns;
        }
        self.ranks.comm.barrier()?;
        Ok(if self.ranks.is_first() { all } else { part })
    }
}

fn folder_of(
    plan: &CheckpointPlan,
    clock: Clock,
    live: Arc<Live>,
    due: CheckpointDue,
) -> CheckpointFolder<'_> {
    let mut folder = CheckpointFolder::new(&SystemFiles, plan, clock, due.epoch, due.step);
    folder.live = live;
    folder
}

/// Older ones go once this one is whole.
fn complete(
    own: &mut CheckpointFolder<'_>,
    keep_last: Option<u64>,
    entries: Vec<(String, CheckpointFile)>,
    whole: &mut WholeFolders,
) -> Result<(), CheckpointError> {
    own.complete(entries)?;
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
