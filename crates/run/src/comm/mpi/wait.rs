//! Waiting for an operation of MPI without holding a core: a short spin where cores are to spare, then giving way to others,
//! then naps that grow with the wait. Looks at why the wait may have to end.

use crate::clock::Clock;
use std::time::Duration;

/// So many looks in a row before the core is given away, where each rank has a core.
const SPINS: u32 = 2_000;
/// So long the core is given away before the first nap.
const GIVE_WAY: Duration = Duration::from_millis(2);
/// A wake-up costs about as much.
const PATIENCE: Duration = Duration::from_micros(30);
/// Naps are this share of the wait so far.
const NAP_SHARE: u32 = 64;
const NAP_MIN: Duration = Duration::from_micros(20);
const NAP_MAX: Duration = Duration::from_millis(1);

/// The way in which ranks of this machine wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitPolicy {
    spins: u32,
    nap_max: Duration,
}

impl WaitPolicy {
    /// For `ranks` on a machine with `cpus`.
    pub(super) fn new(ranks: u32, cpus: u32) -> Self {
        let cpus = cpus.max(1);
        let crowd = ranks.div_ceil(4 * cpus).max(1);
        WaitPolicy { spins: if ranks <= cpus { SPINS } else { 0 }, nap_max: NAP_MAX * crowd }
    }

    /// For threads beside those that have a core each.
    pub(super) fn without_spins(self) -> Self {
        WaitPolicy { spins: 0, ..self }
    }

    /// Ask `look` until it has an answer, giving way to others and napping in between.
    pub(super) fn wait<T, E>(
        &self,
        look: impl FnMut(Duration) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        self.wait_by(look, |waited| match self.nap(waited) {
            None => std::thread::yield_now(),
            Some(nap) => std::thread::sleep(nap),
        })
    }

    /// Ask `look` until it has an answer, with `rest` in between, which is told how long the wait has been.
    pub(super) fn wait_by<T, E>(
        &self,
        mut look: impl FnMut(Duration) -> Result<Option<T>, E>,
        rest: impl Fn(Duration),
    ) -> Result<T, E> {
        for _ in 0..self.spins.max(1) {
            if let Some(answer) = look(Duration::ZERO)? {
                return Ok(answer);
            }
            std::hint::spin_loop();
        }
        let clock = Clock::new();
        loop {
            let waited = Duration::from_nanos(clock.now_ns());
            if let Some(answer) = look(waited)? {
                return Ok(answer);
            }
            rest(waited);
        }
    }

    /// Whether a core is still given away, before a sleep that somebody else has to end.
    pub(super) fn has_patience(&self, waited: Duration) -> bool {
        waited < PATIENCE
    }

    fn nap(&self, waited: Duration) -> Option<Duration> {
        (waited > GIVE_WAY).then(|| (waited / NAP_SHARE).clamp(NAP_MIN, self.nap_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow_with_the_wait_and_with_the_crowd() {
        let check = |ranks, cpus, waited_us, nap_us: Option<u64>| {
            let nap = WaitPolicy::new(ranks, cpus).nap(Duration::from_micros(waited_us));
            assert_eq!(nap, nap_us.map(Duration::from_micros), "{ranks} {cpus} {waited_us}");
        };
        check(4, 2, 500, None);
        check(4, 2, 6_400, Some(100));
        check(4, 2, 10_000_000, Some(1_000));
        check(64, 2, 10_000_000, Some(8_000));
    }

    #[test]
    fn only_ranks_with_a_core_each_spin() {
        assert_eq!(WaitPolicy::new(2, 2).spins, SPINS);
        assert_eq!(WaitPolicy::new(3, 2).spins, 0);
    }

    #[test]
    fn a_wait_ends_with_its_answer_or_its_error() {
        let mut looks = 0;
        let answer: Result<u32, ()> = WaitPolicy::new(4, 2).wait(|_| {
            looks += 1;
            Ok((looks == 5).then_some(looks))
        });
        assert_eq!(answer, Ok(5));
        assert_eq!(WaitPolicy::new(1, 2).wait(|_| Err::<Option<()>, u8>(7)), Err(7));
    }
}
