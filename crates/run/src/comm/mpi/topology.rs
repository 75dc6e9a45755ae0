//! The machines of the ranks: who shares one, what they are called, and how far their clocks are apart.

use super::gate::Gate;
use super::link::{Gates, Link};
use crate::clock::machine_ns;
use crate::comm::{ClockOffset, CommError, RankNode};
use std::collections::BTreeSet;

/// Round trips to another machine, of which the shortest counts.
const ROUNDS: u32 = 40;
/// Looks at two clocks of one machine, of which the closest counts.
const LOOKS: u32 = 10;

/// The places of all ranks, known to each.
pub(super) struct Topology {
    rank: usize,
    /// The first rank of each rank's machine.
    leaders: Vec<u32>,
    pub(super) hosts: Vec<String>,
    pub(super) node: RankNode,
    /// The reason why ranks of a machine share no memory, where they do not.
    pub(super) apart: Option<String>,
}

impl Topology {
    /// Ask the library who shares memory with whom, unless the launcher says that it started all on one machine, and let those
    /// who do make a barrier of it: there is none where any machine does not let its ranks share some. Collective.
    pub(super) fn find(
        link: &Link,
        launched_here: Option<u32>,
    ) -> Result<(Self, Option<Gates>), CommError> {
        let (leader, local_rank, local_size) = if launched_here == Some(link.size) {
            // The library's own way takes MPICH a tenth of a second where ranks outnumber cores.
            (0, link.rank, link.size)
        } else {
            let group = link.calls.node(link.rank)?;
            let (local_rank, local_size) = link.calls.place(group)?;
            let leader = link.spread(group, link.rank.to_le_bytes().to_vec())?;
            (leader.try_into().map_or(0, u32::from_le_bytes), local_rank, local_size)
        };
        let leads = local_rank == 0;
        // No other run has this name.
        let name = format!("/feedrate-{}-{}-{:x}", std::process::id(), link.rank, machine_ns());
        let made = leads.then(|| Gate::make(&name, local_size));
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let rank = link.rank as usize;
        let all = link.share((leader, host, name))?;
        let name = all.get(leader as usize).map_or("", |(_, _, name)| name);
        let gate = made.unwrap_or_else(|| Gate::open(name, local_size));
        let refused = gate.as_ref().err().map(|errno| format!("{errno} on {}", all[rank].1));
        let apart = link.share(refused)?.into_iter().flatten().next();
        if leads {
            Gate::forget_name(name);
        }
        let leaders: Vec<u32> = all.iter().map(|(leader, _, _)| *leader).collect();
        let order: BTreeSet<u32> = leaders.iter().copied().collect();
        let (node, nodes) = (order.range(..leader).count() as u32, order.len() as u32);
        let mut gates = gate.ok().map(|gate| Gates { gate, leads, leaders: None });
        if nodes > 1 {
            let group = link.calls.split(leads, link.rank)?;
            if let Some(gates) = gates.as_mut().filter(|gates| gates.leads) {
                gates.leaders = Some(group);
            }
        }
        let topology = Topology {
            rank,
            leaders,
            hosts: all.into_iter().map(|(_, host, _)| host).collect(),
            node: RankNode { node, nodes, local_rank, local_size },
            apart,
        };
        let gates = if topology.apart.is_none() { gates } else { None };
        Ok((topology, gates))
    }

    /// The rank that speaks where rank 0 cannot: of another machine, if there is one.
    pub(super) fn deputy(&self) -> u32 {
        self.leaders.iter().copied().find(|&leader| leader > 0).unwrap_or(1)
    }

    /// How far the clock of rank 0 is ahead of `now_ns`. Ranks of a machine share its monotonic clock, by which theirs are
    /// compared; the first rank of each other machine asks rank 0 for the time (Cristian's algorithm). Collective.
    pub(super) fn clock(
        &self,
        link: &Link,
        now_ns: &dyn Fn() -> u64,
    ) -> Result<ClockOffset, CommError> {
        link.begin("MPI_Isend")?;
        let own = against_machine(now_ns);
        let all = link.share((own, self.against_first_machine(link)?))?;
        let leader = self.leaders[self.rank] as usize;
        if self.rank == 0 || all.len() <= leader {
            return Ok(ClockOffset::default());
        }
        let (first, machine) = (all[0].0, all[leader].1);
        Ok(ClockOffset {
            offset_ns: first.offset_ns + machine.offset_ns - own.offset_ns,
            error_ns: first.error_ns + machine.error_ns + own.error_ns,
        })
    }

    /// How far the machine clock of rank 0 is ahead of this one's; known to the first rank of each machine.
    fn against_first_machine(&self, link: &Link) -> Result<ClockOffset, CommError> {
        let mut others: BTreeSet<u32> = self.leaders.iter().copied().collect();
        others.remove(&0);
        if self.rank == 0 {
            for other in others {
                for _ in 0..ROUNDS {
                    link.receive(other, 1)?;
                    link.send(other, machine_ns().to_le_bytes().to_vec())?;
                }
            }
            return Ok(ClockOffset::default());
        }
        let mut looks = Vec::new();
        if others.contains(&link.rank) {
            for _ in 0..ROUNDS {
                let asked_ns = machine_ns();
                link.send(0, vec![0])?;
                let answer = link.receive(0, 8)?;
                let answer_ns = answer.try_into().map_or(0, u64::from_le_bytes);
                looks.push(between(asked_ns, answer_ns, machine_ns()));
            }
        }
        Ok(closest(looks))
    }
}

/// How far `now_ns` is ahead of this machine's clock.
fn against_machine(now_ns: &dyn Fn() -> u64) -> ClockOffset {
    closest((0..LOOKS).map(|_| {
        let before_ns = machine_ns();
        let now_ns = now_ns();
        between(before_ns, now_ns, machine_ns())
    }))
}

fn closest(looks: impl IntoIterator<Item = ClockOffset>) -> ClockOffset {
    looks.into_iter().min_by_key(|look| look.error_ns).unwrap_or_default()
}

/// A time of another clock, seen between two of this one.
fn between(before_ns: u64, other_ns: u64, after_ns: u64) -> ClockOffset {
    let error_ns = after_ns.saturating_sub(before_ns).div_ceil(2);
    ClockOffset { offset_ns: other_ns.wrapping_sub(before_ns + error_ns) as i64, error_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_seen_between_two_looks_is_known_to_half_their_distance() {
        let offset = |offset_ns, error_ns| ClockOffset { offset_ns, error_ns };
        assert_eq!(between(1_000, 5_010, 1_020), offset(4_000, 10));
        assert_eq!(between(1_000, 510, 1_020), offset(-500, 10));
    }

    #[test]
    fn a_clock_is_held_against_that_of_the_machine() {
        let late = || machine_ns() - 1_000_000;
        let look = against_machine(&late);
        assert!((look.offset_ns + 1_000_000).unsigned_abs() <= look.error_ns, "{look:?}");
    }
}
