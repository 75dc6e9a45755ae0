//! The checkpoints of a run, one after the other: written while training waits, or by threads in the background; older ones are
//! removed. Knows no format.

use super::files::{Files, SystemFiles};
use super::{CheckpointError, file_name, folder, manifest, save};
use crate::clock::Clock;
use feedrate_measure::record::{CheckpointKind, CheckpointRecord, RankCheckpoint};
use feedrate_spec::plan::CheckpointPlan;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// When in a run a checkpoint is due, and the step that names its folder.
#[derive(Clone, Copy, Debug)]
pub struct Due {
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
    /// What it took.
    pub record: CheckpointRecord,
}

/// Saves the checkpoints of one run.
#[derive(Debug)]
pub struct Saver {
    plan: Arc<CheckpointPlan>,
    clock: Clock,
    running: Option<Running>,
    whole: Whole,
    saved: Vec<Saved>,
}

/// Folders that this run wrote, and only those, the oldest first.
type Whole = VecDeque<PathBuf>;

/// Ranks, the end, and the folders that are left.
type Outcome = Result<(Vec<RankCheckpoint>, u64, Whole), CheckpointError>;

#[derive(Debug)]
struct Running {
    due: Due,
    start_ns: u64,
    /// How long training waited for it to start.
    stall_ns: u64,
    thread: JoinHandle<Outcome>,
}

impl Saver {
    /// For the checkpoints of `plan`.
    pub fn new(plan: &CheckpointPlan, clock: Clock) -> Self {
        let plan = Arc::new(plan.clone());
        Saver { plan, clock, running: None, whole: Whole::new(), saved: Vec::new() }
    }

    /// Write a checkpoint, or where that is done in the background wait for the one before and begin it.
    ///
    /// # Errors
    /// This one, or the one before, could not be written.
    pub fn save(&mut self, due: Due) -> Result<(), CheckpointError> {
        self.finish()?;
        let start_ns = self.clock.now_ns();
        let (plan, clock) = (Arc::clone(&self.plan), self.clock);
        let whole = std::mem::take(&mut self.whole);
        if !plan.asynchronous {
            let outcome = save_and_remove(&plan, clock, due, whole);
            return self.keep(due, start_ns, None, outcome);
        }
        let write = move || save_and_remove(&plan, clock, due, whole);
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(write);
        let path = folder(&self.plan, due.epoch, due.step);
        let thread = thread.map_err(|source| CheckpointError::Write { path, source })?;
        let stall_ns = self.clock.now_ns() - start_ns;
        self.running = Some(Running { due, start_ns, stall_ns, thread });
        Ok(())
    }

    /// Wait for the checkpoint that is being written, if there is one.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(&mut self) -> Result<(), CheckpointError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let wait_start_ns = self.clock.now_ns();
        let joined = running.thread.join();
        let outcome = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let stall_ns = running.stall_ns + (self.clock.now_ns() - wait_start_ns);
        self.keep(running.due, running.start_ns, Some(stall_ns), outcome)
    }

    /// The checkpoints that became whole since this was last asked.
    pub fn take_saved(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.saved)
    }

    fn keep(
        &mut self,
        due: Due,
        start_ns: u64,
        stall_ns: Option<u64>,
        outcome: Outcome,
    ) -> Result<(), CheckpointError> {
        let (ranks, end_ns, whole) = outcome?;
        self.whole = whole;
        let record = CheckpointRecord {
            kind: CheckpointKind::Save,
            start_ns,
            end_ns,
            bytes: self.plan.total_bytes,
            after_step: due.steps,
            stall_ns,
            ranks,
        };
        self.saved.push(Saved { epoch: due.epoch, record });
        Ok(())
    }
}

/// Older ones go once this one is whole.
fn save_and_remove(plan: &CheckpointPlan, clock: Clock, due: Due, mut whole: Whole) -> Outcome {
    let ranks = save(plan, clock, due.epoch, due.step)?;
    let own = folder(plan, due.epoch, due.step);
    whole.retain(|older| *older != own);
    whole.push_back(own);
    let kept = plan.keep_last.map_or(usize::MAX, |kept| kept as usize);
    while whole.len() > kept {
        if let Some(oldest) = whole.pop_front() {
            remove(&SystemFiles, plan, &oldest)
                .map_err(|source| CheckpointError::Write { path: oldest, source })?;
        }
    }
    Ok((ranks, clock.now_ns(), whole))
}

/// The manifest goes first, so that what is left at any moment does not look whole; then what this run wrote, and the folder
/// where nothing else is in it.
fn remove(files: &dyn Files, plan: &CheckpointPlan, folder: &Path) -> io::Result<()> {
    manifest::Manifest::withdraw(files, folder, plan.fsync)?;
    for state in (0..plan.state.writers()).flat_map(|rank| plan.state.files(rank)) {
        match files.remove(&folder.join(file_name(plan, &state))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    files.remove_empty_folder(folder)
}
