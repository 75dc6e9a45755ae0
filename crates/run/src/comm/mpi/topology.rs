//! Finds the machines of the ranks, sets up their shared barriers, and compares their clocks.

use super::link::{Barriers, Link};
use super::shared_barrier::SharedBarrier;
use crate::clock::machine_ns;
use crate::comm::{ClockOffset, CommError, RankNode, most_on_one_machine};
use std::collections::BTreeSet;

/// Number of round trips for comparing clocks of two machines; the shortest counts.
const ROUND_TRIPS: u32 = 40;
/// Number of readings for comparing two clocks of one machine; the closest counts.
const READINGS: u32 = 10;

/// The machines of all ranks.
pub(super) struct Topology {
    rank: usize,
    /// The first rank of each rank's machine.
    leaders: Vec<u32>,
    pub(super) hosts: Vec<String>,
    pub(super) node: RankNode,
    /// Reason why ranks of a machine cannot share memory; `None` if they can.
    pub(super) slow_barrier_reason: Option<String>,
}

impl Topology {
    /// Finds the machines of the ranks and sets up their shared barriers. The library finds the ranks of a machine, unless
    /// `launched_local_size`, the launcher's number of local ranks, shows that all ranks are on one machine. There are no shared barriers if they
    /// cannot be set up on one of the machines. Every rank has to call it.
    pub(super) fn find(
        link: &Link,
        launched_local_size: Option<u32>,
    ) -> Result<(Self, Option<Barriers>), CommError> {
        let (leader, local_rank, local_size) = if launched_local_size == Some(link.size) {
            // Saves a call that takes MPICH a tenth of a second if ranks outnumber cores.
            (0, link.rank, link.size)
        } else {
            let group = link.calls.node_group(link.rank)?;
            let (local_rank, local_size) = link.calls.rank_and_size(group)?;
            let leader = link.group_broadcast(group, link.rank.to_le_bytes().to_vec())?;
            (leader.try_into().map_or(0, u32::from_le_bytes), local_rank, local_size)
        };
        let is_leader = local_rank == 0;
        // Unique among all runs of the machine.
        let local_name =
            format!("/feedrate-{}-{}-{:x}", std::process::id(), link.rank, machine_ns());
        let created = is_leader.then(|| SharedBarrier::create(&local_name, local_size));
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let rank = link.rank as usize;
        let all = link.share((leader, host, local_name))?;
        let leader_name = all.get(leader as usize).map_or("", |(_, _, name)| name);
        let barrier = created.unwrap_or_else(|| SharedBarrier::open(leader_name, local_size));
        let failure = barrier.as_ref().err().map(|errno| format!("{errno} on {}", all[rank].1));
        let slow_barrier_reason = link.share(failure)?.into_iter().flatten().next();
        if is_leader {
            SharedBarrier::unlink(leader_name);
        }
        let leaders: Vec<u32> = all.iter().map(|(leader, _, _)| *leader).collect();
        let distinct_leaders: BTreeSet<u32> = leaders.iter().copied().collect();
        let node = distinct_leaders.range(..leader).count() as u32;
        let nodes = distinct_leaders.len() as u32;
        let local_size_max = most_on_one_machine(&leaders);
        let mut barriers =
            barrier.ok().map(|barrier| Barriers { barrier, is_leader, leaders: None });
        if nodes > 1 {
            let group = link.calls.split(is_leader, link.rank)?;
            if let Some(barriers) = barriers.as_mut().filter(|barriers| barriers.is_leader) {
                barriers.leaders = Some(group);
            }
        }
        let topology = Topology {
            rank,
            leaders,
            hosts: all.into_iter().map(|(_, host, _)| host).collect(),
            node: RankNode { node, nodes, local_rank, local_size, local_size_max },
            slow_barrier_reason,
        };
        let usable_barriers = barriers.filter(|_| topology.slow_barrier_reason.is_none());
        Ok((topology, usable_barriers))
    }

