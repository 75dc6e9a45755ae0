//! Groups of accelerators that extend over several processes and share a reader. The process with the group's first accelerator reads
//! (`reader`) and sends the data to the other processes (`member`), with the messages of `message`. Groups within one process do not
//! need this.

mod member;
mod message;
mod reader;
mod turn;
#[cfg(test)]
mod tests;

use self::member::GroupMember;
use self::message::{PeerConnection, ReadRequest};
use self::reader::GroupReader;
use self::turn::SerialStorage;
use super::once::{KeptReads, ReadOnceStorage};
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

/// Time that threads have to finish their operation when the collective is dropped. After this time they are abandoned.
const GRACE: Duration = Duration::from_secs(3);
/// Interval of checks whether the threads have ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Storages for the workers of groups that extend over several processes, one for each worker. Empty if there is no such group.
#[derive(Clone, Default)]
pub struct GroupStorages {
    /// For this process's first group, if another process reads for it.
    pub remote: Vec<Arc<dyn ReadStorage>>,
    /// For this process's last group, if this process also reads for members in other processes.
    pub serving: Vec<Arc<dyn ReadStorage>>,
}

/// The other processes that this process shares groups with.
#[derive(Debug, PartialEq, Eq)]
struct Neighbours {
    /// The process that reads for this one's first group; `None` if this process does.
    reader: Option<u32>,
    /// The processes that this one reads for.
    members: Vec<u32>,
}

impl Neighbours {
    /// Finds the neighbours of process `rank` of `processes`. The run's `accelerators` are divided into groups of `group`.
    fn new(rank: u32, processes: u32, accelerators: u32, group: u32) -> Self {
        let accelerators = u64::from(accelerators);
        let group = u64::from(group);
        let local = shard(accelerators, processes, rank);
        let first = local.start / group * group;
        let last = local.end.saturating_sub(1) / group * group;
        let mut neighbours = Neighbours { reader: None, members: Vec::new() };
        for other in 0..processes {
            let remote = shard(accelerators, processes, other);
            if first < local.start && remote.contains(&first) {
                neighbours.reader = Some(other);
            }
            let reads = local.start <= last && local.end <= remote.start;
            if reads && !local.is_empty() && !remote.is_empty() && remote.start < last + group {
                neighbours.members.push(other);
            }
        }
        neighbours
    }
}

/// Returns the accelerators of the run that process `rank` reads for.
pub fn served_accelerators(rank: u32, processes: u32, accelerators: u32, group: u32) -> Range<u64> {
    let accelerators = u64::from(accelerators);
    let group = u64::from(group.max(1));
    let local = shard(accelerators, processes, rank);
    let first = local.start.next_multiple_of(group);
    let reads = first < local.end;
    let end = if reads { local.end.next_multiple_of(group).min(accelerators) } else { first };
    first..end
}

/// The connections between readers and members of a run. Dropping it ends its threads.
pub struct Collective {
    peers: Arc<dyn Peers>,
    neighbours: Neighbours,
    workers: u32,
    /// Number of accelerators in the group that this process reads for, if they all read the same data.
    group_size: Option<u32>,
    /// Number of message tags in use.
    tags: u32,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// Set when messages of members are not waited for any more.
    abandoned: Arc<AtomicBool>,
}

impl Collective {
    /// Connects the processes if a group of `plan` extends over several of them. Every rank has to call it.
    ///
    /// # Errors
    /// The ranks cannot exchange messages in pairs.
    pub fn begin(
        ranks: &Ranks,
        plan: &Plan,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, CommError> {
        let size = ranks.comm.size();
        let group = plan.loader.group_accelerators.max(1);
        let mut shards = (0..size).map(|rank| shard(plan.accelerators.into(), size, rank));
        if shards.all(|shard| shard.start.is_multiple_of(group.into())) {
            return Ok(None);
        }
        Ok(Some(Collective {
            peers: ranks.comm.peers()?,
            neighbours: Neighbours::new(ranks.comm.rank(), size, plan.accelerators, group),
            workers: plan.loader.workers.max(1),
            group_size: plan.loader.is_broadcast().then(|| {
                let last = ranks.local.end.saturating_sub(1) / group * group;
                group.min(plan.accelerators - last)
            }),
            tags: 0,
            threads: Vec::new(),
            stop: Arc::clone(stop),
            abandoned: Arc::default(),
        }))
    }

    /// Creates the storages for the workers of one job and starts the threads that read `storage` for members in other processes.
    /// Every process has to call it for the same jobs in the same order.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn storages(&mut self, storage: &Arc<dyn ReadStorage>) -> std::io::Result<GroupStorages> {
        let mut storages = GroupStorages::default();
        let kept = self.group_size.map(KeptReads::new);
        let tags = self.tags..self.tags + self.workers;
        self.tags = tags.end;
        for tag in tags {
            if let Some(reader) = self.neighbours.reader {
                let connection = PeerConnection::new(&self.peers, reader, tag, &self.stop);
                storages.remote.push(Arc::new(GroupMember::new(connection)));
            }
            if self.neighbours.members.is_empty() {
                continue;
            }
            let mut serving: Arc<dyn ReadStorage> =
                Arc::new(SerialStorage::new(Arc::clone(storage)));
            if let Some(kept) = &kept {
                serving = Arc::new(ReadOnceStorage::new(serving, Arc::clone(kept)));
            }
            for &member in &self.neighbours.members {
                let connection = PeerConnection::new(&self.peers, member, tag, &self.abandoned);
                let reader = GroupReader::new(Arc::clone(&serving), connection);
                let name = format!("for{member}w{tag}");
                let thread = std::thread::Builder::new().name(name).spawn(|| reader.serve())?;
                self.threads.push(thread);
            }
            storages.serving.push(serving);
        }
        Ok(storages)
    }

    /// Ends the connections after a complete run, when the workers of this process have finished: notifies the reader and waits until
    /// all members have done the same.
    ///
    /// # Errors
    /// Another process ended before it called this function.
    pub fn finish(mut self) -> Result<(), CommError> {
        if let Some(reader) = self.neighbours.reader {
            for tag in 0..self.tags {
                let mut connection = PeerConnection::new(&self.peers, reader, tag, &self.abandoned);
                connection.send(ReadRequest::Leave.head(), &[])?;
            }
        }
        for thread in self.threads.drain(..) {
            // A panic was printed to stderr already.
            let _ = thread.join();
        }
        Ok(())
    }
}

impl Drop for Collective {
    fn drop(&mut self) {
        self.abandoned.store(true, Relaxed);
        let mut remaining = GRACE;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && !remaining.is_zero() {
                std::thread::sleep(CHECK_INTERVAL);
                remaining = remaining.saturating_sub(CHECK_INTERVAL);
            }
        }
    }
}
