//! One process: nothing to wait for.

use super::Comm;
use feedrate_spec::catalog::Member;

pub(super) static MEMBER: Member =
    Member { name: "solo", summary: "one process, any number of accelerators", abilities: &[] };

/// One process.
#[derive(Debug, Default)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn barrier(&self) {}

    fn sum(&self, value: f64) -> f64 {
        value
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }
}