    /// Returns the rank that reports to the user if rank 0 cannot. It is on another machine if there is one.
    pub(super) fn deputy(&self) -> u32 {
        self.leaders.iter().copied().find(|&leader| leader > 0).unwrap_or(1)
    }

    /// Measures by how much the clock of rank 0 is ahead of `now_ns`. The ranks of a machine share its
    /// monotonic clock. The first rank of each other machine compares its machine's clock with rank 0's (Cristian's algorithm). Every rank has to
    /// call it.
    pub(super) fn clock_offset(
        &self,
        link: &Link,
        now_ns: &dyn Fn() -> u64,
    ) -> Result<ClockOffset, CommError> {
        link.begin("MPI_Isend")?;
        let local = offset_from_machine(now_ns);
        let all = link.share((local, self.offset_to_first_machine(link)?))?;
        let leader = self.leaders[self.rank] as usize;
        if self.rank == 0 || all.len() <= leader {
            return Ok(ClockOffset::default());
        }
        let (first, _) = all[0];
        let (_, machine) = all[leader];
        Ok(ClockOffset {
            offset_ns: first.offset_ns + machine.offset_ns - local.offset_ns,
            error_ns: first.error_ns + machine.error_ns + local.error_ns,
        })
    }

    /// Measures by how much the machine clock of rank 0 is ahead of this machine's. Only meaningful on the first rank of each machine.
    fn offset_to_first_machine(&self, link: &Link) -> Result<ClockOffset, CommError> {
        let mut others: BTreeSet<u32> = self.leaders.iter().copied().collect();
        others.remove(&0);
        if self.rank == 0 {
            for other in others {
                for _ in 0..ROUND_TRIPS {
                    link.receive(other, 1)?;
                    link.send(other, machine_ns().to_le_bytes().to_vec())?;
                }
            }
            return Ok(ClockOffset::default());
        }
        let mut offsets = Vec::new();
        if others.contains(&link.rank) {
            for _ in 0..ROUND_TRIPS {
                let sent_ns = machine_ns();
                link.send(0, vec![0])?;
                let answer = link.receive(0, 8)?;
                let answer_ns = answer.try_into().map_or(0, u64::from_le_bytes);
                offsets.push(offset_between(sent_ns, answer_ns, machine_ns()));
            }
        }
        Ok(closest(offsets))
    }
}

/// Measures by how much `now_ns` is ahead of this machine's clock.
fn offset_from_machine(now_ns: &dyn Fn() -> u64) -> ClockOffset {
    closest((0..READINGS).map(|_| {
        let before_ns = machine_ns();
        let local_ns = now_ns();
        offset_between(before_ns, local_ns, machine_ns())
    }))
}

fn closest(offsets: impl IntoIterator<Item = ClockOffset>) -> ClockOffset {
    offsets.into_iter().min_by_key(|offset| offset.error_ns).unwrap_or_default()
}

/// Returns the offset of another clock that was read as `other_ns` between two readings of this one.
fn offset_between(before_ns: u64, other_ns: u64, after_ns: u64) -> ClockOffset {
    let error_ns = after_ns.saturating_sub(before_ns).div_ceil(2);
    ClockOffset { offset_ns: other_ns.wrapping_sub(before_ns + error_ns) as i64, error_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_an_offset_is_half_the_time_between_readings() {
        let offset = |offset_ns, error_ns| ClockOffset { offset_ns, error_ns };
        assert_eq!(offset_between(1_000, 5_010, 1_020), offset(4_000, 10));
        assert_eq!(offset_between(1_000, 510, 1_020), offset(-500, 10));
    }

    #[test]
    fn a_clock_is_compared_with_the_machine_clock() {
        let late = || machine_ns() - 1_000_000;
        let offset = offset_from_machine(&late);
        assert!((offset.offset_ns + 1_000_000).unsigned_abs() <= offset.error_ns, "{offset:?}");
    }
}
