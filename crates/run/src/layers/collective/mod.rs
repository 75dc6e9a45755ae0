//! One accelerator of a group reads and sends to the others, where they are in several processes: `member` asks, `reader` reads
//! and answers, `message` is what they say to each other. Within a process groups need none of this.

mod member;
mod message;
mod reader;
mod turn;
#[cfg(test)]
mod tests;

use self::member::Member;
use self::reader::Line;
use self::turn::{InTurn, Turn};
use crate::comm::{CommError, Peers};
use crate::ranks::Ranks;
use feedrate_data::storage::Storage;
use feedrate_spec::plan::Plan;
use feedrate_spec::plan::order::shard;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// So long a reader that was told to stop may still be in an operation; then nobody waits for it any more.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(1);

/// What the workers of a process read, worker by worker, where their group is in several processes. Empty where none is.
#[derive(Clone, Default)]
pub struct GroupStorages {
    /// Of this process's first group: its reader is elsewhere.
    pub asked: Vec<Arc<dyn Storage>>,
    /// Of its last group: it reads for members elsewhere too.
    pub served: Vec<Arc<dyn Storage>>,
}

/// Whom this process has to do with.
#[derive(Debug, PartialEq, Eq)]
struct Neighbours {
    /// Who reads for its first accelerators; `None` where it does so itself.
    reader: Option<u32>,
    /// For whom it reads.
    members: Vec<u32>,
}

impl Neighbours {
    /// Of process `rank` of `processes`, which share `accelerators` in groups of `group`.
    fn of(rank: u32, processes: u32, accelerators: u32, group: u32) -> Self {
        let own = |rank| shard(accelerators.into(), processes, rank);
        let (here, group) = (own(rank), u64::from(group));
        let before = here.start % group;
        let with = |accelerator| (0..processes).find(|&rank| own(rank).contains(&accelerator));
        let reader = if before > 0 { with(here.start - before) } else { None };
        let last = here.end.saturating_sub(1) / group * group;
        let leads = !here.is_empty() && here.start <= last;
        let later = (rank + 1..processes).filter(|&rank| {
            let there = own(rank);
            !there.is_empty() && there.start < last + group
        });
        Neighbours { reader, members: if leads { later.collect() } else { Vec::new() } }
    }
}

/// Share of the run's accelerators that process `rank` reads for.
pub fn share_read(rank: u32, processes: u32, accelerators: u32, group: u32) -> f64 {
    let (accelerators, group) = (u64::from(accelerators), u64::from(group.max(1)));
    let own = shard(accelerators, processes, rank);
    let first = own.start.next_multiple_of(group);
    let end =
        if first < own.end { own.end.next_multiple_of(group).min(accelerators) } else { first };
    (end - first) as f64 / accelerators.max(1) as f64
}

/// The readers and members of a run. Ends its threads when dropped.
pub struct Collective {
    peers: Arc<dyn Peers>,
    neighbours: Neighbours,
    workers: u32,
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
        let first = |rank| shard(plan.accelerators.into(), size, rank).start;
        if (0..size).all(|rank| first(rank).is_multiple_of(group.into())) {
            return Ok(None);
        }
        Ok(Some(Collective {
            peers: ranks.comm.peers()?,
            neighbours: Neighbours::of(ranks.comm.rank(), size, plan.accelerators, group),
            workers: plan.loader.workers.max(1),
            tags: 0,
            threads: Vec::new(),
            stop: Arc::clone(stop),
            abandoned: Arc::default(),
        }))
    }

    /// What the workers of one job read, and those who read `storage` for members elsewhere started. Every process has to ask for
    /// the same jobs in the same order.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn storages(&mut self, storage: &Arc<dyn Storage>) -> std::io::Result<GroupStorages> {
        let mut storages = GroupStorages::default();
        let tags = self.tags..self.tags + self.workers;
        self.tags = tags.end;
        for tag in tags {
            if let Some(reader) = self.neighbours.reader {
                let (peers, stop) = (Arc::clone(&self.peers), Arc::clone(&self.stop));
                let inner = Arc::clone(storage);
                storages.asked.push(Arc::new(Member::new(inner, peers, (reader, tag), stop)));
            }
            if self.neighbours.members.is_empty() {
                continue;
            }
            let turn = Arc::new(Turn::default());
            let own: Arc<dyn Storage> = Arc::new(InTurn::new(Arc::clone(storage), turn));
            for &member in &self.neighbours.members {
                let (peers, abandoned) = (Arc::clone(&self.peers), Arc::clone(&self.abandoned));
                let line = Line::new(Arc::clone(&own), peers, (member, tag), abandoned);
                let name = format!("for{member}w{tag}");
                let thread = std::thread::Builder::new().name(name).spawn(|| line.serve())?;
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
                self.peers.send(reader, tag, message::LEAVE.to_vec(), &self.abandoned)?;
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
