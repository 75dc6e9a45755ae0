//! Waits for MPI operations without occupying a core: a short spin if there are idle cores, then yields, then sleeps that grow with
//! the wait.

use crate::clock::Clock;
use std::time::Duration;

/// Number of polls before the first yield, if each rank has a core.
const SPINS: u32 = 2_000;
/// Time of yielding before the first sleep of a polling wait.
const YIELD_TIME: Duration = Duration::from_millis(2);
/// Time of yielding before a sleep that another rank ends; about the cost of a wake-up.
const YIELD_TIME_BEFORE_WAKE: Duration = Duration::from_micros(30);
/// Sleeps are 1/64 of the wait so far.
const SLEEP_DIVISOR: u32 = 64;
const SLEEP_MIN: Duration = Duration::from_micros(20);
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// How the ranks of this machine wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitPolicy {
    spins: u32,
    sleep_max: Duration,
}

impl WaitPolicy {
    /// Creates the policy of `ranks` ranks on a machine with `cpus` processors. Only ranks with a core each spin.
    pub(super) fn new(ranks: u32, cpus: u32) -> Self {
        let cpus = cpus.max(1);
        let sleep_factor = ranks.div_ceil(4 * cpus).max(1);
        WaitPolicy {
            spins: if ranks <= cpus { SPINS } else { 0 },
            sleep_max: SLEEP_MAX * sleep_factor,
        }
    }

    /// Returns the policy for further threads of a rank, which have no core each.
    pub(super) fn without_spins(self) -> Self {
        WaitPolicy { spins: 0, ..self }
    }

    /// Calls `poll` until it returns a value, and yields or sleeps between the calls.
    pub(super) fn wait<T, E>(
        &self,
        poll: impl FnMut(Duration) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        self.wait_with(poll, |waited| match self.sleep_time(waited) {
            None => std::thread::yield_now(),
            Some(sleep) => std::thread::sleep(sleep),
        })
    }

    /// Calls `poll` until it returns a value, with `pause` between the calls. Both get the time waited so far.
    pub(super) fn wait_with<T, E>(
        &self,
        mut poll: impl FnMut(Duration) -> Result<Option<T>, E>,
        pause: impl Fn(Duration),
    ) -> Result<T, E> {
        for _ in 0..self.spins.max(1) {
            if let Some(value) = poll(Duration::ZERO)? {
                return Ok(value);
            }
            std::hint::spin_loop();
        }
        let clock = Clock::new();
        loop {
            let waited = Duration::from_nanos(clock.now_ns());
            if let Some(value) = poll(waited)? {
                return Ok(value);
            }
            pause(waited);
        }
    }

    /// Whether to yield instead of sleeping until another rank wakes this one.
    pub(super) fn yields_before_sleep(&self, waited: Duration) -> bool {
        waited < YIELD_TIME_BEFORE_WAKE
    }

    /// Returns the next sleep of a polling wait; `None` while it yields.
    fn sleep_time(&self, waited: Duration) -> Option<Duration> {
        (waited > YIELD_TIME).then(|| (waited / SLEEP_DIVISOR).clamp(SLEEP_MIN, self.sleep_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_with_the_wait_and_the_number_of_ranks() {
        let check = |ranks, cpus, waited_us, sleep_us: Option<u64>| {
            let sleep = WaitPolicy::new(ranks, cpus).sleep_time(Duration::from_micros(waited_us));
            assert_eq!(sleep, sleep_us.map(Duration::from_micros), "{ranks} {cpus} {waited_us}");
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
    fn a_wait_ends_with_a_value_or_an_error() {
        let mut polls = 0;
        let outcome: Result<u32, ()> = WaitPolicy::new(4, 2).wait(|_| {
            polls += 1;
            Ok((polls == 5).then_some(polls))
        });
        assert_eq!(outcome, Ok(5));
        assert_eq!(WaitPolicy::new(1, 2).wait(|_| Err::<Option<()>, u8>(7)), Err(7));
    }
}
