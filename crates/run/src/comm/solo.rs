//! Communication in a run of one process, which has nothing to wait for.

use super::{ClockOffset, Comm, CommError, End, RankNode};
use feedrate_spec::catalog::Member;

pub(super) static MEMBER: Member =
    Member { name: "solo", summary: "one process, any number of accelerators", abilities: &[] };

/// The only process of a run.
#[derive(Debug, Default)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn node(&self) -> RankNode {
        RankNode { node: 0, nodes: 1, local_rank: 0, local_size: 1, local_size_max: 1 }
    }

    fn barrier(&self) -> Result<(), CommError> {
        Ok(())
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        Ok(vec![bytes.to_vec()])
    }

    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        Ok(bytes.to_vec())
    }

    fn clock_offset(&self, _: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
        Ok(ClockOffset::default())
    }

    fn give_up(&self, _: End) {}
}
