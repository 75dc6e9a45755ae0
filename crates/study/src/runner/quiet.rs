//! How long runs may wait for a quiet machine: the one place that decides. Looks at no machine.

/// Before one run, where the user says nothing.
pub const EACH_MAX_S: f64 = 30.0;
/// All waits together take no more than this share of the time of the runs, where the user says nothing.
pub const SHARE_MAX: f64 = 0.25;
/// So long they may take however short the runs are: what making a dataset left to be written ends meanwhile.
const LEAST_S: f64 = 10.0;

/// The user's word on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum QuietWait {
    /// Up to [`EACH_MAX_S`], and together no more than [`SHARE_MAX`] or ten seconds.
    #[default]
    Bounded,
    /// Up to so many seconds before each run.
    Each(f64),
    /// Nobody looks whether the machine is quiet.
    Never,
}

/// Waits of one start of the runner, and the runs that they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct QuietBudget {
    wait: QuietWait,
    waited_s: f64,
    ran_s: f64,
}

impl QuietBudget {
    pub(super) fn new(wait: QuietWait) -> Self {
        QuietBudget { wait, ..QuietBudget::default() }
    }

    /// How long the next run may wait; `None` where it does not look. With no time left it looks once.
    pub(super) fn next_s(&self) -> Option<f64> {
        match self.wait {
            QuietWait::Never => None,
            QuietWait::Each(limit_s) => Some(limit_s),
            QuietWait::Bounded => {
                let all_s = (SHARE_MAX * self.ran_s).max(LEAST_S);
                Some((all_s - self.waited_s).clamp(0.0, EACH_MAX_S))
            }
        }
    }

    pub(super) fn waited(&mut self, seconds: f64) {
        self.waited_s += seconds;
    }

    pub(super) fn ran(&mut self, seconds: f64) {
        self.ran_s += seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits before runs of these lengths on a machine that is never quiet.
    fn waits(wait: QuietWait, runs_s: &[f64]) -> Vec<f64> {
        let mut budget = QuietBudget::new(wait);
        let mut waits = Vec::new();
        for &run_s in runs_s {
            let wait_s = budget.next_s().unwrap();
            budget.waited(wait_s);
            budget.ran(run_s);
            waits.push(wait_s);
        }
        waits
    }

    #[test]
    fn all_waits_are_a_quarter_of_the_runs_on_a_machine_that_is_never_quiet() {
        let short = waits(QuietWait::Bounded, &[12.0; 12]);
        assert_eq!(short[..6], [10.0, 0.0, 0.0, 0.0, 2.0, 3.0]);
        assert_eq!(short.iter().sum::<f64>(), 0.25 * 11.0 * 12.0);
        // However short they are, what was written before has some time to reach the disk.
        assert_eq!(waits(QuietWait::Bounded, &[0.1; 3]), [10.0, 0.0, 0.0]);
        assert_eq!(waits(QuietWait::Bounded, &[3600.0; 3]), [10.0, 30.0, 30.0]);
    }

    #[test]
    fn time_that_a_quiet_machine_left_is_there_when_it_is_not() {
        let mut budget = QuietBudget::new(QuietWait::Bounded);
        budget.ran(100.0);
        budget.waited(1.0);
        assert_eq!(budget.next_s(), Some(24.0));
        // The last look ends a little later.
        budget.waited(24.5);
        assert_eq!(budget.next_s(), Some(0.0));
    }

    #[test]
    fn a_user_who_gives_a_time_gets_it_before_each_run() {
        assert_eq!(waits(QuietWait::Each(60.0), &[1.0; 3]), [60.0; 3]);
        assert_eq!(QuietBudget::new(QuietWait::Never).next_s(), None);
    }
}
