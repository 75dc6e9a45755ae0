//! Which ranks share a machine, what the machines are called, and how far their clocks are apart.

use super::calls::Group;
use super::gate::Gate;
use super::launcher::ranks_here;
use super::link::{Gates, Link};
use crate::clock::machine_ns;
use crate::comm::{ClockOffset, CommError, Node};
use std::collections::BTreeSet;

/// Round trips to another machine, of which the shortest counts.
const ROUNDS: u32 = 40;
/// Room for a name in shared memory.
const NAME_BYTES: usize = 64;
/// Looks at two clocks of one machine, of which the closest counts.
const LOOKS: u32 = 10;

/// Of all ranks, on each.
pub(super) struct Places {
    rank: usize,
    /// The first rank of each rank's machine.
    leaders: Vec<u32>,
    hosts: Vec<String>,
    node: Node,
    /// Ranks of this machine.
    group: Group,
}

impl Places {
    /// Ask the library who shares memory with whom, unless the launcher says that all do. Collective.
    pub(super) fn find(link: &Link) -> Result<Self, CommError> {
        let launched_here = ranks_here(|name| std::env::var(name).ok());
        // The library's own way takes MPICH a tenth of a second where ranks outnumber cores.
        let (group, (local_rank, local_size), leader) = match launched_here == Some(link.size) {
            true => (link.calls.world(), (link.rank, link.size), 0),
            false => {
                let group = link.calls.node(link.rank)?;
                let leader = link.spread(group, link.rank.to_le_bytes().to_vec())?;
                let leader = leader.try_into().map_or(0, u32::from_le_bytes);
                (group, link.calls.place(group)?, leader)
            }
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let all: Vec<(u32, String)> = share(link, (leader, host), |all| all)?;
        let (leaders, hosts): (Vec<u32>, Vec<String>) = all.into_iter().unzip();
        let order: BTreeSet<u32> = leaders.iter().copied().collect();
        let node = order.range(..leader).count() as u32;
        let node = Node { node, nodes: order.len() as u32, local_rank, local_size };
        Ok(Places { rank: link.rank as usize, leaders, hosts, node, group })
    }

    /// The barrier in the machines' memory; nothing where any of them does not let its ranks share some. Collective.
    pub(super) fn gates(&self, link: &Link) -> Result<Option<Gates>, CommError> {
        let leads = self.node.local_rank == 0;
        let ranks = self.node.local_size;
        let mut name = [0; NAME_BYTES];
        let made = if leads {
            name = name_of(link.rank, machine_ns());
            Gate::make(text(&name), ranks).ok()
        } else {
            None
        };
        let name = link.spread(self.group, name.to_vec())?;
        let gate = if leads { made } else { Gate::open(text(&name), ranks).ok() };
        let all = |link: &Link, own: bool| share(link, own, |all| all.into_iter().all(|one| one));
        let everyone = all(link, gate.is_some())?;
        if leads {
            Gate::forget_name(text(&name));
        }
        let everyone = all(link, everyone && gate.as_ref().is_some_and(Gate::is_common))?;
        let leaders =
            if self.node.nodes > 1 { Some(link.calls.split(leads, link.rank)?) } else { None };
        let leaders = leaders.filter(|_| leads);
        Ok(gate.filter(|_| everyone).map(|gate| Gates { gate, leads, leaders }))
    }

    pub(super) fn node(&self) -> Node {
        self.node
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// How far the clock of rank 0 is ahead of `now_ns`. Ranks of a machine share its monotonic clock, by which theirs are
    /// compared; the first rank of each other machine asks rank 0 for the time (Cristian's algorithm). Collective.
    pub(super) fn clock(
        &self,
        link: &Link,
        now_ns: &dyn Fn() -> u64,
    ) -> Result<ClockOffset, CommError> {
        link.begin("MPI_Isend")?;
        let ahead = against_machine(now_ns);
        let machine = self.against_first_machine(link)?;
        let all = share(link, [ahead, machine].map(row), |all| all)?;
        let of = |rank: usize, which: usize| all.get(rank).map_or((0, 0), |rows| rows[which]);
        let leader = self.leaders[self.rank] as usize;
        let (first, machine, own) = (of(0, 0), of(leader, 1), of(self.rank, 0));
        if self.rank == 0 {
            return Ok(ClockOffset::default());
        }
        Ok(ClockOffset {
            offset_ns: first.0 + machine.0 - own.0,
            error_ns: first.1 + machine.1 + own.1,
        })
    }

    /// How far the machine clock of rank 0 is ahead of this one's; known to the first rank of each machine.
    fn against_first_machine(&self, link: &Link) -> Result<ClockOffset, CommError> {
        let others: BTreeSet<u32> =
            self.leaders.iter().copied().filter(|rank| *rank != 0).collect();
        if self.rank == 0 {
            for other in others {
                for _ in 0..ROUNDS {
                    link.receive(other, 1)?;
                    link.send(other, machine_ns().to_le_bytes().to_vec())?;
                }
            }
            return Ok(ClockOffset::default());
        }
        if !others.contains(&(self.rank as u32)) {
            return Ok(ClockOffset::default());
        }
        let mut best: Option<ClockOffset> = None;
        for _ in 0..ROUNDS {
            let asked_ns = machine_ns();
            link.send(0, vec![0])?;
            let answer = link.receive(0, 8)?;
            let answer_ns = answer.try_into().map_or(0, u64::from_le_bytes);
            let round = between(asked_ns, answer_ns, machine_ns());
            best = Some(best.filter(|best| best.error_ns <= round.error_ns).unwrap_or(round));
        }
        Ok(best.unwrap_or_default())
    }
}

/// Everyone's `own` in rank order, made into something on rank 0, on all.
pub(super) fn share<T, U>(
    link: &Link,
    own: T,
    make: impl FnOnce(Vec<T>) -> U,
) -> Result<U, CommError>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
    U: serde::Serialize + serde::de::DeserializeOwned,
{
    let broken = |error: serde_json::Error| CommError::Library {
        call: "MPI_Igather",
        reason: format!("what ranks tell each other cannot be read: {error}"),
    };
    let all = link.gather(&serde_json::to_vec(&own).map_err(broken)?)?;
    let mut made = Vec::new();
    if link.rank == 0 {
        let all: Result<Vec<T>, _> =
            all.iter().map(|bytes| serde_json::from_slice(bytes)).collect();
        made = serde_json::to_vec(&make(all.map_err(broken)?)).map_err(broken)?;
    }
    serde_json::from_slice(&link.broadcast(&made)?).map_err(broken)
}

/// A name in the machine's shared memory that no other run has; behind it, zeros.
fn name_of(rank: u32, now_ns: u64) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let text = format!("/feedrate-{}-{rank}-{now_ns:x}", std::process::id());
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn text(name: &[u8]) -> &str {
    let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
    std::str::from_utf8(text).unwrap_or_default()
}

fn row(offset: ClockOffset) -> (i64, u64) {
    (offset.offset_ns, offset.error_ns)
}

/// How far `now_ns` is ahead of this machine's clock.
fn against_machine(now_ns: &dyn Fn() -> u64) -> ClockOffset {
    let look = || {
        let before_ns = machine_ns();
        let now_ns = now_ns();
        between(before_ns, now_ns, machine_ns())
    };
    (0..LOOKS).map(|_| look()).min_by_key(|look| look.error_ns).unwrap_or_default()
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
