//! One accelerator of a group reads and sends to the others, where they are in several processes: `member` asks, `reader` reads
//! and answers, `message` is what they say to each other. Within a process groups need none of this.

mod member;
mod message;
mod reader;
mod turn;
#[cfg(test)]
mod tests;

use self::member::GroupMember;
use self::message::{PeerLine, ReadRequest};
use self::reader::GroupReader;
use self::turn::InTurn;
use super::once::{KeptReads, Once};
use crate::comm::{CommError, Peers};
use crate::ranks::Ranks;
use feedrate_data::storage::ReadStorage;
use feedrate_spec::plan::Plan;
use feedrate_spec::plan::order::shard;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// So long a reader that was told to stop may still be in an operation; then nobody waits for it any more.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(1);

/// Storages that the workers of a process read from, worker by worker, where their group is in several processes. Empty where none is.
#[derive(Clone, Default)]
pub struct GroupStorages {
    /// For this process's first group, whose reader is elsewhere.
    pub asked: Vec<Arc<dyn ReadStorage>>,
    /// For its last group, where it reads for members elsewhere too.
    pub served: Vec<Arc<dyn ReadStorage>>,
}

/// Processes that this one has to do with.
#[derive(Debug, PartialEq, Eq)]
struct Neighbours {
    /// The reader of its first accelerators; `None` where it does so itself.
    reader: Option<u32>,
    /// Those it reads for.
    members: Vec<u32>,
}

impl Neighbours {
    /// Those of process `rank` of `processes`, which share `accelerators` in groups of `group`.
    fn new(rank: u32, processes: u32, accelerators: u32, group: u32) -> Self {
        let (accelerators, group) = (u64::from(accelerators), u64::from(group));
        let here = shard(accelerators, processes, rank);
        let first = here.start / group * group;
        let last = here.end.saturating_sub(1) / group * group;
        let mut neighbours = Neighbours { reader: None, members: Vec::new() };
        for rank in 0..processes {
            let there = shard(accelerators, processes, rank);
            if first < here.start && there.contains(&first) {
                neighbours.reader = Some(rank);
            }
            let leads = here.start <= last && here.end <= there.start;
            if leads && !here.is_empty() && !there.is_empty() && there.start < last + group {
                neighbours.members.push(rank);
            }
        }
        neighbours
    }
}

/// Those of the run's accelerators that process `rank` reads for.
pub fn read_for(rank: u32, processes: u32, accelerators: u32, group: u32) -> Range<u64> {
    let (accelerators, group) = (u64::from(accelerators), u64::from(group.max(1)));
    let own = shard(accelerators, processes, rank);
    let first = own.start.next_multiple_of(group);
    let end =
        if first < own.end { own.end.next_multiple_of(group).min(accelerators) } else { first };
    first..end
}

/// The readers and members of a run. Ends its threads when dropped.
pub struct Collective {
    peers: Arc<dyn Peers>,
    neighbours: Neighbours,
    workers: u32,
    /// Accelerators of the group that this process reads for, where all read the same.
    takers: Option<u32>,
    /// Tags given out.
    tags: u32,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// No member will ask any more, nor has to be waited for.
    abandoned: Arc<AtomicBool>,
}

impl Collective {
    /// Where a group of `plan` is in several processes. Collective.
    ///
    /// # Errors
    /// Processes cannot talk to each other beside what they do together.
    pub fn begin(
        ranks: &Ranks,
        plan: &Plan,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, CommError> {
        let (size, group) = (ranks.comm.size(), plan.loader.group_accelerators.max(1));
        let mut shards = (0..size).map(|rank| shard(plan.accelerators.into(), size, rank));
        if shards.all(|shard| shard.start.is_multiple_of(group.into())) {
            return Ok(None);
        }
        Ok(Some(Collective {
            peers: ranks.comm.peers()?,
            neighbours: Neighbours::new(ranks.comm.rank(), size, plan.accelerators, group),
            workers: plan.loader.workers.max(1),
            takers: plan.loader.is_broadcast().then(|| {
                let last = ranks.own.end.saturating_sub(1) / group * group;
                group.min(plan.accelerators - last)
            }),
            tags: 0,
            threads: Vec::new(),
            stop: Arc::clone(stop),
            abandoned: Arc::default(),
        }))
    }

    /// Storages for the workers of one job, with those who read `storage` for members elsewhere started. Every process has to ask for
    /// the same jobs in the same order.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn storages(&mut self, storage: &Arc<dyn ReadStorage>) -> std::io::Result<GroupStorages> {
        let mut storages = GroupStorages::default();
        let kept = self.takers.map(KeptReads::new);
        let tags = self.tags..self.tags + self.workers;
        self.tags = tags.end;
        for tag in tags {
            if let Some(reader) = self.neighbours.reader {
                let line = PeerLine::new(&self.peers, reader, tag, &self.stop);
                storages.asked.push(Arc::new(GroupMember::new(line)));
            }
            if self.neighbours.members.is_empty() {
                continue;
            }
            let mut own: Arc<dyn ReadStorage> = Arc::new(InTurn::new(Arc::clone(storage)));
            if let Some(kept) = &kept {
                own = Arc::new(Once::new(own, Arc::clone(kept)));
            }
            for &member in &self.neighbours.members {
                let line = PeerLine::new(&self.peers, member, tag, &self.abandoned);
                let reader = GroupReader::new(Arc::clone(&own), line);
                let name = format!("for{member}w{tag}");
                let thread = std::thread::Builder::new().name(name).spawn(|| reader.serve())?;
                self.threads.push(thread);
            }
            storages.served.push(own);
        }
        Ok(storages)
    }

    /// The run is whole, and no worker of this process reads any more: take leave of the reader, and wait until all members have
    /// taken theirs.
    ///
    /// # Errors
    /// Another process did not come so far.
    pub fn finish(mut self) -> Result<(), CommError> {
        if let Some(reader) = self.neighbours.reader {
            for tag in 0..self.tags {
                let mut line = PeerLine::new(&self.peers, reader, tag, &self.abandoned);
                line.send(ReadRequest::Leave.head(), &[])?;
            }
        }
        for thread in self.threads.drain(..) {
            // One that panicked has told its story on stderr.
            let _ = thread.join();
        }
        Ok(())
    }
}

impl Drop for Collective {
    fn drop(&mut self) {
        self.abandoned.store(true, Relaxed);
        let mut left = GRACE;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && !left.is_zero() {
                std::thread::sleep(LOOK);
                left = left.saturating_sub(LOOK);
            }
        }
    }
}
